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
    """Asks whether a model fits each board, which memory or limit is too small, and what would help.

    Without `boards`, every known board counts. `target` has the settings for each board, but no board's name.
    """

    model: NetworkSpec
    boards: tuple[Named, ...] = ()
    target: TargetChoice
    options: PlanOptions

    @classmethod
    def read(cls, values: Values) -> Request:
        """Returns the request for boards, or an AnalyzeNetwork for a file that is counted without a board."""
        from buildtool.options.values import network_options

        model, boards = values.value("model"), values.value("boards", ())
        name = "" if isinstance(model, str) else model.path.lower()
        if name.endswith(NETWORKS) and not (boards and name.endswith(".onnx")):
            if boards:
                raise UsageError("no board runs Darknet files", path=model.path, hint=suggest(boards=None))
            for option in TARGET:
                if option in values.given:
                    raise table.needs_board_error(option)
            return AnalyzeNetwork(model=model, options=network_options(values.options))
        return super().read(values)


class AnalyzeNetwork(Request, kind="analyze", handler="api.answers.networks:network_analysis"):
    """Asks for the memory figures of an ONNX or Darknet file of any element type."""

    model: File
    options: NetworkOptions


class Plan(Planning, handler="api.answers.planreport:answer", prepared=True):
    """Asks how a model will run on a board.

    `compare` adds the plans of other strategies. `period` is the time in milliseconds from one move of the
    input's window to the next (None: not known).
    """

    compare: bool = False
    period: float | None = None


class Trace(Planning, handler="api.answers.planreport:trace_answer"):
    """Asks for a plan over time, as a file for trace viewers."""


# A front has all plans within limits. The options that choose one plan do not apply.
_OF_ONE_PLAN = {"strategy", "objective", "segments", "plan"}
_FRONT = tuple(name for name in Planning.takes if name not in _OF_ONE_PLAN)


class Front(Planning, takes=_FRONT, handler="api.answers.fronts:front_of", prepared=True):
    """Asks for the Pareto front of memory and work; `peers` adds the plans of other authors' schemes."""

    peers: bool = False


class Report(Planning, handler="api.answers.reporting:report_of", needs=Needs.COMPILERS):
    """Asks for a plan with all data of its page, even if it does not fit.

    For `peers` see Front, and for `period` see Plan.
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
    """Asks for the description of a board, and of the network `model` if there is one, for build systems.

    `name` is the prefix of the network's C interface ("": the model's name).
    """

    model: Named | None = None
    name: str = ""
    flashing: Flashing = AS_BIN
    target: TargetChoice

    @classmethod
    def read(cls, values: Values) -> Request:
        """Returns the request. Raises UsageError for a name without a model, as the name has no effect."""
        if values.given.get("name", "") and "model" not in values.given:
            raise table.no_effect_error("name", "it has no effect without a model")
        return super().read(values)


class Emitting(Planning, takes=(*Planning.takes, *FIELD)):
    """The fields of requests for a network's sources.

    `name` is the prefix of the network's C interface ("": the model's name). `checks` says what the network
    checks in the field.
    """

    name: str = ""
    checks: CheckOptions


class Emit(Emitting, handler="api.answers.building:emit", prepared=True):
    """Asks for the sources of a network."""


class Build(
    Emitting,
    takes=(*Emitting.takes, *COMPILED, *FLASHED, *LINK_OPTIONS),
    handler="api.answers.building:build",
    needs=Needs.PROGRAMS,
):
    """Asks for the test firmware of a network."""

    flashing: Flashing = AS_BIN


class Bundle(Emitting, handler="api.bundling:answer", needs=Needs.PROGRAMS):
    """Asks for the sources of a network and all that has to be compiled with them."""

    system: System = System.PLAIN


class Sizes(Request, takes=FLASHED, handler="api.answers.building:sizes", needs=Needs.PROGRAMS):
    """Asks for the bytes that a linked firmware image takes in each memory of the board.

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
    """Asks for a run that is compared with the reference.

    - `made`: a given firmware image to run instead of one that is built (None: it is built).
    - `tensors`: whether every tensor is compared, not only the outputs.
    - `sanitize`: whether the build checks for invalid addresses and undefined behaviour.
    - `attached`: how to connect to an attached board or to an emulator's UART; `target` names the link.
    - `sequence`: the number of inputs from one reset of the state to the next (0: half of the random inputs,
      or one input of a data set).
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
        """Returns the request for single inputs. With a data set, it is a ValidateData."""
        data = values.data()
        if data is None:
            return super().read(values)
        shared = {name: values.field(cls, name) for name in cls.names if name != "inputs"}
        return ValidateData(**shared, data=data)


class ValidateData(Validate, kind="validate", handler="firmware.run.dataset:dataset_validation"):
    """Asks for a run on a data set, instead of `inputs`, that is compared with the reference."""

    data: Data


class Profile(
    Planning,
    takes=(*Planning.takes, *COMPILED, *INPUT, *LINK_OPTIONS, "flashed", "tool", "elf"),
    handler="firmware.run.profiling:profiling",
    needs=Needs.PROGRAMS,
):
    """Asks for a run that counts each operator's instructions; for `made` and `attached` see Validate."""

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
    """Asks for a debug build to run under a debugger, which connects to `port`; for `made` see Validate."""

    made: GivenBuild | None = None
    inputs: Inputs = RANDOM
    port: int = 3333

    @classmethod
    def read(cls, values: Values) -> Request:
        """Returns the request. Raises UsageError if a given firmware image is bytes, as a debugger needs a
        file.
        """
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
    """Asks for test firmware that answers over a link, for a board's flash. For `made` see Validate."""

    made: GivenBuild | None = None
    tool: str = ""


