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
    """A point of the front; `live_bytes` are those of its fullest region, before placement.

    `state_bytes` live between invokes. They differ from point to point on a moving window.
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

    `cost_unit` is the unit of all costs: cycles, issues or instructions. `max_f` is the upper limit for the
    work of the points. `hand_offs` are the hand-offs that were tried, in pixels.

    `available_bytes` is what the board has for the arena, besides the `state_bytes` that live between
    invokes. `arenas_in` names the memory of the arena, or two memories whose sum is available. The points are
    placed in one piece of that size, not divided. `accounting` says in words what an arena's size counts.

    `hop` is the number of rows by which the input's window moves; null if each invoke has an input of its
    own. The points then differ in what is kept, too.

    `search_factor` is 1 where the points are the exact front over live bytes. It is larger where the search's
    budget ended first, and then it is a proven factor: for every other plan of the space there is a point
    with at most this many times its live bytes and its work. `placing_ended` says whether the budget for
    placing plans ended first. Then the points are not proven to be the smallest. `order_status` is null for
    the given order of operators. For the best order it is "optimal" (no order keeps fewer bytes alive) or
    "feasible" (its own budget ended first).
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
