"""The arena over time, drawn.

A streamed plan: bands of addresses from top to bottom, regions from left to right. One that is not: a line
for each layer, in order, and addresses from left to right.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from buildtool.fronts.texts.table import width
from buildtool.fronts.texts.words import layer_of

if TYPE_CHECKING:
    from buildtool.schema.plans import PlanAnswer, RegionView

BANDS = 16
MOST_COLUMNS = 84
MOST_LINES = 40  # of layers
MOST_CELLS = 64  # of a layer's line
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


def text(answer: PlanAnswer) -> str:
    """The map under its head; a cell has the letter of what takes most of it, or '.' if most is free."""
    if not answer["arena_bytes"] or not answer["regions"]:
        return ""
    if any(region["streamed"] for region in answer["regions"]):
        return _by_bands(answer)
    return _by_layers(answer)


def _by_bands(answer: PlanAnswer) -> str:
    height, digits = answer["arena_bytes"], len(f"{answer['arena_bytes']:,}")
    columns = _samples(answer["regions"], min(MOST_COLUMNS, max(width.get() - digits - 3, 1)))
    drawn = [_cells(answer, at, height, BANDS) for at in columns]
    lines = ["The arena over time (a streamed region: its first, fullest and last step):"]
    for band in reversed(range(BANDS)):
        address = f"{height * band // BANDS:,}".rjust(digits)
        lines.append(f"{address} |{''.join(column[band] for column in drawn)}|")
    lines.append(f"{'region'.rjust(digits)}  {_scale(columns)}".rstrip())
    lines.append(f"{' ' * digits}  {_legend(drawn)}")
    return "\n".join(lines)


def _by_layers(answer: PlanAnswer) -> str:
    height = answer["arena_bytes"]
    samples = _samples(answer["regions"], MOST_LINES)
    numbers = [answer["regions"][region]["operators"][0] for region, _ in samples]
    digits = len(str(max(numbers)))
    longest = min(LONGEST_NAME, width.get() // 3)
    names = [layer_of(answer, number, longest) for number in numbers]
    room = max(map(len, names))
    cells = max(1, min(MOST_CELLS, width.get() - digits - room - 4))
    drawn = [_cells(answer, at, height, cells) for at in samples]
    end = f"{height:,} bytes"
    indent = " " * (digits + room + 2)
    lines = ["The arena over time, a line for each layer, addresses from left to right:"]
    lines.append(f"{indent} 0{end.rjust(cells - 1)}" if cells > len(end) + 2 else f"{indent} 0")
    for number, name, cell in zip(numbers, names, drawn, strict=True):
        lines.append(f"{str(number).rjust(digits)} {name.ljust(room)} |{cell}|")
    lines.append(f"{' ' * (digits + 1)}{_legend(drawn)}")
    return "\n".join(lines)


def _legend(drawn: Sequence[str]) -> str:
    used = [use for use in LETTERS if any(LETTERS[use] in cells for cells in drawn)]
    return f"{', '.join(f'{LETTERS[use]} {use}' for use in used)}, . free"


def _samples(regions: Sequence[RegionView], most: int) -> list[Sample]:
    """Steps that are drawn; of too many regions in one step, only the fuller of neighbours."""
    found: list[Sample] = []
    for index, region in enumerate(regions):
        steps = [region["fullest"]["step"]]
        if region["streamed"]:
            steps = [region["first_step"], *steps, region["last_step"]]
        found += [(index, step) for step in steps]
    while len(found) > most:
        pairs = [found[i : i + 2] for i in range(0, len(found), 2)]
        found = [max(pair, key=lambda at: regions[at[0]]["live_bytes"]) for pair in pairs]
    return found


def _cells(answer: PlanAnswer, sample: Sample, height: int, count: int) -> str:
    """One letter for each of `count` bands, lowest addresses first."""
    index, step = sample
    region = answer["regions"][index]
    live = []
    for held in region["buffers"]:
        b = answer["buffers"][held["buffer"]]
        reserved = region["streamed"] and held["use"] in ("windows", "scratch")
        if reserved or b["first"] <= step <= b["last"]:
            live.append((b["offset"], b["offset"] + b["size"], LETTERS[held["use"]]))
    return "".join(_cell(live, height * at // count, height * (at + 1) // count) for at in range(count))


def _cell(live: Sequence[tuple[int, int, str]], low: int, high: int) -> str:
    """The letter that takes most of [low, high), if half of it or more is taken."""
    taken: dict[str, int] = {}
    for start, end, letter in live:
        taken[letter] = taken.get(letter, 0) + max(0, min(end, high) - max(start, low))
    if 2 * sum(taken.values()) < high - low or not taken:
        return "."
    return max(taken, key=lambda letter: taken[letter])


def _scale(columns: Sequence[Sample]) -> str:
    """The regions' numbers, where there is room."""
    line = ""
    for place, (index, _) in enumerate(columns):
        first = not place or columns[place - 1][0] != index
        if first and (not line or len(line) < place):
            line = line.ljust(place) + str(index)
    return line
