"""The shapes of answers, shared by the service that makes them and the reports that print them.

All are plain values, as JSON has them. Sizes are in bytes; what is None is not known or not there.
"""

from __future__ import annotations

from typing import Any, TypedDict, final


class Estimate(TypedDict):
    """How long a board takes where it cannot be measured: seconds, and the rates that they come from."""

    compute_seconds: float
    load_seconds: float
    total_seconds: float
    macs_per_second: int
    bytes_per_second: int
    source: str


class Loading(TypedDict):
    """How constants come into the arena; `bind`: whether their buffers make it larger."""

    bytes: int
    operators: int
    in_slices: int
    ahead: int
    fullest_without: int
    bind: bool
    largest: int


class Facts(TypedDict):
    """What a user has to know of a board that nothing ran on."""

    note: str
    estimate: Estimate | None
    loading: Loading | None


class Figures(TypedDict):
    """What a plan needs and costs; `f`: its work over the network's own."""

    arena_bytes: int
    arena_bound_bytes: int
    f: float
    macs: int
    cost: float
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
    """The answer to `front`; `max_f`: the work up to which points were looked for."""

    model: str
    board: str
    image: str
    in_place: str
    hand_offs: list[int]
    max_f: float
    available_bytes: int
    macs: int
    points: list[Point]
    beside: list[Peer | Refusal]
    accounting: list[str]


class Interface(TypedDict):
    """An input or output of a network."""

    name: str
    shape: str
    type: str
    scale: float | None
    zero_point: int | None


class NetworkFacts(TypedDict):
    """What a network is, whatever it runs on; `kinds`: how many operators of each."""

    operators: int
    kinds: dict[str, int]
    inputs: list[Interface]
    outputs: list[Interface]
    macs: int
    weight_bytes: int
    activation_bytes: int
    live_bound_bytes: int
    live_bound_operator: str | None


class NeedAnswer(TypedDict):
    """A memory of the board against what the plan asks of it."""

    what: str
    memory: str
    required: int
    available: int
    excess: int


class HintAnswer(TypedDict):
    """What would help: options with the values to give them, and what that gives."""

    text: str
    settings: dict[str, Any]


class Verdict(TypedDict, total=False):
    """Whether a network fits a board; with `error` (as errors.to_data has it) there is no plan to tell of."""

    board: str
    title: str
    fits: bool
    error: dict[str, Any]
    needs: list[NeedAnswer]
    strategy: str
    f: float
    arena_bytes: int
    arena_bound_bytes: int
    flash_bytes: int
    cost: float
    binding_operator: str
    binding_bytes: int
    binds: str
    advice: list[HintAnswer]


class AnalysisAnswer(TypedDict):
    """The answer to `analyze` for boards."""

    model: str
    file_bytes: int
    operators_in_file: int
    network: NetworkFacts
    boards: list[Verdict]


class ValueOfNetwork(TypedDict):
    """An input or output of a network that is counted without a board."""

    name: str
    bytes: int


class NetworkAnswer(TypedDict):
    """The answer to `analyze` for a file without a board; `ratio`: the share that must be live at once."""

    model: str
    operators: int
    kinds: dict[str, int]
    inputs: list[ValueOfNetwork]
    outputs: list[ValueOfNetwork]
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
    planned_bytes: int | None
    ratio: float


class DifferenceAnswer(TypedDict):
    """The first tensor that is not as it should be."""

    input: int
    tensor: str
    operator: str
    elements: int
    max_abs_diff: int
    first_element: int


class ValidationAnswer(Facts):
    """The answer to `validate`; high water: what was really touched."""

    model: str
    board: str
    level: str
    compiler: str
    reference: str
    strategy: str
    inputs: int
    tensors_compared: int
    output_values: int
    exact: bool
    max_abs_diff: int
    first_difference: DifferenceAnswer | None
    arena_bytes: int
    arena_high_water: int
    stack_high_water: int | None


class SectionSize(TypedDict):
    """A section of an image."""

    name: str
    bytes: int


class MemorySize(TypedDict):
    """What an image takes of a memory; `size` 0: it has no limit."""

    memory: str
    used: int
    size: int
    sections: list[SectionSize]


class ArenaAnswer(TypedDict):
    """The answer to `arena`; the height is None where there is no placement."""

    problem: str
    status: str
    height_bytes: int | None
    bound_bytes: int
    capacity_bytes: int | None
    nodes: int
    offsets: dict[str, int] | None
    files: dict[str, bytes]
