"""The options, once: the command line, SCons and the reference page are made from this table.

A leaf: the standard library only. Values are parsed here as well, from a request's plain values or from
text, so that every front refuses the same mistakes in the same words.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from buildtool.errors import UsageError, did_you_mean, suggest
from buildtool.modes import Counted, Image, InPlace, Objective, Order, Reference, Strategy, WeightsIn

MOST_PIXELS = 64  # of a hand-off
WHOLE_ROW = 1 << 16  # pixels: more than any row has
MOST_INPUTS = 1000
MOST_SEED = (1 << 31) - 1
MOST_SIDE = 65536  # rows or columns of an image
MOST_BATCH = 65536
MOST_CAPACITY = 1 << 50  # bytes
MOST_NODES = 1 << 40
MODEL_SUFFIXES = (".tflite", ".onnx", ".cfg")
BOARD_SUFFIXES = (".toml",)
_UNITS = {"": 1, "K": 1024, "M": 1024 * 1024}

Parser = Callable[[str, object], Any]


class Group(enum.StrEnum):
    """What an option is about; its title in the help."""

    PLANNING = "planning"
    COUNTING = "ONNX and Darknet files"
    TARGET = "target"
    INPUT = "input"
    BUILT = "image of a build"
    REPORT = "report"
    OTHER = "other"


# In a request the options of these groups are under "options", all others are keys of the request.
NESTED = (Group.PLANNING, Group.COUNTING)


@dataclass(frozen=True)
class Option:
    """One option.

    `name` as in a request; `sentence` says what it does; `parse` gives its value or raises UsageError;
    `requests`: the kinds that it changes, all others refuse it; `default` in words ("": there is none);
    `values`: all that a mode may say; `strategies`: those that heed it; `flag`: it takes no value;
    `number`: it is a whole number; `many`: it may be given several times; `suffixes`: what the names of
    files end in (None: it names no file); `folder`: it names a folder; `spelt`: its name on the command
    line, where that is another one.
    """

    name: str
    metavar: str
    sentence: str
    parse: Parser
    requests: tuple[str, ...]
    group: Group
    default: str = ""
    values: tuple[str, ...] = ()
    strategies: tuple[Strategy, ...] = tuple(Strategy)
    flag: bool = False
    number: bool = False
    many: bool = False
    suffixes: tuple[str, ...] | None = None
    folder: bool = False
    spelt: str = ""

    @property
    def help(self) -> str:
        """The sentence and the default."""
        return f"{self.sentence} (default: {self.default})" if self.default else self.sentence

    @property
    def flagged(self) -> str:
        """As on the command line: --max-f."""
        return "--" + (self.spelt or self.name).replace("_", "-")


# ---- parsers: (name, a plain value or text) -> value -----------------------------------------------


def refuse(name: str, value: object, wanted: str) -> UsageError:
    """The error for a value that is not what an option takes."""
    return UsageError(f"{value!r} is not {wanted}", option=name)


def text(name: str, value: object) -> str:
    """Any text."""
    if not isinstance(value, str):
        raise refuse(name, value, "text")
    return value


def flag(name: str, value: object) -> bool:
    """True or false."""
    if not isinstance(value, bool):
        raise refuse(name, value, "true or false")
    return value


def mode(modes: type[enum.StrEnum]) -> Parser:
    """One of an enumeration's values."""

    def parse(name: str, value: object) -> enum.StrEnum:
        known = [str(member) for member in modes]
        if not isinstance(value, str) or value not in known:
            error = refuse(name, value, "one of " + ", ".join(known))
            hint = did_you_mean(str(value), known)
            raise UsageError(error.text, option=name, hint=hint if hint.startswith("did") else "")
        return modes(value)

    return parse


def whole(least: int, most: int) -> Parser:
    """A whole number from `least` to `most`."""
    wanted = f"a whole number from {least} to {most}"
    if least == 1:
        wanted = f"a whole number above 0, up to {most}"

    def parse(name: str, value: object) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            raise refuse(name, value, wanted)
        return value

    return parse


def size(name: str, value: object) -> int:
    """A number of bytes above 0, or text such as "64K" or "1M"."""
    words = str(value).strip().upper()
    unit = words[-1:] if words[-1:] in _UNITS else ""
    digits = words.removesuffix(unit)
    good = isinstance(value, int | str) and not isinstance(value, bool)
    if not good or not (digits.isascii() and digits.isdecimal()) or int(digits) == 0:
        raise refuse(name, value, "a number of bytes, such as 65536, 64K or 1M")
    return int(digits) * _UNITS[unit]


