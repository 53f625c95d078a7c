"""The answer to `profile` as text: a line for each layer, totals, and whether the output is right."""

from __future__ import annotations

from collections.abc import Callable
from textwrap import wrap
from typing import TYPE_CHECKING, Literal

from buildtool.base.layers import short_names
from buildtool.base.modes import Requantise
from buildtool.fronts.texts.boards import board_lines
from buildtool.fronts.texts.table import WIDTH, Cell, count, headline, shorten, state_suffix, table
from buildtool.fronts.texts.validation import NAME_WIDTH, agreement, bound_lines, bounds_verdict

if TYPE_CHECKING:
    from buildtool.schema.runs import (
        IssueSummary,
        LayerProfile,
        ProfileAnswer,
        PublishedProfile,
    )

    Column = tuple[str, Callable[[int, LayerProfile], Cell], Cell]  # title, cell of a layer, total

ESTIMATED = "estimated"
SPARE = ("output", "operator", "per MAC", "RAM alive", "MACs")  # columns, the first to go on narrow lines


def text(answer: ProfileAnswer) -> str:
    """Returns a headline and the table of layers, then memory, totals and the verdict."""
    rows = answer["per_operator"]
    instructions, stack = answer["instructions"], answer["stack_high_water"]
    lines = [
        headline(answer),
        "",
        _table(answer),
        "",
        f"arena {count(answer['arena_bytes'], 'byte')}{state_suffix(answer['state_bytes'])}, "
        f"weights {count(answer['flash_bytes'], 'byte')}"
        + ("" if stack is None else f", stack {count(stack, 'byte')}"),
    ]
    if answer["macs"] != answer["macs_layerwise"]:
        lines.append(
            f"MACs are executed ones: F {answer['f']:.3f} times the {answer['macs_layerwise']:,} of the "
            "network run layer by layer"
        )
    if instructions is not None:
        outside = instructions - sum(row["instructions"] or 0 for row in rows)
        lines.append(f"instructions are executed ones, not cycles; {outside:,} of them between layers")
    elif answer["cycles"] is None and answer["issues"] is None:
        lines.append("instructions are counted in emulators only, not on the host")
    lines += _cycle_lines(answer)
    lines += [*_issue_lines(answer), *board_lines(answer), *_published_rows(answer["published"])]
    for output in answer["outputs"]:
        best = ", ".join(f"[{entry['index']}] {entry['value']}" for entry in output["top"])
        lines.append(f"output '{output['name']}' ({output['shape']}), largest values: {best}")
    lines += bound_lines(answer["bounds"])
    verdict = f"DIFFERENT from {answer['reference']['text']}"
    if answer["requantise"] != Requantise.EXACT:
        verdict = bounds_verdict(answer)
    elif answer["within_bounds"]:
        verdict = agreement(answer["reference"])
    lines.append(f"output of {count(answer['inputs'], 'input')}: {verdict}")
    return "\n".join(lines)


def _table(answer: ProfileAnswer) -> str:
    """Returns a table of layers with totals. It has each layer's F if the plan repeats or skips work."""
    rows, macs, issues = answer["per_operator"], answer["macs"], answer["issues"]
    names = short_names([row["name"] for row in rows])
    counts_issues = issues is not None and bool(issues["operators"])
    columns: list[Column] = [
        ("#", lambda at, _: at, None),
        ("layer", lambda at, _: shorten(names[at], NAME_WIDTH), "total"),
        ("operator", lambda _, row: row["operator"], None),
        ("output", lambda _, row: row["output_shape"], None),
        ("MACs", lambda _, row: row["macs"], macs),
    ]
    if macs != answer["macs_layerwise"] or any(row["f"] != 1 for row in rows):
        columns.append(("F", lambda _, row: f"{row['f']:.3f}" if row["macs"] else "", f"{answer['f']:.3f}"))
    if not counts_issues:  # issues take four columns
        peak = max((row["ram_alive"] for row in rows), default=0)
        columns.append(("RAM alive", lambda _, row: row["ram_alive"], peak))
    if issues is not None and counts_issues:
        columns += _issue_columns(issues)
    else:
        if answer["instructions"] is not None:
            columns += _count_columns("instructions", answer["instructions"], macs)
        if answer["cycles_are"] == ESTIMATED:
            columns.append(("est. cycles", lambda _, row: row["cycles"], answer["cycles"]))
        elif answer["cycles"] is not None:
            columns += _count_columns("cycles", answer["cycles"], macs)
    return table(
        [title for title, _, _ in columns],
        [[value(at, row) for _, value, _ in columns] for at, row in enumerate(rows)],
        [total for _, _, total in columns],
        spare=SPARE,
    )


def _count_columns(title: Literal["instructions", "cycles"], total: int, macs: int) -> list[Column]:
    """Returns two columns: the count, and the count per multiply-accumulate."""
    return [
        (title, lambda _, row: row[title], total),
        ("per MAC", lambda _, row: _per_mac(row[title], row["macs"]), _per_mac(total, macs)),
    ]


