"""The kinds of requests, as pages list them: what each takes, what answers it, what it depends on."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

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


class Analyze(Request):
    """Whether a model fits each board (none: every known one), what binds and what would help.

    `target`: what goes with each board, without one.
    """

    takes: ClassVar = (*TARGET, *PLANNING, *COUNTING)
    handler: ClassVar = "buildtool.api.answers.analysis:analysis"
    needs: ClassVar = Needs.COMPILERS
    prepared: ClassVar = True
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


class AnalyzeNetwork(Request):
    """What the memory of an ONNX or Darknet file would be, whatever its element type."""

    kind: ClassVar = "analyze"
    handler: ClassVar = "buildtool.api.answers.networks:network_analysis"
    model: File
    options: NetworkOptions


class Plan(Planning):
    """How a model will run on a board."""

    handler: ClassVar = "buildtool.api.answers.planreport:answer"
    prepared: ClassVar = True
    compare: bool = False


class Trace(Planning):
    """A plan over time, for trace viewers."""

    handler: ClassVar = "buildtool.api.answers.traces:traced"


class Front(Planning):
    """All plans that no other beats in memory and work."""

    takes: ClassVar = tuple(  # it is all plans within limits: nothing chooses one
        name for name in Planning.takes if name not in ("strategy", "objective", "segments", "plan")
    )
    handler: ClassVar = "buildtool.api.answers.fronts:front_of"
    prepared: ClassVar = True
    peers: bool = False


class Report(Planning):
    """A plan with all that a page about it draws, whether it fits or not; `peers`: as for `front`."""

    handler: ClassVar = "buildtool.api.answers.reporting:report_of"
    needs: ClassVar = Needs.COMPILERS
    peers: bool = False


class Describe(Request):
    """What a build system has to know to build for a board, and with `model` that network.

    `name`: the prefix of the network's C interface ("": the model's name).
    """

    takes: ClassVar = ("board", *TARGET, *COMPILED, *FLASHED, *DESK)
    handler: ClassVar = "buildtool.api.describe:answer"
    needs: ClassVar = Needs.COMPILERS
    prepared: ClassVar = True
    model: Named | None = None
    name: str = ""
    flashing: Flashing = AS_BIN
    target: TargetChoice

    @classmethod
    def read(cls, values: Values) -> Request:
        """The request; a name is of a model."""
        if values.given.get("name", "") and "model" not in values.given:
            raise table.idle("name", "it has no effect without a model")
        return super().read(values)


class Emit(Planning):
    """The sources of a network; `name`: the prefix of its C interface ("": the model's name)."""

    handler: ClassVar = "buildtool.api.answers.building:emit"
    prepared: ClassVar = True
    name: str = ""


class Build(Planning):
    """The test firmware of a network; `name` as for `emit`."""

    takes: ClassVar = (*Planning.takes, *COMPILED, *FLASHED, *DESK)
    handler: ClassVar = "buildtool.api.answers.building:build"
    needs: ClassVar = Needs.PROGRAMS
    name: str = ""
    flashing: Flashing = AS_BIN


class Bundle(Planning):
    """The sources of a network and all that has to be compiled with them; `name` as for `emit`."""

    handler: ClassVar = "buildtool.api.bundling:answer"
    needs: ClassVar = Needs.PROGRAMS
    name: str = ""


class Sizes(Request):
    """What a linked image takes of each of the board's memories; `map`: what its linker wrote with it."""

    takes: ClassVar = FLASHED
    handler: ClassVar = "buildtool.api.answers.building:sizes"
    needs: ClassVar = Needs.PROGRAMS
    board: Named
    elf: File
    flashing: Flashing = AS_BIN
    map: File | None = None


class Validate(Planning):
    """A run that is compared with the reference; `made`: of this image, not of one that is built here.

    `desk`: over a wire, which the target's choice names. `sequence`: inputs from one reset of the state to
    the next; 0: half of the random ones, one of a data set.
    """

    takes: ClassVar = (*Planning.takes, *COMPILED, *INPUT, *DATA, *DESK, "flashed", "tool", "elf")
    handler: ClassVar = "buildtool.firmware.run.validation:validation"
    needs: ClassVar = Needs.PROGRAMS
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


class ValidateData(Validate):
    """The same on a data set, in place of `inputs`."""

    kind: ClassVar = "validate"
    handler: ClassVar = "buildtool.firmware.run.dataset:dataset_validation"
    data: Data


class Profile(Planning):
    """A run that counts the instructions of every operator; `made`, `desk`: as for `validate`."""

    takes: ClassVar = (*Planning.takes, *COMPILED, *INPUT, *DESK, "flashed", "tool", "elf")
    handler: ClassVar = "buildtool.firmware.run.profiling:profiling"
    needs: ClassVar = Needs.PROGRAMS
    made: Made | None = None
    inputs: Inputs = RANDOM
    desk: OnDesk | None = None
    reference: Reference = Reference.AUTO


class Debug(Planning):
    """A run under a debugger that connects to `port`; `made`: as for `validate`. Built for a debugger."""

    takes: ClassVar = (*Planning.takes, *INPUT, "toolchain", "elf")
    handler: ClassVar = "buildtool.firmware.run.handover:debugging"
    needs: ClassVar = Needs.PROGRAMS
    made: Made | None = None
    inputs: Inputs = RANDOM
    port: int = 3333

    @classmethod
    def read(cls, values: Values) -> Request:
        """The request; an image of a build is a file, which the debugger reads."""
        found = super().read(values)
        assert isinstance(found, cls)
        if found.made is not None and found.made.elf.data is not None:
            raise UsageError("an image for a debugger has to be a file, not bytes", option="elf")
        return found


class Flash(Planning):
    """Test firmware that answers over a wire, for a board's flash; `made`: as for `validate`."""

    takes: ClassVar = (*Planning.takes, *COMPILED, "wire", "elf")
    handler: ClassVar = "buildtool.firmware.run.handover:flashed"
    needs: ClassVar = Needs.PROGRAMS
    made: Made | None = None
    tool: str = ""


class Ops(Request):
    """Which operators run, and by which kernel, on every known board; with `model`, those that it has."""

    handler: ClassVar = "buildtool.api.answers.lists:ops"
    model: Named | None = None


class Boards(Request):
    """The known boards and their memories."""

    handler: ClassVar = "buildtool.api.answers.lists:boards"


class Target(Request):
    """The kernels of a target plugin against the reference, on `boards` (none: all that can be run).

    `cases`: random networks for each kernel, made from `seed`.
    """

    handler: ClassVar = "buildtool.api.checking.check:check"
    needs: ClassVar = Needs.PROGRAMS
    plugin: str
    boards: tuple[Named, ...] = ()
    toolchain: str = ""
    cases: int = 4
    seed: int = 0


class Zoo(Request):
    """The networks that can be made by name; with `model`, that one's file."""

    handler: ClassVar = "buildtool.api.answers.lists:zoo"
    model: str = ""

    @classmethod
    def read(cls, values: Values) -> Request:
        """The request; a file is nothing that can be made."""
        model = values.given.get("model", "")
        if not isinstance(model, str):
            raise UsageError("it must be the name of a network", option="model")
        return cls(model=model)


class Arena(Request):
    """An arena problem; `capacity` in bytes and `budget` in nodes, where there are such limits."""

    handler: ClassVar = "buildtool.api.answers.arena:arena"
    file: File
    capacity: int | None = None
    budget: int | None = None


class Tflm(Request):
    """A model's file with arena offsets for TensorFlow Lite Micro."""

    handler: ClassVar = "buildtool.api.answers.arena:tflm"
    model: Named


class Split(Request):
    """A network that is split for a board: the command answers it, and has a type of its own for it."""

    takes: ClassVar = (
        *("board", "ram", "max_ms", "seed", "normalise"),
        *(option.name for option in OPTIONS if option.group is Group.SPLIT),
    )
    answers: ClassVar = "SplitAnswer"
    needs: ClassVar = Needs.PROGRAMS
