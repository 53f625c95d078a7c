"""The types of the Python interface, made from those of answers and the table of options:
`python -m benchmarks.python_stub > buildtool/__init__.pyi`.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from os import PathLike
from typing import Any, Literal

from numpy.typing import ArrayLike

from buildtool.base.errors import BuildtoolError as BuildtoolError
from buildtool.base.errors import InternalError as InternalError
from buildtool.base.errors import MachineError as MachineError
from buildtool.base.errors import ModelError as ModelError
from buildtool.base.errors import PlanError as PlanError
from buildtool.base.errors import TargetError as TargetError
from buildtool.base.errors import ToolError as ToolError
from buildtool.base.errors import UnsupportedError as UnsupportedError
from buildtool.base.errors import UsageError as UsageError
from buildtool.schema.analysis import NetworkFacts, NoPlan, Verdict
from buildtool.schema.boards import (
    BoardEntry,
    Estimate,
    Loading,
    NamedBytes,
    NamedNetwork,
    OperatorKernels,
    Price,
    TfliteOperator,
)
from buildtool.schema.builds import (
    BundledNetwork,
    MemorySize,
    NetworkFiles,
    Place,
    Script,
    SerialPort,
    SizePart,
    Slot,
    SourceGroup,
    StackSize,
    Tools,
)
from buildtool.schema.datasets import Accuracy, DifferingInput, FedInput, Share, ThroughFirmware
from buildtool.schema.fronts import Peer, Point, Refusal
from buildtool.schema.plans import (
    BindingView,
    BufferView,
    ChannelsView,
    FloatWork,
    FourBitWeights,
    LoadView,
    MemoriesView,
    MoveView,
    NoOtherPlan,
    OperatorView,
    OtherPlan,
    OverlapView,
    Peak,
    Placement,
    PlainWork,
    RegionView,
    RemovedChannels,
    SecondPassView,
    WindowView,
)
from buildtool.schema.quantized import LostAccuracy, PlannedAtOnce
from buildtool.schema.reports import (
    Differences,
    RegionSteps,
    ReportFront,
    ReportImage,
    ReportLayer,
    ReportRun,
)
from buildtool.schema.runs import (
    CycleEstimate,
    DifferenceAnswer,
    IssueSummary,
    LayerProfile,
    OperatorBound,
    OutputTop,
    PublishedProfile,
    ReferenceAnswer,
)

__version__: str
DISTRIBUTION: str
PathText = str | PathLike[str]
Progress = Callable[[str], object] | bool | None

class Answer(Mapping[str, Any]):
    def __getitem__(self, key: str) -> Any: ...
    def __iter__(self) -> Iterator[str]: ...
    def __len__(self) -> int: ...
    def to_json(self) -> str: ...
    def _repr_html_(self) -> str: ...

class Analysis(Answer):
    """Whether a network fits each board, which memory or limit is too small, and what would help."""
    @property
    def model(self) -> str: ...
    @property
    def file_bytes(self) -> int: ...
    @property
    def operators_in_file(self) -> int: ...
    @property
    def network(self) -> NetworkFacts: ...
    @property
    def boards(self) -> list[Verdict | NoPlan]: ...

class NetworkMemory(Answer):
    """The memory of an ONNX or Darknet network that is counted without a board."""
    @property
    def model(self) -> str: ...
    @property
    def operators(self) -> int: ...
    @property
    def kinds(self) -> dict[str, int]: ...
    @property
    def inputs(self) -> list[NamedBytes]: ...
    @property
    def outputs(self) -> list[NamedBytes]: ...
    @property
    def batch(self) -> int: ...
    @property
    def weights(self) -> str: ...
    @property
    def counted_operators(self) -> str: ...
    @property
    def order(self) -> str: ...
    @property
    def order_status(self) -> str | None: ...
    @property
    def activation_bytes(self) -> int: ...
    @property
    def weight_bytes(self) -> int: ...
    @property
    def total_bytes(self) -> int: ...
    @property
    def live_bound_bytes(self) -> int: ...
    @property
    def live_bound_operator(self) -> str: ...
    @property
    def live_bound_layer(self) -> str: ...
    @property
    def planned_bytes(self) -> int | None: ...
    @property
    def ratio(self) -> float: ...

class Plan(Answer):
    """How a network runs on a board. A notebook draws its arena over time."""
    @property
    def strategy(self) -> str: ...
    @property
    def topology(self) -> str: ...
    @property
    def target(self) -> str: ...
    @property
    def image(self) -> str: ...
    @property
    def arena_bytes(self) -> int: ...
    @property
    def arena_bound_bytes(self) -> int: ...
    @property
    def alignment(self) -> int: ...
    @property
    def macs(self) -> int: ...
    @property
    def macs_layerwise(self) -> int: ...
    @property
    def f(self) -> float: ...
    @property
    def cost(self) -> float: ...
    @property
    def cost_unit(self) -> str: ...
    @property
    def binding(self) -> BindingView: ...
    @property
    def accounting(self) -> list[str]: ...
    @property
    def buffers(self) -> list[BufferView]: ...
    @property
    def loads(self) -> list[LoadView]: ...
    @property
    def moves(self) -> list[MoveView]: ...
    @property
    def overlaps(self) -> list[OverlapView]: ...
    @property
    def second_at(self) -> int: ...
    @property
    def state_bytes(self) -> int: ...
    @property
    def states(self) -> list[BufferView]: ...
    @property
    def second_passes(self) -> list[SecondPassView]: ...
    @property
    def views(self) -> list[ChannelsView]: ...
    @property
    def operators(self) -> list[OperatorView]: ...
    @property
    def regions(self) -> list[RegionView]: ...
    @property
    def placement(self) -> Placement: ...
    @property
    def peak(self) -> Peak | None: ...
    @property
    def floats(self) -> FloatWork | None: ...
    @property
    def plain(self) -> PlainWork | None: ...
    @property
    def note(self) -> str: ...
    @property
    def notes(self) -> list[str]: ...
    @property
    def estimate(self) -> Estimate | None: ...
    @property
    def loading(self) -> Loading | None: ...
    @property
    def model(self) -> str: ...
    @property
    def board(self) -> str: ...
    @property
    def flash_bytes(self) -> int: ...
    @property
    def estimated_ms(self) -> float | None: ...
    @property
    def cost_by_ratio(self) -> list[str]: ...
    @property
    def removed(self) -> RemovedChannels | None: ...
    @property
    def four_bits(self) -> FourBitWeights | None: ...
    @property
    def memories(self) -> MemoriesView | None: ...
    @property
    def window(self) -> WindowView | None: ...
    @property
    def inputs(self) -> list[int]: ...
    @property
    def outputs(self) -> list[int]: ...
    @property
    def search_factor(self) -> float: ...
    @property
    def placing_ended(self) -> bool: ...
    @property
    def order_status(self) -> str | None: ...
    @property
    def wait_cycles(self) -> float | None: ...
    @property
    def front_point(self) -> Price | None: ...
    @property
    def beside(self) -> list[OtherPlan | NoOtherPlan]: ...
    @property
    def plan(self) -> bytes: ...
    @property
    def locked(self) -> bytes: ...
    def save(self, path: PathText) -> None: ...

class Front(Answer):
    """The Pareto front of memory and work. A notebook draws it."""
    @property
    def model(self) -> str: ...
    @property
    def board(self) -> str: ...
    @property
    def image(self) -> str: ...
    @property
    def in_place(self) -> str: ...
    @property
    def hand_offs(self) -> list[int]: ...
    @property
    def max_f(self) -> float: ...
    @property
    def arenas_in(self) -> list[str]: ...
    @property
    def available_bytes(self) -> int: ...
    @property
    def state_bytes(self) -> int: ...
    @property
    def hop(self) -> int | None: ...
    @property
    def macs(self) -> int: ...
    @property
    def cost_unit(self) -> str: ...
    @property
    def points(self) -> list[Point]: ...
    @property
    def beside(self) -> list[Peer | Refusal]: ...
    @property
    def search_factor(self) -> float: ...
    @property
    def placing_ended(self) -> bool: ...
    @property
    def order_status(self) -> str | None: ...
    @property
    def accounting(self) -> list[str]: ...

class Report(Answer):
    """A plan with all data of its page. A notebook shows the page."""
    @property
    def strategy(self) -> str: ...
    @property
    def topology(self) -> str: ...
    @property
    def target(self) -> str: ...
    @property
    def image(self) -> str: ...
    @property
    def arena_bytes(self) -> int: ...
    @property
    def arena_bound_bytes(self) -> int: ...
    @property
    def alignment(self) -> int: ...
    @property
    def macs(self) -> int: ...
    @property
    def macs_layerwise(self) -> int: ...
    @property
    def f(self) -> float: ...
    @property
    def cost(self) -> float: ...
    @property
    def cost_unit(self) -> str: ...
    @property
    def binding(self) -> BindingView: ...
    @property
    def accounting(self) -> list[str]: ...
    @property
    def buffers(self) -> list[BufferView]: ...
    @property
    def loads(self) -> list[LoadView]: ...
    @property
    def moves(self) -> list[MoveView]: ...
    @property
    def overlaps(self) -> list[OverlapView]: ...
    @property
    def second_at(self) -> int: ...
    @property
    def state_bytes(self) -> int: ...
    @property
    def states(self) -> list[BufferView]: ...
    @property
    def second_passes(self) -> list[SecondPassView]: ...
    @property
    def views(self) -> list[ChannelsView]: ...
    @property
    def operators(self) -> list[OperatorView]: ...
    @property
    def regions(self) -> list[RegionView]: ...
    @property
    def placement(self) -> Placement: ...
    @property
    def peak(self) -> Peak | None: ...
    @property
    def floats(self) -> FloatWork | None: ...
    @property
    def plain(self) -> PlainWork | None: ...
    @property
    def note(self) -> str: ...
    @property
    def notes(self) -> list[str]: ...
    @property
    def estimate(self) -> Estimate | None: ...
    @property
    def loading(self) -> Loading | None: ...
    @property
    def model(self) -> str: ...
    @property
    def board(self) -> str: ...
    @property
    def flash_bytes(self) -> int: ...
    @property
    def estimated_ms(self) -> float | None: ...
    @property
    def cost_by_ratio(self) -> list[str]: ...
    @property
    def removed(self) -> RemovedChannels | None: ...
    @property
    def four_bits(self) -> FourBitWeights | None: ...
    @property
    def memories(self) -> MemoriesView | None: ...
    @property
    def window(self) -> WindowView | None: ...
    @property
    def inputs(self) -> list[int]: ...
    @property
    def outputs(self) -> list[int]: ...
    @property
    def search_factor(self) -> float: ...
    @property
    def placing_ended(self) -> bool: ...
    @property
    def order_status(self) -> str | None: ...
    @property
    def title(self) -> str: ...
    @property
    def verdict(self) -> Verdict | NoPlan: ...
    @property
    def layers(self) -> list[ReportLayer]: ...
    @property
    def steps(self) -> list[RegionSteps]: ...
    @property
    def front(self) -> ReportFront: ...
    @property
    def run(self) -> ReportRun | None: ...
    @property
    def linked(self) -> ReportImage | None: ...
    @property
    def against(self) -> Differences | None: ...
    def html(self) -> str: ...
    def save(self, path: PathText) -> None: ...

class Trace(Answer):
    """A plan over time in Chrome's Trace Event Format; `files` names the file that was written."""
    @property
    def model(self) -> str: ...
    @property
    def board(self) -> str: ...
    @property
    def cost_unit(self) -> str: ...
    @property
    def time(self) -> str: ...
    @property
    def steps(self) -> int: ...
    @property
    def slices(self) -> int: ...
    @property
    def merged(self) -> int: ...
    @property
    def buffers(self) -> int: ...
    @property
    def files(self) -> list[str]: ...

