"""The answer of `profile` as text: a line a layer, totals, and whether the output is right."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from buildtool.base.modes import Requantise
from buildtool.fronts.texts import bounds, cycles, estimate, issues
from buildtool.fronts.texts.table import Cell, count, headline, layer, of_state, table

if TYPE_CHECKING:
    from buildtool.schema.runs import OutputTop, ProfileAnswer

NAME_WIDTH = 32


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
    lines += cycles.lines(answer)
    lines += [*issues.lines(answer), *estimate.lines(answer), *issues.published(answer["published"])]
    lines += [_top(output) for output in answer["outputs"]]
    lines += bounds.lines(answer["bounds"])
    lines.append(f"output of {count(answer['inputs'], 'input')}: {_verdict(answer)}")
    return "\n".join(lines)


def _verdict(answer: ProfileAnswer) -> str:
    if answer["requantise"] != Requantise.EXACT:
        return bounds.verdict(answer)
    if answer["exact"]:
        return f"EQUAL to {bounds.judged(answer['reference'])}"
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
        return issues.columns(rows, found)
    titles: list[str] = []
    cells: list[list[Cell]] = [[] for _ in rows]
    sums: list[Cell] = []
    is_estimated = answer["cycles_are"] == cycles.ESTIMATED
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
