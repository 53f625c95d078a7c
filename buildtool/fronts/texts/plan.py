"""The answer of `plan` as text: memory and work in figures, how it runs, the arena's map."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from buildtool.fronts.texts import arenamap, regions
from buildtool.fronts.texts.boards import board_lines
from buildtool.fronts.texts.front import by_ratio, cost_titles, in_ms, milliseconds
from buildtool.fronts.texts.table import Cell, count, layer, listing, table
from buildtool.fronts.texts.words import layer_of, owner

if TYPE_CHECKING:
    from buildtool.schema.plans import AloneView, MemoriesView, PlanAnswer, TraceAnswer

NAME_WIDTH = 40
PLACE_WIDTH = 60


def text(answer: PlanAnswer, *, buffers: bool = False) -> str:
    """Figures first, then how the network runs and what is live.

    A plan that is not streamed: a map, operators in order of execution, then buffers by offset. A streamed
    one: regions, their memory, the peak, a map, and each region's largest buffers; with `buffers` all
    operators and buffers instead.
    """
    streamed = any(region["streamed"] for region in answer["regions"])
    parts = ["\n".join([*_figures(answer, streamed), *board_lines(answer)]), two_memories(answer)]
    if streamed:
        parts += regions.tables(answer)
    parts.append(arenamap.text(answer))
    if streamed and not buffers:
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
    if answer["state_bytes"]:
        yield f"state    {count(answer['state_bytes'], 'byte')} that live between invokes, beside the arena"
    yield f"weights  {count(answer['flash_bytes'], 'byte')} of flash"
    yield (
        f"work     {count(answer['macs'], 'multiply-accumulate')}, F {answer['f']:.3f}; "
        f"estimated cost {answer['cost']:,.0f} {answer['cost_unit']}{in_ms(answer)}"
    )
    if answer["wait_cycles"]:
        yield f"         and about {answer['wait_cycles']:,.0f} cycles that the arena's memory is waited for"
    yield from by_ratio(answer)
    if answer["search_factor"] > 1:
        yield f"search   its budget ended it: at most {answer['search_factor']:.2f} times the least there is"
    if answer["placing_ended"]:
        yield "placing  its budget ended it: the plan is not proven least"
    if answer["order_status"] == "feasible":
        yield "order    the budget for orders ended before one was proven to be the best"
    if streamed:
        yield from regions.work_lines(answer)


def _beside(answer: PlanAnswer) -> str:
    """Other strategies, with this plan on top."""
    titles = ["strategy", "limit", "image", "arena bytes", "times this", "F"]
    titles += cost_titles(answer["cost_unit"], answer["estimated_ms"])
    rows: list[list[Cell]] = [
        [
            f"this plan ({answer['strategy']})",
            "",
            answer["image"],
            answer["arena_bytes"],
            "1.00",
            f"{answer['f']:.3f}",
            f"{answer['cost']:,.0f}",
            *milliseconds(answer),
        ]
    ]
    for row in answer["beside"]:
        if "error" not in row:
            figures: list[Cell] = [
                row["arena_bytes"],
                f"{row['ratio']:.2f}",
                f"{row['f']:.3f}",
                f"{row['cost']:,.0f}",
                *milliseconds(row),
            ]
            rows.append([row["strategy"], row["setting"], row["image"], *figures])
    lines = ["Beside other strategies, counted alike:", table(titles, rows)]
    lines += [f"{row['strategy']}: {row['error']}" for row in answer["beside"] if "error" in row]
    return "\n".join(lines)


def _operators(answer: PlanAnswer) -> str:
    return listing(
        answer["operators"],
        {
            "#": lambda op: op["position"],
            "layer": lambda op: layer_of(answer, op["position"], NAME_WIDTH),
            "operator": lambda op: op["kind"],
            "kernel": lambda op: op["kernel"] or "(no code)",
        },
    )


def _buffers(answer: PlanAnswer) -> str:
    return listing(
        sorted(answer["buffers"], key=lambda b: (b["offset"], b["first"])),
        {
            "from byte": lambda b: b["offset"],
            "to byte": lambda b: b["offset"] + b["size"],
            "from step": lambda b: b["first"],
            "to step": lambda b: b["last"],
            "holds": lambda b: b["kind"],
            "of": lambda b: owner(answer, b),
        },
    )


_KIB = 1024


def two_memories(answer: PlanAnswer) -> str:
    """A table of the arena's memories, and a line that compares; "" for an arena in one memory."""
    found = answer["memories"]
    if found is None:
        return ""
    arenas = listing(
        found["arenas"],
        {
            "memory": lambda one: one["memory"],
            "arena bytes": lambda one: one["arena_bytes"],
            "of": lambda one: one["room_bytes"],
            "bytes brought or written": lambda one: one["touched_bytes"],
            "cycles waited": lambda one: f"{one['wait_cycles']:,.0f}",
        },
    )
    return "\n".join(["The arena in two memories:", arenas, *_compared(found)])


def _compared(found: MemoriesView) -> list[str]:
    lines = [f"{one['memory']} alone: {_alone(one)}" for one in found["alone"]]
    both = " + ".join(f"{one['memory']} {_in_kib(one['arena_bytes'])}" for one in found["arenas"])
    gain = found["gain"]
    if gain is None:
        return [*lines, f"{both}: fits"]
    word = "gains" if gain >= 0 else "costs"
    return [*lines, f"{both}: fits; {word} {abs(gain):.1%} of the cost and waiting of the better one alone"]


def _alone(one: AloneView) -> str:
    if one["missing_bytes"] is None:
        return one["error"]
    if one["missing_bytes"]:
        return f"does not fit by {one['missing_bytes']:,} bytes"
    milliseconds = one["estimated_ms"]
    time = "" if milliseconds is None else f", about {milliseconds:,.1f} ms"
    waited = f" and {one['wait_cycles']:,.0f} cycles waited" if one["wait_cycles"] else ""
    return f"fits with {one['arena_bytes']:,} bytes, F {one['f']:.3f}, cost {one['cost']:,.0f}{waited}{time}"


def _in_kib(size: int) -> str:
    return f"{size / _KIB:,.1f} K" if size >= _KIB else f"{size} bytes"


def trace_text(answer: TraceAnswer, out: str) -> str:
    """Where it is, how large it is, and what its time is."""
    (data,) = answer["files"].values()
    numbers = (
        f"{count(answer['steps'], 'step')} in {count(answer['slices'], 'slice')}",
        count(answer["buffers"], "buffer"),
        count(len(data), "byte"),
    )
    return "\n".join(
        [
            f"written: {out}: {', '.join(numbers)}",
            f"  {answer['time']}",
            "  open it with https://ui.perfetto.dev or chrome://tracing",
        ]
    )
