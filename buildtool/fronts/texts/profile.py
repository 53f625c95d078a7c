"""The answer of `profile` as text: a line a layer, totals, and whether the output is right."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap
from typing import TYPE_CHECKING

from buildtool.base.modes import Requantise
from buildtool.fronts.texts.boards import board_lines
from buildtool.fronts.texts.table import WIDTH, Cell, count, headline, layer, of_state, table
from buildtool.fronts.texts.validation import NAME_WIDTH, bound_lines, bounds_verdict, judged

if TYPE_CHECKING:
    from buildtool.schema.runs import (
        CycleEstimate,
        IssueSummary,
        LayerProfile,
        OutputTop,
        ProfileAnswer,
        ProfileLine,
        PublishedProfile,
    )


def text(answer: ProfileAnswer) -> str:
    """The per-layer table under a headline, then memory, totals and the verdict."""
    rows = answer["per_operator"]
    instructions = answer["instructions"]
    lines = [
        headline(answer),
        "",
        _table(answer, instructions is not None, answer["cycles"] is not None),
        "",
        f"arena {count(answer['arena_bytes'], 'byte')}{of_state(answer['state_bytes'])}, "
        f"weights {count(answer['flash_bytes'], 'byte')}"
        + (
            ""
            if answer["stack_high_water"] is None
            else f", stack {count(answer['stack_high_water'], 'byte')}"
        ),
    ]
    if answer["macs"] != answer["macs_layerwise"]:
        lines.append(
            f"MACs are executed ones: F {answer['f']:.3f} of the {answer['macs_layerwise']:,} of the network "
            "run layer by layer"
        )
    if instructions is not None:
        outside = instructions - sum(row["instructions"] or 0 for row in rows)
        lines.append(f"instructions are executed ones, not cycles; {outside:,} of them between layers")
    elif answer["cycles"] is None and answer["issues"] is None:
        lines.append("instructions are counted in emulators only, not on the host")
    lines += _cycle_lines(answer)
    lines += [*_issue_lines(answer), *board_lines(answer), *_published(answer["published"])]
    lines += [_top(output) for output in answer["outputs"]]
    lines += bound_lines(answer["bounds"])
    lines.append(f"output of {count(answer['inputs'], 'input')}: {_verdict(answer)}")
    return "\n".join(lines)


def _verdict(answer: ProfileAnswer) -> str:
    if answer["requantise"] != Requantise.EXACT:
        return bounds_verdict(answer)
    if answer["exact"]:
        return f"EQUAL to {judged(answer['reference'])}"
    return f"DIFFERENT from {answer['reference']['text']}"


def _table(answer: ProfileAnswer, counted: bool, timed: bool) -> str:
    """Of a plan that repeats work (or leaves some out) with the F of every layer."""
    columns = ["#", "layer", "operator", "output", "MACs", "F", "RAM alive"]
    repeats = answer["macs"] != answer["macs_layerwise"] or any(
        row["f"] != 1 for row in answer["per_operator"]
    )
    rows: list[list[Cell]] = [
        [
            number,
            layer(row["name"], NAME_WIDTH),
            row["operator"],
            row["output_shape"],
            row["macs"],
            f"{row['f']:.3f}" if row["macs"] else "",
            row["ram_alive"],
        ]
        for number, row in enumerate(answer["per_operator"])
    ]
    peak = max((row["ram_alive"] for row in answer["per_operator"]), default=0)
    total: list[Cell] = [None, "total", None, None, answer["macs"], f"{answer['f']:.3f}", peak]
    left_out = {"F"} if not repeats else set()
    if answer["issues"] is not None and answer["issues"]["operators"]:
        left_out.add("RAM alive")  # issues take four columns
    kept = [i for i, title in enumerate(columns) if title not in left_out]
    titles, cells, sums = _counts(answer, counted, timed)

    def chosen(row: Sequence[Cell]) -> list[Cell]:
        return [row[i] for i in kept]

    return table(
        [*(columns[i] for i in kept), *titles],
        [[*chosen(row), *more] for row, more in zip(rows, cells, strict=True)],
        [*chosen(total), *sums],
    )


def _counts(
    answer: ProfileAnswer, counted: bool, timed: bool
) -> tuple[list[str], list[list[Cell]], list[Cell]]:
    """The columns of what was counted: titles, a line an operator, totals."""
    rows, found = answer["per_operator"], answer["issues"]
    if found is not None and found["operators"]:
        return _issue_columns(rows, found)
    titles: list[str] = []
    cells: list[list[Cell]] = [[] for _ in rows]
    sums: list[Cell] = []
    is_estimated = answer["cycles_are"] == ESTIMATED
    columns = [("instructions", answer["instructions"], [row["instructions"] for row in rows])] * counted
    columns += [("cycles", answer["cycles"], [row["cycles"] for row in rows])] * (timed and not is_estimated)
    for title, total, numbers in columns:
        titles += [title, "per MAC"]
        sums += [total, _per_mac(total, answer["macs"])]
        for line, row, number in zip(cells, rows, numbers, strict=True):
            line += [number, _per_mac(number, row["macs"])]
    if is_estimated:
        titles.append("est. cycles")
        sums.append(answer["cycles"])
        for line, row in zip(cells, rows, strict=True):
            line.append(row["cycles"])
    return titles, cells, sums


def _per_mac(instructions: int | None, macs: int) -> float | None:
    return instructions / macs if instructions is not None and macs else None


def _top(output: OutputTop) -> str:
    best = ", ".join(f"[{entry['index']}] {entry['value']}" for entry in output["top"])
    return f"output '{output['name']}' ({output['shape']}), largest values: {best}"


ESTIMATED = "estimated"


def _cycle_lines(answer: ProfileAnswer) -> list[str]:
    """A line for measured cycles, a few for estimated ones, the reason where there are none."""
    cycles, how = answer["cycles"], answer["estimated_by"]
    if cycles is None:
        return [f"no cycles: {answer['no_cycles']}"] if answer["no_cycles"] else []
    if how is None:
        return [_measured(answer, cycles)]
    return _estimated(answer, cycles, how)


def _measured(answer: ProfileAnswer, cycles: int) -> str:
    """What the core's own counter says of the whole."""
    outside = cycles - sum(row["cycles"] or 0 for row in answer["per_operator"])
    text = f"cycles are measured, by the core's own counter; {outside:,} of them between layers"
    if answer["seconds"] is None:
        return text
    return f"{text}; {answer['seconds'] * 1000:,.2f} ms at the board's clock"


