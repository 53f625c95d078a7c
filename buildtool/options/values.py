"""What options are once they are parsed: how to plan and to count, for which target, on which data set."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from buildtool import options as table
from buildtool.base.files import File, Named
from buildtool.base.modes import (
    Counted,
    Image,
    InPlace,
    Objective,
    Order,
    Requantise,
    Resize,
    Strategy,
    WeightsIn,
)

if TYPE_CHECKING:
    from buildtool.options.parsers import Normalise

ANY_WIRE = "any"  # the one that suits the board


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
    """How to count a network without a board; `batch`: images at a time (0: the file's; Darknet: 1)."""

    weights: WeightsIn = WeightsIn.FLASH
    operators: Counted = Counted.SEPARATE
    order: Order = Order.GIVEN
    batch: int = 0
    size: tuple[int, int] | None = None


@dataclass(frozen=True)
class TargetChoice:
    """What a network is for: a board, the compiler, a library, and how it is requantised.

    `toolchain`: "" for the board's first; `cmsis_nn`: a checkout of CMSIS-NN ("": none); `debug`: compiled
    for a debugger; `wire`: how test firmware answers ("": by files); `threads`: how many share a call (None:
    all); `weights_in`: the memory of the weights (None: the board's); `arena_in`: of the arena, or two, with
    a comma.
    """

    board: Named
    toolchain: str = ""
    cmsis_nn: str = ""
    debug: bool = False
    wire: str = ""
    threads: int | None = None
    weights_in: str | None = None
    requantise: Requantise = Requantise.EXACT
    arena_in: str | None = None


@dataclass(frozen=True)
class Wanted:
    """The data set of a request (a .npz file or a folder), and its file of labels or of classes' names.
    `limit`: the number of inputs, chosen by `seed` (None: all); `normalise`: None: by the quantisation.
    """

    file: File
    labels: File | None = None
    limit: int | None = None
    seed: int = 0
    resize: Resize = Resize.CROP
    normalise: Normalise | None = None


def network_options(given: Mapping[str, Any]) -> NetworkOptions:
    """The options from their parsed values; UsageError for options of boards."""
    for name in given:
        if not hasattr(NetworkOptions, name):
            raise table.without_board(name)
    return NetworkOptions(**given)
