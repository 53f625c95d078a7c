"""The front, laid out: bytes of the arena from left to right, by doublings; work from bottom to top."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from buildtool.fronts.texts.html.arena import Tick
from buildtool.fronts.texts.html.wording import between, size

if TYPE_CHECKING:
    from buildtool.schema.fronts import Peer
    from buildtool.schema.reports import ReportAnswer, ReportPoint

WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 1120.0, 380.0, 64.0, 24.0, 24.0, 52.0
_REACH, _LEAST_REACH = 14.0, 4.0


@dataclass(frozen=True)
class Mark:
    """A plan; `number`: of the front's points, -1 of others. `fits`: it keeps the limit.

    `reach`: how far from it a pointer is meant for it, and for none of its neighbours.
    """

    number: int
    x: float
    y: float
    kind: str  # point, chosen, peer
    fits: bool
    label: str
    anchor: str
    tip: str
    reach: float = _REACH


@dataclass(frozen=True)
class Plot:
    """All of it; `line`: the front's steps as a path, `limit`: its place, None where none is in sight."""

    marks: tuple[Mark, ...]
    line: str
    columns: tuple[Tick, ...]
    rows: tuple[Tick, ...]
    limit: float | None
    limit_label: str


@dataclass(frozen=True)
class _Scales:
    """From bytes (by their logarithm) and work to places: the least and the most of each that is shown."""

    x0: float
    x1: float
    y0: float
    y1: float

    def x(self, size_: float) -> float:
        return LEFT + (math.log2(max(size_, 1)) - self.x0) / (self.x1 - self.x0) * (WIDTH - LEFT - RIGHT)

    def y(self, work: float) -> float:
        return HEIGHT - BOTTOM - (work - self.y0) / (self.y1 - self.y0) * (HEIGHT - TOP - BOTTOM)

    def columns(self) -> tuple[Tick, ...]:
        return tuple(Tick(self.x(t), size(t)) for t in _round_sizes(2**self.x0, 2**self.x1))

    def rows(self) -> tuple[Tick, ...]:
        works = between(self.y0, self.y1, 5)
        digits = 2 if len(works) > 1 and works[1] - works[0] >= 0.0099 else 4
        return tuple(Tick(self.y(t), f"{t:.{digits}f}") for t in works)


def plot(answer: ReportAnswer, limit: int) -> Plot | None:
    """The plot; None where there are no points. `limit`: bytes that the arena may have."""
    points = answer["front"]["points"]
    if not points:
        return None
    own = answer["strategy"], answer["arena_bytes"]
    beside = answer["front"]["beside"]
    peers = [p for p in beside if "error" not in p and (p["strategy"], p["arena_bytes"]) != own]
    sizes = [float(max(p["arena_bytes"], 1)) for p in (answer, *points, *peers)]
    works = [p["f"] for p in (answer, *points, *peers)]
    shown = limit if limit <= 1.25 * max(sizes) else None
    x0, x1 = _range([math.log2(x) for x in [*sizes, *([shown] if shown else [])]], 0.06)
    y0, y1 = _range(works, 0.12)
    scales = _Scales(x0, x1, max(y0, 0.0), y1)
    marks = [_point(p, i, scales, limit) for i, p in enumerate(points)]
    if not any(p["chosen"] for p in points):
        marks.append(_other(answer, "chosen", "this plan", scales, limit))
    marks += [_other(peer, "peer", peer["strategy"], scales, limit) for peer in peers]
    steps = [f"M{scales.x(points[0]['arena_bytes']):.1f} {scales.y(points[0]['f']):.1f}"]
    steps += [f"H{scales.x(p['arena_bytes']):.1f}V{scales.y(p['f']):.1f}" for p in points[1:]]
    return Plot(
        tuple(_apart(mark, marks) for mark in marks),
        "".join(steps),
        scales.columns(),
        scales.rows(),
        None if shown is None else scales.x(shown),
        f"limit {size(limit)}",
    )


def _other(plan: ReportAnswer | Peer, kind: str, name: str, scales: _Scales, limit: int) -> Mark:
    """A plan that is not of the front."""
    x, y = scales.x(plan["arena_bytes"]), scales.y(plan["f"])
    tip = f"{name}\n{plan['arena_bytes']:,} bytes, F {plan['f']:.3f}"
    return Mark(-1, x, y, kind, plan["arena_bytes"] <= limit, name, _anchor(x), tip)


def _apart(mark: Mark, marks: list[Mark]) -> Mark:
    """A mark whose reach ends half-way to its nearest neighbour."""
    nearest = min((math.hypot(mark.x - o.x, mark.y - o.y) for o in marks if o is not mark), default=math.inf)
    return replace(mark, reach=max(_LEAST_REACH, min(_REACH, nearest / 2)))


def _round_sizes(low: float, high: float) -> list[float]:
    """Round sizes on a scale of doublings; where there is none of those, round sizes at equal distances."""
    found = [2.0**power * part for power in range(40) for part in (1, 1.5)]
    inside = [size for size in found if low <= size <= high]
    if len(inside) >= 3:
        return inside
    unit = 1024 if low > 4096 else 1
    return [unit * tick for tick in between(low / unit, high / unit, 6)]


def _anchor(x: float) -> str:
    return "end" if x > 0.8 * WIDTH else "start"


def _range(values: list[float], spare: float) -> tuple[float, float]:
    low, high = min(values), max(values)
    room = (high - low or abs(high) * 0.2 or 1.0) * spare
    return low - room, high + room


def _point(point: ReportPoint, number: int, scales: _Scales, limit: int) -> Mark:
    lines = [
        f"plan {number + 1}" + (": this one" if point["chosen"] else ""),
        f"{point['arena_bytes']:,} bytes, F {point['f']:.3f}",
        f"{point['regions']} regions, {point['streamed_regions']} of them streamed",
    ]
    x, y = scales.x(point["arena_bytes"]), scales.y(point["f"])
    kind, label = ("chosen", "this plan") if point["chosen"] else ("point", "")
    return Mark(number, x, y, kind, point["arena_bytes"] <= limit, label, _anchor(x), "\n".join(lines))
