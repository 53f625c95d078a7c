"""Parsers: each takes an option's name and a plain value or text. They raise UsageError for a wrong value."""

from __future__ import annotations

import contextlib
import enum
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from buildtool.base.errors import UsageError, did_you_mean, shown
from buildtool.base.sizes import parse_size

Parser = Callable[[str, object], Any]  # (an option's name, a plain value or text) -> its value; UsageError
MOST_BATCH = 65536
MOST_SAMPLES = 100_000_000  # inputs of a data set
WIRES = ("serial", "rtt", "semihosting")  # how results come back from a board
NETWORKS = ("vgg16", "resnet18")  # the networks that `split` builds and trains itself
_MOST_PIXELS = 64  # of a hand-off: the pixels that pass from one operator to the next at a time
_WHOLE_ROW = 1 << 16  # pixels: more than any row has
_MOST_SIDE = 65536  # rows or columns of an image
_MOST_BYTES = 1 << 50
_MOST_DIGITS = 19  # digits of a number in text; no size has this many
_MOST_CHANNELS = 4
_MOST_FACTOR = 64
_MOST_WIDTH = 16.0
_RULES = "auto, bytes, unit, signed, or MEANS/DEVIATIONS such as 0.485,0.456,0.406/0.229,0.224,0.225"


def refuse(name: str, value: object, expected: str) -> UsageError:
    """Returns the error for a value that an option does not take. `expected` describes what it takes."""
    return UsageError(f"{shown(value)} is not {expected}", option=name)


def text(name: str, value: object) -> str:
    """Returns the value unchanged if it is text."""
    if not isinstance(value, str):
        raise refuse(name, value, "text")
    return value


def flag(name: str, value: object) -> bool:
    """Returns the value unchanged if it is True or False."""
    if not isinstance(value, bool):
        raise refuse(name, value, "true or false")
    return value


def mode(modes: type[enum.StrEnum]) -> Parser:
    """Returns a parser for the values of the enumeration `modes`."""

    def parse(name: str, value: object) -> enum.StrEnum:
        words = [str(member) for member in modes]
        if not isinstance(value, str) or value not in words:
            error = refuse(name, value, "one of " + ", ".join(words))
            hint = did_you_mean(value if isinstance(value, str) else "", words)
            raise UsageError(error.text, option=name, hint=hint if hint.startswith("did") else "")
        return modes(value)

    return parse


def whole(least: int, most: int) -> Parser:
    """Returns a parser for a whole number from `least` to `most`."""
    range_text = f"a whole number from {least} to {most}"
    if least == 1:
        range_text = f"a whole number above 0, up to {most}"

    def parse(name: str, value: object) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            raise refuse(name, value, range_text)
        return value

    return parse


def samples(name: str, value: object) -> int:
    """Returns a number of inputs. "all" gives MOST_SAMPLES, which is more than any data set has."""
    if value == "all":
        return MOST_SAMPLES
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= MOST_SAMPLES:
        raise refuse(name, value, "a number of inputs above 0, or all")
    return value


def size(name: str, value: object) -> int:
    """Parses a number of bytes above 0, or text such as "64K", "64 KiB" or "1M". Returns bytes."""
    number = parse_size(value)
    if not number:
        raise refuse(name, value, "a number of bytes, such as 65536, 64K or 1M")
    if number > _MOST_BYTES:
        raise refuse(name, value, f"a number of bytes up to {_MOST_BYTES}")
    return number


def _real(*tests: tuple[str, Callable[[float], bool]]) -> Parser:
    """Returns a parser for a number, or its text, that passes all tests.

    A test is a pair of words that describe it and a function. The function must return False for NaN.
    """

    def parse(name: str, value: object) -> float:
        number = math.nan
        if isinstance(value, int | float | str) and not isinstance(value, bool):
            with contextlib.suppress(ValueError, OverflowError):
                number = float(value)
        for words, test in tests:
            if not test(number):
                raise refuse(name, value, words)
        return number

    return parse


_ABOVE_0 = ("a number above 0, such as 1.1", lambda number: 0 < number < math.inf)
_SHARE = ("a share from 0 to below 1, such as 0.1", lambda number: 0 <= number < 1)
limit = _real(_ABOVE_0)
share = _real(_SHARE)
positive_share = _real(_SHARE, ("a share above 0 and below 1, such as 0.1", lambda number: number > 0))
points = _real(("a number of points from 0 to 100, such as 0.5", lambda number: 0 <= number <= 100))
width = _real(
    _ABOVE_0,
    (f"a multiple of the published channels up to {_MOST_WIDTH:g}", lambda number: number <= _MOST_WIDTH),
)


