"""Types of parsed options: how to plan, how to count, the target and the data set."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from buildtool import options as table
from buildtool.base.files import File, Named
from buildtool.base.modes import (
    Counted,
    Guards,
    Image,
    InPlace,
    Objective,
    Order,
    Requantise,
    Resize,
    Simplify,
    Strategy,
    WeightsIn,
)

if TYPE_CHECKING:
    from buildtool.options.parsers import Normalise

ANY_WIRE = "any"  # the link that suits the board


@dataclass(frozen=True)
class PlanOptions:
    """How to plan. The table in buildtool/options says what each option does.

    `ram` and `max_flash` are limits in bytes. `max_f` limits the work, as a multiple of the network's own
    work. `max_cost` limits the estimated cost, and `max_ms` the estimated time in milliseconds. A limit of
    None means the board's limit, or no limit. `hand_off` is in pixels (None: 1). `segments` are for
    xcore-strips. If they are "", the planner searches for them. `hop`: rows by which the input's window moves
    (None: each invoke has an input of its own).
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
    hop: int | None = None
    simplify: Simplify | None = None  # see `firmware.planned.simplification`


@dataclass(frozen=True)
class Lock:
    """A plan file to use. `image` is the image mode that the plan must have (None: any)."""

    file: File
    image: Image | None = None


@dataclass(frozen=True)
class NetworkOptions:
    """How to count a network's memory without a board.

    `batch` is the number of input images. 0 means the number in the file, or 1 for Darknet.
    """

    weights: WeightsIn = WeightsIn.FLASH
    operators: Counted = Counted.SEPARATE
    order: Order = Order.GIVEN
    batch: int = 0
    size: tuple[int, int] | None = None


@dataclass(frozen=True)
class TargetChoice:
    """The target of a network: board, compiler, kernel library, and how sums are requantised.

    `toolchain` is the compiler's name, or "" for the board's first one. `cmsis_nn` is the folder of a
    CMSIS-NN checkout, or "" for none. If `debug`, the code is compiled for a debugger. `wire` is the link by
    which test firmware answers, or "" if it answers through files. `threads` is the number of threads that
    share each kernel call (None: all that the board has). `weights_in` is the memory of the weights (None:
    the board's choice). `arena_in` is the memory of the arena, or two memories with a comma between.
    `kernels_in` is the RAM from which kernels run (None: the board's choice).
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
    kernels_in: str | None = None


@dataclass(frozen=True)
class CheckOptions:
    """What a network checks in the field.

    The golden input of its self-test is made from `seed`, or is in the file `golden` (both None: no test).
    """

    guards: Guards = Guards.NONE
    seed: int | None = None
    golden: File | None = None


@dataclass(frozen=True)
class DataOptions:
    """The data set of a request (a .npz file or a folder), and its file of labels or of class names.

    `limit` is the number of inputs (None: all), and `seed` chooses them. If `normalise` is None, the input's
    quantisation determines the rule for pixels.
    """

    file: File
    labels: File | None = None
    limit: int | None = None
    seed: int = 0
    resize: Resize = Resize.CROP
    normalise: Normalise | None = None


def network_options(given: Mapping[str, Any]) -> NetworkOptions:
    """Makes the options from parsed values. Raises UsageError for options that need a board."""
    for name in given:
        if not hasattr(NetworkOptions, name):
            raise table.without_board(name)
    return NetworkOptions(**given)
