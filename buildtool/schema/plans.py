"""The answers to `plan` and `trace`: a plan's buffers, regions, memory and work, and other plans."""

from __future__ import annotations

from typing import TypedDict, final

from buildtool.schema.boards import BoardFacts, Price


class BufferView(TypedDict):
    """A buffer of the arena, live from step `first` to step `last`.

    `rows` and `columns` say how much of its tensor it holds (0: all). `op` is the operator that a scratch or
    accumulator buffer serves, else -1. `size` and `offset` are in bytes.
    """

    kind: str
    name: str
    tensors: list[int]
    tensor_names: list[str]
    size: int
    first: int
    last: int
    offset: int
    rows: int
    columns: int
    op: int


class LoadView(TypedDict):
    """A load: constants of an operator that are copied from slow flash into a buffer of the arena.

    - `op`: the operator. In a streamed region it may have several loads, and reads the one that began last.
    - `buffer`: the position of the buffer.
    - `size`: bytes of all its constants.
    - `channels`: the number of output channels that are loaded at a time (0: all).
    - `slots`: the number of parts that the buffer holds.
    - `by_turns`: whether the constants are loaded again in every round of the operator's group.
    """

    op: int
    buffer: int
    size: int
    channels: int
    slots: int
    by_turns: bool


class MoveView(TypedDict):
    """A tensor that is copied within the arena; `source` and `target` are positions of buffers."""

    source: int
    target: int


class OverlapView(TypedDict):
    """An operator whose output may overlap its input.

    `input` and `output` are positions of buffers. The input's offset is at least `distance` bytes above the
    output's offset.
    """

    op: int
    input: int
    output: int
    distance: int


class BindingView(TypedDict):
    """The fullest step, in which most bytes are live, and the operator that runs in it.

    `operator` is -1 if the step delivers a row of the input image.
    """

    operator: int
    name: str
    step: int
    live_bytes: int


class PlannedOperator(TypedDict):
    """An operator and its kernel ("": no code is needed)."""

    position: int
    kernel: str
    kind: str
    place: str
    name: str


class OperatorView(PlannedOperator):
    """An operator with its `form`: kind, window and stride in a few letters.

    For example, `dw 3x3/2` has a 3x3 window and stride 2.
    """

    form: str


class PlannedGroup(TypedDict):
    """A group: operators that run under one scheme.

    `rows_per_step` is the number of rows of the last operator's output that a step computes (0: all rows).
    `hand_off` is how many pixels one operator computes before the next one runs (0: a whole row).
    """

    ops: list[int]
    scheme: str
    rows_per_step: int
    hand_off: int


class PlannedRegion(TypedDict):
    """A region: a chain of groups that run together between two whole tensors."""

    groups: list[PlannedGroup]


class SecondPassView(TypedDict):
    """Recomputation: operators that run a second time, so that a tensor need not stay until its last reader.

    `operators` repeat for `reader` what `first_run` computed. All three are positions in the plan's
    `operators`. `macs` is the number of multiply-accumulates of one repetition.
    """

    operators: list[int]
    first_run: list[int]
    reader: int
    macs: int


class ChannelsView(TypedDict):
    """A tensor whose memory is some channels of each pixel of another tensor, the `whole`.

    - `operator`: the position of the slice or concatenation that needs no code for this reason.
    - `written`: true for a concatenation, whose part is written into the whole tensor; false for a slice,
      which is read from the whole tensor.
    - `tensor`, `name`: the tensor, which has `channels` channels, from channel `first` of the whole tensor
      on.
    """

    operator: int
    written: bool
    tensor: int
    name: str
    whole: int
    whole_name: str
    first: int
    channels: int


