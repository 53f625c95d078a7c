"""The layout of the Pareto front: bytes of the arena from left to right (logarithmic), work upwards."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from buildtool.fronts.texts.html.arena import Tick
from buildtool.fronts.texts.html.wording import between, size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from buildtool.schema.fronts import Peer, Point, Refusal
    from buildtool.schema.plans import PlannedModel

WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 1120.0, 380.0, 64.0, 24.0, 24.0, 52.0
_REACH, _LEAST_REACH = 14.0, 4.0  # radius in which a pointer selects a mark


@dataclass(frozen=True)
class Mark:
    """A plan in the plot.

    - `number`: its position among the points of the front (-1: it is not one of them).
    - `fits`: whether its arena is within the limit.
    - `reach`: the radius in which a pointer selects it.
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
    """The plot. `line` is the front as an SVG path.

    `limit` is the x of the memory limit (None: the plot does not show it).
    """

    marks: tuple[Mark, ...]
    line: str
    columns: tuple[Tick, ...]
    rows: tuple[Tick, ...]
    limit: float | None
    limit_label: str


@dataclass(frozen=True)
class Scales:
    """Converts bytes and work to positions in the picture.

    The horizontal axis shows log2 of the bytes, from `x0` to `x1`; the vertical axis shows work, from `y0` to
    `y1`.
    """

    x0: float
    x1: float
    y0: float
    y1: float

    def x(self, size_: float) -> float:
        """Returns the x of a number of bytes."""
        return LEFT + (math.log2(max(size_, 1)) - self.x0) / (self.x1 - self.x0) * (WIDTH - LEFT - RIGHT)

    def y(self, work: float) -> float:
        """Returns the y of a work factor."""
        return HEIGHT - BOTTOM - (work - self.y0) / (self.y1 - self.y0) * (HEIGHT - TOP - BOTTOM)


def plot(
    points: Sequence[Point], beside: Sequence[Peer | Refusal], limit: int, own: PlannedModel | None = None
) -> Plot | None:
    """Returns the plot of a front and of other strategies' plans, or None if there are no points.

    `points` are the plans of the front, `beside` those of other strategies. `own` is the plan that was
    chosen. `limit` is the number of bytes that the arena may have.
    """
    if not points:
        return None
    this = (own["strategy"], own["arena_bytes"]) if own else ("", 0)
    peers = [p for p in beside if "error" not in p and (p["strategy"], p["arena_bytes"]) != this]
    shown_plans = [*([own] if own else []), *points, *peers]
    sizes = [float(max(p["arena_bytes"], 1)) for p in shown_plans]
    works = [p["f"] for p in shown_plans]
    shown = limit if limit <= 1.25 * max(sizes) else None
    x0, x1 = padded_range([math.log2(x) for x in [*sizes, *([shown] if shown else [])]], 0.06)
    y0, y1 = padded_range(works, 0.12)
    scales = Scales(x0, x1, max(y0, 0.0), y1)

    def mark(
        plan: PlannedModel | Point | Peer,
        kind: str,
        name: str,
        tip: str,
        more: str = "",
        at: int = -1,
    ) -> Mark:
        x, y = scales.x(plan["arena_bytes"]), scales.y(plan["f"])
        tip = f"{tip}\n{plan['arena_bytes']:,} bytes, F {plan['f']:.3f}{more}"
        anchor = "end" if x > 0.8 * WIDTH else "start"
        return Mark(at, x, y, kind, plan["arena_bytes"] <= limit, name, anchor, tip)

    marks = []
    for i, point in enumerate(points):
        more = f"\n{point['regions']} regions, {point['streamed_regions']} of them streamed"
        chosen = bool(point.get("chosen"))
        kind, name, words = ("chosen", "this plan", ": this one") if chosen else ("point", "", "")
        marks.append(mark(point, kind, name, f"plan {i + 1}{words}", more, i))
    if own and not any(p.get("chosen") for p in points):
        marks.append(mark(own, "chosen", "this plan", "this plan"))
    marks += [mark(peer, "peer", peer["strategy"], peer["strategy"]) for peer in peers]
    steps = [f"M{scales.x(points[0]['arena_bytes']):.1f} {scales.y(points[0]['f']):.1f}"]
    steps += [f"H{scales.x(p['arena_bytes']):.1f}V{scales.y(p['f']):.1f}" for p in points[1:]]
    heights = between(scales.y0, scales.y1, 5)
    digits = 2 if len(heights) > 1 and heights[1] - heights[0] >= 0.0099 else 4
    return Plot(
        tuple(_limit_reach(one, marks) for one in marks),
        "".join(steps),
        tuple(Tick(scales.x(t), size(t)) for t in round_sizes(2**scales.x0, 2**scales.x1)),
        tuple(Tick(scales.y(t), f"{t:.{digits}f}") for t in heights),
        None if shown is None else scales.x(shown),
        f"limit {size(limit)}",
    )


def _limit_reach(mark: Mark, marks: list[Mark]) -> Mark:
    """Returns the mark with a reach of at most half the distance to its nearest neighbour."""
    nearest = min((math.hypot(mark.x - o.x, mark.y - o.y) for o in marks if o is not mark), default=math.inf)
    return replace(mark, reach=max(_LEAST_REACH, min(_REACH, nearest / 2)))


def round_sizes(low: float, high: float) -> list[float]:
    """Returns round sizes from `low` to `high`: powers of two, and 1.5 times these.

    If there are fewer than three, it returns sizes at equal distances.
    """
    sizes = [2.0**power * part for power in range(40) for part in (1, 1.5)]
    inside = [size for size in sizes if low <= size <= high]
    if len(inside) >= 3:
        return inside
    unit = 1024 if low > 4096 else 1
    return [unit * tick for tick in between(low / unit, high / unit, 6)]


def padded_range(values: list[float], spare: float) -> tuple[float, float]:
    """Returns the smallest and the largest value, moved apart by a margin on both sides.

    The margin is `spare` times the distance of the two values.
    """
    low, high = min(values), max(values)
    room = (high - low or abs(high) * 0.2 or 1.0) * spare
    return low - room, high + room
