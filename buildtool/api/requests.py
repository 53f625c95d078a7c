"""The requests: a frozen dataclass a kind, and the one place where plain values become one of them.

A request is a mapping with `kind`, the keys that buildtool/options lists for that kind, and the planning or
counting options under `options`. What is not known, of a wrong type, or without effect is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from buildtool import options as table
from buildtool.base.errors import UsageError, did_you_mean, suggest
from buildtool.base.files import File, to_file
from buildtool.base.modes import Format, On, Reference, Requantise, Resize
from buildtool.firmware.datasets.types import Wanted
from buildtool.options import NESTED, Group
from buildtool.options.data import DATA
from buildtool.plan.options import (
    Lock,
    NetworkOptions,
    PlanOptions,
    network_options,
    plan_options,
)
from buildtool.target.choice import ANY_WIRE, TargetChoice

NETWORKS = (".onnx", ".cfg")  # what `analyze` counts without a board
Named = str | File  # a network of the zoo or a known board by its name, or a file


@dataclass(frozen=True)
class Inputs:
    """What a network is run on: a .npy file, or `count` sets of random values made from `seed`.

    A count of 0: one, or more where a network has state.
    """

    file: File | None = None
    count: int = 0
    seed: int = 0


@dataclass(frozen=True)
class Ops:
    """Which operators run, and by which kernel, on every known board; with `model`, those that it has."""

    kind: ClassVar[str] = "ops"
    model: Named | None = None


@dataclass(frozen=True)
class Boards:
    """The known boards and their memories."""

    kind: ClassVar[str] = "boards"


@dataclass(frozen=True)
class TargetCheck:
    """The kernels of a target plugin against the reference, on `boards` (none: all that can be run).

    `cases`: random networks for each kernel, made from `seed`.
    """

    kind: ClassVar[str] = "target"
    plugin: str
    boards: tuple[Named, ...] = ()
    toolchain: str = ""
    cases: int = 4
    seed: int = 0


@dataclass(frozen=True)
class Zoo:
    """The networks that can be made by name; with `model`, that one's file."""

    kind: ClassVar[str] = "zoo"
    model: str = ""


@dataclass(frozen=True)
class Planning:
    """What every request that plans one network for one board says; `lock`: the plan that it runs by."""

    model: Named
    target: TargetChoice
    options: PlanOptions
    lock: Lock | None = None


@dataclass(frozen=True)
class Plan(Planning):
    """How a model will run on a board."""

    kind: ClassVar[str] = "plan"
    compare: bool = False


@dataclass(frozen=True)
class Trace(Planning):
    """A plan over time, for trace viewers."""

    kind: ClassVar[str] = "trace"


@dataclass(frozen=True)
class Front(Planning):
    """All plans that no other beats in memory and work."""

    kind: ClassVar[str] = "front"
    peers: bool = False


@dataclass(frozen=True)
class Report(Planning):
    """A plan with all that a page about it draws, whether it fits or not; `peers`: as for `Front`."""

    kind: ClassVar[str] = "report"
    peers: bool = False


@dataclass(frozen=True)
class Emit(Planning):
    """The sources of a network; `name`: the prefix of its C interface ("": the model's name)."""

    kind: ClassVar[str] = "emit"
    name: str = ""


@dataclass(frozen=True)
class Flashing:
    """What the files for flash are written as; `sign`: the key for MCUboot, `version`: in its header."""

    formats: tuple[Format, ...] = (Format.BIN,)
    sign: File | None = None
    version: str = ""


@dataclass(frozen=True)
class Build(Planning):
    """The test firmware of a network; `name` as for `Emit`."""

    kind: ClassVar[str] = "build"
    name: str = ""
    flashing: Flashing = Flashing()


@dataclass(frozen=True)
class Bundle(Planning):
    """The sources of a network and all that has to be compiled with them; `name` as for `Emit`."""

    kind: ClassVar[str] = "bundle"
    name: str = ""


@dataclass(frozen=True)
class Made:
    """What a build made: the linked image, and the plan that it was emitted from."""

    elf: File
    plan: File


@dataclass(frozen=True)
class OnDesk:
    """A run over a wire: of a board on the desk, or, `is_emulated`, of an emulator's UART.

    `port`: "" for the only one there is; `is_flashed`: the board has the image already; `tool`: that flashes
    it, "" for the first that is installed.
    """

    port: str = ""
    is_emulated: bool = False
    is_flashed: bool = False
    tool: str = ""


