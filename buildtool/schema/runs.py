"""What the answers to `validate` and `profile` say of a run."""

from __future__ import annotations

from typing import TypedDict

from buildtool.schema.boards import BoardFacts, LevelAnswer
from buildtool.schema.builds import StackSize


class OperatorBound(TypedDict):
    """An operator that does not equal the reference to the bit, on the inputs that it had in the run.

    `bound`: the largest difference that is possible, proven, in steps of the output; `bound_before_rounding`:
    how far the value is off before its last rounding, at most; `channels_rounded` of the `channels` are not
    requantised exactly. `max_abs_diff`, `elements_different` of the `elements`: what was seen.
    """

    tensor: str
    operator: str
    kernel: str
    channels: int
    channels_rounded: int
    bound_before_rounding: float
    bound: int
    max_abs_diff: int
    elements: int
    elements_different: int


class ReferenceAnswer(TypedDict):
    """Who computed what outputs were compared with.

    `name`: "litert" (LiteRT's reference kernels) or "numpy" (buildtool's own executor); `version`: LiteRT's
    ("" of our own); `text`: both in words. `inputs_by_own_executor`: for how many of the inputs our own
    executor computed it; `why`: why it did, and what would give the other ("" where LiteRT computed all).
    """

    name: str
    version: str
    text: str
    inputs_by_own_executor: int
    why: str


class Run(BoardFacts, LevelAnswer):
    """What was run; `compiler` is what the image was made by.

    `arena_high_water`, `stack_high_water`: bytes that were really written; `state_bytes`: what lives between
    invokes, in no arena. `exact`: no output differs;
    `requantise`: how sums became outputs, exact or otherwise; `within_bounds`: where otherwise, whether every
    operator was as near to the reference as is proven (`bounds`), else whether the run was exact.
    """

    model: str
    board: str
    compiler: str
    strategy: str
    inputs: int
    exact: bool
    requantise: str
    within_bounds: bool
    bounds: list[OperatorBound]
    arena_bytes: int
    arena_high_water: int
    state_bytes: int
    stack_high_water: int | None
    reference: ReferenceAnswer


class DifferenceAnswer(TypedDict):
    """The first tensor that is not as it should be: in which input, where, and by how much."""

    input: int
    tensor: str
    operator: str
    elements: int
    max_abs_diff: int
    first_element: int


class ValidationAnswer(Run):
    """A run compared with the reference.

    `resets`: how often the state was reset on the way. `output_values`: different values among the outputs'
    bytes, over all inputs; `inputs_equal`: inputs for which every tensor is as it should be;
    `elements_different`: of all tensors and inputs together.
    """

    resets: int
    tensors_compared: int
    output_values: int
    inputs_equal: int
    elements_different: int
    max_abs_diff: int
    first_difference: DifferenceAnswer | None


class IssueCount(TypedDict):
    """Issues of an operator, counted in a model of the core's vector unit.

    `vpu`: issues of that unit, of which `mac` multiply and accumulate; `scalar`: issues without it; both of
    all threads together. `slowest`: both kinds, of the slowest thread of each call, by which `seconds` goes.
    `vpu_per_mac`: of the unit's issues (None: the operator has no multiply-accumulates).
    """

    vpu: int
    mac: int
    scalar: int
    slowest: int
    vpu_per_mac: float | None
    seconds: float


class IssueSummary(TypedDict):
    """The issues of a run, of the operators whose kernels count them.

    `source` says what counted. `limit_per_mac`: issues that a multiply-accumulate takes at least;
    `clock_hz` and `cycles_per_issue`: of the core, from one issue of a thread to its next one. `seconds` is
    the sum over these operators, without loading weights. `operators`, `macs`: counted, of `all_operators`
    and `all_macs`.
    """

    source: str
    limit_per_mac: float
    clock_hz: int
    cycles_per_issue: int
    threads: int
    vpu: int
    scalar: int
    slowest: int
    seconds: float
    operators: int
    macs: int
    all_operators: int
    all_macs: int


class CycleParts(TypedDict):
    """What an estimate of cycles is the sum of.

    `pipeline`: blocks of code by the model of the core. `words`: what loads and stores of several words take
    beyond the one word that the model counts. `branches`: refills after taken branches, which it leaves out.
    `code`, `data`: waiting for memories whose speed the board's file gives, to fetch code, and for what is
    read and written.
    """

    pipeline: int
    words: int
    branches: int
    code: int
    data: int


class MemoryWait(TypedDict):
    """The cycles that the core waits for a memory, to fetch code and for data."""

    memory: str
    code: int
    data: int