class Build(Answer):
    """A build.

    `files` are the names of the files that were written, `removed` those of outdated files that were removed.
    """
    @property
    def note(self) -> str: ...
    @property
    def notes(self) -> list[str]: ...
    @property
    def estimate(self) -> Estimate | None: ...
    @property
    def loading(self) -> Loading | None: ...
    @property
    def level(self) -> str: ...
    @property
    def level_text(self) -> str: ...
    @property
    def net(self) -> str: ...
    @property
    def board(self) -> str: ...
    @property
    def compiler(self) -> str: ...
    @property
    def arena_bytes(self) -> int: ...
    @property
    def state_bytes(self) -> int: ...
    @property
    def sizes(self) -> list[MemorySize]: ...
    @property
    def parts(self) -> list[SizePart]: ...
    @property
    def stacks(self) -> list[StackSize]: ...
    @property
    def files(self) -> list[str]: ...
    @property
    def removed(self) -> list[str]: ...

class Sources(Answer):
    """The sources of a network: `files` are their names, `changed` those that are new or differ."""
    @property
    def net(self) -> str: ...
    @property
    def arena_bytes(self) -> int: ...
    @property
    def limit_bytes(self) -> int: ...
    @property
    def chip_bytes(self) -> int: ...
    @property
    def state_bytes(self) -> int: ...
    @property
    def weights_bytes(self) -> int: ...
    @property
    def f(self) -> float: ...
    @property
    def channels_removed(self) -> int: ...
    @property
    def channels(self) -> int: ...
    @property
    def files(self) -> list[str]: ...
    @property
    def c_files(self) -> list[str]: ...
    @property
    def kernel_sources(self) -> list[str]: ...
    @property
    def include(self) -> str: ...
    @property
    def kernel_includes(self) -> list[str]: ...
    @property
    def depends(self) -> list[str]: ...
    @property
    def notes(self) -> list[str]: ...
    @property
    def changed(self) -> list[str]: ...