@dataclass(frozen=True)
class Data:
    """A data set, and what is done with it.

    `through`: how many of its inputs go through the firmware; 0: none, None: as many as an estimate allows.
    `scores`: the name of the output whose largest value is the class ("": the only one that can be).
    """

    wanted: Wanted
    through: int | None = None
    scores: str = ""


@dataclass(frozen=True)
class Validate(Planning):
    """A run that is compared with the reference; `made`: of this image, not of one that is built here.

    `desk`: over a wire, which the target's choice names. `data`: on a data set, in place of `inputs`.
    `sequence`: inputs from one reset of the state to the next; 0: half of the random ones, one of a data set.
    """

    kind: ClassVar[str] = "validate"
    made: Made | None = None
    inputs: Inputs = Inputs()
    tensors: bool = False
    reference: Reference = Reference.AUTO
    sanitize: bool = False
    desk: OnDesk | None = None
    data: Data | None = None
    sequence: int = 0


@dataclass(frozen=True)
class Profile(Planning):
    """A run that counts the instructions of every operator; `made`, `desk`: as for `Validate`."""

    kind: ClassVar[str] = "profile"
    made: Made | None = None
    inputs: Inputs = Inputs()
    desk: OnDesk | None = None
    reference: Reference = Reference.AUTO


@dataclass(frozen=True)
class Flash(Planning):
    """Test firmware that answers over a wire, for a board's flash; `made`: as for `Validate`."""

    kind: ClassVar[str] = "flash"
    made: Made | None = None
    tool: str = ""


@dataclass(frozen=True)
class Debug(Planning):
    """A run under a debugger that connects to `port`; `made`: as for `Validate`."""

    kind: ClassVar[str] = "debug"
    made: Made | None = None
    inputs: Inputs = Inputs()
    port: int = 3333


@dataclass(frozen=True)
class Analyze:
    """Whether a model fits each board (none: every known one), what binds and what would help."""

    kind: ClassVar[str] = "analyze"
    model: Named
    boards: tuple[Named, ...]
    cmsis_nn: str
    threads: int | None
    weights_in: str | None
    requantise: Requantise
    options: PlanOptions
    arena_in: str | None = None


@dataclass(frozen=True)
class AnalyzeNetwork:
    """What the memory of an ONNX or Darknet file would be, whatever its element type."""

    kind: ClassVar[str] = "analyze"
    model: File
    options: NetworkOptions


@dataclass(frozen=True)
class Describe:
    """What a build system has to know to build for a board, and with `model` that network.

    `name`: the prefix of the network's C interface ("": the model's name).
    """

    kind: ClassVar[str] = "describe"
    target: TargetChoice
    model: Named | None = None
    name: str = ""
    flashing: Flashing = Flashing()


@dataclass(frozen=True)
class Sizes:
    """What a linked image takes of each of the board's memories; `map`: what its linker wrote with it."""

    kind: ClassVar[str] = "sizes"
    board: Named
    elf: File
    flashing: Flashing = Flashing()
    map: File | None = None


@dataclass(frozen=True)
class Tflm:
    """A model's file with arena offsets for TensorFlow Lite Micro."""

    kind: ClassVar[str] = "tflm"
    model: Named


@dataclass(frozen=True)
class Arena:
    """An arena problem; `capacity` in bytes and `budget` in nodes, where there are such limits."""

    kind: ClassVar[str] = "arena"
    file: File
    capacity: int | None = None
    budget: int | None = None


Request = (
    Ops
    | Boards
    | TargetCheck
    | Zoo
    | Plan
    | Trace
    | Front
    | Report
    | Emit
    | Build
    | Bundle
    | Validate
    | Profile
    | Debug
    | Flash
    | Analyze
    | AnalyzeNetwork
    | Describe
    | Sizes
    | Tflm
    | Arena
)

# ---- parsing -----------------------------------------------------------------------------------------