def work(name: str, value: object) -> float:
    """Returns a limit on the work factor F (a plan's work over the network's own work), a number above 0.

    A limit below 1 is allowed here; `refuse_less_work` refuses it where no plan can keep it.
    """
    number: float = limit(name, value)
    return number


def refuse_less_work(name: str, number: float) -> None:
    """Raises UsageError if `number`, a limit on the work factor F, is below 1.

    Only a network on a moving window can keep such a limit, because it keeps results between invokes.
    """
    if number < 1:
        what = f"{shown(number)} is below 1, and no plan does less than the network's own work"
        hint = "1 allows no repeated work, 1.1 allows a tenth more; with hop, 0.5 allows half of a window's"
        raise UsageError(what, option=name, hint=hint)


def period(name: str, value: object) -> float:
    """Returns milliseconds from text such as "20ms" or "0.5s", or from a number of milliseconds."""
    words, factor = value, 1.0
    if isinstance(value, str):
        for unit, times in (("ms", 1.0), ("us", 0.001), ("s", 1000.0)):
            if value.strip().endswith(unit):
                words, factor = value.strip().removesuffix(unit).strip(), times
                break
    try:
        number: float = limit(name, words)
    except UsageError:
        raise refuse(name, value, "a time above 0, such as 20ms or 0.5s") from None
    return number * factor


def pixels(name: str, value: object) -> int:
    """Returns the pixels of a hand-off: how many pass from one operator of a group to the next at a time.

    "row" gives _WHOLE_ROW, which stands for whole rows.
    """
    if value == "row":
        return _WHOLE_ROW
    number = _integer(value)
    if number is None or not (1 <= number <= _MOST_PIXELS or number == _WHOLE_ROW):
        raise refuse(name, value, f"a number of pixels from 1 to {_MOST_PIXELS}, or row")
    return number


def sides(name: str, value: object) -> tuple[int, int]:
    """Returns (rows, columns) from text such as "480x640", or "544" for both."""
    words = value.lower().split("x") if isinstance(value, str) else [value]
    numbers = [_integer(word) or 0 for word in words]
    if len(numbers) > 2 or not all(1 <= side <= _MOST_SIDE for side in numbers):
        raise refuse(name, value, "rows and columns, such as 480x640, or one number for both")
    return numbers[0], numbers[-1]


def factors(name: str, value: object) -> tuple[int, ...]:
    """Returns whole numbers above 1 in ascending order, from a list or from text with commas."""
    words: Any = value.split(",") if isinstance(value, str) else value
    numbers: tuple[int, ...] = ()
    if isinstance(words, list | tuple) and 0 < len(words) <= _MOST_FACTOR:
        numbers = tuple(_integer(word) or 0 for word in words)
    if (
        not numbers
        or min(numbers) < 2
        or max(numbers) > _MOST_FACTOR
        or list(numbers) != sorted(set(numbers))
    ):
        raise refuse(name, value, f"a list of rising numbers from 2 to {_MOST_FACTOR}, such as 2,4,6,8")
    return numbers


def identifier(name: str, value: object) -> str:
    """Returns the value unchanged if it is a C identifier in lower case."""
    words = text(name, value)
    if not (words.isascii() and words.isidentifier() and words[0].islower() and words.lower() == words):
        raise refuse(name, value, "a C identifier in lower case")
    return words


def version(name: str, value: object) -> str:
    """Returns the value unchanged if it is a version for MCUboot: MAJOR.MINOR[.REVISION][+BUILD].

    Major and minor number are below 256, the revision is below 65536, and the build number is of 32 bits.
    """
    words = text(name, value)
    match = re.fullmatch(r"(\d{1,3})\.(\d{1,3})(?:\.(\d{1,5}))?(?:\+(\d{1,10}))?", words, re.ASCII)
    limits = (0xFF, 0xFF, 0xFFFF, 0xFFFFFFFF)
    if match is None or any(int(n or 0) > most for n, most in zip(match.groups(), limits, strict=True)):
        raise refuse(name, value, "a version such as 1.2.3 or 1.2.3+4")
    return words


