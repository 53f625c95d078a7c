"""The kinds of requests, in the order of the pages: each kind's options, handler and dependencies."""

from __future__ import annotations

from typing import TYPE_CHECKING

from buildtool import options as table
from buildtool.api.requests.parts import (
    AS_BIN,
    COMPILED,
    COUNTING,
    FIELD,
    FLASHED,
    INPUT,
    LINK_OPTIONS,
    PLANNING,
    RANDOM,
    TARGET,
    AttachedRun,
    Data,
    Flashing,
    GivenBuild,
    Inputs,
    Needs,
    Planning,
    Request,
    Values,
)
from buildtool.base.errors import UsageError, suggest
from buildtool.base.modes import Activations, Reference, System
from buildtool.options import OPTIONS, Group
from buildtool.options.table import DATA

if TYPE_CHECKING:
    from buildtool.base.files import File, Named, NetworkSpec
    from buildtool.options.values import CheckOptions, NetworkOptions, PlanOptions, TargetChoice

NETWORKS = (".onnx", ".cfg")  # files whose memory is counted without a board


class Analyze(
    Request,
    takes=(*TARGET, *PLANNING, *COUNTING),
    handler="api.answers.analysis:analysis",
    needs=Needs.COMPILERS,
    prepared=True,
):
    """Whether a model fits each board, which memory or limit is too small, and what would help.

    Without `boards`, every known board counts. `target` has the settings for each board, but no board's
    name.
    """

    model: NetworkSpec
    boards: tuple[Named, ...] = ()
    target: TargetChoice
    options: PlanOptions

    @classmethod
    def read(cls, values: Values) -> Request:
        """Returns the request for boards, or for a file that is counted without a board."""
        from buildtool.options.values import network_options

        model, boards = values.value("model"), values.value("boards", ())
        name = "" if isinstance(model, str) else model.path.lower()
        if name.endswith(NETWORKS) and not (boards and name.endswith(".onnx")):
            if boards:
                raise UsageError("no board runs Darknet files", path=model.path, hint=suggest(boards=None))
            for option in TARGET:
                if option in values.given:
                    raise table.without_board(option)
            return AnalyzeNetwork(model=model, options=network_options(values.options))
        return super().read(values)


class AnalyzeNetwork(Request, kind="analyze", handler="api.answers.networks:network_analysis"):
    """The memory figures of an ONNX or Darknet file of any element type."""

    model: File
    options: NetworkOptions


class Plan(Planning, handler="api.answers.planreport:answer", prepared=True):
    """How a model will run on a board. `period`: milliseconds from hop to hop, for a moving window."""

    compare: bool = False
    period: float | None = None


class Trace(Planning, handler="api.answers.planreport:trace_answer"):
    """A plan over time, for trace viewers."""


# A front has all plans within limits. The options that choose one plan do not apply.
_OF_ONE_PLAN = {"strategy", "objective", "segments", "plan"}
_FRONT = tuple(name for name in Planning.takes if name not in _OF_ONE_PLAN)


class Front(Planning, takes=_FRONT, handler="api.answers.fronts:front_of", prepared=True):
    """The Pareto front of memory and work; `peers` adds the plans of other authors' schemes."""

    peers: bool = False


class Report(Planning, handler="api.answers.reporting:report_of", needs=Needs.COMPILERS):
    """A plan with all data for its page, even if it does not fit.

    For `peers` see `front`, and for `period` see `plan`.
    """

    peers: bool = False
    period: float | None = None


class Describe(
    Request,
    takes=("board", *TARGET, *COMPILED, *FLASHED, *LINK_OPTIONS),
    handler="api.describe:answer",
    needs=Needs.COMPILERS,
    prepared=True,
):
    """The description of a board, and of the network `model` if it is given, for build systems.

    `name` is the prefix of the network's C interface ("": the model's name).
    """

    model: Named | None = None
    name: str = ""
    flashing: Flashing = AS_BIN
    target: TargetChoice

    @classmethod
    def read(cls, values: Values) -> Request:
        """Returns the request; UsageError for a name without a model, as it has no effect."""
        if values.given.get("name", "") and "model" not in values.given:
            raise table.no_effect_error("name", "it has no effect without a model")
        return super().read(values)


class Emitting(Planning, takes=(*Planning.takes, *FIELD)):
    """The fields of requests for a network's sources.

    `name` is the prefix of its C interface ("": the model's name), `checks` says what it checks in the field.
    """

    name: str = ""
    checks: CheckOptions


class Emit(Emitting, handler="api.answers.building:emit", prepared=True):
    """The sources of a network."""


class Build(
    Emitting,
    takes=(*Emitting.takes, *COMPILED, *FLASHED, *LINK_OPTIONS),
    handler="api.answers.building:build",
    needs=Needs.PROGRAMS,
):
    """The test firmware of a network."""

    flashing: Flashing = AS_BIN


class Bundle(Emitting, handler="api.bundling:answer", needs=Needs.PROGRAMS):
    """The sources of a network and all that has to be compiled with them."""

    system: System = System.PLAIN


class Sizes(Request, takes=FLASHED, handler="api.answers.building:sizes", needs=Needs.PROGRAMS):
    """The bytes that a linked firmware image takes in each memory of the board.

    `map` is the file that the linker wrote with the image.
    """

    board: Named
    elf: File
    flashing: Flashing = AS_BIN
    map: File | None = None


