"""Issues of a vector unit as text: columns of the table of layers, what they mean, a published profile."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap
from typing import TYPE_CHECKING

from buildtool.fronts.texts.table import Cell, count, table

if TYPE_CHECKING:
    from buildtool.schema.runs import (
        IssueSummary,
        LayerProfile,
        ProfileAnswer,
        ProfileLine,
        PublishedProfile,
    )

WIDTH = 110  # columns
TITLES = ["VPU issues", "others", "per MAC", "x limit"]


def columns(
    rows: Sequence[LayerProfile], found: IssueSummary
) -> tuple[list[str], list[list[Cell]], list[Cell]]:
    """The titles, a line an operator (empty where it was not counted), and the sums of what was counted."""
    lines: list[list[Cell]] = []
    for row in rows:
        own = row["issues"]
        if own is None:
            lines.append([None, None, None, None])
            continue
        lines.append([own["vpu"], own["scalar"], *_rate(own["vpu_per_mac"], found["limit_per_mac"])])
    return TITLES, lines, [found["vpu"], found["scalar"], None, None]


def _rate(per_mac: float | None, limit: float) -> list[Cell]:
    """Issues of the unit a multiply-accumulate, and how many times the least that is."""
    return [None, None] if per_mac is None else [f"{per_mac:.4f}", f"{per_mac / limit:.2f}"]


def lines(answer: ProfileAnswer) -> list[str]:
    """What was counted, what time that is, and which operators were not counted."""
    found = answer["issues"]
    if found is None:
        return []
    if not found["operators"]:
        return [f"issues are {found['source']}: no kernel of this plan counts them, all are plain C"]
    share = 100 * found["macs"] / found["all_macs"] if found["all_macs"] else 0.0
    return [
        f"issues are {found['source']}: {found['operators']} of {count(found['all_operators'], 'operator')}, "
        f"{share:.1f} % of the MACs (limit: {round(1 / found['limit_per_mac'])} MACs an issue)",
        *wrap(
            f"from the counts: {1e3 * found['seconds']:.1f} ms without waiting for weights, on "
            f"{count(found['threads'], 'thread')} with an issue every {found['cycles_per_issue']} cycles of "
            f"{found['clock_hz'] / 1e6:.0f} MHz each; a call is as long as its slowest thread. Not measured",
            WIDTH,
            subsequent_indent="  ",
        ),
        *_uncounted(answer["per_operator"]),
    ]


def _uncounted(rows: Sequence[LayerProfile]) -> list[str]:
    """A line a reason, with the numbers of its operators."""
    reasons: dict[str, list[int]] = {}
    for number, row in enumerate(rows):
        if row["uncounted"]:
            reasons.setdefault(row["uncounted"], []).append(number)
    text = []
    for reason, numbers in reasons.items():
        which = ", ".join(f"#{number}" for number in numbers)
        text += wrap(f"not counted: {which} ({reason})", WIDTH, subsequent_indent="  ")
    return text


def published(profile: PublishedProfile | None) -> list[str]:
    """A table of milliseconds: a published profile, our estimate, our counts."""
    if profile is None:
        return []
    head = f"{profile['network']}, milliseconds by operator, beside what was published ({profile['source']}):"
    titles = ["", "published", "estimated", "from the counts"]
    rows = [_line(line) for line in profile["lines"]]
    whole = (profile["seconds"], profile["estimated_seconds"], None)
    total: list[Cell] = ["all", *map(_milliseconds, whole)]
    absent = [line["name"] for line in profile["lines"] if not line["operators"]]
    last = [f"there is none in this plan: {', '.join(absent)}"] if absent else []
    return ["", *wrap(head, WIDTH, break_on_hyphens=False), table(titles, rows, total), *last, ""]


def _line(line: ProfileLine) -> list[Cell]:
    if not line["operators"]:
        return [line["name"], _milliseconds(line["published"]), "none", "none"]
    return [line["name"], *map(_milliseconds, (line["published"], line["estimated"], line["counted"]))]


def _milliseconds(seconds: float | None) -> str | None:
    return None if seconds is None else f"{1e3 * seconds:.2f}"
