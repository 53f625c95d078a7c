"""The kinds of requests, as pages list them: what each takes, what answers it, what it depends on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from buildtool import options as table
from buildtool.api.requests.parts import (
    AS_BIN,
    COMPILED,
    COUNTING,
    DESK,
    FLASHED,
    INPUT,
    PLANNING,
    RANDOM,
    TARGET,
    Data,
    Flashing,
    Inputs,
    Made,
    Needs,
    OnDesk,
    Planning,
    Request,
    Values,
)
from buildtool.base.errors import UsageError, suggest
from buildtool.base.modes import Reference
from buildtool.options import OPTIONS, Group
from buildtool.options.table import DATA

if TYPE_CHECKING:
    from buildtool.base.files import File, Named
    from buildtool.options.values import NetworkOptions, PlanOptions, TargetChoice

NETWORKS = (".onnx", ".cfg")  # what is counted without a board


class Analyze(
    Request,
    takes=(*TARGET, *PLANNING, *COUNTING),
    handler="api.answers.analysis:analysis",
    needs=Needs.COMPILERS,
    prepared=True,
):
    """Whether a model fits each board (none: every known one), what binds and what would help.

    `target`: what goes with each board, without one.
    """

    model: Named
    boards: tuple[Named, ...] = ()
    target: TargetChoice
    options: PlanOptions

    @classmethod
    def read(cls, values: Values) -> Request:
        """The request: of boards, or of a file that is counted without one."""
        from buildtool.options.values import network_options

        model, boards = values.value("model"), values.value("boards", ())
        name = "" if isinstance(model, str) else model.path.lower()
        if name.endswith(NETWORKS) and not (boards and name.endswith(".onnx")):
            if boards:
                raise UsageError("no board runs Darknet files", path=model.path, hint=suggest(boards=None))
            for named in TARGET:
                if named in values.given:
                    raise table.without_board(named)
            return AnalyzeNetwork(model=model, options=network_options(values.options))
        return super().read(values)


class AnalyzeNetwork(Request, kind="analyze", handler="api.answers.networks:network_analysis"):
    """What the memory of an ONNX or Darknet file would be, whatever its element type."""

    model: File
    options: NetworkOptions


class Plan(Planning, handler="api.answers.planreport:answer", prepared=True):
    """How a model will run on a board."""

    compare: bool = False


class Trace(Planning, handler="api.answers.planreport:traced"):
    """A plan over time, for trace viewers."""


# A front is all plans within limits: nothing chooses one.
_OF_ONE_PLAN = {"strategy", "objective", "segments", "plan"}
_FRONT = tuple(name for name in Planning.takes if name not in _OF_ONE_PLAN)


class Front(Planning, takes=_FRONT, handler="api.answers.fronts:front_of", prepared=True):
    """All plans that no other beats in memory and work."""

    peers: bool = False


class Report(Planning, handler="api.answers.reporting:report_of", needs=Needs.COMPILERS):
    """A plan with all that a page about it draws, whether it fits or not; `peers`: as for `front`."""

    peers: bool = False


class Describe(
    Request,
    takes=("board", *TARGET, *COMPILED, *FLASHED, *DESK),
    handler="api.describe:answer",
    needs=Needs.COMPILERS,
    prepared=True,
):
    """What a build system has to know to build for a board, and with `model` that network.

    `name`: the prefix of the network's C interface ("": the model's name).
    """

    model: Named | None = None
    name: str = ""
    flashing: Flashing = AS_BIN
    target: TargetChoice

    @classmethod
    def read(cls, values: Values) -> Request:
        """The request; a name without a model has no effect."""
        if values.given.get("name", "") and "model" not in values.given:
            raise table.idle("name", "it has no effect without a model")
        return super().read(values)


class Emit(Planning, handler="api.answers.building:emit", prepared=True):
    """The sources of a network; `name`: the prefix of its C interface ("": the model's name)."""

    name: str = ""


class Build(
    Planning,
    takes=(*Planning.takes, *COMPILED, *FLASHED, *DESK),
    handler="api.answers.building:build",
    needs=Needs.PROGRAMS,
):
    """The test firmware of a network; `name` as for `emit`."""

    name: str = ""
    flashing: Flashing = AS_BIN


class Bundle(Planning, handler="api.bundling:answer", needs=Needs.PROGRAMS):
    """The sources of a network and all that has to be compiled with them; `name` as for `emit`."""

    name: str = ""


class Sizes(Request, takes=FLASHED, handler="api.answers.building:sizes", needs=Needs.PROGRAMS):
    """What a linked image takes of each of the board's memories; `map`: what its linker wrote with it."""

    board: Named
    elf: File
    flashing: Flashing = AS_BIN
    map: File | None = None


class Validate(
    Planning,
    takes=(*Planning.takes, *COMPILED, *INPUT, *DATA, *DESK, "flashed", "tool", "elf"),
    handler="firmware.run.validation:validation",
    needs=Needs.PROGRAMS,
):
    """A run that is compared with the reference; `made`: of this image, not of one that is built here.

    `desk`: over a wire, which the target's choice names. `sequence`: inputs from one reset of the state to
    the next; 0: half of the random ones, one of a data set.
    """

    made: Made | None = None
    inputs: Inputs = RANDOM
    tensors: bool = False
    reference: Reference = Reference.AUTO
    sanitize: bool = False
    desk: OnDesk | None = None
    sequence: int = 0

    @classmethod
    def read(cls, values: Values) -> Request:
        """The request: on inputs, or on a data set."""
        data = values.data()
        if data is None:
            return super().read(values)
        shared = {name: values.field(cls, name) for name in cls.names if name != "inputs"}
        return ValidateData(**shared, data=data)


class ValidateData(Validate, kind="validate", handler="firmware.run.dataset:dataset_validation"):
    """The same on a data set, in place of `inputs`."""

    data: Data


class Profile(
    Planning,
    takes=(*Planning.takes, *COMPILED, *INPUT, *DESK, "flashed", "tool", "elf"),
    handler="firmware.run.profiling:profiling",
    needs=Needs.PROGRAMS,
):
    """A run that counts the instructions of every operator; `made`, `desk`: as for `validate`."""

    made: Made | None = None
    inputs: Inputs = RANDOM
    desk: OnDesk | None = None
    reference: Reference = Reference.AUTO


class Debug(
    Planning,
    takes=(*Planning.takes, *INPUT, "toolchain", "elf"),
    handler="firmware.run.handover:debugging",
    needs=Needs.PROGRAMS,
):
    """A run under a debugger that connects to `port`; `made`: as for `validate`. Built for a debugger."""

    made: Made | None = None
    inputs: Inputs = RANDOM
    port: int = 3333

    @classmethod
    def read(cls, values: Values) -> Request:
        """The request; an image of a build is a file, which the debugger reads."""
        request = super().read(values)
        assert isinstance(request, cls)
        if request.made is not None and request.made.elf.data is not None:
            raise UsageError("an image for a debugger has to be a file, not bytes", option="elf")
        return request


class Flash(
    Planning,
    takes=(*Planning.takes, *COMPILED, "wire", "elf"),
    handler="firmware.run.handover:flash",
    needs=Needs.PROGRAMS,
):
    """Test firmware that answers over a wire, for a board's flash; `made`: as for `validate`."""

    made: Made | None = None
    tool: str = ""


class Ops(Request, handler="api.answers.lists:ops"):
    """Which operators run, and by which kernel, on every known board; with `model`, those that it has."""

    model: Named | None = None


class Boards(Request, handler="api.answers.lists:boards"):
    """The known boards and their memories."""


class Target(Request, handler="api.checking.check:check", needs=Needs.PROGRAMS):
    """The kernels of a target plugin against the reference, on `boards` (none: all that can be run).
    `cases`: random networks for each kernel, made from `seed`.
    """

    plugin: str
    boards: tuple[Named, ...] = ()
    toolchain: str = ""
    cases: int = 4
    seed: int = 0


class Zoo(Request, handler="api.answers.lists:zoo"):
    """The networks that can be made by name; with `model`, that one's file."""

    model: str = ""

    @classmethod
    def read(cls, values: Values) -> Request:
        """The request; a model is given by its name, not as a file."""
        model = values.given.get("model", "")
        if not isinstance(model, str):
            raise UsageError("it must be the name of a network", option="model")
        return cls(model=model)


class Arena(Request, handler="api.answers.arena:arena"):
    """An arena problem; `capacity` in bytes and `budget` in nodes, where there are such limits."""

    file: File
    capacity: int | None = None
    budget: int | None = None


class Tflm(Request, handler="api.answers.arena:tflm"):
    """A model's file with arena offsets for TensorFlow Lite Micro."""

    model: Named


class Split(
    Request,
    takes=(
        *("board", "ram", "max_ms", "seed", "normalise"),
        *(option.name for option in OPTIONS if option.group is Group.SPLIT),
    ),
    answers="SplitAnswer",
    needs=Needs.PROGRAMS,
):
    """A network that is split for a board: the command answers it, and has a type of its own for it."""
