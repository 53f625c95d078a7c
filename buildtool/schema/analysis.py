"""What the answers to `analyze` say: a network, whether it fits each board, and what would help."""

from __future__ import annotations

from typing import TypedDict, final

from buildtool.base.errors import ErrorData, HintData, Value
from buildtool.schema.boards import NamedBytes, Price


class Interface(TypedDict):
    """An input or output of a network; scale and zero point are None for what is not quantised.

    `order`: dimension i of the shape is the file's dimension order[i]; empty: they have the file's order.
    """

    name: str
    shape: str
    order: list[int]
    type: str
    scale: float | None
    zero_point: int | None


class NetworkFacts(TypedDict):
    """What a network is, whatever it runs on; `kinds`: how many operators of each.

    `live_bound_bytes`: the largest sum of tensors that are live at once, at `live_bound_operator`;
    `live_bound_layer`: its short name.
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
    """What the firmware takes of a memory of the board; `what`: RAM or flash.

    `parts`: one of them may be `alignment`, the gaps between the others. Of a limit that an option sets,
    `what` is "arena limit" or "weights limit", and there are no parts.
    """

    what: str
    memory: str
    required: int
    available: int
    excess: int
    parts: list[NamedBytes]


class Counted(TypedDict):
    """How a verdict's needs were counted.

    `how`: linked (the test firmware was linked: each byte is exact); bound (from recorded sizes: the linked
    image takes no more); estimated (from the sizes of another core, where this one's compiler is not known);
    uncounted (arena, stack and weights only). `compiler`: made the code; `note`: why nothing was linked.
    """

    how: str
    compiler: str
    note: str


class StackNeed(TypedDict):
    """The most stack that an invoke takes, against what the board gives it."""

    required: int
    available: int


class Left(TypedDict):
    """Bytes of a memory that nothing takes."""

    what: str
    memory: str
    bytes: int


class Cure(Price):
    """Options with which the network fits, and the plan that is made with them.

    `settings`: option -> the value to give it (null: leave it out); `board`: which board it is then. `cost`
    includes what reads and writes wait for the arena's memories; `cost_ratio`: over the same of the plan that
    was asked for, null on another board. `left`: by memory.
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

    `binds`: the memory that is fullest, relative to its size. `binding_operator`: where most is live,
    `binding_bytes` of it; `binding_layer`: its short name. `cost` is in `cost_unit`: cycles, issues or
    instructions. Where one or two boards are named: `cures` are up to three ways to make it fit, each of
    them planned and counted, the cheapest first; `smaller` is the next plan with less memory than one that
    fits. `advice`: further help where it does not fit. `stack`: null where nothing is recorded of the core.
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
    binding_operator: str
    binding_layer: str
    binding_bytes: int
    binds: str
    cures: list[Cure]
    smaller: Cure | None
    advice: list[HintData]


@final
class NoPlan(TypedDict):
    """A board that there is no plan for, and why."""

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
    """A network that is counted without a board.

    `order_status` is None unless operators were put into another order. `total_bytes`: of all values, none
    sharing memory; `live_bound_bytes`: live at once at least, at the layer `live_bound_layer`;
    `planned_bytes`: of a placement (None: there are too many values to place). `ratio`: live_bound_bytes
    over total_bytes.
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
