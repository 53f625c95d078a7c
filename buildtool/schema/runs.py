"""The answers about runs of a firmware: `validate`, `profile`, `flash` and `debug`."""

from __future__ import annotations

from typing import TypedDict

from buildtool.schema.boards import BoardFacts, LevelAnswer
from buildtool.schema.builds import StackSize


class OperatorBound(TypedDict):
    """An operator whose output may differ from the reference, on its inputs in the run.

    `bound` is the proven upper limit of the difference, in steps of the output. `bound_before_rounding` is
    the limit for the value before its last rounding. Of the `channels`, `channels_rounded` are not
    requantised exactly. In the run, `elements_different` of the `elements` differed, by at most
    `max_abs_diff`.
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


class CurvesAnswer(TypedDict):
    """How far LiteRT's exp, log and tanh of float32 are from buildtool's, which are the same on every core.

    `operators` compute such a function. On equal operands their results are at most `bound_ulp` units in the
    last place apart; `largest_ulp` is the largest distance that was seen. Of `values` integers (and float
    outputs) that were computed from different floats, `values_different` differ, by at most `largest_step`.
    """

    operators: int
    bound_ulp: int
    largest_ulp: int
    values: int
    values_different: int
    largest_step: int


class ReferenceAnswer(TypedDict):
    """The program that computed the reference values of the outputs.

    `name` is "litert" (LiteRT's reference kernels), "tflm" (TensorFlow Lite Micro's interpreter, for networks
    with operators of its signal library) or "numpy" (buildtool's own executor). `version` is the library's
    version ("" for our own). `text` has both in words. `inputs_by_own_executor` is the number of inputs that
    our own executor computed. `why` gives the reason, and what would make the library compute them ("": it
    computed all). `curves` is there if LiteRT computed an exp, a log or a tanh of float32.
    """

    name: str
    version: str
    text: str
    inputs_by_own_executor: int
    why: str
    curves: CurvesAnswer | None


class Run(BoardFacts, LevelAnswer):
    """A run of a network's firmware; `compiler` made the firmware image.

    `arena_high_water` and `stack_high_water` are the bytes that were really written. `state_bytes` live
    between invokes, outside the arena. `exact` says whether all outputs are equal to the reference.
    `requantise` is how sums became outputs: exact or otherwise. `within_bounds` is `exact` for exact
    requantisation, but allows what follows from the bounds of `reference.curves`. Otherwise it says whether
    every operator's difference is within its proven bound in `bounds`.
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
    """The first wrong tensor: its input, its first wrong element, and the largest difference."""

    input: int
    tensor: str
    operator: str
    elements: int
    max_abs_diff: int
    first_element: int


class ValidationAnswer(Run):
    """A run compared with the reference.

    `resets` is how often the state was reset during the run. `output_values` is the number of different
    values among the outputs' bytes, over all inputs. `inputs_equal` is the number of inputs for which
    every tensor is correct. `elements_different` counts over all tensors and inputs.
    """

    resets: int
    tensors_compared: int
    output_values: int
    inputs_equal: int
    elements_different: int
    max_abs_diff: int
    first_difference: DifferenceAnswer | None


class IssueCount(TypedDict):
    """The issues of an operator, counted in a model of the core's vector unit.

    `vpu` are the issues of that unit, and `mac` of these multiply and accumulate. `scalar` are the other
    issues. All three are sums over all threads. `slowest` are the issues (both kinds) of the slowest
    thread of each call, and `seconds` follows from them. `vpu_per_mac` is the number of the unit's issues
    per multiply-accumulate (None: the operator has no multiply-accumulates).
    """

    vpu: int
    mac: int
    scalar: int
    slowest: int
    vpu_per_mac: float | None
    seconds: float


class IssueSummary(TypedDict):
    """The issues of a run, over the operators whose kernels count them.

    `source` says what counted them. `limit_per_mac` is the smallest possible number of issues per
    multiply-accumulate. `cycles_per_issue` is the time from one issue of a thread to its next one, at the
    core's `clock_hz`. `seconds` is the sum over these operators, without loading weights. `operators` and
    `macs` are those that were counted. `all_operators` and `all_macs` are those of the network.
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
    """The parts of an estimate of cycles.

    `pipeline` is the time of blocks of code by the model of the core. `words` is the extra time of loads
    and stores of several words, as the model counts only one word. `branches` is the time to refill the
    pipeline after taken branches, which the model leaves out. `code` and `data` are waits for memories
    whose speed the board's file gives: for fetching code, and for reading and writing data.
    """

    pipeline: int
    words: int
    branches: int
    code: int
    data: int


class MemoryWait(TypedDict):
    """The cycles that the core waits for a memory, for fetching code and for data."""

    memory: str
    code: int
    data: int


class CycleEstimate(TypedDict):
    """How cycles were estimated, where nothing was measured.

    `model` is the program, its version and the core that it models. `skipped` are instructions that it does
    not know. They count as no time. A taken branch costs `taken_branch_cycles` more, and `source` says where
    this number comes from. `clock_hz` is the board's clock (0: not known). `parts` are the cycles of the
    whole run. Of these, `between` cycles belong to no operator. `waits` has the memories whose speed is
    known. `ideal` names those memories of code, data, arena and weights whose speed is not known. Waits for
    these are not counted.
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

    `cycles` come from the core's own counter on a board. Without such a counter they are an estimate: the sum
    of `parts`, which takes `estimated_ms` at the board's clock. They are None where there is no estimate
    either. `ram_alive` is the largest number of live bytes while the operator runs. `macs` and `f` count
    repetitions, `macs_once` does not. `issues` is None where no model counts them. On a board with such a
    model, `uncounted` says why.
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
    """An element of an output: its position in memory and its quantised value."""

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
    """A line of a published profile, in seconds, compared with the same operators of this plan.

    `estimated` is by the board's estimate, and `counted` by the issues of its model. None means unknown.
    `operators` is the number of the plan's operators in this line. Loading weights counts as one.
    """

    name: str
    operators: int
    published: float
    estimated: float | None
    counted: float | None


class PublishedProfile(TypedDict):
    """A published profile of this network on this board; `seconds` is its total.

    `estimated_seconds` is our estimate, in which loading and computing overlap.
    """

    network: str
    source: str
    seconds: float
    estimated_seconds: float | None
    lines: list[ProfileLine]


class ProfileAnswer(Run):
    """A run with the executed instructions and the work of every operator, in order of execution.

    `cycles_are` is "measured" (by the core's own counter on a board), "estimated", or "" where there are
    no cycles. `no_cycles` says why there are none. `seconds` are measured cycles at the board's clock.
    `estimated_ms` are estimated cycles at that clock, and `estimated_by` says how they were estimated.
    `issues` are there for boards whose core has a model that counts them. `published` is there for
    networks with a published profile.
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
    """A firmware image for a board's flash, and the command that writes it there.

    `files` go into a folder of the caller. `image` is the firmware image's name there, or the given path.
    `tool` is the program that flashes it. `is_there` says whether it is installed, and `install` how to
    install it. `command` is the whole command, to be run in the folder.
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
    """The files and commands to run a test firmware under a debugger, in a folder of the caller.

    `files` go into the folder: the firmware's input, and the firmware image with its sources where none
    was given. `image` is the firmware image's name there, or the given path. `server` is the command that
    serves the firmware image to a debugger, to be run in the folder. It is empty where the debugger
    starts the firmware itself. `debuggers` are the programs that can be used, the best first. `sources`
    are GDB commands that say where the sources are. `commands` are GDB commands that connect to the
    server and set a breakpoint. `outputs` are the files that the firmware writes.
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