class Bundle(Answer):
    """A folder that any build system compiles: `files`, `changed` and `removed` name its files."""
    @property
    def net(self) -> str: ...
    @property
    def arena_bytes(self) -> int: ...
    @property
    def limit_bytes(self) -> int: ...
    @property
    def chip_bytes(self) -> int: ...
    @property
    def state_bytes(self) -> int: ...
    @property
    def weights_bytes(self) -> int: ...
    @property
    def f(self) -> float: ...
    @property
    def channels_removed(self) -> int: ...
    @property
    def channels(self) -> int: ...
    @property
    def network(self) -> BundledNetwork: ...
    @property
    def files(self) -> list[str]: ...
    @property
    def changed(self) -> list[str]: ...
    @property
    def removed(self) -> list[str]: ...

class Validation(Answer):
    """A run that was compared with the reference; `within_bounds` is the verdict."""
    @property
    def note(self) -> str: ...
    @property
    def notes(self) -> list[str]: ...
    @property
    def estimate(self) -> Estimate | None: ...
    @property
    def loading(self) -> Loading | None: ...
    @property
    def level(self) -> str: ...
    @property
    def level_text(self) -> str: ...
    @property
    def model(self) -> str: ...
    @property
    def board(self) -> str: ...
    @property
    def compiler(self) -> str: ...
    @property
    def strategy(self) -> str: ...
    @property
    def inputs(self) -> int: ...
    @property
    def exact(self) -> bool: ...
    @property
    def requantise(self) -> str: ...
    @property
    def within_bounds(self) -> bool: ...
    @property
    def bounds(self) -> list[OperatorBound]: ...
    @property
    def arena_bytes(self) -> int: ...
    @property
    def arena_high_water(self) -> int: ...
    @property
    def state_bytes(self) -> int: ...
    @property
    def stack_high_water(self) -> int | None: ...
    @property
    def reference(self) -> ReferenceAnswer: ...
    @property
    def resets(self) -> int: ...
    @property
    def tensors_compared(self) -> int: ...
    @property
    def output_values(self) -> int: ...
    @property
    def inputs_equal(self) -> int: ...
    @property
    def elements_different(self) -> int: ...
    @property
    def max_abs_diff(self) -> int: ...
    @property
    def first_difference(self) -> DifferenceAnswer | None: ...

class DatasetValidation(Answer):
    """A run on a data set: how accurate it was, and whether it was within its bounds."""
    @property
    def model(self) -> str: ...
    @property
    def board(self) -> str: ...
    @property
    def data(self) -> str: ...
    @property
    def inputs(self) -> int: ...
    @property
    def inputs_there(self) -> int: ...
    @property
    def seed(self) -> int | None: ...
    @property
    def fed(self) -> list[FedInput]: ...
    @property
    def reference(self) -> ReferenceAnswer: ...
    @property
    def requantise(self) -> str: ...
    @property
    def share(self) -> Share: ...
    @property
    def firmware(self) -> ThroughFirmware | None: ...
    @property
    def exact(self) -> bool | None: ...
    @property
    def within_bounds(self) -> bool | None: ...
    @property
    def bounds(self) -> list[OperatorBound]: ...
    @property
    def differing(self) -> list[DifferingInput]: ...
    @property
    def accuracy(self) -> Accuracy | None: ...
    @property
    def no_accuracy(self) -> str: ...
    @property
    def note(self) -> str: ...

