"""The answer of `plan` as text: memory and work in figures, every operator's kernel, the arena's map."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from buildtool.report import estimate
from buildtool.report.table import Cell, count, layer, table

Answer = Mapping[str, Any]
NAME_WIDTH = 40
PLACE_WIDTH = 60


def text(answer: Answer) -> str:
    """Figures first, then operators in order of execution, then buffers by offset."""
    fullest = layer(answer["binding"]["name"], PLACE_WIDTH)
    over = answer["arena_bytes"] - answer["arena_bound_bytes"]
    bound = "no placement needs less" if not over else f"{over:,} over the largest live sum"
    lines = [
        f"{answer['model']} on {answer['board']}: {answer['strategy']}, image {answer['image']}",
        f"arena    {count(answer['arena_bytes'], 'byte')} ({bound}), fullest at {fullest}",
        *(f"         - {what}" for what in answer["accounting"]),
        f"weights  {count(answer['flash_bytes'], 'byte')} of flash",
        f"work     {count(answer['macs'], 'multiply-accumulate')}, F {answer['f']:.3f}; "
        f"estimated cost {answer['cost']:,.0f}",
        *estimate.lines(answer),
        "",
        _operators(answer),
        "",
        _buffers(answer),
    ]
    return "\n".join(lines)


def _operators(answer: Answer) -> str:
    rows: list[list[Cell]] = [
        [op["position"], layer(op["name"], NAME_WIDTH), op["kind"], op["kernel"] or "(no code)"]
        for op in answer["operators"]
    ]
    return table(["#", "layer", "operator", "kernel"], rows)


def _buffers(answer: Answer) -> str:
    placed = sorted(answer["buffers"], key=lambda b: (b["offset"], b["first"]))
    rows: list[list[Cell]] = [
        [
            b["offset"],
            b["offset"] + b["size"],
            b["first"],
            b["last"],
            b["kind"],
            layer(b["name"], NAME_WIDTH),
        ]
        for b in placed
    ]
    titles = ["from byte", "to byte", "from step", "to step", "holds", "name"]
    return table(titles, rows)
