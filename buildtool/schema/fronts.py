"""The answer to `front`: the points of the Pareto front, and the plans of other strategies."""

from __future__ import annotations

from typing import TypedDict, final

from buildtool.schema.boards import Price


class Figures(Price):
    """The figures of a plan; `groups` counts the groups of its streamed regions."""

    arena_bound_bytes: int
    macs: int
    regions: int
    streamed_regions: int
    groups: int


class Point(Figures):
    """A point of the Pareto front: a plan.

    `live_bytes` are those of its fullest region, before placement. `state_bytes` live between invokes; on a
    moving window they differ from point to point.
    """

    strategy: str
    live_bytes: int
    state_bytes: int


@final
class Peer(Figures):
    """The plan of another strategy."""

    strategy: str


@final
class Refusal(TypedDict):
    """Why another strategy makes no plan."""

    strategy: str
    error: str


class FrontAnswer(TypedDict):
    """The Pareto front of memory and work, least memory first.

    - `hand_offs`: the hand-offs that were tried: how many pixels one operator of a group computes before the
      next one runs.
    - `max_f`: the upper limit for the work of the points, as a multiple of the network's own work.
    - `arenas_in`: the memory of the arena, or two memories. The points are placed in one piece of the size of
      both, not divided.
    - `available_bytes`: what the board has for the arena, besides the `state_bytes` that live between
      invokes.
    - `hop`: the number of rows by which the input's window moves; null if each invoke has an input of its
      own. The points of a moving window also differ in what is kept between invokes.
    - `cost_unit`: the unit of all costs: cycles, issues or instructions.
    - `search_factor`: 1 if the points are the exact front over live bytes. It is larger if the search's
      budget ended first, and then it is a proven factor: for every other plan of the space there is a point
      with at most this many times its live bytes and its work.
    - `placing_ended`: whether the budget for placing plans ended first. Then the points are not proven to be
      the smallest.
    - `order_status`: null for the given order of operators. For the best order it is "optimal" (no order
      keeps fewer bytes alive) or "feasible" (its own budget ended first).
    - `accounting`: what an arena's size counts, in words.
    """

    model: str
    board: str
    image: str
    in_place: str
    hand_offs: list[int]
    max_f: float
    arenas_in: list[str]
    available_bytes: int
    state_bytes: int
    hop: int | None
    macs: int
    cost_unit: str
    points: list[Point]
    beside: list[Peer | Refusal]
    search_factor: float
    placing_ended: bool
    order_status: str | None
    accounting: list[str]
