"""The parts of requests: the type of all requests, parts that several kinds have, and how values are read."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, dataclass_transform

from buildtool import options as table
from buildtool.base.errors import UsageError, suggest
from buildtool.base.modes import Format, Image, On
from buildtool.options import NESTED, Group, Option
from buildtool.options.table import DATA

if TYPE_CHECKING:  # a build system that needs only the options of a kind reads no request
    from buildtool.base.files import Cut, File, Named, NetworkSpec
    from buildtool.options.values import CheckOptions, DataOptions, Lock, PlanOptions, TargetChoice

# Names of options that several kinds take.
PLANNING = tuple(option.name for option in table.OPTIONS if option.group is Group.PLANNING)
COUNTING = tuple(option.name for option in table.OPTIONS if option.group is Group.COUNTING)
TARGET = ("cmsis_nn", "requantise", "threads", "weights_in", "arena_in", "kernels_in")
COMPILED = ("toolchain", "debug")
FIELD = tuple(option.name for option in table.OPTIONS if option.group is Group.FIELD)
LINK_OPTIONS = ("on", "wire")
FLASHED = ("formats", "sign", "image_version")
INPUT = ("input", "inputs", "seed")


class Needs(enum.Enum):
    """What an answer depends on, besides the files that the request names."""

    NOTHING = enum.auto()  # a daemon answers and keeps the answer
    COMPILERS = enum.auto()  # the compilers of the caller's environment: a daemon answers and keeps nothing
    PROGRAMS = enum.auto()  # other programs are started: only in the caller's own processes


TYPES: dict[str, list[type[Request]]] = {}  # kind -> its types, as a kind may have several handlers


@dataclass_transform(kw_only_default=True, frozen_default=True)
class Request:
    """A request; each class describes one kind.

    It works like a dataclass. A real dataclass takes too long to create for a build system that only lists
    options. A field with the name of an option is that option. The class variables are:

    - `kind`: the name of the kind.
    - `takes`: the names of all options that requests of the kind may have; others are refused.
    - `handler`: the function that answers, as module:function below buildtool. It takes the request and a
      session, and its return type is the type of the answer ("": only the command answers).
    - `needs`: what the answer depends on.
    - `prepared`: whether a daemon answers the request again when its files are saved.
    - `answers`: the name of the answer's type, where there is no handler.
    - `names`: the names of all fields.
    """

    kind: ClassVar[str]
    takes: ClassVar[tuple[str, ...]] = ()
    handler: ClassVar[str] = ""
    needs: ClassVar[Needs] = Needs.NOTHING
    prepared: ClassVar[bool] = False
    answers: ClassVar[str] = ""
    names: ClassVar[tuple[str, ...]] = ()  # the names of all fields

    def __init_subclass__(cls, **about: Any) -> None:
        """Registers the class. `about` has its values for the class variables above."""
        cls.kind = cls.__name__.lower()
        for name, value in about.items():
            setattr(cls, name, value)
        own = cls.__annotations__
        cls.names = tuple(dict.fromkeys((*cls.names, *own)))
        cls.takes = (*cls.takes, *(name for name in own if name in table.BY_NAME))
        if cls.handler or cls.answers:
            TYPES.setdefault(cls.kind, []).append(cls)

    def __init__(self, **fields: Any) -> None:
        for name in self.names:
            vars(self)[name] = fields.pop(name) if name in fields else getattr(type(self), name)
        assert not fields, fields

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((self.kind, *vars(self).values()))

    @classmethod
    def read(cls, values: Values) -> Request:
        """Returns the request that the values describe. An error is about the first field that is wrong."""
        return cls(**{name: values.field(cls, name) for name in cls.names})

    @classmethod
    def accepted_options(cls, *groups: Group) -> tuple[Option, ...]:
        """Returns the options that this kind takes, of all groups or only of `groups`."""
        return tuple(o for o in table.OPTIONS if o.name in cls.takes and (not groups or o.group in groups))


class Planning(Request, takes=("board", *TARGET, *PLANNING, "plan")):
    """The fields of all requests that need a plan of a network for a board.

    `lock` is a plan from a file, to be used instead of a new one.
    """

    target: TargetChoice
    lock: Lock | None = None
    model: NetworkSpec
    options: PlanOptions


@dataclass(frozen=True)
class Inputs:
    """The inputs of a network: a .npy file, or `count` sets of random values that are drawn from `seed`.

    If `count` is 0, there is one set, or several sets if the network has state.
    """

    file: File | None = None
    count: int = 0
    seed: int = 0


RANDOM = Inputs()


class Flashing(NamedTuple):
    """The files for flash: formats, the key that signs them for MCUboot, and the version in its header."""

    formats: tuple[Format, ...] = (Format.BIN,)
    sign: File | None = None
    version: str = ""


AS_BIN = Flashing()


class GivenBuild(NamedTuple):
    """The result of a build: the linked firmware image, and the plan that it was emitted from."""

    elf: File
    plan: File


class AttachedRun(NamedTuple):
    """A run over a link: on an attached board, or over an emulator's UART.

    - `port`: the port of the link ("": the only one).
    - `is_emulated`: whether it runs in an emulator.
    - `is_flashed`: whether the firmware image is on the board already.
    - `tool`: the program that flashes the board ("": the first that is installed).
    """

    port: str = ""
    is_emulated: bool = False
    is_flashed: bool = False
    tool: str = ""


class Data(NamedTuple):
    """A data set to run on.

    `through` is the number of its inputs that the firmware runs on (None: an estimate decides). `scores` is
    the name of the output whose largest value gives the class ("": the only output that can).
    """

    wanted: DataOptions
    through: int | None = None
    scores: str = ""


class Values:
    """The values of a request, parsed: `given` has its keys, and `options` those under `options`."""

    def __init__(self, type_: type[Request], request: Mapping[str, object]) -> None:
        self.kind = type_.kind
        keys = [option.name for option in type_.accepted_options() if option.group not in NESTED]
        nested = [option.name for option in type_.accepted_options(*NESTED)]
        outer = {name: value for name, value in request.items() if name not in ("kind", "options")}
        self.given = self._parse(outer, keys, nested)
        inner = {} if request.get("options") is None else request["options"]
        if not isinstance(inner, Mapping):
            raise UsageError("'options' must be a mapping of options to values")
        if not nested and inner:
            raise table.unknown_key_error(type_.kind, str(next(iter(inner))), keys, "the options")
        self.options = self._parse(inner, nested, keys, "the options of a request")

    def _parse(
        self, values: Mapping[str, object], keys: list[str], elsewhere: list[str], where: str = ""
    ) -> dict[str, Any]:
        """Returns the parsed values of the options in `keys`.

        The error for an option in `elsewhere` says where in the request it belongs. `where` names the mapping
        in messages ("": the request itself).
        """
        parsed = {}
        for name, value in values.items():
            if name in elsewhere:
                place = "inside 'options'" if not where else "beside 'options'"
                raise UsageError(f"'{name}' belongs {place} in a request of kind '{self.kind}'")
            if name not in keys:
                names = keys if where or not elsewhere else [*keys, "options"]
                raise table.unknown_key_error(self.kind, str(name), names, where)
            if value is not None and (result := table.parse(name, value)) is not False:
                parsed[name] = result  # a flag that is off counts as not given
        return parsed

    def need(self, name: str) -> Any:
        """Returns the value of a key that the kind needs. Raises UsageError if the request lacks it."""
        if name not in self.given:
            raise UsageError(f"a request of kind '{self.kind}' needs '{name}'", option=name)
        return self.given[name]

    def if_given(self, *names: str) -> dict[str, Any]:
        """Returns the values of those of `names` that the request has. The others keep their defaults."""
        return {name: self.given[name] for name in names if name in self.given}

    def field(self, type_: type[Request], name: str) -> Any:
        """Returns the value of a field of the request type `type_`: one option, or a part made of several."""
        if name in _PARTS:
            return _PARTS[name](self)
        value = self.value(name, getattr(type_, name, MISSING))
        return self._part_of(value) if name == "model" else value

    def _part_of(self, network: Named) -> Named | Cut:
        """Returns the network, or the part of it that is planned.

        If the request has `outputs`, the part ends at these tensors or layers. If the image arrives row by
        row, a batch is reduced to a single image.
        """
        from buildtool.base.files import Cut

        outputs, single = self.options.get("outputs") or (), self.options.get("image") == Image.STREAM
        return Cut(network, outputs, single) if outputs or single else network

    def value(self, name: str, default: Any = MISSING) -> Any:
        """Returns the value of an option, as files if it names files.

        Raises UsageError if the request does not have the option and there is no default.
        """
        from buildtool.base.files import to_file

        option = table.BY_NAME[name]
        if default is not MISSING and name not in self.given:
            return default
        value = self.need(name)
        if option.folder and value and not Path(value).is_absolute():
            raise UsageError("a path in a request must be absolute", path=value, option=name)
        suffixes = option.suffixes
        if suffixes is None:
            return value
        return tuple(to_file(one, suffixes) for one in value) if option.many else to_file(value, suffixes)

    def target(self) -> TargetChoice:
        """Returns the board and its settings. For `analyze`, which has its own list of boards, the board is
        "".
        """
        from buildtool.options.values import TargetChoice

        return TargetChoice(
            board="" if self.kind == "analyze" else self.value("board"),
            cmsis_nn=self.value("cmsis_nn", ""),
            debug=self.kind == "debug" or self.given.get("debug", False),
            wire=self.wire(),
            **self.if_given("toolchain", "threads", "weights_in", "requantise", "arena_in", "kernels_in"),
        )

    def wire(self) -> str:
        """Returns the link over which test firmware answers.

        It is "" if the firmware answers by files in an emulator, and ANY_WIRE for the board's own link.
        """
        from buildtool.options.values import ANY_WIRE

        kind, _ = self.given.get("wire", ("", ""))
        on_board = self.kind == "flash" or self.given.get("on", On.EMULATOR) == On.BOARD
        return kind or (ANY_WIRE if on_board else "")

    def attached(self) -> AttachedRun | None:
        """Returns how a run connects to a board or an emulator over a link; None if it has no link.

        Raises UsageError if the request has an option for boards that has no effect on the run.
        """
        kind, port = self.given.get("wire", ("", ""))
        if self.given.get("on", On.EMULATOR) == On.BOARD:
            flashed = self.given.get("flashed", False)
            if flashed and self.given.get("tensors", False):
                text = "comparing every tensor needs another firmware image, which has to be flashed"
                raise table.no_effect_error("flashed", text)
            return AttachedRun(port, False, flashed, self.given.get("tool", ""))
        for name in ("flashed", "tool"):
            if self.given.get(name):
                raise UsageError("it has no effect in an emulator", option=name, hint=suggest(on="board"))
        if port or kind == "rtt":  # semihosting is QEMU's own
            text = "an emulator has its own UART, and no port" if port else "no emulator has RTT"
            raise UsageError(text, option="wire", hint=[suggest(on="board"), suggest(wire="serial")])
        return AttachedRun(is_emulated=True) if kind else None

    def planning(self) -> PlanOptions:
        """Returns the options for planning. Raises UsageError for an option without effect."""
        from buildtool.options.values import PlanOptions

        for name in COUNTING:
            if name in self.options:
                raise table.no_effect_error(
                    name, "it is only for ONNX and Darknet files, which need no board"
                )
        options = table.check_planning(self.options)
        options.pop("outputs", None)  # they say which network is planned, see `field`
        return PlanOptions(**options)

    def flashing(self) -> Flashing:
        """Returns the formats and the signature of files for flash.

        Raises UsageError for a version without a signature.
        """
        sign = self.value("sign", None)
        if "image_version" in self.given and sign is None:
            raise table.no_effect_error("image_version", "it has no effect without 'sign'")
        formats = tuple(dict.fromkeys(self.given.get("formats", ()))) or (Format.BIN,)
        return Flashing(formats, sign, self.given.get("image_version", "0.0.0" if sign else ""))

    def lock(self) -> Lock | None:
        """Returns the plan from a file; None if there is none, or if it belongs to a given firmware image.

        Raises UsageError if the request has an option that would decide about a new plan.
        """
        from buildtool.options.values import Lock

        if "plan" not in self.given or "elf" in self.given:
            return None
        table.refuse_beside_plan(self.options)
        return Lock(self.value("plan"), self.options.get("image"))

    def checks(self) -> CheckOptions:
        """Returns what the network checks in the field. Raises UsageError if there are two golden inputs."""
        from buildtool.options.values import CheckOptions

        if "self_test" in self.given and "golden" in self.given:
            raise table.no_effect_error(
                "self_test", "the golden input comes from a file, so it needs no seed"
            )
        seed, golden = self.given.get("self_test"), self.value("golden", None)
        return CheckOptions(**self.if_given("guards"), seed=seed, golden=golden)

    def made(self) -> GivenBuild | None:
        """Returns the given firmware image and its plan; None if no firmware image is given.

        Raises UsageError if the request has an option that would decide how firmware is built.
        """
        if "elf" not in self.given:
            return None
        if "plan" not in self.given:
            raise UsageError(
                "'elf' needs 'plan': a firmware image needs the plan that it was built from",
                option="elf",
                hint="the .plan is emitted with the network's sources",
            )
        # comparing every tensor compiles another firmware image
        compiled = () if self.given.get("tensors", False) else ("toolchain", "debug")
        deciding = [name for name in self.options if name != "outputs"]
        for name in (*deciding, *(one for one in ("sanitize", *compiled) if one in self.given)):
            raise table.no_effect_error(
                name, "it has no effect, because the firmware image and its plan are given"
            )
        return GivenBuild(self.value("elf"), self.value("plan"))

    def inputs(self) -> Inputs:
        """Returns the inputs: a file, or random values. Raises UsageError if the request asks for both."""
        given = self.given
        if "input" in given:
            for name in ("inputs", "seed"):
                if name in given:
                    raise table.no_effect_error(
                        name, "the input comes from a file, so there are no random inputs"
                    )
            return Inputs(self.value("input"))
        return Inputs(None, self.given.get("inputs", 0), self.given.get("seed", 0))

    def data(self) -> Data | None:
        """Returns the data set; None if there is none. Raises UsageError for an option without effect."""
        given = self.given
        if "data" not in given:
            for name in DATA:  # `sequence` applies to random inputs, too
                if given.get(name) and name != "sequence":
                    raise table.no_effect_error(name, "it has no effect without a data set")
            return None
        for name in ("input", "inputs", "tensors"):
            if given.get(name):
                raise table.no_effect_error(name, "it has no effect on a data set")
        reference_only = self.given.get("reference_only", False)
        for name in ("through_firmware", "elf", "sanitize", "flashed", "tool", "wire"):
            if reference_only and given.get(name):
                text = "it has no effect, because only the reference is run"
                raise UsageError(text, option=name, hint=suggest(reference_only=None))
        if "seed" in given and "limit" not in given:
            raise table.no_effect_error("seed", "it has no effect without a limit: the whole data set is run")
        from buildtool.options.values import DataOptions

        settings = self.if_given("limit", "seed", "resize", "normalise")
        wanted = DataOptions(self.value("data"), self.value("labels", None), **settings)
        through = 0 if reference_only else self.given.get("through_firmware", None)
        return Data(wanted, through, self.given.get("scores", ""))


# The fields of requests that consist of several options.
_PARTS: dict[str, Callable[[Values], Any]] = {"options": Values.planning}
_PARTS |= {
    name: getattr(Values, name)
    for name in ("target", "lock", "flashing", "checks", "made", "inputs", "attached")
}