class Profile(Answer):
    """A run that counted the instructions of every operator."""
    @property
    def note(self) -> str: ...
    @property
    def notes(self) -> list[str]: ...
    @property
    def estimate(self) -> Estimate | None: ...
    @property
    def loading(self) -> Loading | None: ...
    @property
    def level(self) -> str: ...
    @property
    def level_text(self) -> str: ...
    @property
    def model(self) -> str: ...
    @property
    def board(self) -> str: ...
    @property
    def compiler(self) -> str: ...
    @property
    def strategy(self) -> str: ...
    @property
    def inputs(self) -> int: ...
    @property
    def exact(self) -> bool: ...
    @property
    def requantise(self) -> str: ...
    @property
    def within_bounds(self) -> bool: ...
    @property
    def bounds(self) -> list[OperatorBound]: ...
    @property
    def arena_bytes(self) -> int: ...
    @property
    def arena_high_water(self) -> int: ...
    @property
    def state_bytes(self) -> int: ...
    @property
    def stack_high_water(self) -> int | None: ...
    @property
    def reference(self) -> ReferenceAnswer: ...
    @property
    def instructions(self) -> int | None: ...
    @property
    def cycles(self) -> int | None: ...
    @property
    def cycles_are(self) -> str: ...
    @property
    def no_cycles(self) -> str: ...
    @property
    def estimated_ms(self) -> float | None: ...
    @property
    def estimated_by(self) -> CycleEstimate | None: ...
    @property
    def seconds(self) -> float | None: ...
    @property
    def issues(self) -> IssueSummary | None: ...
    @property
    def published(self) -> PublishedProfile | None: ...
    @property
    def macs(self) -> int: ...
    @property
    def macs_layerwise(self) -> int: ...
    @property
    def f(self) -> float: ...
    @property
    def flash_bytes(self) -> int: ...
    @property
    def per_operator(self) -> list[LayerProfile]: ...
    @property
    def outputs(self) -> list[OutputTop]: ...

class Description(Answer):
    """What a build system compiles, the flags, and the dependencies."""
    @property
    def board(self) -> str: ...
    @property
    def roots(self) -> dict[str, str]: ...
    @property
    def tools(self) -> Tools: ...
    @property
    def script(self) -> Script | None: ...
    @property
    def groups(self) -> list[SourceGroup]: ...
    @property
    def serial(self) -> SerialPort | None: ...
    @property
    def library(self) -> list[str]: ...
    @property
    def image(self) -> list[str]: ...
    @property
    def network(self) -> NetworkFiles | None: ...
    @property
    def commands(self) -> dict[str, list[str | Slot]]: ...
    @property
    def depends(self) -> list[Place]: ...
    @property
    def digest(self) -> str: ...
    @property
    def files(self) -> list[str]: ...

class Operators(Answer):
    """TFLite's operators by data type, and their kernels on every board."""
    @property
    def boards(self) -> list[str]: ...
    @property
    def operators(self) -> list[OperatorKernels]: ...
    @property
    def tflite(self) -> list[TfliteOperator]: ...

class Quantized(Answer):
    """A quantised network: what it loses, and whether it fits the board."""
    @property
    def model(self) -> str: ...
    @property
    def activations(self) -> str: ...
    @property
    def data(self) -> str: ...
    @property
    def inputs(self) -> int: ...
    @property
    def inputs_there(self) -> int: ...
    @property
    def calibrated(self) -> int: ...
    @property
    def fed(self) -> list[FedInput]: ...
    @property
    def quantiser(self) -> str: ...
    @property
    def reference(self) -> str: ...
    @property
    def float_bytes(self) -> int: ...
    @property
    def bytes(self) -> int: ...
    @property
    def planned(self) -> PlannedAtOnce | None: ...
    @property
    def lost(self) -> LostAccuracy | None: ...
    @property
    def files(self) -> list[str]: ...

class Boards(Answer):
    """The known boards."""
    @property
    def boards(self) -> list[BoardEntry]: ...

class Networks(Answer):
    """The networks that can be made by name."""
    @property
    def networks(self) -> list[NamedNetwork]: ...

class Sizes(Answer):
    """The bytes that a linked firmware image takes in each memory of a board."""
    @property
    def level(self) -> str: ...
    @property
    def level_text(self) -> str: ...
    @property
    def board(self) -> str: ...
    @property
    def sizes(self) -> list[MemorySize]: ...
    @property
    def parts(self) -> list[SizePart]: ...
    @property
    def files_from(self) -> str: ...
    @property
    def stacks(self) -> list[StackSize]: ...
    @property
    def files(self) -> dict[str, bytes]: ...
    @property
    def note(self) -> str: ...

class Arena(Answer):
    """The offsets of an arena problem's buffers."""
    @property
    def problem(self) -> str: ...
    @property
    def status(self) -> str: ...
    @property
    def height_bytes(self) -> int | None: ...
    @property
    def bound_bytes(self) -> int: ...
    @property
    def capacity_bytes(self) -> int | None: ...
    @property
    def nodes(self) -> int: ...
    @property
    def offsets(self) -> dict[str, int] | None: ...
    @property
    def files(self) -> list[str]: ...