def limit(name: str, value: object) -> float:
    """A number above 0."""
    try:
        number = float(str(value))
    except ValueError:
        number = math.nan
    if not isinstance(value, int | float | str) or isinstance(value, bool) or not number > 0:
        raise refuse(name, value, "a number above 0, such as 1.1")
    return number


def work(name: str, value: object) -> float:
    """A limit on F, 1 or more."""
    number = limit(name, value)
    if number < 1:
        what = f"{value!r} is below 1, and no plan does less than the network's own work"
        raise UsageError(what, option=name, hint="1 allows no repeated work, 1.1 a tenth more")
    return number


def pixels(name: str, value: object) -> int:
    """Pixels of a hand-off, or "row"."""
    if value == "row":
        return WHOLE_ROW
    number = _integer(value)
    if number is None or not (1 <= number <= MOST_PIXELS or number == WHOLE_ROW):
        raise refuse(name, value, f"a number of pixels from 1 to {MOST_PIXELS}, or row")
    return number


def sides(name: str, value: object) -> tuple[int, int]:
    """Rows and columns, from text such as "544" or "480x640"."""
    words = str(value).lower().split("x")
    good = len(words) <= 2 and all(w.isascii() and w.isdigit() and len(w) < 6 for w in words)
    found = [int(w) for w in words] if good and isinstance(value, int | str) else [0]
    if isinstance(value, bool) or not all(1 <= side <= MOST_SIDE for side in found):
        raise refuse(name, value, "rows and columns, such as 480x640, or one number for both")
    return found[0], found[-1]


def identifier(name: str, value: object) -> str:
    """A C identifier in lower case."""
    words = text(name, value)
    if not (words.isascii() and words.isidentifier() and words[0].islower() and words.lower() == words):
        raise refuse(name, value, "a C identifier in lower case")
    return words


def listed(one: Parser) -> Parser:
    """A list, each of whose items `one` parses."""

    def parse(name: str, value: object) -> tuple[Any, ...]:
        if not isinstance(value, list | tuple):
            raise refuse(name, value, "a list")
        return tuple(one(name, item) for item in value)

    return parse


def location(name: str, value: object) -> str | dict[str, Any]:
    """What names a file, or a network or board: text, {"path", "sha256"} or {"name", "data"}."""
    if isinstance(value, dict):
        for wanted in ({"path": str, "sha256": str}, {"name": str, "data": bytes}):
            if value.keys() == wanted.keys() and all(isinstance(value[k], t) for k, t in wanted.items()):
                return value
    elif isinstance(value, str) and value:
        return value
    raise refuse(name, value, "a name, a path, or a file with its digest or its bytes")


def _integer(value: object) -> int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) < 20:
        return int(value)
    return None


# ---- the table ---------------------------------------------------------------------------------------

MADE = ("plan", "analyze", "emit", "build", "validate", "profile")  # kinds for which one plan is made
PLANNED = ("front", *MADE)
COMPILED = ("describe", "build", "validate", "profile")
RUN = ("validate", "profile")
LIMITED = (Strategy.BEST, Strategy.MSF_CNN, Strategy.XCORE_STRIPS)  # strategies that may repeat work


def _planning(name: str, metavar: str, sentence: str, parse: Parser, **more: Any) -> Option:
    return Option(name, metavar, sentence, parse, more.pop("requests", PLANNED), Group.PLANNING, **more)


def _mode(name: str, sentence: str, modes: type[enum.StrEnum], **more: Any) -> Option:
    return _planning(name, "MODE", sentence, mode(modes), values=tuple(map(str, modes)), **more)