def wire(name: str, value: object) -> tuple[str, str]:
    """Returns (link, port) from text such as "serial:/dev/ttyACM0": the link to a board, and its port.

    An empty port stands for the only port that exists.
    """
    kind, _, port = text(name, value).partition(":")
    if kind not in WIRES or not port.isprintable():
        words = f"one of {', '.join(WIRES)}, also with a port, such as serial:/dev/ttyACM0"
        raise refuse(name, value, words)
    if port and kind == "semihosting":
        raise UsageError("semihosting goes through the debugger and has no port", option=name)
    return kind, port


def network(name: str, value: object) -> str:
    """Returns the value unchanged if it is a .keras file, or a network that `split` builds itself."""
    words = text(name, value)
    if words not in NETWORKS and not words.lower().endswith(".keras"):
        hint = f"a .keras file, which Keras 3 saves, or one of {', '.join(NETWORKS)}"
        raise UsageError(f"'{words}' is not a network that can be split", option=name, hint=hint)
    return words


def list_of(one: Parser) -> Parser:
    """Returns a parser for a list; `one` parses each item."""

    def parse(name: str, value: object) -> tuple[Any, ...]:
        if not isinstance(value, list | tuple):
            raise refuse(name, value, "a list")
        return tuple(one(name, item) for item in value)

    return parse


def names(name: str, value: object) -> tuple[str, ...]:
    """Returns different names, in their order, from a list or from text with commas."""
    items = value.split(",") if isinstance(value, str) else value
    if isinstance(items, list | tuple) and all(isinstance(item, str) for item in items):
        found = tuple(dict.fromkeys(item.strip() for item in items))
        if found and all(found):
            return found
    raise refuse(name, value, "a name, or several with commas between them")


def location(name: str, value: object) -> str | dict[str, Any]:
    """Returns the value unchanged if it names a file, a network or a board.

    It is text, or a mapping with the keys `path` and `sha256`, or with `name` and `data` (the file's bytes).
    """
    if isinstance(value, dict):
        for types in ({"path": str, "sha256": str}, {"name": str, "data": bytes}):
            if value.keys() == types.keys() and all(isinstance(value[k], t) for k, t in types.items()):
                return value
    elif isinstance(value, str) and value:
        return value
    raise refuse(name, value, "a name, a path, or a file with its digest or its bytes")


def _integer(value: object) -> int | None:
    """Returns a whole number from a number or its digits, or None for anything else."""
    if isinstance(value, int):
        return None if isinstance(value, bool) else value
    is_text = isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) <= _MOST_DIGITS
    return int(str(value)) if is_text else None


@dataclass(frozen=True)
class Normalise:
    """A rule for the real value of a pixel p from 0 to 255: (p / `divisor` - mean) / deviation.

    There is a mean and a deviation for each channel, or one of each for all. `name` is the rule's text.
    """

    name: str
    divisor: float
    means: tuple[float, ...] = (0.0,)
    deviations: tuple[float, ...] = (1.0,)

    @property
    def ends(self) -> tuple[float, float]:
        """The real values of pixels 0 and 255 in the first channel."""
        mean, deviation = self.means[0], self.deviations[0]
        return (0 - mean) / deviation, (255 / self.divisor - mean) / deviation


NAMED = {
    "bytes": Normalise("bytes", 1.0),  # 0 to 255
    "unit": Normalise("unit", 255.0),  # 0 to 1
    "signed": Normalise("signed", 127.5, (1.0,)),  # -1 to 1
}


def normalise(name: str, value: object) -> Normalise | None:
    """Returns the rule for the values of pixels that a name or MEANS/DEVIATIONS describes (None: `auto`)."""
    words = text(name, value)
    if words == "auto":
        return None
    if words in NAMED:
        return NAMED[words]
    halves: list[tuple[float, ...]] = []
    with contextlib.suppress(ValueError):
        halves = [tuple(map(float, half.split(","))) for half in words.split("/")]
    if not all(abs(number) < 1e6 for half in halves for number in half):  # false for NaN too
        halves = []
    if len(halves) != 2 or not all(halves) or len(halves[0]) != len(halves[1]):
        raise refuse(name, value, _RULES)
    means, deviations = halves
    if len(means) > _MOST_CHANNELS or min(deviations) <= 0:
        what = f"deviations must be above 0, and at most {_MOST_CHANNELS} means are possible"
        raise UsageError(what, option=name, hint=_RULES)
    return Normalise(words, 255.0, means, deviations)
