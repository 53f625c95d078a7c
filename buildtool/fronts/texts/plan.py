"""The answer to `plan` as text: memory and work in figures, how it runs, the arena's map."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from textwrap import wrap
from typing import TYPE_CHECKING

from buildtool.base.layers import short_names
from buildtool.fronts.texts import regions
from buildtool.fronts.texts.boards import board_lines
from buildtool.fronts.texts.front import milliseconds
from buildtool.fronts.texts.regions import layer_of, owner
from buildtool.fronts.texts.table import (
    WIDTH,
    Cell,
    count,
    floats_text,
    four_bits_text,
    listing,
    removed_text,
    shorten,
    table,
    width,
)
from buildtool.fronts.texts.windows import figures as window_figures
from buildtool.fronts.texts.windows import rows_table

if TYPE_CHECKING:
    from buildtool.schema.plans import AloneView, OtherPlan, PlainWork, PlanAnswer, RegionView, TraceAnswer


NAME_WIDTH = 40
PLACE_WIDTH = 60
MOST_NAMES = 4  # layers in a line
LEAST_SHARE = 0.01  # of the cost: less is not worth a line


def text(answer: PlanAnswer, *, buffers: bool = False) -> str:
    """Returns a plan as text: its figures, how the network runs, and which buffers are live.

    A plan without streamed regions has a map, operators in order of execution, and buffers by offset. Any
    other plan has regions, their memory, the fullest step, a map, and the largest buffers of each region; if
    `buffers` is true, it has all operators and all buffers instead.
    """
    streamed = any(region["streamed"] for region in answer["regions"])
    parts = ["\n".join([*_figures(answer, streamed), *board_lines(answer)]), two_memories(answer)]
    if streamed:
        parts += [regions.structure(answer), regions.memory(answer), regions.peak_table(answer)]
    parts.append(arena_map(answer))
    if streamed and not buffers:
        parts.append(regions.largest(answer))
    parts.append(rows_table(answer["window"]))
    if answer["beside"]:
        parts.append(_beside(answer))
    if buffers or not streamed:
        parts += [_operators(answer), _narrow_layers(answer), _buffers(answer)]
    return "\n\n".join(part for part in parts if part)


def _figures(answer: PlanAnswer, streamed: bool) -> Iterator[str]:
    yield f"{answer['model']} on {answer['board']}: {answer['strategy']}, image {answer['image']}"
    excess = answer["arena_bytes"] - answer["arena_bound_bytes"]
    bound = "no placement needs less" if not excess else f"{excess:,} over the largest live sum"
    if streamed:
        if excess:
            bound = f"{excess:,} above the bound: no placement is lower than {answer['arena_bound_bytes']:,}"
        yield f"arena    {count(answer['arena_bytes'], 'byte')} ({bound})"
        yield from regions.peak_lines(answer)
    else:
        at = answer["binding"]["operator"]
        fullest = f", fullest at {layer_of(answer, at, PLACE_WIDTH)}" if at >= 0 else ""
        yield f"arena    {count(answer['arena_bytes'], 'byte')} ({bound}){fullest}"
    yield from (f"         - {what}" for what in answer["accounting"])
    if answer["state_bytes"]:
        yield f"state    {count(answer['state_bytes'], 'byte')} that live between invokes, beside the arena"
    yield f"weights  {count(answer['flash_bytes'], 'byte')} of flash"
    if answer["four_bits"] is not None:
        yield f"         - {four_bits_text(answer['four_bits'])}"
    ms = answer["estimated_ms"]
    yield (
        f"work     {count(answer['macs'], 'multiply-accumulate')}, F {answer['f']:.3f}; "
        f"estimated cost {answer['cost']:,.0f} {answer['cost_unit']}"
        + ("" if ms is None else f", about {ms:,.1f} ms")
    )
    yield from window_figures(answer["window"], answer["f"])
    if answer["removed"] is not None:
        yield f"channels {removed_text(answer['removed'])}"
    if answer["floats"] is not None:
        yield f"floats   {floats_text(answer['floats'])}"
    if (plain := answer["plain"]) is not None and plain["cost_share"] >= LEAST_SHARE:
        yield from wrap(f"plain    {_plain_text(answer, plain)}", WIDTH, subsequent_indent=" " * 9)
    if (point := answer["front_point"]) is not None:
        other = f"F {point['f']:.3f} is possible in {point['arena_bytes']:,} bytes"
        price = f"at {point['cost'] / answer['cost']:.3f} times the cost"
        yield f"front    this plan is not on it: {other}, {price}; within --ram the least cost is chosen"
    if answer["wait_cycles"]:
        yield f"         and about {answer['wait_cycles']:,.0f} cycles of waiting for the arena's memory"
    if names := answer["cost_by_ratio"]:
        text = f"{', '.join(names)}: no formula in cycles; counted as instructions times the mean cycles"
        yield from wrap(text, WIDTH, initial_indent="         - ", subsequent_indent="           ")
    if answer["search_factor"] > 1:
        yield f"search   ended by its budget: at most {answer['search_factor']:.2f} times the minimum"
    if answer["placing_ended"]:
        yield "placing  ended by its budget: the plan is not proven to be the smallest"
    if answer["order_status"] == "feasible":
        yield "order    the budget for orders ended before one was proven to be the best"
    if streamed:
        yield from regions.work_lines(answer)


def _plain_text(answer: PlanAnswer, plain: PlainWork) -> str:
    """Returns words that say which layers run on plain kernels, and what share of the cost that is."""
    positions = plain["operators"]
    names = [layer_of(answer, position, NAME_WIDTH) for position in positions[:MOST_NAMES]]
    more = f" and {len(positions) - MOST_NAMES:,} more" if len(positions) > MOST_NAMES else ""
    some = f"{len(positions):,} of {count(plain['operators_of_network'], 'operator')}"
    share = f"{100 * plain['cost_share']:.1f} % of the cost"
    return f"{some} on plain kernels, which use no special instructions, {share}: {', '.join(names)}{more}"


def _beside(answer: PlanAnswer) -> str:
    """Returns a table with a row for this plan, and below it rows for other strategies."""
    titles = ["strategy", "limit", "image", "arena bytes", "times this", "F"]
    titles += [answer["cost_unit"], *(["est. ms"] if answer["estimated_ms"] is not None else [])]

    def prices(row: OtherPlan | PlanAnswer) -> list[Cell]:
        return [f"{row['f']:.3f}", round(row["cost"]), *milliseconds(row)]

    first: list[Cell] = [
        f"this plan ({answer['strategy']})",
        "",
        answer["image"],
        answer["arena_bytes"],
        1.0,
    ]
    rows: list[list[Cell]] = [[*first, *prices(answer)]]
    for row in answer["beside"]:
        if "error" not in row:
            size, ratio = row["arena_bytes"], row["ratio"]
            rows.append([row["strategy"], row["setting"], row["image"], size, ratio, *prices(row)])
    lines = ["Beside other strategies, counted in the same way:", table(titles, rows)]
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


def _narrow_layers(answer: PlanAnswer) -> str:
    """Returns a table of the layers with fewer channels or inputs than in the file, or ""."""
    if answer["removed"] is None:
        return ""
    layers = answer["removed"]["layers"]
    names = short_names([layer["name"] for layer in layers])
    rows: list[list[Cell]] = [
        [
            shorten(name, NAME_WIDTH),
            layer["channels"],
            layer["total_channels"],
            layer["macs"],
            layer["total_macs"],
        ]
        for name, layer in zip(names, layers, strict=True)
    ]
    title = "Layers with removed channels:"
    return f"{title}\n{table(['layer', 'channels', 'of', 'MACs', 'of'], rows)}"


def _buffers(answer: PlanAnswer) -> str:
    return listing(
        sorted(answer["buffers"], key=lambda b: (b["offset"], b["first"])),
        {
            "from byte": lambda b: b["offset"],
            "to byte": lambda b: b["offset"] + b["size"],
            "from step": lambda b: b["first"],
            "to step": lambda b: b["last"],
            "holds": lambda b: b["kind"],
            "layer": lambda b: owner(answer, b),
        },
    )


def two_memories(answer: PlanAnswer) -> str:
    """Returns a table of the arena's two memories, and a comparison with the plan in one memory alone.

    Returns "" for an arena in one memory.
    """
    memories = answer["memories"]
    if memories is None:
        return ""
    arenas = listing(
        memories["arenas"],
        {
            "memory": lambda one: one["memory"],
            "arena bytes": lambda one: one["arena_bytes"],
            "of": lambda one: one["room_bytes"],
            "bytes brought or written": lambda one: one["touched_bytes"],
            "cycles waited": lambda one: f"{one['wait_cycles']:,.0f}",
        },
    )
    lines = ["The arena in two memories:", arenas]
    lines += [f"{one['memory']} alone: {_alone_text(one)}" for one in memories["alone"]]
    sizes = [(one["memory"], one["arena_bytes"]) for one in memories["arenas"]]
    both = " + ".join(
        f"{memory} {n / 1024:,.1f} K" if n >= 1024 else f"{memory} {n} bytes" for memory, n in sizes
    )
    gain = memories["gain"]
    comparison = ""
    if gain is not None:
        word = "saves" if gain >= 0 else "adds"
        comparison = f"; {word} {abs(gain):.1%} of the cost and waiting of the better memory alone"
    return "\n".join([*lines, f"{both}: fits{comparison}"])


def _alone_text(one: AloneView) -> str:
    """Returns words that say whether the whole arena fits in one memory, and at what cost."""
    if one["missing_bytes"] is None:
        return one["error"]
    if one["missing_bytes"]:
        return f"does not fit by {one['missing_bytes']:,} bytes"
    milliseconds = one["estimated_ms"]
    time = "" if milliseconds is None else f", about {milliseconds:,.1f} ms"
    waited = f" and {one['wait_cycles']:,.0f} cycles waited" if one["wait_cycles"] else ""
    return f"fits with {one['arena_bytes']:,} bytes, F {one['f']:.3f}, cost {one['cost']:,.0f}{waited}{time}"


def trace_text(answer: TraceAnswer, out: str) -> str:
    """Returns lines with the trace's file, its size, and its unit of time."""
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