class CycleEstimate(TypedDict):
    """How cycles were estimated: nothing was measured.

    `model`: the program, its version and the core that it knows; `skipped`: instructions of which it knows
    nothing, and which take no time here. `source` says where `taken_branch_cycles` is from, what a taken
    branch takes besides. `clock_hz`: of the board (0: not known). `parts`: of the whole run, of which
    `between` cycles are of no operator. `waits`: the memories whose speed is known; `ideal`: those of code,
    data, arena and weights whose speed is not, and for which nobody waits.
    """

    model: str
    skipped: list[str]
    source: str
    clock_hz: int
    taken_branches: int
    taken_branch_cycles: int
    parts: CycleParts
    between: int
    waits: list[MemoryWait]
    ideal: list[str]


class LayerProfile(TypedDict):
    """An operator in a run; `instructions` is None on the host, where they are not counted.

    `cycles`: of the core's own counter on a board, else an estimate, the sum of its `parts`, which takes
    `estimated_ms` at the board's clock; None where there is neither. `ram_alive`: bytes live while it runs;
    `macs` and `f` count repetitions, `macs_once` does not. `issues` is None where no model counts them;
    `uncounted` says why, on a board that has such a model.
    """

    name: str
    operator: str
    kernel: str
    output_shape: str
    macs: int
    macs_once: int
    f: float
    calls: int
    ram_alive: int
    instructions: int | None
    cycles: int | None
    estimated_ms: float | None
    parts: CycleParts | None
    issues: IssueCount | None
    uncounted: str


class TopValue(TypedDict):
    """An element of an output by its position in memory, and its quantised value."""

    index: int
    value: int


class OutputTop(TypedDict):
    """The largest values of an output."""

    name: str
    shape: str
    top: list[TopValue]
    scale: float | None
    zero_point: int | None


class ProfileLine(TypedDict):
    """A line of a published profile, in seconds, and beside it what we know of the same operators.

    `estimated`: by the board's estimate; `counted`: by the issues of its model. None: it says nothing.
    `operators`: how many of them this plan has; loading weights is one.
    """

    name: str
    operators: int
    published: float
    estimated: float | None
    counted: float | None


class PublishedProfile(TypedDict):
    """A profile that somebody published of this network on this board; `seconds` is their total.

    `estimated_seconds`: ours, with loading and computing in part at once.
    """

    network: str
    source: str
    seconds: float
    estimated_seconds: float | None
    lines: list[ProfileLine]


class ProfileAnswer(Run):
    """A run with the executed instructions and the work of every operator, in order of execution.

    `cycles` are measured by the core's own counter on a board, or estimated; `cycles_are` says which
    ("measured", "estimated"; "": there are none, and `no_cycles` says why). `seconds`: measured cycles at the
    board's clock. `estimated_ms`: estimated ones, in milliseconds at that clock; `estimated_by` says how they
    came about.
    `issues`: of boards whose core has a model that counts them; `published`: of networks of which somebody
    published a profile.
    """

    instructions: int | None
    cycles: int | None
    cycles_are: str
    no_cycles: str
    estimated_ms: float | None
    estimated_by: CycleEstimate | None
    seconds: float | None
    issues: IssueSummary | None
    published: PublishedProfile | None
    macs: int
    macs_layerwise: int
    f: float
    flash_bytes: int
    per_operator: list[LayerProfile]
    outputs: list[OutputTop]


class FlashAnswer(TypedDict):
    """An image for a board's flash, and how it comes there.

    `files` go into a folder of the caller's; `image` is the image's name there, or the path that was given.
    `tool` is the program that flashes it, and `is_there` whether it is installed (`install` says how to get
    it); `command` is the whole command, to be run in the folder.
    """

    net: str
    board: str
    compiler: str
    image: str
    files: dict[str, bytes]
    tool: str
    is_there: bool
    install: str
    command: list[str]


class DebugAnswer(LevelAnswer):
    """What it takes to run a test firmware under a debugger, in a folder of the caller's.

    `files` go into the folder: the firmware's input, and where none was given, the image with its sources.
    `image` is the image's name there, or the path that was given. `server` is the command that serves the
    image to a debugger, to be run in the folder; it is empty where the debugger starts the image itself.
    `debuggers` are programs of which one is needed, the best first; `sources` says to it where sources are,
    and `commands` where the server is and where to stop, in the language of GDB;
    `outputs` are the files that the firmware writes.
    """

    net: str
    board: str
    compiler: str
    port: int
    image: str
    files: dict[str, bytes]
    outputs: list[str]
    server: list[str]
    debuggers: list[str]
    sources: list[str]
    commands: list[str]
    stacks: list[StackSize]