class Network:
    """A network: a file, the bytes of a file, or a network of the zoo. `buildtool.open` makes it.

    `outputs` are the tensors at which it ends (default: its own outputs).
    """
    @property
    def model(self) -> str | Mapping[str, Any]: ...
    @property
    def outputs(self) -> tuple[str, ...]: ...
    @property
    def name(self) -> str:
        """The network's name: the name of its file without folders and suffix."""

    def analyze(
        self,
        boards: PathText | Collection[PathText] = (),
        *,
        strategy: Literal["best", "layerwise", "msf-cnn", "xcore-strips"] | None = None,
        objective: Literal["cost", "ram", "flash"] | None = None,
        ram: int | str | None = None,
        max_f: float | str | None = None,
        max_cost: float | str | None = None,
        max_ms: float | str | None = None,
        max_flash: int | str | None = None,
        in_place: Literal["rows", "elementwise", "none"] | None = None,
        image: Literal["overwritable", "resident", "stream"] | None = None,
        segments: str | None = None,
        order: Literal["given", "better", "best"] | None = None,
        hand_off: int | str | None = None,
        simplify: Literal["weights", "structure"] | None = None,
        hop: int | None = None,
        outputs: str | Collection[str] | None = None,
        weights: Literal["flash", "load"] | None = None,
        operators: Literal["separate", "fused"] | None = None,
        batch: int | None = None,
        size: int | str | None = None,
        cmsis_nn: PathText | None = None,
        requantise: Literal["exact", "vpu16"] | None = None,
        threads: int | None = None,
        weights_in: str | None = None,
        arena_in: str | None = None,
        kernels_in: str | None = None,
        progress: Progress = None,
    ) -> Analysis | NetworkMemory:
        """Returns whether the network fits each board, which memory is too small, and what would help.

        Without `boards`, the answer has every known board. For an ONNX or Darknet file without `boards`, the
        answer is its memory, counted without a board.
        """

    def plan(
        self,
        board: PathText,
        *,
        strategy: Literal["best", "layerwise", "msf-cnn", "xcore-strips"] | None = None,
        objective: Literal["cost", "ram", "flash"] | None = None,
        ram: int | str | None = None,
        max_f: float | str | None = None,
        max_cost: float | str | None = None,
        max_ms: float | str | None = None,
        max_flash: int | str | None = None,
        in_place: Literal["rows", "elementwise", "none"] | None = None,
        image: Literal["overwritable", "resident", "stream"] | None = None,
        segments: str | None = None,
        order: Literal["given", "better", "best"] | None = None,
        hand_off: int | str | None = None,
        simplify: Literal["weights", "structure"] | None = None,
        hop: int | None = None,
        outputs: str | Collection[str] | None = None,
        cmsis_nn: PathText | None = None,
        requantise: Literal["exact", "vpu16"] | None = None,
        threads: int | None = None,
        weights_in: str | None = None,
        arena_in: str | None = None,
        kernels_in: str | None = None,
        compare: bool | None = None,
        period: float | str | None = None,
        plan: PathText | Plan | None = None,
        progress: Progress = None,
    ) -> Plan:
        """Returns how the network runs on a board: its kernels, its memory and its work."""

    def front(
        self,
        board: PathText,
        *,
        ram: int | str | None = None,
        max_f: float | str | None = None,
        max_cost: float | str | None = None,
        max_ms: float | str | None = None,
        max_flash: int | str | None = None,
        in_place: Literal["rows", "elementwise", "none"] | None = None,
        image: Literal["overwritable", "resident", "stream"] | None = None,
        order: Literal["given", "better", "best"] | None = None,
        hand_off: int | str | None = None,
        simplify: Literal["weights", "structure"] | None = None,
        hop: int | None = None,
        outputs: str | Collection[str] | None = None,
        cmsis_nn: PathText | None = None,
        requantise: Literal["exact", "vpu16"] | None = None,
        threads: int | None = None,
        weights_in: str | None = None,
        arena_in: str | None = None,
        kernels_in: str | None = None,
        peers: bool | None = None,
        progress: Progress = None,
    ) -> Front:
        """Returns the Pareto front of memory and work."""

    def report(
        self,
        board: PathText,
        *,
        profile: bool | Profile = False,
        against: PathText | None = None,
        strategy: Literal["best", "layerwise", "msf-cnn", "xcore-strips"] | None = None,
        objective: Literal["cost", "ram", "flash"] | None = None,
        ram: int | str | None = None,
        max_f: float | str | None = None,
        max_cost: float | str | None = None,
        max_ms: float | str | None = None,
        max_flash: int | str | None = None,
        in_place: Literal["rows", "elementwise", "none"] | None = None,
        image: Literal["overwritable", "resident", "stream"] | None = None,
        segments: str | None = None,
        order: Literal["given", "better", "best"] | None = None,
        hand_off: int | str | None = None,
        simplify: Literal["weights", "structure"] | None = None,
        hop: int | None = None,
        outputs: str | Collection[str] | None = None,
        cmsis_nn: PathText | None = None,
        requantise: Literal["exact", "vpu16"] | None = None,
        threads: int | None = None,
        weights_in: str | None = None,
        arena_in: str | None = None,
        kernels_in: str | None = None,
        peers: bool | None = None,
        period: float | str | None = None,
        plan: PathText | Plan | None = None,
        progress: Progress = None,
    ) -> Report:
        """Returns a plan as a page, even if it does not fit.

        `profile` adds the instructions of every layer: with True, the network is run to count them; an
        earlier answer of `profile` is used as it is. `against` names an earlier report, or an answer saved as
        JSON; the page then shows the differences from it.
        """

    def trace(
        self,
        board: PathText,
        out: PathText,
        *,
        strategy: Literal["best", "layerwise", "msf-cnn", "xcore-strips"] | None = None,
        objective: Literal["cost", "ram", "flash"] | None = None,
        ram: int | str | None = None,
        max_f: float | str | None = None,
        max_cost: float | str | None = None,
        max_ms: float | str | None = None,
        max_flash: int | str | None = None,
        in_place: Literal["rows", "elementwise", "none"] | None = None,
        image: Literal["overwritable", "resident", "stream"] | None = None,
        segments: str | None = None,
        order: Literal["given", "better", "best"] | None = None,
        hand_off: int | str | None = None,
        simplify: Literal["weights", "structure"] | None = None,
        hop: int | None = None,
        outputs: str | Collection[str] | None = None,
        cmsis_nn: PathText | None = None,
        requantise: Literal["exact", "vpu16"] | None = None,
        threads: int | None = None,
        weights_in: str | None = None,
        arena_in: str | None = None,
        kernels_in: str | None = None,
        plan: PathText | Plan | None = None,
        progress: Progress = None,
    ) -> Trace:
        """Writes the plan over time to the file `out`, for Perfetto and chrome://tracing."""

    def build(
        self,
        out: PathText,
        board: PathText,
        *,
        strategy: Literal["best", "layerwise", "msf-cnn", "xcore-strips"] | None = None,
        objective: Literal["cost", "ram", "flash"] | None = None,
        ram: int | str | None = None,
        max_f: float | str | None = None,
        max_cost: float | str | None = None,
        max_ms: float | str | None = None,
        max_flash: int | str | None = None,
        in_place: Literal["rows", "elementwise", "none"] | None = None,
        image: Literal["overwritable", "resident", "stream"] | None = None,
        segments: str | None = None,
        order: Literal["given", "better", "best"] | None = None,
        hand_off: int | str | None = None,
        simplify: Literal["weights", "structure"] | None = None,
        hop: int | None = None,
        outputs: str | Collection[str] | None = None,
        toolchain: str | None = None,
        debug: bool | None = None,
        cmsis_nn: PathText | None = None,
        formats: Literal["bin", "hex", "uf2"] | Collection[Literal["bin", "hex", "uf2"]] | None = None,
        sign: PathText | None = None,
        image_version: str | None = None,
        requantise: Literal["exact", "vpu16"] | None = None,
        threads: int | None = None,
        weights_in: str | None = None,
        arena_in: str | None = None,
        kernels_in: str | None = None,
        self_test: int | None = None,
        golden: PathText | None = None,
        guards: Literal["none", "call", "invoke"] | None = None,
        on: Literal["emulator", "board"] | None = None,
        wire: str | None = None,
        name: str | None = None,
        plan: PathText | Plan | None = None,
        progress: Progress = None,
    ) -> Build:
        """Builds test firmware, and writes sources, weight image, .elf and files for flash to `out`."""

    def emit(
        self,
        out: PathText,
        board: PathText,
        *,
        strategy: Literal["best", "layerwise", "msf-cnn", "xcore-strips"] | None = None,
        objective: Literal["cost", "ram", "flash"] | None = None,
        ram: int | str | None = None,
        max_f: float | str | None = None,
        max_cost: float | str | None = None,
        max_ms: float | str | None = None,
        max_flash: int | str | None = None,
        in_place: Literal["rows", "elementwise", "none"] | None = None,
        image: Literal["overwritable", "resident", "stream"] | None = None,
        segments: str | None = None,
        order: Literal["given", "better", "best"] | None = None,
        hand_off: int | str | None = None,
        simplify: Literal["weights", "structure"] | None = None,
        hop: int | None = None,
        outputs: str | Collection[str] | None = None,
        cmsis_nn: PathText | None = None,
        requantise: Literal["exact", "vpu16"] | None = None,
        threads: int | None = None,
        weights_in: str | None = None,
        arena_in: str | None = None,
        kernels_in: str | None = None,
        self_test: int | None = None,
        golden: PathText | None = None,
        guards: Literal["none", "call", "invoke"] | None = None,
        name: str | None = None,
        plan: PathText | Plan | None = None,
        progress: Progress = None,
    ) -> Sources:
        """Writes the network's sources and weight image to the folder `out`."""

    def bundle(
        self,
        out: PathText,
        board: PathText,
        *,
        strategy: Literal["best", "layerwise", "msf-cnn", "xcore-strips"] | None = None,
        objective: Literal["cost", "ram", "flash"] | None = None,
        ram: int | str | None = None,
        max_f: float | str | None = None,
        max_cost: float | str | None = None,
        max_ms: float | str | None = None,
        max_flash: int | str | None = None,
        in_place: Literal["rows", "elementwise", "none"] | None = None,
        image: Literal["overwritable", "resident", "stream"] | None = None,
        segments: str | None = None,
        order: Literal["given", "better", "best"] | None = None,
        hand_off: int | str | None = None,
        simplify: Literal["weights", "structure"] | None = None,
        hop: int | None = None,
        outputs: str | Collection[str] | None = None,
        cmsis_nn: PathText | None = None,
        requantise: Literal["exact", "vpu16"] | None = None,
        threads: int | None = None,
        weights_in: str | None = None,
        arena_in: str | None = None,
        kernels_in: str | None = None,
        self_test: int | None = None,
        golden: PathText | None = None,
        guards: Literal["none", "call", "invoke"] | None = None,
        name: str | None = None,
        system: Literal["plain", "riot", "pico", "idf", "zephyr", "cmsis-pack"] | None = None,
        plan: PathText | Plan | None = None,
        progress: Progress = None,
    ) -> Bundle:
        """Writes a folder that any build system and any compiler can compile."""

    def validate(
        self,
        board: PathText,
        *,
        strategy: Literal["best", "layerwise", "msf-cnn", "xcore-strips"] | None = None,
        objective: Literal["cost", "ram", "flash"] | None = None,
        ram: int | str | None = None,
        max_f: float | str | None = None,
        max_cost: float | str | None = None,
        max_ms: float | str | None = None,
        max_flash: int | str | None = None,
        in_place: Literal["rows", "elementwise", "none"] | None = None,
        image: Literal["overwritable", "resident", "stream"] | None = None,
        segments: str | None = None,
        order: Literal["given", "better", "best"] | None = None,
        hand_off: int | str | None = None,
        simplify: Literal["weights", "structure"] | None = None,
        hop: int | None = None,
        outputs: str | Collection[str] | None = None,
        toolchain: str | None = None,
        debug: bool | None = None,
        cmsis_nn: PathText | None = None,
        requantise: Literal["exact", "vpu16"] | None = None,
        threads: int | None = None,
        weights_in: str | None = None,
        arena_in: str | None = None,
        kernels_in: str | None = None,
        input: PathText | ArrayLike | None = None,
        inputs: int | None = None,
        seed: int | None = None,
        data: PathText | None = None,
        labels: PathText | None = None,
        limit: int | None = None,
        through_firmware: int | str | None = None,
        sequence: int | str | None = None,
        reference_only: bool | None = None,
        resize: Literal["crop", "pad", "stretch", "exact"] | None = None,
        normalise: str | None = None,
        scores: str | None = None,
        on: Literal["emulator", "board"] | None = None,
        wire: str | None = None,
        flashed: bool | None = None,
        tool: str | None = None,
        tensors: bool | None = None,
        reference: Literal["auto", "litert", "numpy"] | None = None,
        sanitize: bool | None = None,
        elf: PathText | None = None,
        plan: PathText | Plan | None = None,
        progress: Progress = None,
    ) -> Validation | DatasetValidation:
        """Builds and runs the network, and compares its outputs with the reference.

        `input` may be a numpy array of one input.
        """

    def profile(
        self,
        board: PathText,
        *,
        strategy: Literal["best", "layerwise", "msf-cnn", "xcore-strips"] | None = None,
        objective: Literal["cost", "ram", "flash"] | None = None,
        ram: int | str | None = None,
        max_f: float | str | None = None,
        max_cost: float | str | None = None,
        max_ms: float | str | None = None,
        max_flash: int | str | None = None,
        in_place: Literal["rows", "elementwise", "none"] | None = None,
        image: Literal["overwritable", "resident", "stream"] | None = None,
        segments: str | None = None,
        order: Literal["given", "better", "best"] | None = None,
        hand_off: int | str | None = None,
        simplify: Literal["weights", "structure"] | None = None,
        hop: int | None = None,
        outputs: str | Collection[str] | None = None,
        toolchain: str | None = None,
        debug: bool | None = None,
        cmsis_nn: PathText | None = None,
        requantise: Literal["exact", "vpu16"] | None = None,
        threads: int | None = None,
        weights_in: str | None = None,
        arena_in: str | None = None,
        kernels_in: str | None = None,
        input: PathText | ArrayLike | None = None,
        inputs: int | None = None,
        seed: int | None = None,
        on: Literal["emulator", "board"] | None = None,
        wire: str | None = None,
        flashed: bool | None = None,
        tool: str | None = None,
        reference: Literal["auto", "litert", "numpy"] | None = None,
        elf: PathText | None = None,
        plan: PathText | Plan | None = None,
        progress: Progress = None,
    ) -> Profile:
        """Builds and runs the network, and counts the instructions of every layer.

        `input` may be a numpy array of one input.
        """

    def describe(
        self,
        board: PathText,
        *,
        toolchain: str | None = None,
        debug: bool | None = None,
        cmsis_nn: PathText | None = None,
        formats: Literal["bin", "hex", "uf2"] | Collection[Literal["bin", "hex", "uf2"]] | None = None,
        sign: PathText | None = None,
        image_version: str | None = None,
        requantise: Literal["exact", "vpu16"] | None = None,
        threads: int | None = None,
        weights_in: str | None = None,
        arena_in: str | None = None,
        kernels_in: str | None = None,
        on: Literal["emulator", "board"] | None = None,
        wire: str | None = None,
        name: str | None = None,
        progress: Progress = None,
    ) -> Description:
        """Returns what a build system compiles for a board, the flags, and the dependencies."""

    def operators(self) -> Operators:
        """Returns the network's operators, and the kernels that run them."""

    def quantize(
        self,
        out: PathText,
        *,
        seed: int | None = None,
        data: PathText | None = None,
        labels: PathText | None = None,
        limit: int | None = None,
        resize: Literal["crop", "pad", "stretch", "exact"] | None = None,
        normalise: str | None = None,
        scores: str | None = None,
        board: PathText | None = None,
        activations: Literal["int8", "int16"] | None = None,
        sizes_only: bool | None = None,
        progress: Progress = None,
    ) -> Quantized:
        """Quantises a float network with `data`, and writes the quantised network to the file `out`."""