def parse(request: Mapping[str, object]) -> Request:
    """The request that plain values describe; UsageError for whatever is wrong with them."""
    if not isinstance(request, Mapping):
        raise UsageError("a request must be a mapping with a 'kind'")
    kind = request.get("kind")
    make = _KINDS.get(kind) if isinstance(kind, str) else None
    if make is None:
        raise UsageError(f"unknown kind of request {kind!r}", hint=did_you_mean(str(kind), _KINDS))
    return make(Values(str(kind), request))


class Values:
    """A request's values, each parsed as the table says."""

    def __init__(self, kind: str, request: Mapping[str, object]) -> None:
        self.kind = kind
        known = [option.name for option in table.of(kind) if option.group not in NESTED]
        nested = [option.name for option in table.of(kind, *NESTED)]
        self.given = self._parsed(
            {k: v for k, v in request.items() if k not in ("kind", "options")}, known, nested
        )
        inner = request.get("options")
        inner = {} if inner is None else inner
        if not isinstance(inner, Mapping):
            raise UsageError("'options' must be a mapping of options to values")
        if "options" in request and not nested and inner:
            raise table.refuse_unknown(kind, str(next(iter(inner))), known, "the options")
        self.options = self._parsed(inner, nested, known, "the options of a request")

    def _parsed(
        self, values: Mapping[str, object], known: list[str], elsewhere: list[str], where: str = ""
    ) -> dict[str, Any]:
        found = {}
        for name, value in values.items():
            if name in elsewhere:
                place = "inside 'options'" if not where else "beside 'options'"
                raise UsageError(f"'{name}' belongs {place} in a request of kind '{self.kind}'")
            if name not in known:
                names = known if where or not elsewhere else [*known, "options"]
                raise table.refuse_unknown(self.kind, str(name), names, where)
            if value is not None:
                found[name] = table.parse(name, value)
        return found

    def need(self, name: str) -> Any:
        """The value of a key that the kind cannot do without."""
        if name not in self.given:
            raise UsageError(f"a request of kind '{self.kind}' needs '{name}'", option=name)
        return self.given[name]

    def get(self, name: str, default: Any) -> Any:
        """The value of a key, or `default`."""
        return self.given.get(name, default)

    def model(self) -> Named:
        """The model that has to be named."""
        return to_file(self.need("model"), table.MODEL_SUFFIXES)

    def target(self) -> TargetChoice:
        """The board, and what goes with it."""
        board = to_file(self.need("board"), table.BOARD_SUFFIXES)
        library = _folder("cmsis_nn", self.get("cmsis_nn", ""))
        wire = self.wire()
        return TargetChoice(
            board,
            self.get("toolchain", ""),
            library,
            self.get("debug", False),
            wire,
            self.get("threads", None),
            self.get("weights_in", None),
            self.get("requantise", Requantise.EXACT),
            self.get("arena_in", None),
        )

    def wire(self) -> str:
        """How test firmware answers: "" for by files, through an emulator; ANY_WIRE: as the board can."""
        kind, _ = self.get("wire", ("", ""))
        on_desk = self.kind == "flash" or self.get("on", On.EMULATOR) == On.BOARD
        return kind or (ANY_WIRE if on_desk else "")

    def desk(self) -> OnDesk | None:
        """How a run reaches a board; UsageError for what has no effect."""
        kind, port = self.get("wire", ("", ""))
        if self.get("on", On.EMULATOR) == On.BOARD:
            flashed = self.get("flashed", False)
            if flashed and self.get("tensors", False):
                text = "of every tensor an image of its own is built, which has to be flashed"
                raise UsageError(text, option="flashed", hint=suggest(flashed=None))
            return OnDesk(port, False, flashed, self.get("tool", ""))
        for name in ("flashed", "tool"):
            if self.given.get(name):
                raise UsageError("it has no effect in an emulator", option=name, hint=suggest(on="board"))
        if port or kind == "rtt":  # semihosting is QEMU's own
            text = "an emulator is reached by the UART that it has" if port else "no emulator has RTT"
            raise UsageError(text, option="wire", hint=[suggest(on="board"), suggest(wire="serial")])
        return OnDesk(is_emulated=True) if kind else None

    def planning(self) -> tuple[Named, TargetChoice, PlanOptions, Lock | None]:
        """The fields of `Planning`."""
        target, lock = self.target(), self.lock()
        return self.model(), target, plan_options(self.options), lock

    def flashing(self) -> Flashing:
        """The files for flash; a version is of a signed image."""
        sign = _file("sign", self.given["sign"]) if "sign" in self.given else None
        if "image_version" in self.given and sign is None:
            text = "it has no effect without 'sign'"
            raise UsageError(text, option="image_version", hint=suggest(image_version=None))
        formats = tuple(dict.fromkeys(self.get("formats", ()))) or (Format.BIN,)
        return Flashing(formats, sign, self.get("image_version", "0.0.0" if sign else ""))

    def lock(self) -> Lock | None:
        """The plan that is given without an image; what decides how one is made must not stand beside it."""
        if "plan" not in self.given or "elf" in self.given:
            return None
        table.beside_plan(self.options)
        return Lock(_file("plan", self.given["plan"]), self.options.get("image"))

    def made(self) -> Made | None:
        """The image and plan of a build; nothing that decides how one is made may stand beside them."""
        if "elf" not in self.given:
            return None
        if "plan" not in self.given:
            raise UsageError(
                "'elf' needs 'plan': an image is run by the plan that it was built from",
                option="elf",
                hint="the .plan is emitted with the network's sources",
            )
        idle = list(self.options)
        if "sanitize" in self.given:
            idle.append("sanitize")
        if not self.get("tensors", False):  # of every tensor an image of its own is built
            idle += [name for name in ("toolchain", "debug") if name in self.given]
        for name in idle:
            text = "it has no effect, because the image and its plan are given"
            raise UsageError(text, option=name, hint=suggest(**{name: None}))
        return Made(_file("elf", self.given["elf"]), _file("plan", self.given["plan"]))

    def inputs(self) -> Inputs:
        """A file or random values, not both."""
        given = self.given
        if "input" in given:
            for name in ("inputs", "seed"):
                if name in given:
                    text = "the input comes from a file, so that there are no random ones"
                    raise UsageError(text, option=name, hint=suggest(**{name: None}))
            return Inputs(_file("input", given["input"]))
        return Inputs(None, self.get("inputs", 0), self.get("seed", 0))

    def data(self) -> Data | None:
        """A data set; UsageError for what has no effect on one, or without one."""
        given = self.given
        if "data" not in given:
            for option in DATA:  # random inputs follow one another, too
                if given.get(option.name) and option.name != "sequence":
                    text = "it has no effect without a data set"
                    raise UsageError(text, option=option.name, hint=suggest(**{option.name: None}))
            return None
        for name in ("input", "inputs", "tensors"):
            if given.get(name):
                text = "it has no effect on a data set"
                raise UsageError(text, option=name, hint=suggest(**{name: None}))
        alone = self.get("reference_only", False)
        for name in ("through_firmware", "elf", "sanitize", "flashed", "tool", "wire"):
            if alone and given.get(name):
                text = "it has no effect, because the reference alone is run"
                raise UsageError(text, option=name, hint=suggest(reference_only=None))
        if "seed" in given and "limit" not in given:
            text = "it has no effect without a limit: the whole data set is run"
            raise UsageError(text, option="seed", hint=suggest(seed=None))
        wanted = Wanted(
            _file("data", given["data"]),
            _file("labels", given["labels"]) if "labels" in given else None,
            self.get("limit", None),
            self.get("seed", 0),
            self.get("resize", Resize.CROP),
            self.get("normalise", None),
        )
        through = 0 if alone else self.get("through_firmware", None)
        return Data(wanted, through, self.get("scores", ""))


