"""The layout of the arena over time: a rectangle for each buffer, from its first to its last step."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Container, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from buildtool.fronts.texts.html.wording import short, size, ticks

if TYPE_CHECKING:
    from buildtool.schema.plans import BufferView, PlannedModel
    from buildtool.schema.reports import RegionSteps

WIDTH, LEFT, TOP, PLOT, BOTTOM = 1120.0, 64.0, 34.0, 360.0, 50.0
_RIGHT = 14.0
_LIMIT_SHOWN = 1.4  # a limit above this factor of the arena is not drawn but written
_LETTER = 5.7  # width of a letter of a label
_LINE = 12.0  # height of a label
_LONGEST_LABEL = 40

KINDS = {
    "image": "input image",
    "output": "output",
    "tensor": "activations",
    "ring": "row rings",
    "window": "windows",
    "accumulator": "sums kept",
    "scratch": "scratch",
    "weights": "weights",
}


@dataclass(frozen=True)
class Box:
    """A buffer's rectangle, in the picture's units.

    `label` fits into it, and is vertical if `upright` is true.
    """

    buffer: int
    kind: str
    x: float
    y: float
    width: float
    height: float
    label: str
    upright: bool
    by_turns: bool
    tip: str


@dataclass(frozen=True)
class Band:
    """A region's place on the time axis; `region` is its number."""

    region: int
    x: float
    width: float
    streamed: bool
    steps: int
    label: str
    name: str


@dataclass(frozen=True)
class Tick:
    """A line across the picture, and its label."""

    at: float
    label: str


@dataclass(frozen=True)
class Picture:
    """The picture. `limit` is the y of the memory limit (None: far above); `peak` is the fullest step's x."""

    height: float
    boxes: tuple[Box, ...]
    bands: tuple[Band, ...]
    grid: tuple[Tick, ...]
    limit: float | None
    peak: float | None
    peak_y: float
    kinds: tuple[str, ...]
    second: float | None  # where the second of two memories begins


def buffer_kinds(answer: PlannedModel) -> list[str]:
    """Returns the kind of each buffer as the picture shows it. Each kind is a key of KINDS."""
    entries = [one for region in answer["regions"] for one in region["buffers"]]
    windows = {one["buffer"] for one in entries if one["use"] == "windows"}
    kinds: list[str] = []
    for position, buffer in enumerate(answer["buffers"]):
        kind, tensors = buffer["kind"], set(buffer["tensors"])
        if kind in ("tensor", "ring"):
            if tensors & set(answer["inputs"]):
                kind = "image"
            elif tensors & set(answer["outputs"]):
                kind = "output"
            elif position in windows:
                kind = "window"
        kinds.append("ring" if kind == "lines" else kind)
    return kinds


class _Time:
    """The time axis. A region with more operators is wider."""

    def __init__(self, answer: PlannedModel) -> None:
        regions = answer["regions"]
        slots = [max(len(r["operators"]), 3 if r["streamed"] else 1) for r in regions]
        unit = (WIDTH - LEFT - _RIGHT) / max(sum(slots), 1)
        self.first = [r["first_step"] for r in regions]
        self.count = [r["last_step"] - r["first_step"] + 1 for r in regions]
        self.widths = [unit * s for s in slots]
        self.starts = [LEFT]
        for width in self.widths:
            self.starts.append(self.starts[-1] + width)

    def x(self, step: int) -> float:
        """Returns the x at which a step begins."""
        if not self.first:
            return LEFT
        region = max(0, bisect_right(self.first, step) - 1)
        within = min(1.0, (step - self.first[region]) / max(self.count[region], 1))
        return self.starts[region] + self.widths[region] * within


def picture(answer: PlannedModel, limit: int, steps: Sequence[RegionSteps] = ()) -> Picture:
    """Returns the picture of a plan. `limit` is the number of bytes that the arena may have.

    `steps` has the steps of streamed regions, if they are known.
    """
    time = _Time(answer)
    arena = max(answer["arena_bytes"], 1)
    shown = limit if arena <= limit <= _LIMIT_SHOWN * arena or limit < arena else None
    whole = 1.04 * max(arena, shown or 0)

    def y(byte: float) -> float:
        return TOP + PLOT - byte * PLOT / whole

    shared = {b for entry in steps for buffers in entry["turns"].values() for b in buffers}
    boxes = _boxes(answer, time, PLOT / whole, shared)
    peak = answer["peak"]
    return Picture(
        height=TOP + PLOT + BOTTOM,
        boxes=tuple(boxes),
        bands=tuple(_bands(answer, time)),
        grid=tuple(Tick(y(t), size(t) if t else "0") for t in ticks(whole, 6, base=2)),
        limit=None if shown is None else y(shown),
        peak=None if peak is None else (time.x(peak["step"]) + time.x(peak["step"] + 1)) / 2,
        peak_y=y(arena),
        second=y(answer["second_at"]) if answer["second_at"] else None,
        kinds=tuple(kind for kind in KINDS if any(box.kind == kind for box in boxes)),
    )


