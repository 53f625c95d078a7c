"""The arena over time, drawn: bands of addresses from top to bottom, regions from left to right."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from buildtool.schema.plans import PlanAnswer, RegionView

BANDS = 16
MOST_COLUMNS = 84
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
STREAMED_COLUMNS = 3  # of a streamed region: its first, its fullest, its last step
Sample = tuple[int, int]  # region, step


def text(answer: PlanAnswer) -> str:
    """The map under its head; a cell has the letter of what takes most of it, or '.' if most is free."""
    height = answer["arena_bytes"]
    regions = answer["regions"]
    if not height or not regions:
        return ""
    columns = _samples(regions)
    drawn = [_column(answer, at, height) for at in columns]
    used = [use for use in LETTERS if any(LETTERS[use] in column for column in drawn)]
    legend = ", ".join(f"{LETTERS[use]} {use}" for use in used)
    lines = ["The arena over time (a streamed region: its first, fullest and last step):"]
    width = len(f"{height:,}")
    for band in reversed(range(BANDS)):
        address = f"{height * band // BANDS:,}".rjust(width)
        lines.append(f"{address} |{''.join(column[band] for column in drawn)}|")
    lines.append(f"{'region'.rjust(width)}  {_scale(columns)}".rstrip())
    lines.append(f"{' ' * width}  {legend}, . free")
    return "\n".join(lines)


def _samples(regions: Sequence[RegionView]) -> list[Sample]:
    """Steps that are drawn; of too many regions in one step, only the fuller of neighbours."""
    found: list[Sample] = []
    for index, region in enumerate(regions):
        steps = [region["fullest"]["step"]]
        if region["streamed"]:
            steps = [region["first_step"], *steps, region["last_step"]]
        found += [(index, step) for step in steps]
    while len(found) > MOST_COLUMNS:
        pairs = [found[i : i + 2] for i in range(0, len(found), 2)]
        found = [max(pair, key=lambda at: regions[at[0]]["live_bytes"]) for pair in pairs]
    return found


def _column(answer: PlanAnswer, at: Sample, height: int) -> str:
    """One letter a band, lowest addresses first."""
    index, step = at
    region = answer["regions"][index]
    live = []
    for held in region["buffers"]:
        b = answer["buffers"][held["buffer"]]
        reserved = region["streamed"] and held["use"] in ("windows", "scratch")
        if reserved or b["first"] <= step <= b["last"]:
            live.append((b["offset"], b["offset"] + b["size"], LETTERS[held["use"]]))
    return "".join(_cell(live, height * band // BANDS, height * (band + 1) // BANDS) for band in range(BANDS))


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