class Sweep:
    """The result of a sweep. `rows` has a dict of figures for each candidate, as pandas.DataFrame takes
    it.
    """

    rows: list[dict[str, Any]]
    @property
    def failed(self) -> list[dict[str, Any]]:
        """The rows of candidates that failed, with `code`, `error` and `step`."""

    def front(self, board: str) -> list[dict[str, Any]]:
        """Returns a board's candidates that no other candidate beats in RAM, flash, time and accuracy."""

    def save(self, path: PathText) -> None:
        """Writes the rows as .jsonl or .parquet, or the page as .html."""

    def html(self) -> str:
        """Returns the page: a complete HTML document that fetches nothing."""

    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[dict[str, Any]]: ...
    def _repr_html_(self) -> str: ...

def open(
    model: PathText | bytes | bytearray | memoryview,
    *,
    outputs: str | Collection[str] | None = (),
    name: PathText = "network.tflite",
    daemon: str | None = None,
    cache: str = "on",
) -> Network:
    """Returns a network: a .tflite or .onnx file, the bytes of one, or a network of the zoo by its name.

    `outputs` are the tensors or layers at which the network ends (default: its own outputs). `name` is the
    file name of a network given as bytes. `daemon` (auto, off, require) and `cache` (on, off, renew) are as
    on the command line. Raises UsageError if a file does not exist.
    """

