"""The layout of the network's graph: a row for each operator in order of execution.

Links that pass other operators are drawn on the left.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from buildtool.fronts.texts.html.wording import short, size
from buildtool.fronts.texts.regions import SCHEMES

if TYPE_CHECKING:
    from buildtool.schema.reports import ReportAnswer

WIDTH, ROW, TOP = 1120.0, 25.0, 34.0
_LANE, _FIRST = 14.0, 30.0
_MOST_LANES = 16
_COLUMN, _MOST_COLUMNS = 18.0, 6
_BAR = 150.0


@dataclass(frozen=True)
class Node:
    """An operator in the drawing.

    `bar` is the width of a bar that shows the bytes that are live while it runs.
    """

    position: int
    x: float
    y: float
    kind: str
    name: str
    form: str
    shape: str
    bar: float
    bytes: str
    tip: str


@dataclass(frozen=True)
class Frame:
    """The frame of a region or a group, around its operators."""

    y: float
    height: float
    label: str


@dataclass(frozen=True)
class Layout:
    """The drawing.

    - `links`: lines to the next row.
    - `skips`: lines that pass other operators on the left.
    - `x`: the x of the first column of operators.
    - `text`: the x of the names, to the right of the last column.
    """

    height: float
    x: float
    text: float
    nodes: tuple[Node, ...]
    links: tuple[str, ...]
    skips: tuple[str, ...]
    regions: tuple[Frame, ...]
    groups: tuple[Frame, ...]


def layout(answer: ReportAnswer) -> Layout:
    """Returns the drawing of a plan's network."""
    layers = answer["layers"]
    rows = {layer["position"]: row for row, layer in enumerate(layers)}
    lanes = _lanes(answer, rows)
    first = _FIRST + _LANE * (min(max(lanes.values(), default=0), _MOST_LANES))
    columns = _columns(answer, rows)
    at = {row: first + _COLUMN * min(column, _MOST_COLUMNS) for row, column in enumerate(columns)}
    at[-1] = first  # the network's input
    most = max((layer["ram_alive"] for layer in layers), default=1) or 1
    edges = [(rows.get(source, -1), row) for row, layer in enumerate(layers) for source in layer["inputs"]]
    return Layout(
        TOP + ROW * len(layers) + 12,
        first,
        max(at.values()) + 16,
        tuple(_node(answer, row, at[row], most) for row in range(len(layers))),
        tuple(_link(at, start, end) for start, end in edges if start == end - 1),
        tuple(_skip(at, *ends, lane) for ends, lane in sorted(lanes.items())),
        *_frames(answer, rows),
    )


def _y(row: int) -> float:
    return TOP + ROW * (row + 0.5)


def _node(answer: ReportAnswer, row: int, x: float, most: int) -> Node:
    """Returns the operator of a row. `most` is the largest number of live bytes while an operator runs."""
    layer = answer["layers"][row]
    look = "heavy" if layer["weight_bytes"] else "light"
    lines = [
        short(layer["name"], 80),
        f"operator {layer['position']}: {layer['kind']} ({layer['form']}), {layer['output_shape']}",
        f"{layer['ram_alive']:,} bytes alive, {layer['weight_bytes']:,} bytes of weights",
        f"{layer['macs']:,} multiply-accumulates, F {layer['f']:.3f}",
    ]
    if sources := [p for p in layer["inputs"] if p >= 0]:
        names = [short(answer["operators"][p]["name"], 40) for p in sources[:4]]
        lines.append("reads " + ", ".join(names) + (", ..." if len(sources) > 4 else ""))
    return Node(
        layer["position"],
        x,
        _y(row),
        "join" if layer["kind"] in ("ADD", "SUB", "MUL", "CONCATENATION") else look,
        short(layer["name"], 44),
        layer["form"],
        layer["output_shape"],
        _BAR * layer["ram_alive"] / most,
        size(layer["ram_alive"]),
        "\n".join(lines),
    )


