"""Planning and counting options, typed, and which of them have no effect together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from buildtool import options as table
from buildtool.base.files import File
from buildtool.base.modes import Counted, Image, InPlace, Objective, Order, Strategy, WeightsIn


@dataclass(frozen=True)
class PlanOptions:
    """How to plan; the table in buildtool/options says what each option does.

    Limits (None: the board's, or none): `ram` and `max_flash` in bytes, `max_f` on the work done over the
    network's own, `max_cost` on the estimated cost, `max_ms` on that in milliseconds. `hand_off` in pixels
    (None: 1). `segments`: those of xcore-strips ("": they are searched).
    """

    strategy: Strategy = Strategy.BEST
    in_place: InPlace = InPlace.ROWS
    image: Image = Image.OVERWRITABLE
    objective: Objective = Objective.COST
    ram: int | None = None
    max_flash: int | None = None
    max_f: float | None = None
    max_cost: float | None = None
    max_ms: float | None = None
    hand_off: int | None = None
    segments: str = ""
    order: Order = Order.BETTER


@dataclass(frozen=True)
class Lock:
    """The file of a plan to run by, and the image mode that it has to have (None: whichever it has)."""

    file: File
    image: Image | None = None


@dataclass(frozen=True)
class NetworkOptions:
    """How to count a network that is not for a board.

    `batch`: images at a time (0: the file's; Darknet: 1); `size`: (rows, columns) of the image.
    """

    weights: WeightsIn = WeightsIn.FLASH
    operators: Counted = Counted.SEPARATE
    order: Order = Order.GIVEN
    batch: int = 0
    size: tuple[int, int] | None = None


def plan_options(given: Mapping[str, Any]) -> PlanOptions:
    """Options from their values; UsageError for wrong ones, and for those that have no effect together."""
    return PlanOptions(**table.planning(given))


def network_options(given: Mapping[str, Any]) -> NetworkOptions:
    """Options from a request's values; UsageError for those of boards."""
    values = {}
    known = ("weights", "operators", "order", "batch", "size")
    for name, value in given.items():
        if name not in known:
            raise table.without_board(name)
        values[name] = value
    return NetworkOptions(**values)
