"""The answers about runs of a firmware: `validate`, `profile`, `flash` and `debug`."""

from __future__ import annotations

from typing import TypedDict

from buildtool.schema.boards import BoardFacts, LevelAnswer
from buildtool.schema.builds import StackSize


class OperatorBound(TypedDict):
    """An operator whose output may differ from the reference, on its inputs in the run.

    - `bound`: the proven upper limit of the difference, in steps of the output.
    - `bound_before_rounding`: the limit for the value before its last rounding.
    - `channels_rounded`: the number of its `channels` that are not requantised exactly.
    - `elements_different`: the number of the `elements` that differed in the run, by at most `max_abs_diff`.
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

    - `operators`: the number of operators that compute such a function.
    - `bound_ulp`: upper limit for the distance of the results on equal operands, in units in the last place;
      `largest_ulp` is the largest distance that was seen.
    - `values`: the number of integers (and float outputs) that were computed from floats that differ. Of
      these, `values_different` differ, by at most `largest_step`.
    """

    operators: int
    bound_ulp: int
    largest_ulp: int
    values: int
    values_different: int
    largest_step: int


class ReferenceAnswer(TypedDict):
    """The program that computed the reference values of the outputs.

    - `name`: "litert" (LiteRT's reference kernels), "tflm" (TensorFlow Lite Micro's interpreter, for networks
      with operators of its signal library) or "numpy" (buildtool's own executor).
    - `version`: the library's version ("" for buildtool's own executor).
    - `text`: name and version in words.
    - `inputs_by_own_executor`: the number of inputs that buildtool's own executor computed. `why` gives the
      reason, and what would make the library compute them ("": the library computed all).
    - `curves`: present if LiteRT computed an exp, a log or a tanh of float32.
    """

    name: str
    version: str
    text: str
    inputs_by_own_executor: int
    why: str
    curves: CurvesAnswer | None


class Run(BoardFacts, LevelAnswer):
    """A run of a network's firmware; `compiler` made the firmware image.

    - `exact`: whether all outputs are equal to the reference.
    - `requantise`: how sums became outputs: "exact" or otherwise.
    - `within_bounds`: for exact requantisation the same as `exact`, but it allows what follows from the
      bounds of `reference.curves`. Otherwise it says whether every operator's difference is within its proven
      bound in `bounds`.
    - `arena_high_water`, `stack_high_water`: the bytes that were really written.
    - `state_bytes`: memory that lives between invokes, outside the arena.
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
    """The first wrong tensor: its input, its first wrong element, and its largest difference."""

    input: int
    tensor: str
    operator: str
    elements: int
    max_abs_diff: int
    first_element: int


class ValidationAnswer(Run):
    """A run compared with the reference.

    - `resets`: how often the state was reset during the run.
    - `output_values`: the number of different values among the outputs' bytes, over all inputs.
    - `inputs_equal`: the number of inputs for which every tensor is correct.
    - `elements_different`: the number of wrong elements over all tensors and inputs.
    """

    resets: int
    tensors_compared: int
    output_values: int
    inputs_equal: int
    elements_different: int
    max_abs_diff: int
    first_difference: DifferenceAnswer | None


class IssueCount(TypedDict):
    """The issues of an operator: instructions that an XS3 core issues, counted in a model of its vector unit.

    - `vpu`: the issues of that unit; `mac` of these multiply and accumulate.
    - `scalar`: the other issues. These three are sums over all threads.
    - `slowest`: the issues (both kinds) of the slowest thread of each call; `seconds` follows from them.
    - `vpu_per_mac`: the unit's issues per multiply-accumulate (None: the operator has no
      multiply-accumulates).
    """

    vpu: int
    mac: int
    scalar: int
    slowest: int
    vpu_per_mac: float | None
    seconds: float


class IssueSummary(TypedDict):
    """The issues of a run (see `IssueCount`), over the operators whose kernels count them.

    - `source`: what counted them.
    - `limit_per_mac`: the smallest possible number of issues per multiply-accumulate.
    - `cycles_per_issue`: the time from one issue of a thread to its next one, at the core's `clock_hz`.
    - `seconds`: the sum over these operators, without loading weights.
    - `operators`, `macs`: those that were counted; `all_operators` and `all_macs` are those of the network.
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

    - `pipeline`: the time of blocks of code by the model of the core.
    - `words`: the extra time of loads and stores of several words, as the model counts only one word.
    - `branches`: the time to refill the pipeline after taken branches, which the model leaves out.
    - `code`, `data`: waits for memories whose speed the board's file gives: for fetching code, and for
      reading and writing data.
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
    """How cycles were estimated, if they were not measured.

    - `model`: the program, its version and the core that it models.
    - `skipped`: instructions that it does not know. They count as no time.
    - `source`: where `taken_branch_cycles` comes from, the extra cost of a taken branch.
    - `clock_hz`: the board's clock (0: not known).
    - `parts`: the cycles of the whole run. Of these, `between` cycles belong to no operator.
    - `waits`: the memories whose speed is known.
    - `ideal`: those memories of code, data, arena and weights whose speed is not known. Waits for these are
      not counted.
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
    """An operator in a run.

    - `macs`, `f`: with repetitions; `macs_once` is without them.
    - `ram_alive`: the largest number of live bytes while the operator runs.
    - `instructions`: None on the host, where they are not counted.
    - `cycles`: on a board, from the core's own counter. Without such a counter they are an estimate: the sum
      of `parts`, which takes `estimated_ms` at the board's clock. None if there is no estimate either.
    - `issues`: None if no model counts them. On a board with such a model, `uncounted` says why.
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
    """The largest values of an output, with its scale and zero point."""

    name: str
    shape: str
    top: list[TopValue]
    scale: float | None
    zero_point: int | None


class ProfileLine(TypedDict):
    """A line of a published profile, compared with the same operators of this plan. Times are in seconds.

    - `operators`: the number of the plan's operators in this line; loading weights counts as one.
    - `published`: the published time.
    - `estimated`: the time by the rates in the board's file; None without such rates.
    - `counted`: the time of the instructions that were counted in a model of the board's vector unit; None if
      some operator was not counted.
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

    - `cycles_are`: "measured" (by the core's own counter on a board), "estimated", or "" if there are no
      cycles.
    - `no_cycles`: why there are no cycles.
    - `estimated_ms`: estimated cycles at the board's clock; `estimated_by` says how they were estimated.
    - `seconds`: measured cycles at the board's clock.
    - `issues`: for boards whose core has a model that counts them (see `IssueCount`).
    - `published`: for networks with a published profile.
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
    """A firmware image for a board's flash, and the command that writes the image there.

    - `files`: to be written into a folder of the caller.
    - `image`: the firmware image's name in that folder, or the given path.
    - `tool`: the program that flashes the image.
    - `is_there`: whether the tool is installed; `install` says how to install it.
    - `command`: the whole command, to be run in the folder.
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

    - `files`: to be written into the folder: the firmware's input, and the firmware image with its sources if
      none was given.
    - `image`: the firmware image's name in the folder, or the given path.
    - `outputs`: the files that the firmware writes.
    - `server`: the command that serves the firmware image to a debugger, to be run in the folder. It is empty
      if the debugger starts the firmware itself.
    - `debuggers`: the programs that can be used, the best first.
    - `sources`: GDB commands that say where the sources are.
    - `commands`: GDB commands that connect to the server and set a breakpoint.
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