OPTIONS: tuple[Option, ...] = (
    _mode(
        "strategy",
        "Who decides how the network runs: best (the best plan within the limits), layerwise (one operator "
        "after the other), msf-cnn or xcore-strips (as these systems plan).",
        Strategy,
        requests=MADE,
        default="best",
    ),
    _mode(
        "objective",
        "What to minimise: cost (the target's estimate) or ram (bytes of the arena).",
        Objective,
        requests=MADE,
        default="cost",
    ),
    _planning(
        "ram", "BYTES", "Upper limit for the arena, in bytes: 65536, 64K.", size, default="the board's memory"
    ),
    _planning(
        "max_f",
        "F",
        "Upper limit for the work, as a multiple of the network's own: 1.1 allows a tenth more.",
        work,
        default="none; 2 for the front and for objective ram",
        strategies=LIMITED,
    ),
    _planning("max_cost", "COST", "Upper limit for the estimated cost.", limit, default="none"),
    _planning(
        "max_flash",
        "BYTES",
        "Upper limit for the weight image, in bytes.",
        size,
        default="the board's memory",
    ),
    _mode(
        "in_place",
        "Which operators may write over their dying input: rows (those that work row by row), elementwise "
        "(those that work element by element) or none.",
        InPlace,
        default="rows",
    ),
    _mode(
        "image",
        "What happens to the network's input: overwritable (its memory is used again), resident (it is still "
        "there after the invoke) or stream (it is delivered row by row and is never whole in RAM).",
        Image,
        default="overwritable",
    ),
    _planning(
        "segments",
        "LIST",
        "The segments of xcore-strips: operators of the file and numbers of strips, such as 0-6x20,7-14x10.",
        text,
        requests=MADE,
        default="the best ones that are found",
        strategies=(Strategy.XCORE_STRIPS,),
    ),
    _mode(
        "order",
        "The order of the operators: given (as the file has them) or best (so that the least is alive, where "
        "that makes the better plan).",
        Order,
        default="given",
    ),
    _planning(
        "hand_off",
        "PIXELS",
        "The least number of pixels that go from operator to operator inside a group (more are tried, too), "
        "or row for whole rows only.",
        pixels,
        default="1",
        strategies=(Strategy.BEST,),
    ),
    Option(
        "weights",
        "MODE",
        "Where the weights are: flash (they are not counted as memory) or load (they are in memory from "
        "their first to their last reader).",
        mode(WeightsIn),
        ("analyze",),
        Group.COUNTING,
        default="flash",
        values=tuple(map(str, WeightsIn)),
    ),
    Option(
        "operators",
        "MODE",
        "Which operators are counted: separate (all that the file has) or fused (batch normalisation and "
        "activation are part of the operator before them).",
        mode(Counted),
        ("analyze",),
        Group.COUNTING,
        default="separate",
        values=tuple(map(str, Counted)),
    ),
    Option(
        "batch",
        "N",
        "The number of images that are computed at a time.",
        whole(1, MOST_BATCH),
        ("analyze",),
        Group.COUNTING,
        number=True,
        default="the file's; 1 for Darknet",
    ),
    Option(
        "size",
        "HxW",
        "Rows and columns of the image.",
        sides,
        ("analyze",),
        Group.COUNTING,
        default="the file's",
    ),
    Option(
        "toolchain",
        "NAME",
        "The compiler: clang or gcc.",
        text,
        COMPILED,
        Group.TARGET,
        default="the board's first",
    ),
    Option(
        "cmsis_nn",
        "PATH",
        "Cortex-M: a checkout of CMSIS-NN, whose kernels are used where they give the reference's bytes.",
        text,
        (*PLANNED, "describe"),
        Group.TARGET,
        default="none",
        folder=True,
    ),
    Option(
        "input",
        "FILE.npy",
        "One input to run on: quantised values, or floats.",
        location,
        RUN,
        Group.INPUT,
        default="random values",
        suffixes=("",),
    ),
    Option(
        "inputs",
        "N",
        "The number of random inputs.",
        whole(1, MOST_INPUTS),
        RUN,
        Group.INPUT,
        "1",
        number=True,
    ),
    Option(
        "seed", "S", "The seed of the random inputs.", whole(0, MOST_SEED), RUN, Group.INPUT, "0", number=True
    ),
    Option(
        "tensors",
        "",
        "Compares every tensor, not the outputs alone.",
        flag,
        ("validate",),
        Group.REPORT,
        flag=True,
    ),
    Option(
        "reference",
        "NAME",
        "What to compare with: numpy (buildtool's own executor) or litert (LiteRT's reference kernels).",
        mode(Reference),
        ("validate",),
        Group.REPORT,
        default="numpy",
        values=tuple(map(str, Reference)),
    ),
    Option(
        "sanitize",
        "",
        "Builds with checks of addresses and of undefined behaviour (host).",
        flag,
        ("validate",),
        Group.REPORT,
        flag=True,
    ),
    Option(
        "compare",
        "",
        "Shows what msf-cnn and xcore-strips reach on the same network.",
        flag,
        ("plan",),
        Group.REPORT,
        flag=True,
    ),
    Option(
        "peers",
        "",
        "Shows what msf-cnn and xcore-strips reach on the same network.",
        flag,
        ("front",),
        Group.REPORT,
        flag=True,
    ),
    Option(
        "name",
        "NAME",
        "The prefix of the network's C interface.",
        identifier,
        ("emit", "describe"),
        Group.OTHER,
        default="the model's own name",
    ),
    Option(
        "capacity",
        "BYTES",
        "Stops at any placement within so many bytes.",
        whole(1, MOST_CAPACITY),
        ("arena",),
        Group.OTHER,
        number=True,
        default="the lowest placement",
    ),
    Option(
        "budget",
        "NODES",
        "Upper limit for the nodes that the search visits.",
        whole(1, MOST_NODES),
        ("arena",),
        Group.OTHER,
        number=True,
        default="some seconds' worth",
    ),
    Option(
        "board",
        "BOARD",
        "A board of `buildtool boards`, or a .toml file that extends one.",
        location,
        ("plan", "front", "emit", "describe", "build", "sizes", "validate", "profile"),
        Group.TARGET,
        suffixes=BOARD_SUFFIXES,
    ),
    Option(
        "boards",
        "BOARD",
        "A board of `buildtool boards`, or a .toml file; it may be given several times.",
        listed(location),
        ("analyze",),
        Group.TARGET,
        default="every board",
        many=True,
        suffixes=BOARD_SUFFIXES,
        spelt="board",
    ),
    Option(
        "model",
        "MODEL",
        "A .tflite or .onnx file, or a network of `buildtool zoo`.",
        location,
        (*PLANNED, "describe", "zoo", "tflm"),
        Group.OTHER,
        suffixes=MODEL_SUFFIXES,
    ),
    Option(
        "elf",
        "ELF",
        "A linked image: the one to look at, or to run in place of one that is built for it.",
        location,
        ("sizes", *RUN),
        Group.BUILT,
        suffixes=("",),
    ),
    Option(
        "plan",
        "FILE",
        "The plan that the image was built from: the emitted NAME.plan.",
        location,
        RUN,
        Group.BUILT,
        suffixes=("",),
    ),
    Option(
        "file",
        "FILE.csv",
        "An arena problem: a table of buffers with the columns id, lower, upper and size, and where they are "
        "needed alignment and offset.",
        location,
        ("arena",),
        Group.OTHER,
        suffixes=("",),
    ),
)