class Validate(
    Planning,
    takes=(*Planning.takes, *COMPILED, *INPUT, *DATA, *LINK_OPTIONS, "flashed", "tool", "elf"),
    handler="firmware.run.validation:validation",
    needs=Needs.PROGRAMS,
):
    """A run that is compared with the reference.

    `made` is a given firmware image, which is run instead of one that is built here. `attached` says how to
    connect to an attached board or to an emulator's UART; `target` names the link. `sequence` is the
    number of inputs from one reset of the state to the next (0: half of the random inputs, or one input
    of a data set).
    """

    made: GivenBuild | None = None
    inputs: Inputs = RANDOM
    tensors: bool = False
    reference: Reference = Reference.AUTO
    sanitize: bool = False
    attached: AttachedRun | None = None
    sequence: int = 0

    @classmethod
    def read(cls, values: Values) -> Request:
        """Returns the request for inputs, or for a data set."""
        data = values.data()
        if data is None:
            return super().read(values)
        shared = {name: values.field(cls, name) for name in cls.names if name != "inputs"}
        return ValidateData(**shared, data=data)


class ValidateData(Validate, kind="validate", handler="firmware.run.dataset:dataset_validation"):
    """A run on a data set, instead of `inputs`, that is compared with the reference."""

    data: Data


class Profile(
    Planning,
    takes=(*Planning.takes, *COMPILED, *INPUT, *LINK_OPTIONS, "flashed", "tool", "elf"),
    handler="firmware.run.profiling:profiling",
    needs=Needs.PROGRAMS,
):
    """A run that counts the instructions of every operator; for `made` and `attached` see `validate`."""

    made: GivenBuild | None = None
    inputs: Inputs = RANDOM
    attached: AttachedRun | None = None
    reference: Reference = Reference.AUTO


class Debug(
    Planning,
    takes=(*Planning.takes, *INPUT, "toolchain", "elf"),
    handler="firmware.run.handover:debugging",
    needs=Needs.PROGRAMS,
):
    """A debug build that runs under a debugger, which connects to `port`; for `made` see `validate`."""

    made: GivenBuild | None = None
    inputs: Inputs = RANDOM
    port: int = 3333

    @classmethod
    def read(cls, values: Values) -> Request:
        """Returns the request; UsageError if the firmware image is not a file, which the debugger needs."""
        request = super().read(values)
        assert isinstance(request, cls)
        if request.made is not None and request.made.elf.data is not None:
            raise UsageError("a firmware image for a debugger has to be a file, not bytes", option="elf")
        return request


class Flash(
    Planning,
    takes=(*Planning.takes, *COMPILED, "wire", "elf"),
    handler="firmware.run.handover:flash",
    needs=Needs.PROGRAMS,
):
    """Test firmware that answers over a link, for a board's flash; for `made` see `validate`."""

    made: GivenBuild | None = None
    tool: str = ""


class Ops(Request, handler="api.answers.lists:ops"):
    """The operators that run on every known board, and their kernels; with `model`, those of the model."""

    model: Named | None = None


class Boards(Request, handler="api.answers.lists:boards"):
    """The known boards and their memories."""


class Target(Request, handler="api.checking.check:check", needs=Needs.PROGRAMS):
    """A check of a target plugin's kernels against the reference.

    It runs on `boards`, or without them on all boards that can be run. `cases` is the number of random
    networks for each kernel, which are drawn from `seed`.
    """

    plugin: str
    boards: tuple[Named, ...] = ()
    toolchain: str = ""
    cases: int = 4
    seed: int = 0


class Zoo(Request, handler="api.answers.lists:zoo"):
    """The networks that can be made by name; with `model`, the file of that network."""

    model: str = ""

    @classmethod
    def read(cls, values: Values) -> Request:
        """Returns the request; UsageError if the model is a file and not a name."""
        model = values.given.get("model", "")
        if not isinstance(model, str):
            raise UsageError("it must be the name of a network", option="model")
        return cls(model=model)


class Arena(Request, handler="api.answers.arena:arena"):
    """An arena problem; `capacity` is in bytes (None: no limit), `budget` in nodes (None: the default)."""

    file: File
    capacity: int | None = None
    budget: int | None = None


class Tflm(Request, handler="api.answers.arena:tflm"):
    """A model's file with arena offsets for TensorFlow Lite Micro."""

    model: Named


class Quantize(
    Request,
    takes=("labels", "limit", "seed", "resize", "normalise", "scores"),
    handler="quantize.run:quantized",
    needs=Needs.PROGRAMS,
):
    """A float network that is quantised with a data set, or for its sizes only with random values.

    The float network and the quantised one are compared on the data set. With `board`, the result is planned.
    """

    model: Named
    data: Data | None = None
    board: Named | None = None
    activations: Activations = Activations.INT8
    sizes_only: bool = False
    seed: int = 0  # of the random values

    @classmethod
    def read(cls, values: Values) -> Request:
        """Returns the request; UsageError without a data set, whose values decide the scales."""
        own = {name: values.field(cls, name) for name in ("model", "board", "activations")}
        data, sizes_only = values.data(), values.given.get("sizes_only", False)
        if data is not None and sizes_only:
            raise table.no_effect_error("sizes_only", "it has no effect with a data set")
        if data is None and not sizes_only:
            text = "quantising needs data as the network will see it: its ranges decide the scales"
            hints = [
                suggest("a .npz file, or a folder of images or .npy files; some hundred inputs", data="DATA"),
                suggest("random values, where only sizes matter", sizes_only=True),
            ]
            raise UsageError(text, option="data", hint=hints)
        seed = values.given.get("seed", 0) if data is None else 0
        return cls(**own, data=data, sizes_only=sizes_only, seed=seed)


class Split(
    Request,
    takes=(
        *("board", "ram", "max_ms", "seed", "normalise"),
        *(option.name for option in OPTIONS if option.group is Group.SPLIT),
    ),
    answers="SplitAnswer",
    needs=Needs.PROGRAMS,
):
    """A network that is split for a board; only the command answers it, and it has its own request type."""