BANDS = 16
MOST_COLUMNS = 84
MOST_LINES = 40  # layers
MOST_CELLS = 64  # in a layer's line
LONGEST_NAME = 28
LETTERS = {
    "input": "i",
    "output": "o",
    "kept": "k",
    "rings": "r",
    "windows": "w",
    "accumulators": "a",
    "scratch": "s",
    "weights": "W",
}
Sample = tuple[int, int]  # region, step


def arena_map(answer: PlanAnswer) -> str:
    """Returns a map of the arena over time. A cell has the letter of its largest use, or "." if most is free.

    The map of a streamed plan has a line for each band of addresses, the highest first, and regions from left
    to right. The map of another plan has a line for each layer, and addresses from left to right.
    """
    if not answer["arena_bytes"] or not answer["regions"]:
        return ""
    if any(region["streamed"] for region in answer["regions"]):
        return _by_bands(answer)
    return _by_layers(answer)


def _by_bands(answer: PlanAnswer) -> str:
    height, digits = answer["arena_bytes"], len(f"{answer['arena_bytes']:,}")
    columns = _samples(answer["regions"], min(MOST_COLUMNS, max(width.get() - digits - 3, 1)))
    cells = [_cells(answer, at, height, BANDS) for at in columns]
    lines = ["The arena over time (a streamed region: its first, fullest and last step):"]
    for band in reversed(range(BANDS)):
        address = f"{height * band // BANDS:,}".rjust(digits)
        lines.append(f"{address} |{''.join(column[band] for column in cells)}|")
    lines.append(f"{'region'.rjust(digits)}  {_scale(columns)}".rstrip())
    lines.append(f"{' ' * digits}  {_legend(cells)}")
    return "\n".join(lines)


