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

    - `ram`, `max_flash`: limits in bytes; None is the board's limit.
    - `max_f`: limit on the work, as a multiple of the network's own work; None is no limit.
    - `max_cost`, `max_ms`: limits on the estimated cost, and on the estimated time in milliseconds.
    - `hand_off`: pixels that pass from one operator of a group to the next at a time, at least (None: 1).
    - `segments`: the segments of strategy xcore-strips as text ("": the planner searches for them).
    - `hop`: rows by which the input's window moves (None: each invoke has an input of its own).
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
    """The file of a plan to use instead of a new plan. `image` is the image mode it must have (None: any)."""

    file: File
    image: Image | None = None


@dataclass(frozen=True)
class NetworkOptions:
    """How to count a network's memory without a board.

    `batch` is the number of input images; 0 means the number in the file, or 1 for Darknet. `size` is (rows,
    columns) of the input image (None: as in the file).
    """

    weights: WeightsIn = WeightsIn.FLASH
    operators: Counted = Counted.SEPARATE
    order: Order = Order.GIVEN
    batch: int = 0
    size: tuple[int, int] | None = None


@dataclass(frozen=True)
class TargetChoice:
    """The target of a network: the board, and how the network is compiled and placed for it.

    - `toolchain`: the compiler's name ("": the board's first one).
    - `cmsis_nn`: the folder of a CMSIS-NN checkout ("": none).
    - `debug`: whether the code is compiled for a debugger.
    - `wire`: the link over which test firmware answers ("": it answers through files).
    - `threads`: the number of threads that share each kernel call (None: all that the board has).
    - `weights_in`: the board's memory for the weights (None: the board's choice).
    - `requantise`: how sums become 8-bit outputs.
    - `arena_in`: the board's memory for the arena, or two with a comma between (None: the board's choice).
    - `kernels_in`: the RAM from which kernels run (None: the board's choice).
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
    """What a network checks in the field: guard words around the arena, and a self-test.

    The self-test compares one output with the reference's. Its input (the golden input) is made from `seed`,
    or is in the file `golden`. If both are None, there is no self-test.
    """

    guards: Guards = Guards.NONE
    seed: int | None = None
    golden: File | None = None


@dataclass(frozen=True)
class DataOptions:
    """The data set of a request (`file`: a .npz file or a folder), and how inputs are made of it.

    - `labels`: the file of labels or of class names (None: those of the data set).
    - `limit`: the number of inputs (None: all); `seed` chooses them.
    - `resize`: how an image of another size gets the input's size.
    - `normalise`: the rule for the values of pixels (None: the input's quantisation determines it).
    """

    file: File
    labels: File | None = None
    limit: int | None = None
    seed: int = 0
    resize: Resize = Resize.CROP
    normalise: Normalise | None = None


def network_options(given: Mapping[str, Any]) -> NetworkOptions:
    """Returns the options for counting memory without a board, from parsed values.

    Raises UsageError if `given` has an option that needs a board.
    """
    for name in given:
        if not hasattr(NetworkOptions, name):
            raise table.needs_board_error(name)
    return NetworkOptions(**given)