def boards() -> Boards:
    """Returns the known boards and their memories."""

def networks() -> Networks:
    """Returns the networks that `open` takes by name."""

def operators() -> Operators:
    """Returns TFLite's operators by data type, and their kernels on every board."""

def sizes(
    elf: PathText,
    board: PathText,
    *,
    formats: Literal["bin", "hex", "uf2"] | Collection[Literal["bin", "hex", "uf2"]] | None = None,
    sign: PathText | None = None,
    image_version: str | None = None,
    map: PathText | None = None,
    progress: Progress = None,
) -> Sizes:
    """Returns the bytes that a linked firmware image takes in each memory of a board."""

def arena(
    file: PathText, *, capacity: int | str | None = None, budget: int | None = None, progress: Progress = None
) -> Arena:
    """Returns the lowest offsets for the buffers of an arena problem (a .csv file)."""

def sweep(
    networks: Any,
    boards: PathText | Iterable[PathText] = (),
    *,
    steps: str | Iterable[str] = (),
    out: PathText | None = None,
    jobs: int | None = None,
    scheduler: str | None = None,
    progress: Progress = None,
    strategy: Literal["best", "layerwise", "msf-cnn", "xcore-strips"] | Collection[Any] | None = None,
    objective: Literal["cost", "ram", "flash"] | Collection[Any] | None = None,
    ram: int | str | Collection[Any] | None = None,
    max_f: float | str | Collection[Any] | None = None,
    max_cost: float | str | Collection[Any] | None = None,
    max_ms: float | str | Collection[Any] | None = None,
    max_flash: int | str | Collection[Any] | None = None,
    in_place: Literal["rows", "elementwise", "none"] | Collection[Any] | None = None,
    image: Literal["overwritable", "resident", "stream"] | Collection[Any] | None = None,
    segments: str | Collection[Any] | None = None,
    order: Literal["given", "better", "best"] | Collection[Any] | None = None,
    hand_off: int | str | Collection[Any] | None = None,
    simplify: Literal["weights", "structure"] | Collection[Any] | None = None,
    hop: int | Collection[Any] | None = None,
    outputs: str | Collection[str] | Collection[Any] | None = None,
    cmsis_nn: PathText | Collection[Any] | None = None,
    requantise: Literal["exact", "vpu16"] | Collection[Any] | None = None,
    threads: int | Collection[Any] | None = None,
    weights_in: str | Collection[Any] | None = None,
    arena_in: str | Collection[Any] | None = None,
    kernels_in: str | Collection[Any] | None = None,
    compare: bool | Collection[Any] | None = None,
    period: float | str | Collection[Any] | None = None,
    plan: PathText | Plan | Collection[Any] | None = None,
    self_test: int | Collection[Any] | None = None,
    golden: PathText | Collection[Any] | None = None,
    guards: Literal["none", "call", "invoke"] | Collection[Any] | None = None,
    name: str | Collection[Any] | None = None,
    toolchain: str | Collection[Any] | None = None,
    debug: bool | Collection[Any] | None = None,
    formats: Literal["bin", "hex", "uf2"]
    | Collection[Literal["bin", "hex", "uf2"]]
    | Collection[Any]
    | None = None,
    sign: PathText | Collection[Any] | None = None,
    image_version: str | Collection[Any] | None = None,
    on: Literal["emulator", "board"] | Collection[Any] | None = None,
    wire: str | Collection[Any] | None = None,
    input: PathText | ArrayLike | Collection[Any] | None = None,
    inputs: int | Collection[Any] | None = None,
    seed: int | Collection[Any] | None = None,
    data: PathText | Collection[Any] | None = None,
    labels: PathText | Collection[Any] | None = None,
    limit: int | Collection[Any] | None = None,
    through_firmware: int | str | Collection[Any] | None = None,
    sequence: int | str | Collection[Any] | None = None,
    reference_only: bool | Collection[Any] | None = None,
    resize: Literal["crop", "pad", "stretch", "exact"] | Collection[Any] | None = None,
    normalise: str | Collection[Any] | None = None,
    scores: str | Collection[Any] | None = None,
    flashed: bool | Collection[Any] | None = None,
    tool: str | Collection[Any] | None = None,
    tensors: bool | Collection[Any] | None = None,
    reference: Literal["auto", "litert", "numpy"] | Collection[Any] | None = None,
    sanitize: bool | Collection[Any] | None = None,
    elf: PathText | Collection[Any] | None = None,
) -> Sweep:
    """Plans every network for every board with every choice of options, and returns a row for each.

    `networks` is the .toml file of a sweep; or paths, bytes, names of the zoo, or functions that return
    bytes, each alone or in a pair with a name. If an option is a list, each of its values is tried. `steps`
    may add emit, link, validate and profile. If the sweep was stopped, the same call with the same folder
    `out` continues it. `jobs` is the number of processes (default: one for each core; 0: this process),
    `scheduler` the address of a Dask cluster.
    """