class PlanFigures(TypedDict):
    """What a plan needs and what it costs.

    - `topology`, `target`: digests of the network's operators and shapes, and of the target.
    - `macs`, `macs_layerwise`: multiply-accumulates of the plan, and of the network layer by layer.
    - `f`: the plan's work over the network's own work.
    - `cost`: the target's estimate in `cost_unit`: cycles, issues (instructions of an XS3 core with its
      vector unit) or instructions (`unstated` in an older plan).
    - `accounting`: what the arena's size counts, in words.
    - `second_at`: buffers from this offset on lie in the second memory (0: there is only one).
    - `states`: buffers that live between invokes, in `state_bytes` of memory outside the arena.
    - `second_passes`: operators that run a second time (recomputation).
    - `views`: tensors that lie in other tensors' pixels.
    """

    strategy: str
    topology: str
    target: str
    image: str
    arena_bytes: int
    arena_bound_bytes: int
    alignment: int
    macs: int
    macs_layerwise: int
    f: float
    cost: float
    cost_unit: str
    binding: BindingView
    accounting: list[str]
    buffers: list[BufferView]
    loads: list[LoadView]
    moves: list[MoveView]
    overlaps: list[OverlapView]
    second_at: int
    state_bytes: int
    states: list[BufferView]
    second_passes: list[SecondPassView]
    views: list[ChannelsView]


class PlanView(PlanFigures):
    """A plan as plain values."""

    operators: list[PlannedOperator]
    regions: list[PlannedRegion]


class WorkView(TypedDict):
    """The work of an operator, a group or a region.

    `macs` is the number of multiply-accumulates, `macs_once` the number without repetitions, and `f` is
    their ratio. `calls` is the number of kernel calls.
    """

    macs: int
    macs_once: int
    f: float
    calls: int
    cost: float


class GroupView(PlannedGroup, WorkView):
    """A group with its work."""


class LiveBufferView(TypedDict):
    """A live buffer: its position, and what the region that runs uses it for."""

    buffer: int
    use: str


class MomentView(TypedDict):
    """A step of the plan: the rows and columns that an operator computes, as [first, end).

    `step` is its number. `operator` is -1 if the step delivers a row of the input image.
    """

    step: int
    operator: int
    name: str
    rows: list[int]
    columns: list[int]


class RegionView(WorkView):
    """A region with its memory and work.

    - `live_bytes`: the bytes of its fullest step: the sum of `parts` (bytes by use) minus `shared_bytes`,
      which two buffers share.
    - `delivered_rows`: the number of rows of the input image that it receives.
    - `moved_bytes`: bytes that are copied within the arena before it starts.
    """

    groups: list[GroupView]
    operators: list[int]
    streamed: bool
    first_step: int
    last_step: int
    live_bytes: int
    fullest: MomentView
    parts: dict[str, int]
    shared_bytes: int
    buffers: list[LiveBufferView]
    delivered_rows: int
    moved_bytes: int


class Placement(TypedDict):
    """How closely the buffers are placed in the arena.

    - `live_bytes`: the live bytes of the fullest step; `lost_bytes` is the rest of the arena.
    - `bound_bytes`: a lower bound for every placement; the arena is `above_bound_bytes` larger.
    """

    arena_bytes: int
    live_bytes: int
    lost_bytes: int
    bound_bytes: int
    above_bound_bytes: int


class Peak(MomentView):
    """The fullest step of a plan and its live buffers, the largest first.

    `weights_bind` says whether the fullest step would have fewer bytes without the buffers of weights.
    """

    region: int
    live_bytes: int
    parts: dict[str, int]
    shared_bytes: int
    buffers: list[LiveBufferView]
    live_bytes_without_weights: int
    weights_bind: bool


@final
class OtherPlan(Price):
    """The plan of another strategy within a limit, which `setting` names.

    `ratio` is its arena over this plan's arena.
    """

    strategy: str
    setting: str
    image: str
    arena_bound_bytes: int
    macs: int
    weights_in_arena: bool
    ratio: float