def _issue_columns(issues: IssueSummary) -> list[Column]:
    """Returns the columns about issues, which are instructions of an XS3 core.

    They show the issues of the vector unit, all other issues, the vector unit's issues per
    multiply-accumulate, and how many times this is the smallest possible number (`limit_per_mac`).
    """

    def count_of(row: LayerProfile, name: Literal["vpu", "scalar"]) -> Cell:
        return None if row["issues"] is None else row["issues"][name]

    def rate(row: LayerProfile, form: str, unit: float) -> Cell:
        per_mac = None if row["issues"] is None else row["issues"]["vpu_per_mac"]
        return None if per_mac is None else form.format(per_mac / unit)

    return [
        ("VPU issues", lambda _, row: count_of(row, "vpu"), issues["vpu"]),
        ("others", lambda _, row: count_of(row, "scalar"), issues["scalar"]),
        ("per MAC", lambda _, row: rate(row, "{:.4f}", 1.0), None),
        ("x limit", lambda _, row: rate(row, "{:.2f}", issues["limit_per_mac"]), None),
    ]


def _per_mac(count: int | None, macs: int) -> float | None:
    return count / macs if count is not None and macs else None


def _cycle_lines(answer: ProfileAnswer) -> list[str]:
    """Returns the lines about measured or estimated cycles, or the reason why there are none."""
    cycles, how = answer["cycles"], answer["estimated_by"]
    if cycles is None:
        return [f"no cycles: {answer['no_cycles']}"] if answer["no_cycles"] else []
    if how is None:
        outside = cycles - sum(row["cycles"] or 0 for row in answer["per_operator"])
        text = f"cycles are measured, by the core's own counter; {outside:,} of them between layers"
        ms = "" if answer["seconds"] is None else f"; {answer['seconds'] * 1000:,.2f} ms at the board's clock"
        return [text + ms]
    whole = f"cycles are an estimate, not measured: {cycles:,} of them"
    if answer["estimated_ms"] is not None:
        whole += f", {answer['estimated_ms']:,.2f} ms at {how['clock_hz'] / 1e6:,g} MHz"
    parts, unknown = how["parts"], how["skipped"]  # unknown instructions take no time in the model
    skipped = f"; without {', '.join(unknown)}, which it does not know" if unknown else ""
    refill = f"{how['taken_branches']:,} x {how['taken_branch_cycles']}; {how['source']}"
    lines = [
        f"{whole}; {how['between']:,} of them between layers",
        f"  pipeline {parts['pipeline']:,} ({how['model']}{skipped})",
        f"  taken branches {parts['branches']:,} ({refill})",
    ]
    if parts["words"]:
        lines.insert(2, f"  loads and stores of several words {parts['words']:,} more than the model counts")
    lines += [
        f"  waiting for {wait['memory']} {wait['code'] + wait['data']:,} "
        f"(code {wait['code']:,}, data {wait['data']:,}, by a simple model of the memory)"
        for wait in how["waits"]
        if wait["code"] + wait["data"]
    ]
    if how["ideal"]:
        lines.append(f"  memory ideal: {', '.join(how['ideal'])} (the board's file gives no speed)")
    return lines


def _issue_lines(answer: ProfileAnswer) -> list[str]:
    """Returns lines about the counted issues (instructions of an XS3 core) and the time that they take.

    They also name the operators without a count.
    """
    issues = answer["issues"]
    if issues is None:
        return []
    if not issues["operators"]:
        return [f"issues are {issues['source']}: no kernel of this plan counts them, because all are plain C"]
    share = 100 * issues["macs"] / issues["all_macs"] if issues["all_macs"] else 0.0
    reasons: dict[str, list[str]] = {}  # reason -> the numbers of its operators
    for number, row in enumerate(answer["per_operator"]):
        if row["uncounted"]:
            reasons.setdefault(row["uncounted"], []).append(f"#{number}")
    return [
        f"issues are {issues['source']}: {issues['operators']} of "
        f"{count(issues['all_operators'], 'operator')}, {share:.1f} % of the MACs "
        f"(limit: {round(1 / issues['limit_per_mac'])} MACs an issue)",
        *wrap(
            f"from the counts: {1e3 * issues['seconds']:.1f} ms without waiting for weights, on "
            f"{count(issues['threads'], 'thread')} with an issue every {issues['cycles_per_issue']} cycles "
            f"of {issues['clock_hz'] / 1e6:.0f} MHz each; a call is as long as its slowest thread. "
            "Not measured",
            WIDTH,
            subsequent_indent="  ",
        ),
        *(
            line
            for reason, numbers in reasons.items()
            for line in wrap(f"not counted: {', '.join(numbers)} ({reason})", WIDTH, subsequent_indent="  ")
        ),
    ]


def _published_rows(profile: PublishedProfile | None) -> list[str]:
    """Returns a table of a published profile's milliseconds, beside our estimate and our counts."""
    if profile is None:
        return []
    head = f"{profile['network']}, milliseconds by operator, beside what was published ({profile['source']}):"
    titles = ["", "published", "estimated", "from the counts"]
    rows: list[list[Cell]] = []
    for line in profile["lines"]:
        own_seconds = (line["estimated"], line["counted"])
        cells = map(_milliseconds, own_seconds) if line["operators"] else ("none", "none")
        rows.append([line["name"], _milliseconds(line["published"]), *cells])
    whole = (profile["seconds"], profile["estimated_seconds"], None)
    total: list[Cell] = ["all", *map(_milliseconds, whole)]
    absent = [line["name"] for line in profile["lines"] if not line["operators"]]
    last = [f"not in this plan: {', '.join(absent)}"] if absent else []
    return ["", *wrap(head, WIDTH, break_on_hyphens=False), table(titles, rows, total), *last, ""]


def _milliseconds(seconds: float | None) -> str | None:
    return None if seconds is None else f"{1e3 * seconds:.2f}"