BY_NAME = {option.name: option for option in OPTIONS}


def of(kind: str, *groups: Group) -> tuple[Option, ...]:
    """The options of a kind of request; of some groups only."""
    return tuple(o for o in OPTIONS if kind in o.requests and (not groups or o.group in groups))


def parse(name: str, value: object) -> Any:
    """The value of the option `name`; UsageError for one that it does not take."""
    return BY_NAME[name].parse(name, value)


def from_text(option: Option, text: object) -> object:
    """A value that came as text, as a request has it; what is no number is left for `parse` to refuse."""
    good = isinstance(text, str) and text.isascii() and text.isdecimal() and len(text) < 20
    return int(str(text)) if option.number and good else text


def planning(values: Mapping[str, Any]) -> dict[str, Any]:
    """Planning options, each parsed; UsageError for those that have no effect together."""
    known = [option.name for option in OPTIONS if option.group is Group.PLANNING]
    for name in values:
        if name not in known:
            raise refuse_unknown("plan", name, known, "the options of a request")
    found = {name: parse(name, value) for name, value in values.items()}
    strategy = found.get("strategy", Strategy.BEST)
    for name in found:
        others = BY_NAME[name].strategies
        if strategy not in others:
            helps = [suggest(**{name: None}), suggest(strategy=str(others[0]))]
            raise UsageError(f"it has no effect with strategy {strategy}", option=name, hint=helps)
    return found


def refuse_unknown(kind: str, name: str, known: Iterable[str], where: str = "") -> UsageError:
    """The error for a key that a kind of request does not take."""
    names = list(known)
    if name in BY_NAME and name not in names:
        return UsageError(
            f"it has no effect on a request of kind '{kind}'", option=name, hint=suggest(**{name: None})
        )
    what = f"unknown key '{name}' in {where or 'a request'} of kind '{kind}'"
    return UsageError(what, hint=did_you_mean(name, names))


def without_board(name: str) -> UsageError:
    """The error for an option that means something for a board only."""
    text = "it has no effect on an ONNX or Darknet file that is counted without a board"
    return UsageError(text, option=name, hint=suggest(**{name: None}))


def is_absolute(path: str) -> bool:
    """Whether a path depends on no working folder."""
    return PurePath(path).is_absolute()
