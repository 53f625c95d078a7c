"""The answer to `analyze`: a network, whether it fits each board, and what would help."""

from __future__ import annotations

from typing import TypedDict, final

from buildtool.base.errors import ErrorData, HintData, Value
from buildtool.schema.boards import NamedBytes, Price
from buildtool.schema.plans import FloatWork, FourBitWeights, RemovedChannels


class Interface(TypedDict):
    """An input or output of a network; scale and zero point are None where it is not quantised.

    `order`: dimension i of the shape is dimension order[i] in the file. It is empty where both orders are
    equal.
    """

    name: str
    shape: str
    order: list[int]
    type: str
    scale: float | None
    zero_point: int | None


class NetworkFacts(TypedDict):
    """Facts of a network that do not depend on a board.

    `kinds` maps each kind of operator to its count. `live_bound_bytes` is the largest sum of tensors that are
    live at once, while `live_bound_operator` runs; `live_bound_layer` is the short name of this operator.
    """

    operators: int
    kinds: dict[str, int]
    inputs: list[Interface]
    outputs: list[Interface]
    macs: int
    weight_bytes: int
    activation_bytes: int
    state_bytes: int
    live_bound_bytes: int
    live_bound_operator: str | None
    live_bound_layer: str | None


class NeedAnswer(TypedDict):
    """The bytes that the firmware takes of one memory of the board.

    `what` is RAM or flash. One of the `parts` may be `alignment`, the gaps between the others. For a limit
    that an option sets, `what` is "arena limit" or "weights limit", and `parts` is empty. `name` is what
    texts call it, such as "RAM (psram)".
    """

    what: str
    memory: str
    name: str
    required: int
    available: int
    excess: int
    parts: list[NamedBytes]


class Counted(TypedDict):
    """How the bytes of a verdict were counted. `how` is one of four words:

    - linked: the test firmware was linked, and each byte is exact.
    - bound: an upper limit of the linked firmware, from recorded sizes.
    - estimated: from the sizes of another core, as this core's compiler is not known.
    - uncounted: only arena, stack and weights are counted.

    `compiler` made the code. `note` says why nothing was linked.
    """

    how: str
    compiler: str
    note: str


class StackNeed(TypedDict):
    """The largest stack of an invoke, and the stack that the board has for it."""

    required: int
    available: int


class Left(TypedDict):
    """The unused bytes of a memory."""

    what: str
    memory: str
    bytes: int


class Cure(Price):
    """Options with which the network fits, and the figures of the plan that they give.

    - `settings`: each option with its new value (null: leave the option out).
    - `board`: the board on which it fits.
    - `cost`: includes the waits of reads and writes for the arena's memories.
    - `cost_ratio`: this cost over that of the original plan; null on another board.
    - `left`: the unused bytes of each memory.
    """

    settings: dict[str, Value]
    board: str
    image: str
    cost_unit: str
    cost_ratio: float | None
    left: list[Left]


@final
class Verdict(Price):
    """Whether the test firmware of a network, with the plan that is made for it, fits a board.

    - `stack`: null if nothing is recorded for the core.
    - `cost_unit`: the unit of `cost`: cycles, issues or instructions.
    - `floats`: null without operators of float32.
    - `removed`: null if all channels are computed.
    - `four_bits`: null if no weights are stored in four bits.
    - `binding_operator`: the operator with the most live bytes, which are `binding_bytes`; `binding_layer` is
      its short name.
    - `binds`: the fullest memory, relative to its size.
    - `cures`: up to three settings that make the network fit, the cheapest first. Each is planned and
      counted. Only requests for one or two boards have them.
    - `smaller`: for the same requests, the next smaller plan of a network that fits; `smallest` is the plan
      with the least memory, if it is another one.
    - `advice`: further help for a network that does not fit.
    """

    board: str
    title: str
    fits: bool
    needs: list[NeedAnswer]
    stack: StackNeed | None
    counted: Counted
    strategy: str
    arena_bound_bytes: int
    state_bytes: int
    flash_bytes: int
    cost_unit: str
    floats: FloatWork | None
    removed: RemovedChannels | None
    four_bits: FourBitWeights | None
    binding_operator: str
    binding_layer: str
    binding_bytes: int
    binds: str
    cures: list[Cure]
    smaller: Cure | None
    smallest: Cure | None
    advice: list[HintData]


@final
class NoPlan(TypedDict):
    """A board for which there is no plan, and the reason."""

    board: str
    title: str
    fits: bool
    error: ErrorData


@final
class AnalysisAnswer(TypedDict):
    """A network, and a verdict for each board."""

    model: str
    file_bytes: int
    operators_in_file: int
    network: NetworkFacts
    boards: list[Verdict | NoPlan]


@final
class NetworkAnswer(TypedDict):
    """The memory figures of a network without a board.

    - `order_status`: None unless the operators were reordered.
    - `total_bytes`: the sum of all values, without sharing memory.
    - `live_bound_bytes`: a lower bound for the memory: the bytes that are live at once, at
      `live_bound_layer`.
    - `planned_bytes`: the height of a placement (None: there are too many values to place).
    - `ratio`: `live_bound_bytes` over `total_bytes`.
    """

    model: str
    operators: int
    kinds: dict[str, int]
    inputs: list[NamedBytes]
    outputs: list[NamedBytes]
    batch: int
    weights: str
    counted_operators: str
    order: str
    order_status: str | None
    activation_bytes: int
    weight_bytes: int
    total_bytes: int
    live_bound_bytes: int
    live_bound_operator: str
    live_bound_layer: str
    planned_bytes: int | None
    ratio: float