class ArenaView(TypedDict):
    """The part of the arena that lies in one memory, which has `room_bytes` for it.

    - `touched_bytes`: an estimate of the bytes that kernels read from it or write to it.
    - `wait_cycles`: how long these accesses wait for the memory, by the board's data (0: its speed is not
      known).
    """

    memory: str
    room_bytes: int
    arena_bytes: int
    touched_bytes: int
    wait_cycles: float


class AloneView(TypedDict):
    """The plan with the whole arena in one memory; if no plan fits, the plan that needs least memory.

    `missing_bytes` is 0 if the plan fits, and null if there is no plan (`error` says why). `estimated_ms`
    includes `wait_cycles`. It is null where costs are not times.
    """

    memory: str
    missing_bytes: int | None
    arena_bytes: int | None
    f: float | None
    cost: float
    wait_cycles: float
    estimated_ms: float | None
    error: str


class MemoriesView(TypedDict):
    """An arena in two memories.

    `alone` has the plans with the arena in one memory. `gain` is the share of cost and waiting that two
    memories save compared with the better one of these plans. It is null if no such plan fits.
    """

    arenas: list[ArenaView]
    wait_cycles: float
    alone: list[AloneView]
    gain: float | None


@final
class NoOtherPlan(TypedDict):
    """Why another strategy makes no plan."""

    strategy: str
    setting: str
    image: str
    error: str


class NarrowLayer(TypedDict):
    """A layer that computes only `channels` of its `total_channels`.

    `macs` is the number of multiply-accumulates for these channels, and `total_macs` the number for all
    channels.
    """

    name: str
    channels: int
    total_channels: int
    macs: int
    total_macs: int


class RemovedChannels(TypedDict):
    """Channels that are not computed: they have one value for every input, or no operator reads them.

    `channels` of the `total_channels` of all operators' outputs are removed; reshapes are not counted. `macs`
    and `weight_bytes` (before packing) are those of the network that runs, `total_macs` and
    `total_weight_bytes` those with all channels.
    """

    channels: int
    total_channels: int
    macs: int
    total_macs: int
    weight_bytes: int
    total_weight_bytes: int
    layers: list[NarrowLayer]


class FourBitWeights(TypedDict):
    """Weights that are stored in four bits: those of `operators` of the `total_operators` with weights.

    The constants of these operators take `bytes` bytes in the weight image, instead of `total_bytes`.
    """

    operators: int
    total_operators: int
    bytes: int
    total_bytes: int


class FloatWork(TypedDict):
    """The operators that read or write float32, and their share of the plan's cost.

    `operators` counts them, out of `operators_of_network`. `float_unit` says whether the core computes
    float32 in hardware.
    """

    operators: int
    operators_of_network: int
    cost_share: float
    float_unit: bool


class PlainWork(TypedDict):
    """The integer operators that run on plain kernels, and their share of the plan's cost.

    Plain kernels run on every core, and are slow. `operators` has the positions of these operators.
    `operators_of_network` is the number of all operators that run.
    """

    operators: list[int]
    operators_of_network: int
    cost_share: float


class PlanDetails(PlanFigures):
    """A plan with the memory and work of every region.

    `peak` is None for a network without operators, `floats` for a network without operators of float32.
    `plain` is None if no operator runs on a plain kernel, and on cores that have only plain kernels.
    """

    operators: list[OperatorView]
    regions: list[RegionView]
    placement: Placement
    peak: Peak | None
    floats: FloatWork | None
    plain: PlainWork | None


class WindowTensor(TypedDict):
    """A tensor of the network on the whole moving window, with a row for each point in time.

    - `computed`: the spans [first, end) of its rows that an invoke computes.
    - `kept`: the span of the rows that are kept from the invoke before (null: no rows), in `kept_bytes`
      bytes.
    - `edge_rows`: the number of rows that depend on padding at the window's beginning or end.
    """

    name: str
    operator: str
    rows: int
    computed: list[list[int]]
    kept: list[int] | None
    kept_bytes: int
    edge_rows: int


