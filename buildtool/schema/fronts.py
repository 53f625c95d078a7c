"""What the answer to `front` says: points, and what other strategies reach."""

from __future__ import annotations

from typing import TypedDict, final

from buildtool.schema.boards import Price


class Figures(Price):
    """The figures of a plan; `groups`: those of its streamed regions."""

    arena_bound_bytes: int
    macs: int
    regions: int
    streamed_regions: int
    groups: int


class Point(Figures):
    """A point of the front; `live_bytes`: of its fullest region, before it is placed."""

    strategy: str
    live_bytes: int


@final
class Peer(Figures):
    """What another strategy reaches."""

    strategy: str


@final
class Refusal(TypedDict):
    """Why another strategy makes no plan."""

    strategy: str
    error: str


class FrontAnswer(TypedDict):
    """The plans that no other beats in memory and work, the least memory first.

    `cost_unit`: of all costs: cycles, issues or instructions. `max_f`: the work up to which they were looked
    for; `hand_offs`: the pixels that were tried;
    `available_bytes`: what the board has for the arena, beside the `state_bytes` that live between
    invokes; `arenas_in`: the memory that holds it, or the two, whose sum is available: points are in one
    piece of that, not divided; `accounting`: in words, what an arena's size counts.
    `search_factor`: 1 where the points are the exact front over live bytes. Where the search's budget ended
    first it is larger, and proven: every other way of the space has a point that needs at most so many times
    its live bytes and does at most so many times its work. `placing_ended`: whether the budget of work for
    placing plans ended first: then the points are not proven least. `order_status`: null for the given order
    of the operators; for the best one "optimal" (no order keeps less alive) or "feasible" (its own budget
    ended first).
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
    macs: int
    cost_unit: str
    points: list[Point]
    beside: list[Peer | Refusal]
    search_factor: float
    placing_ended: bool
    order_status: str | None
    accounting: list[str]
