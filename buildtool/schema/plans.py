"""What the answer to `plan` says: a plan's buffers, regions, memory and work, and other plans beside it."""

from __future__ import annotations

from typing import TypedDict, final

from buildtool.schema.boards import BoardFacts, Price


class BufferView(TypedDict):
    """A buffer of the arena, live from step `first` to step `last`.

    `rows`, `columns`: how much of its tensor it holds (0: all). `op`: the operator that scratch and
    accumulators serve, else -1.
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
    """Constants of an operator that are loaded into the buffer with this position.

    `channels`: output channels that come at a time (0: all); `slots`: parts that the buffer holds;
    `by_turns`: they come anew with every turn of the operator's group. An operator of a streamed region may
    have several: the one that began last is read.
    """

    op: int
    buffer: int
    size: int
    channels: int
    slots: int
    by_turns: bool


class MoveView(TypedDict):
    """A tensor that is copied from one place of the arena to another: positions of the two buffers."""

    source: int
    target: int


class OverlapView(TypedDict):
    """An operator whose output may lie on its input: positions of the buffers, distance in bytes."""

    op: int
    input: int
    output: int
    distance: int


class BindingView(TypedDict):
    """The fullest step, and the operator that runs in it (-1: none, a row of the image is delivered)."""

    operator: int
    name: str
    step: int
    live_bytes: int


class PlannedOperator(TypedDict):
    """An operator and its kernel ("": it needs no code)."""

    position: int
    kernel: str
    kind: str
    place: str
    name: str


class OperatorView(PlannedOperator):
    """An operator with its form in a few letters, such as `dw 3x3/2`: window and stride."""

    form: str


class PlannedGroup(TypedDict):
    """Operators that run under one scheme; `rows_per_step`, `hand_off` (pixels): 0 for all, a whole row."""

    ops: list[int]
    scheme: str
    rows_per_step: int
    hand_off: int


class PlannedRegion(TypedDict):
    """A chain of groups."""

    groups: list[PlannedGroup]


class SecondPassView(TypedDict):
    """Operators that run a second time, so that a tensor need not be whole until its last reader comes.

    Positions in `operators`: `operators` do once more what `first_run` did, for `reader`. `macs`: their
    multiply-accumulates, run once.
    """

    operators: list[int]
    first_run: list[int]
    reader: int
    macs: int


class ChannelsView(TypedDict):
    """A tensor that is some channels of each pixel of another one, whose memory it has.

    `operator`: the slice or the concatenation that therefore runs no code, by its position; `written`: it is
    a part of a concatenation, which is written there, and no slice, which is read. Channels from `first` on.
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
    """What a plan is for, what it needs and what it costs.

    `topology`, `target`: digests. `f`: its work over the network's own. `cost`: the target's estimate, in
    `cost_unit`: cycles, issues or instructions (`unstated`: of an older plan). `accounting`: in words, what
    the arena's size counts. `second_at`: from this offset on buffers lie in the second memory (0: none does).
    `states`: what lives between invokes, `state_bytes` of memory of its own, which no arena has any of.
    `second_passes`: the operators that are there twice. `views`: the tensors that lie in others' pixels.
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
    """Work: multiply-accumulates, and those of doing it once, `f` between the two, kernel calls and cost."""

    macs: int
    macs_once: int
    f: float
    calls: int
    cost: float


class GroupView(PlannedGroup, WorkView):
    """A group with its work."""


class LiveBufferView(TypedDict):
    """A buffer by its position, and what it is to the region that runs."""

    buffer: int
    use: str


class MomentView(TypedDict):
    """A step: which operator (-1: the delivery of the image) computes which rows and columns."""

    step: int
    operator: int
    name: str
    rows: list[int]
    columns: list[int]


class RegionView(WorkView):
    """A region with its memory and work.

    `live_bytes` in its fullest step, made of `parts` (bytes by use) less `shared_bytes`. `delivered_rows`
    of the image; `moved_bytes`: copied before it starts.
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
    """The arena against what is live in its fullest step, and against what any placement needs."""

    arena_bytes: int
    live_bytes: int
    lost_bytes: int
    bound_bytes: int
    above_bound_bytes: int


class Peak(MomentView):
    """The fullest step of a plan and what is live in it, the largest buffer first.

    `weights_bind`: whether it would be less full without the buffers of weights.
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
    """What another strategy reaches within a limit (`setting`); `ratio`: its arena over this plan's."""

    strategy: str
    setting: str
    image: str
    arena_bound_bytes: int
    macs: int
    weights_in_arena: bool
    ratio: float


class ArenaView(TypedDict):
    """What lies in one of the arena's memories, which has room for `room_bytes` of it.

    `touched_bytes`: what kernels bring from it or write, an estimate; `wait_cycles`: what these wait for the
    memory, by the board's data (0 where its speed is not known).
    """

    memory: str
    room_bytes: int
    arena_bytes: int
    touched_bytes: int
    wait_cycles: float


class AloneView(TypedDict):
    """The plan with all of the arena in one memory; where it does not fit, the one that needs least.

    `missing_bytes`: 0 where it fits, null where there is no plan (`error`). `estimated_ms` counts
    `wait_cycles`; null where costs are no time.
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
    """An arena in two memories; `gain`: the share of cost and waiting that it saves against the better one
    alone, null where neither would do.
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


class PlanDetails(PlanFigures):
    """A plan with every region's memory and work; `peak` is None for a network without operators."""

    operators: list[OperatorView]
    regions: list[RegionView]
    placement: Placement
    peak: Peak | None


class PlannedModel(PlanDetails, BoardFacts):
    """The plan of a model for a board, with what its search has proven.

    `search_factor`: 1 where the search was exact. Where its budget ended first it is larger, and proven: no
    way within the memory costs less than the one that was found, divided by it. Where the least memory was
    asked for, it is that of the front (see `front`). `placing_ended`: whether the budget of work for placing
    plans ended first: then the plan is not proven least. `order_status`: null for the given order of the
    operators; for the best one "optimal" (no order keeps less alive) or "feasible" (its own budget ended
    first). `estimated_ms`: the cost at the board's clock, null where costs are no time, or the clock is not
    known. `cost_by_ratio`: kernels of the plan that have no formula in cycles: their instructions count,
    times the mean of cycles an instruction. `memories`: of an arena in two of them, null for one.
    """

    model: str
    board: str
    flash_bytes: int
    estimated_ms: float | None
    cost_by_ratio: list[str]
    memories: MemoriesView | None
    search_factor: float
    placing_ended: bool
    order_status: str | None


class PlanAnswer(PlannedModel):
    """How a network will run on a board; `plan`: the plan's own bytes, `locked`: a file to keep it by.

    `wait_cycles`: what reads and writes wait for the arena's memories by the board's data, estimated and no
    part of the cost; null where costs are no cycles. `front_point`: of a plan with the least cost within
    `ram`, the plan of the front that needs no more memory, does no more work and costs more; null where
    there is none.
    """

    wait_cycles: float | None
    front_point: Price | None
    beside: list[OtherPlan | NoOtherPlan]
    plan: bytes
    locked: bytes


class TraceAnswer(TypedDict):
    """A plan over time as a trace of Chrome's Trace Event Format; `files` has it.

    `time`: in words, what the trace's microseconds are; costs are in `cost_unit`. `slices` of the operators
    stand for all `steps`; of too many steps, `merged` or less are one slice. `buffers`: tracks of the arena.
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