def _estimated(answer: ProfileAnswer, cycles: int, how: CycleEstimate) -> list[str]:
    """The whole, and its parts."""
    whole = f"cycles are an estimate, not measured: {cycles:,} of them"
    if answer["estimated_ms"] is not None:
        whole += f", {answer['estimated_ms']:,.2f} ms at {how['clock_hz'] / 1e6:,g} MHz"
    parts = how["parts"]
    refill = f"{how['taken_branches']:,} x {how['taken_branch_cycles']}; {how['source']}"
    found = [
        f"{whole}; {how['between']:,} of them between layers",
        f"  pipeline {parts['pipeline']:,} ({how['model']}{_skipped(how['skipped'])})",
        f"  taken branches {parts['branches']:,} ({refill})",
    ]
    if parts["words"]:
        found.insert(2, f"  loads and stores of several words {parts['words']:,} more than the model counts")
    found += [
        f"  waiting for {wait['memory']} {wait['code'] + wait['data']:,} "
        f"(code {wait['code']:,}, data {wait['data']:,}, by a simple model of the memory)"
        for wait in how["waits"]
        if wait["code"] + wait["data"]
    ]
    if how["ideal"]:
        found.append(f"  memory ideal: {', '.join(how['ideal'])} (the board's file gives no speed)")
    return found


def _skipped(names: Sequence[str]) -> str:
    """Instructions that take no time in the model."""
    return f"; without {', '.join(names)}, of which it knows nothing" if names else ""


TITLES = ["VPU issues", "others", "per MAC", "x limit"]


def _issue_columns(
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


def _issue_lines(answer: ProfileAnswer) -> list[str]:
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


def _published(profile: PublishedProfile | None) -> list[str]:
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