class Ops(Request, handler="api.answers.lists:ops"):
    """Asks for the operators that run on every known board and their kernels; with `model`, only the
    model's.
    """

    model: Named | None = None


class Boards(Request, handler="api.answers.lists:boards"):
    """Asks for the known boards and their memories."""


class Target(Request, handler="api.checking.check:check", needs=Needs.PROGRAMS):
    """Asks for a check of a target plugin's kernels against the reference.

    The kernels run on `boards`; if there are none, on all boards of the plugin that can be run. `cases` is
    the number of random networks for each kernel, which are drawn from `seed`.
    """

    plugin: str
    boards: tuple[Named, ...] = ()
    toolchain: str = ""
    cases: int = 4
    seed: int = 0


class Zoo(Request, handler="api.answers.lists:zoo"):
    """Asks for the networks that can be made by name; with `model`, for the file of that network."""

    model: str = ""

    @classmethod
    def read(cls, values: Values) -> Request:
        """Returns the request. Raises UsageError if the model is a file and not a name."""
        model = values.given.get("model", "")
        if not isinstance(model, str):
            raise UsageError("it must be the name of a network", option="model")
        return cls(model=model)


class Arena(Request, handler="api.answers.arena:arena"):
    """Asks for a placement for an arena problem.

    `capacity` is in bytes (None: no limit). `budget` is an upper limit for the nodes of the search (None: the
    default).
    """

    file: File
    capacity: int | None = None
    budget: int | None = None


class Tflm(Request, handler="api.answers.arena:tflm"):
    """Asks for a model's file with arena offsets for TensorFlow Lite Micro."""

    model: Named


class Quantize(
    Request,
    takes=("labels", "limit", "seed", "resize", "normalise", "scores"),
    handler="quantize.run:quantized",
    needs=Needs.PROGRAMS,
):
    """Asks for a float network to be quantised with a data set, or with random values if only sizes matter.

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
        """Returns the request. Raises UsageError if there is no data set, unless only sizes matter."""
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
    """Asks for a network to be split for a board. Only the command answers it, with a request type of its
    own.
    """
