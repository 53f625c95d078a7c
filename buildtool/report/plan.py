"""The answer of `plan` as text: memory and work in figures, how it runs, the arena's map."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from buildtool.report import arenamap, estimate, regions
from buildtool.report.table import Cell, count, layer, table

if TYPE_CHECKING:
    from buildtool.schema.plans import PlanAnswer

NAME_WIDTH = 40
PLACE_WIDTH = 60


def text(answer: PlanAnswer, *, buffers: bool = False) -> str:
    """Figures first, then how the network runs and what is live.

    A plan that is not streamed: operators in order of execution, then buffers by offset. A streamed one:
    regions, their memory, the peak, a map, and each region's largest buffers; with `buffers` all
    operators and buffers instead.
    """
    streamed = any(region["streamed"] for region in answer["regions"])
    parts = ["\n".join([*_figures(answer, streamed), *estimate.lines(answer)])]
    if streamed:
        parts += regions.tables(answer)
        parts.append(arenamap.text(answer))
        if not buffers:
            parts.append(regions.largest(answer))
    if answer["beside"]:
        parts.append(_beside(answer))
    if buffers or not streamed:
        parts += [_operators(answer), _buffers(answer)]
    return "\n\n".join(part for part in parts if part)


def _figures(answer: PlanAnswer, streamed: bool) -> Iterator[str]:
    yield f"{answer['model']} on {answer['board']}: {answer['strategy']}, image {answer['image']}"
    over = answer["arena_bytes"] - answer["arena_bound_bytes"]
    bound = "no placement needs less" if not over else f"{over:,} over the largest live sum"
    if streamed:
        if over:
            bound = f"{over:,} above the bound: no placement is lower than {answer['arena_bound_bytes']:,}"
        yield f"arena    {count(answer['arena_bytes'], 'byte')} ({bound})"
        yield from regions.peak_lines(answer)
    else:
        fullest = layer(answer["binding"]["name"], PLACE_WIDTH)
        yield f"arena    {count(answer['arena_bytes'], 'byte')} ({bound}), fullest at {fullest}"
    yield from (f"         - {what}" for what in answer["accounting"])
    yield f"weights  {count(answer['flash_bytes'], 'byte')} of flash"
    yield (
        f"work     {count(answer['macs'], 'multiply-accumulate')}, F {answer['f']:.3f}; "
        f"estimated cost {answer['cost']:,.0f}"
    )
    if streamed:
        yield from regions.work_lines(answer)


def _beside(answer: PlanAnswer) -> str:
    """Other strategies, with this plan on top."""
    titles = ["strategy", "limit", "image", "arena bytes", "times this", "F", "cost"]
    rows: list[list[Cell]] = [
        [
            f"this plan ({answer['strategy']})",
            "",
            answer["image"],
            answer["arena_bytes"],
            "1.00",
            f"{answer['f']:.3f}",
            f"{answer['cost']:,.0f}",
        ]
    ]
    for row in answer["beside"]:
        if "error" not in row:
            figures: list[Cell] = [
                row["arena_bytes"],
                f"{row['ratio']:.2f}",
                f"{row['f']:.3f}",
                f"{row['cost']:,.0f}",
            ]
            rows.append([row["strategy"], row["setting"], row["image"], *figures])
    lines = ["Beside other strategies, counted alike:", table(titles, rows)]
    lines += [f"{row['strategy']}: {row['error']}" for row in answer["beside"] if "error" in row]
    return "\n".join(lines)


def _operators(answer: PlanAnswer) -> str:
    rows: list[list[Cell]] = [
        [op["position"], layer(op["name"], NAME_WIDTH), op["kind"], op["kernel"] or "(no code)"]
        for op in answer["operators"]
    ]
    return table(["#", "layer", "operator", "kernel"], rows)


def _buffers(answer: PlanAnswer) -> str:
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