def _by_layers(answer: PlanAnswer) -> str:
    height = answer["arena_bytes"]
    samples = _samples(answer["regions"], MOST_LINES)
    numbers = [answer["regions"][region]["operators"][0] for region, _ in samples]
    digits = len(str(max(numbers)))
    longest = min(LONGEST_NAME, width.get() // 3)
    names = [layer_of(answer, number, longest) for number in numbers]
    room = max(map(len, names))
    number_of_cells = max(1, min(MOST_CELLS, width.get() - digits - room - 4))
    cells = [_cells(answer, at, height, number_of_cells) for at in samples]
    end = f"{height:,} bytes"
    indent = " " * (digits + room + 2)
    lines = ["The arena over time, a line for each layer, addresses from left to right:"]
    lines.append(
        f"{indent} 0{end.rjust(number_of_cells - 1)}" if number_of_cells > len(end) + 2 else f"{indent} 0"
    )
    for number, name, line in zip(numbers, names, cells, strict=True):
        lines.append(f"{str(number).rjust(digits)} {name.ljust(room)} |{line}|")
    lines.append(f"{' ' * (digits + 1)}{_legend(cells)}")
    return "\n".join(lines)


def _legend(lines: Sequence[str]) -> str:
    uses = [use for use in LETTERS if any(LETTERS[use] in line for line in lines)]
    return f"{', '.join(f'{LETTERS[use]} {use}' for use in uses)}, . free"


def _samples(regions: Sequence[RegionView], most: int) -> list[Sample]:
    """Returns at most `most` steps to draw. If there are more, the fuller of two neighbours stands for
    both.
    """
    samples: list[Sample] = []
    for index, region in enumerate(regions):
        steps = [region["fullest"]["step"]]
        if region["streamed"]:
            steps = [region["first_step"], *steps, region["last_step"]]
        samples += [(index, step) for step in steps]
    while len(samples) > most:
        pairs = [samples[i : i + 2] for i in range(0, len(samples), 2)]
        samples = [max(pair, key=lambda at: regions[at[0]]["live_bytes"]) for pair in pairs]
    return samples


def _cells(answer: PlanAnswer, sample: Sample, height: int, count: int) -> str:
    """Returns a line of the map: a letter for each of `count` bands of addresses, the lowest first."""
    index, step = sample
    region = answer["regions"][index]
    live = []
    for entry in region["buffers"]:
        b = answer["buffers"][entry["buffer"]]
        reserved = region["streamed"] and entry["use"] in ("windows", "scratch")
        if reserved or b["first"] <= step <= b["last"]:
            live.append((b["offset"], b["offset"] + b["size"], LETTERS[entry["use"]]))
    return "".join(_cell(live, height * at // count, height * (at + 1) // count) for at in range(count))


def _cell(live: Sequence[tuple[int, int, str]], low: int, high: int) -> str:
    """Returns the letter of the largest use of the bytes [low, high), or "." if less than half are used."""
    sizes: dict[str, int] = {}
    for start, end, letter in live:
        sizes[letter] = sizes.get(letter, 0) + max(0, min(end, high) - max(start, low))
    if 2 * sum(sizes.values()) < high - low or not sizes:
        return "."
    return max(sizes, key=lambda letter: sizes[letter])


def _scale(columns: Sequence[Sample]) -> str:
    """Returns a line with the numbers of the regions, as far as there is room for them."""
    line = ""
    for place, (index, _) in enumerate(columns):
        first = not place or columns[place - 1][0] != index
        if first and (not line or len(line) < place):
            line = line.ljust(place) + str(index)
    return line