def _file(name: str, value: Any) -> File:
    """A file that no name can stand for."""
    found = to_file(value, ("",))
    assert isinstance(found, File), name
    return found


def _folder(name: str, value: str) -> str:
    if value and not Path(value).is_absolute():
        raise UsageError("a path in a request must be absolute", path=value, option=name)
    return value


def _target_check(values: Values) -> TargetCheck:
    boards = tuple(to_file(board, table.BOARD_SUFFIXES) for board in values.get("boards", ()))
    numbers = (values.get("cases", TargetCheck.cases), values.get("seed", TargetCheck.seed))
    return TargetCheck(values.need("plugin"), boards, values.get("toolchain", ""), *numbers)


def _zoo(values: Values) -> Zoo:
    model = values.get("model", "")
    if not isinstance(model, str):
        raise UsageError("it must be the name of a network", option="model")
    return Zoo(model)


def _validate(values: Values) -> Validate:
    data = values.data()
    return Validate(
        *values.planning(),
        made=values.made(),
        inputs=Inputs() if data else values.inputs(),
        tensors=values.get("tensors", False),
        reference=values.get("reference", Reference.AUTO),
        sanitize=values.get("sanitize", False),
        desk=values.desk(),
        data=data,
        sequence=values.get("sequence", 0),
    )


