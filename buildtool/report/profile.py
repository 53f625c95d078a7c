"""The answer of `profile` as text: a line a layer, totals, and whether the output is right."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from buildtool.modes import Requantise
from buildtool.report import bounds, estimate
from buildtool.report.table import Cell, count, headline, layer, table

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
        _table(answer, instructions is not None),
        "",
        f"arena {count(answer['arena_bytes'], 'byte')}, weights {count(answer['flash_bytes'], 'byte')}"
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
    else:
        lines.append("instructions are counted in emulators only, not on the host")
    lines += estimate.lines(answer)
    lines += [_top(output) for output in answer["outputs"]]
    lines += bounds.lines(answer["bounds"])
    lines.append(f"output of {count(answer['inputs'], 'input')}: {_verdict(answer)}")
    return "\n".join(lines)


def _verdict(answer: ProfileAnswer) -> str:
    if answer["requantise"] != Requantise.EXACT:
        return bounds.verdict(answer)
    return "EQUAL to the reference, to the bit" if answer["exact"] else "DIFFERENT from the reference"


def _table(answer: ProfileAnswer, counted: bool) -> str:
    """Of a plan that repeats work (or leaves some out) with the F of every layer."""
    titles = ["#", "layer", "operator", "output", "MACs", "F", "RAM alive", "instructions", "per MAC"]
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
            row["instructions"],
            _per_mac(row["instructions"], row["macs"]),
        ]
        for number, row in enumerate(answer["per_operator"])
    ]
    peak = max((row["ram_alive"] for row in answer["per_operator"]), default=0)
    total: list[Cell] = [None, "total", None, None, answer["macs"], f"{answer['f']:.3f}", peak]
    total += [answer["instructions"], _per_mac(answer["instructions"], answer["macs"])]
    kept = [i for i, title in enumerate(titles) if (repeats or title != "F") and (counted or i < 7)]

    def chosen(row: Sequence[Cell]) -> list[Cell]:
        return [row[i] for i in kept]

    return table([titles[i] for i in kept], list(map(chosen, rows)), chosen(total))


def _per_mac(instructions: int | None, macs: int) -> float | None:
    return instructions / macs if instructions is not None and macs else None


def _top(output: OutputTop) -> str:
    best = ", ".join(f"[{entry['index']}] {entry['value']}" for entry in output["top"])
    return f"output '{output['name']}' ({output['shape']}), largest values: {best}"