def _boxes(answer: PlannedModel, time: _Time, scale: float, shared: Container[int]) -> list[Box]:
    """Returns the boxes of all buffers in drawing order. `scale` is the height of a byte.

    `shared` has the buffers that use the same bytes alternately.
    """
    kinds = buffer_kinds(answer)
    boxes = []
    for position, buffer in enumerate(answer["buffers"]):
        if not buffer["size"]:
            continue
        x0, x1 = time.x(buffer["first"]), time.x(buffer["last"] + 1)
        width, height = max(x1 - x0, 1.2), max(buffer["size"] * scale, 0.8)
        top = TOP + PLOT - (buffer["offset"] + buffer["size"]) * scale
        kind = kinds[position]
        name = buffer["tensor_names"][0] if buffer["tensor_names"] else _served_operator(answer, buffer)
        label, upright = _label(name, size(buffer["size"]), width, height)
        text = tip(answer, position, kind)
        box = Box(position, kind, x0, top, width, height, label, upright, position in shared, text)
        boxes.append(box)
    # Buffers that share bytes alternately are drawn in front of the others.
    boxes.sort(key=lambda box: (box.by_turns, -box.width * box.height, box.buffer))
    return [_clear_label(box, boxes[i + 1 :]) for i, box in enumerate(boxes)]


def _label(name: str, more: str, width: float, height: float) -> tuple[str, bool]:
    """Returns (label, upright): as much of a name as fits into a box, and whether it is written upright.

    The label is the whole name, its last words, or "". `more` is added if there is room.
    """
    words = short(name, _LONGEST_LABEL).split("/")
    texts = ["/".join(words[i:]) for i in range(len(words))]
    for text in (f"{texts[0]}  {more}", *texts):
        length = _LETTER * len(text) + 9
        if length <= width and height >= _LINE:
            return text, False
        if length <= height and width >= _LINE:
            return text, True
    return "", False


def _clear_label(box: Box, others: Sequence[Box]) -> Box:
    """Returns the box with a label that boxes drawn later do not cover, or without a label."""
    if not box.label:
        return box
    right, top = box.x + box.width, box.y
    covering = [other for other in others if _overlap(box, other)]
    if box.upright:
        return replace(box, label="") if covering else box
    for other in covering:
        if other.y < top + 2 * _LINE and other.y + other.height > top:
            if other.x <= box.x + 4:
                return replace(box, label="")
            right = min(right, other.x)
    words = box.label.split("  ")[0].split("/")
    for text in (box.label, *("/".join(words[i:]) for i in range(len(words)))):
        if _LETTER * len(text) + 9 <= right - box.x:
            return replace(box, label=text)
    return replace(box, label="")


def _overlap(one: Box, other: Box) -> bool:
    return (
        one.x < other.x + other.width - 0.5
        and other.x < one.x + one.width - 0.5
        and one.y < other.y + other.height - 0.5
        and other.y < one.y + one.height - 0.5
    )


def _served_operator(answer: PlannedModel, buffer: BufferView) -> str:
    """Returns the name of the operator that uses a buffer of scratch memory or of weights."""
    operators = answer["operators"]
    return operators[buffer["op"]]["name"] if 0 <= buffer["op"] < len(operators) else buffer["name"]


def tip(answer: PlannedModel, position: int, kind: str) -> str:
    """Returns lines that describe a buffer."""
    buffer = answer["buffers"][position]
    operators = answer["operators"]
    names = buffer["tensor_names"] or [_served_operator(answer, buffer)]
    producer = {op["name"]: op for op in operators}.get(names[0])
    op = operators[buffer["op"]] if 0 <= buffer["op"] < len(operators) else producer
    what = f"{KINDS[kind]}, {buffer['size']:,} bytes at {buffer['offset']:,}"
    if buffer["rows"]:
        what += f", {buffer['rows']} rows" + (f" x {buffer['columns']} columns" if buffer["columns"] else "")
    lines = [short(names[0], 80), what]
    if op is not None:
        lines.append(f"of {op['kind']} ({op['form']}), operator {op['position']}")
    lines.append(f"steps {buffer['first']:,} to {buffer['last']:,}")
    return "\n".join(lines)


def _bands(answer: PlannedModel, time: _Time) -> list[Band]:
    bands = []
    free = 0.0
    for index, region in enumerate(answer["regions"]):
        x, width, count = time.starts[index], time.widths[index], time.count[index]
        label = ""
        if x + width / 2 - 9 >= free:
            label = str(index)
            free = x + width / 2 + 4 + 7 * len(label)
        ops = region["operators"]
        names = [short(answer["operators"][p]["name"], 60) for p in (ops[0], ops[-1])]
        bands.append(
            Band(index, x, width, region["streamed"], count, label, " to ".join(dict.fromkeys(names)))
        )
    return bands