def _analyze(values: Values) -> Analyze | AnalyzeNetwork:
    """Of boards, or of a file that is counted without one."""
    model = values.model()
    boards = tuple(to_file(board, table.BOARD_SUFFIXES) for board in values.get("boards", ()))
    name = model.path.lower() if isinstance(model, File) else ""
    if name.endswith(NETWORKS) and not (boards and name.endswith(".onnx")):
        assert isinstance(model, File)
        if boards:
            raise UsageError("no board runs Darknet files", path=model.path, hint=suggest(boards=None))
        for named in ("cmsis_nn", "requantise", "threads", "weights_in", "arena_in"):
            if named in values.given:
                raise table.without_board(named)
        return AnalyzeNetwork(model, network_options(values.options))
    cmsis_nn = _folder("cmsis_nn", values.get("cmsis_nn", ""))
    for option in table.of("analyze", Group.COUNTING):
        if option.name in values.options:
            text = "it is for ONNX and Darknet files that are counted without a board"
            raise UsageError(text, option=option.name, hint=suggest(**{option.name: None}))
    threads, memory = values.get("threads", None), values.get("weights_in", None)
    requantise = values.get("requantise", Requantise.EXACT)
    options, arena_in = plan_options(values.options), values.get("arena_in", None)
    return Analyze(model, boards, cmsis_nn, threads, memory, requantise, options, arena_in)


def _debug(values: Values) -> Debug:
    """What is built for it is built for a debugger."""
    model, target, options, lock = values.planning()
    target, port, made = replace(target, debug=True), values.get("port", 3333), values.made()
    if made is not None and made.elf.data is not None:
        raise UsageError("an image for a debugger has to be a file, not bytes", option="elf")
    return Debug(model, target, options, lock, made, values.inputs(), port)


def _describe(values: Values) -> Describe:
    model, name = values.model() if "model" in values.given else None, values.get("name", "")
    if name and model is None:
        text = "it has no effect without a model"
        raise UsageError(text, option="name", hint=suggest(name=None))
    flashing = values.flashing()
    return Describe(values.target(), model, name, flashing)


_KINDS: dict[str, Callable[[Values], Request]] = {
    "ops": lambda values: Ops(values.model() if "model" in values.given else None),
    "boards": lambda values: Boards(),
    "target": _target_check,
    "zoo": _zoo,
    "plan": lambda values: Plan(*values.planning(), compare=values.get("compare", False)),
    "trace": lambda values: Trace(*values.planning()),
    "front": lambda values: Front(*values.planning(), peers=values.get("peers", False)),
    "report": lambda values: Report(*values.planning(), peers=values.get("peers", False)),
    "analyze": _analyze,
    "emit": lambda values: Emit(*values.planning(), name=values.get("name", "")),
    "describe": _describe,
    "build": lambda values: Build(
        *values.planning(), name=values.get("name", ""), flashing=values.flashing()
    ),
    "bundle": lambda values: Bundle(*values.planning(), name=values.get("name", "")),
    "sizes": lambda values: Sizes(
        to_file(values.need("board"), table.BOARD_SUFFIXES),
        _file("elf", values.need("elf")),
        values.flashing(),
        _file("map", values.given["map"]) if "map" in values.given else None,
    ),
    "validate": _validate,
    "profile": lambda values: Profile(
        *values.planning(),
        made=values.made(),
        inputs=values.inputs(),
        desk=values.desk(),
        reference=values.get("reference", Reference.AUTO),
    ),
    "flash": lambda values: Flash(*values.planning(), made=values.made(), tool=values.get("tool", "")),
    "debug": _debug,
    "arena": lambda values: Arena(
        _file("file", values.need("file")), values.get("capacity", None), values.get("budget", None)
    ),
    "tflm": lambda values: Tflm(values.model()),
}
KINDS = tuple(_KINDS)