class WholeOperator(TypedDict):
    """An operator that runs on the whole moving window in each invoke, and why."""

    operator: str
    name: str
    why: str
    macs: int


class WindowView(TypedDict):
    """How the network runs on a moving window. A hop is a move of the window, and an invoke runs for each.

    - `rows`: rows that are new in each invoke, of the `window_rows` of the window.
    - `hops`: the number of invokes that fill the window.
    - `tensors`: in the order of execution, the input first.
    - `whole`: operators that run on the whole window.
    - `sums`: names of the poolings that keep sums or maxima, in `sums_bytes` bytes.
    - `f_without_edges`: what F would be if no row depended on padding at the window's edges.
    - `period_ms`: the time from hop to hop.
    - `duty`: the share of this time that an invoke takes by the estimate; null if either is not known.
    """

    rows: int
    window_rows: int
    hops: int
    tensors: list[WindowTensor]
    whole: list[WholeOperator]
    sums: list[str]
    sums_bytes: int
    f_without_edges: float
    period_ms: float | None
    duty: float | None


class PlannedModel(PlanDetails, BoardFacts):
    """The plan of a model for a board, and what the search has proven.

    - `search_factor`: 1 if the search was exact. It is larger if the search's budget ended first, and then it
      is a proven factor: no plan within the memory costs less than this plan's cost divided by it. For the
      objective of least memory it is the factor of the front (see `front`).
    - `placing_ended`: whether the budget for placing plans ended first. Then the plan is not proven to be the
      smallest.
    - `order_status`: null for the given order of operators. For the best order it is "optimal" (no order
      keeps fewer bytes alive) or "feasible" (its own budget ended first).
    - `estimated_ms`: the cost at the board's clock; null if costs are not times or the clock is not known.
    - `cost_by_ratio`: the plan's kernels that have no formula in cycles. Their cost is their number of
      instructions times a mean number of cycles per instruction.
    - `removed`: null if all channels are computed.
    - `four_bits`: null if no weights are stored in four bits.
    - `memories`: null unless the arena is in two memories.
    - `window`: null if each invoke has an input of its own.
    - `inputs`, `outputs`: the network's tensors, numbered as in `buffers`.
    """

    model: str
    board: str
    flash_bytes: int
    estimated_ms: float | None
    cost_by_ratio: list[str]
    removed: RemovedChannels | None
    four_bits: FourBitWeights | None
    memories: MemoriesView | None
    window: WindowView | None
    inputs: list[int]
    outputs: list[int]
    search_factor: float
    placing_ended: bool
    order_status: str | None


class PlanAnswer(PlannedModel):
    """How a network runs on a board.

    - `wait_cycles`: an estimate of how long reads and writes wait for the arena's memories, by the board's
      data. It is not part of the cost, and null where costs are not cycles.
    - `front_point`: for a plan with the least cost within `ram`, the point of the Pareto front that needs no
      more memory, does no more work and costs more; null if there is no such point.
    - `beside`: plans of other strategies.
    - `plan`: the plan as a file.
    - `locked`: a file with which later builds keep this plan.
    """

    wait_cycles: float | None
    front_point: Price | None
    beside: list[OtherPlan | NoOtherPlan]
    plan: bytes
    locked: bytes


class TraceAnswer(TypedDict):
    """A plan over time in Chrome's Trace Event Format.

    - `time`: what the trace's microseconds are, in words. Costs are in `cost_unit`.
    - `slices`: the number of slices that show the operators' `steps`.
    - `merged`: the largest number of steps that one slice shows; above 1 only in a very long plan.
    - `buffers`: the number of the arena's tracks.
    - `files`: the trace.
    """

    model: str
    board: str
    cost_unit: str
    time: str
    steps: int
    slices: int
    merged: int
    buffers: int
    files: dict[str, bytes]