def _link(at: Mapping[int, float], start: int, end: int) -> str:
    """Returns the SVG path from a row to the next one. `at` has the x of each row."""
    middle = (_y(start) + _y(end)) / 2
    curve = f"{at[start]:.0f} {middle:.1f} {at[end]:.0f} {middle:.1f} {at[end]:.0f} {_y(end):.1f}"
    return f"M{at[start]:.0f} {_y(start):.1f}C{curve}"


def _skip(at: Mapping[int, float], start: int, end: int, lane: int) -> str:
    """Returns the SVG path from a row to a later one, at distance `lane` to the left of the operators."""
    out = at[-1] - _LANE * min(lane, _MOST_LANES)
    y0, y1, bend = _y(start), _y(end), min(9.0, _LANE * lane)
    down = f"Q{out:.1f} {y0:.1f} {out:.1f} {y0 + bend:.1f}V{y1 - bend:.1f}"
    back = f"Q{out:.1f} {y1:.1f} {out + bend:.1f} {y1:.1f}H{at[end] - 6:.1f}"
    return f"M{at[start]:.0f} {y0:.1f}H{out + bend:.1f}{down}{back}"


def _columns(answer: ReportAnswer, rows: dict[int, int]) -> list[int]:
    """Returns a column for each operator.

    An operator is in the same column as its source if the source is in the row before. Otherwise it is in the
    next column. An operator with several sources is in the leftmost column of these.
    """
    columns: list[int] = []
    for row, layer in enumerate(answer["layers"]):
        sources = [rows.get(source, -1) for source in layer["inputs"]]
        source_columns = [columns[source] for source in sources if source >= 0]
        if len(source_columns) != 1:
            columns.append(min(source_columns, default=0))
        elif sources[0] == row - 1:
            columns.append(source_columns[0])
        else:
            columns.append(source_columns[0] + 1)
    return columns


def _lanes(answer: ReportAnswer, rows: dict[int, int]) -> dict[tuple[int, int], int]:
    """Returns, for each link that passes other operators, how far to the left it is drawn (1 or more).

    The keys are the link's two rows.
    """
    skips = sorted(
        {
            (rows.get(source, -1), row)
            for row, layer in enumerate(answer["layers"])
            for source in layer["inputs"]
            if rows.get(source, -1) != row - 1
        },
        key=lambda link: (link[1] - link[0], link),
    )
    links_of: list[list[tuple[int, int]]] = []  # of each lane
    lanes: dict[tuple[int, int], int] = {}
    for start, end in skips:
        for lane, others in enumerate(links_of):
            if all(end <= a or b <= start for a, b in others):
                others.append((start, end))
                lanes[start, end] = lane + 1
                break
        else:
            links_of.append([(start, end)])
            lanes[start, end] = len(links_of)
    return lanes


def _frames(answer: ReportAnswer, rows: dict[int, int]) -> tuple[tuple[Frame, ...], tuple[Frame, ...]]:
    """Returns the frames around streamed regions and around their groups."""
    regions, groups = [], []

    def frame(ops: Sequence[int], inset: int, label: str) -> Frame:
        inside = sorted(rows[p] for p in ops)
        height = ROW * (inside[-1] - inside[0] + 1)
        return Frame(TOP + ROW * inside[0] + inset, height - 2 * inset, label)

    for index, region in enumerate(answer["regions"]):
        if not region["streamed"]:
            continue
        steps = region["last_step"] - region["first_step"] + 1
        label = f"region {index}: {steps:,} steps, F {region['f']:.2f}"
        regions.append(frame(region["operators"], 0, label))
        for group in region["groups"]:
            per_step, pixels = group["rows_per_step"], group["hand_off"]
            label = SCHEMES.get(group["scheme"], group["scheme"])
            label += f", {per_step} row{'s' if per_step > 1 else ''}" if per_step else ""
            label += f" x {pixels}" if pixels else ""
            groups.append(frame(group["ops"], 2, label))
    return tuple(regions), tuple(groups)
