"""The exceptions of buildtool. Each says what went wrong, where, and what would help."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypedDict, cast

Value = str | int | float | bool | None
_MOST_SHOWN = 60  # characters of a wrong value in a message
Spelling = Callable[[str, Value], str]  # writes an option with its value, as one front spells it


class HintData(TypedDict):
    """A hint as plain values. `settings` gives options new values (None: leave the option out)."""

    text: str
    settings: dict[str, Value]


class ErrorData(TypedDict):
    """An error as plain values. Unknown text is "". Line and column count from 1; 0 means unknown."""

    code: str
    text: str
    path: str
    line: int
    column: int
    operator: str
    tensor: str
    option: str
    hints: list[HintData]


class Hint(NamedTuple):
    """A suggestion for the user: a text, or options (named as in requests) with new values (None: omit the
    option).
    """

    text: str = ""
    settings: tuple[tuple[str, Value], ...] = ()

    def spelled(self, spelling: Spelling) -> str:
        """Returns the hint as one phrase. `spelling` writes an option with its value."""
        words = " ".join(spelling(option, value) for option, value in self.settings)
        if words and self.text:
            return f"{words} ({self.text})"
        return words or self.text

    def data(self) -> HintData:
        """Returns the hint as plain values."""
        return {"text": self.text, "settings": dict(self.settings)}


def suggest(text: str = "", /, **settings: Value) -> Hint:
    """Returns a hint that suggests values for options, such as ram=4624. `text` says what they would do, such
    as "F 1.003".
    """
    return Hint(text, tuple(settings.items()))


def in_requests(option: str, value: Value) -> str:
    """Returns an option and its value as requests and SCons spell them: ram=4624."""
    return f"without {option}" if value is None else f"{option}={value}"


class BuildtoolError(Exception):
    """An error that a user can act on.

    `code`: a stable upper-case word for scripts.
    `path`, `line`, `column`: the place in a file. Line and column count from 1; 0 means unknown.
    `operator`: an operator's index and name. `tensor`: a tensor's name.
    `option`: the name of the wrong option in a request.
    `hints`: what would help.
    """

    code = "ERROR"
    front: tuple[Spelling, Callable[[str], str]] = (in_requests, str)  # how its text spells options

    def __init_subclass__(cls, code: str = "") -> None:
        cls.code = code or cls.code

    def __init__(
        self,
        text: str,
        *,
        path: str = "",
        line: int = 0,
        column: int = 0,
        operator: str = "",
        tensor: str = "",
        option: str = "",
        hint: str | Hint | Sequence[Hint] = "",
    ) -> None:
        super().__init__(text)
        self.text, self.path, self.line, self.column = text, path, line, column
        self.operator, self.tensor, self.option = operator, tensor, option
        if isinstance(hint, str):
            hint = [Hint(hint)] if hint else []
        self.hints = (hint,) if isinstance(hint, Hint) else tuple(hint)

    @property
    def hint(self) -> str:
        """The hints as one line."""
        return self.help(self.front[0])

    def help(self, spelling: Spelling = in_requests) -> str:
        """Returns the hints as one line. `spelling` writes an option with its value."""
        return "; ".join(filter(None, (hint.spelled(spelling) for hint in self.hints)))

    def at(
        self, *, path: str = "", line: int = 0, column: int = 0, operator: str = "", tensor: str = ""
    ) -> BuildtoolError:
        """Sets the given places where the error has none yet. Returns self."""
        if not self.path or self.path == path:
            self.line, self.column = self.line or line, self.column or column
        self.path = self.path or path
        self.operator = self.operator or operator
        self.tensor = self.tensor or tensor
        return self

    def message(self, spelling: Spelling = in_requests, name: Callable[[str], str] = str) -> str:
        """Returns `path:line:column: error: text [CODE]`, as compilers write it, with the hints below.

        Without a line it is `path: error: ...`. The operator, tensor and option stand before the text.
        `spelling` writes an option with its value, `name` an option alone.
        """
        place = f"{self.path}:{self.line}:{self.column or 1}" if self.line and self.path else self.path
        about = [self.operator, self.tensor, name(self.option) if self.option else ""]
        text = ": ".join(part for part in (place, "error", *about, self.text) if part)
        hint = self.help(spelling)
        return f"{text} [{self.code}]" + (f"\n  hint: {hint}" if hint else "")

    def __str__(self) -> str:
        return self.message(*self.front)


class ModelError(BuildtoolError, code="MODEL"):
    """The file is not a well-formed model."""


class UnsupportedError(BuildtoolError, code="UNSUPPORTED"):
    """The model is well formed, but uses something that is not supported."""


class PlanError(BuildtoolError, code="PLAN"):
    """No plan meets the limits, or a plan failed its check."""


class TargetError(BuildtoolError, code="TARGET"):
    """A board, core or kernel catalogue is unknown or inconsistent."""


class ToolError(BuildtoolError, code="TOOL"):
    """A compiler, emulator or other tool is missing or failed."""


class UsageError(BuildtoolError, code="USAGE"):
    """An option or a name given by the user is wrong."""


class MachineError(BuildtoolError, code="MACHINE"):
    """The machine fails: its disk is full, its memory is too small, or a file may not be read."""


class InternalError(BuildtoolError, code="INTERNAL"):
    """A fault in buildtool itself. `trace` is Python's traceback, "" where it is unknown."""

    trace = ""


# Errors of the system that are not our fault.
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_LACKING = (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN, *_FULL)
_REFUSED = (errno.EROFS, errno.EACCES, errno.EPERM, errno.ENAMETOOLONG, errno.EIO, errno.ELOOP, errno.ETXTBSY)


def from_exception(error: BaseException) -> BuildtoolError:
    """Returns the BuildtoolError for any exception: the exception itself if it is one, a MachineError for an
    error of the system, otherwise an InternalError.
    """
    if isinstance(error, BuildtoolError):
        return error
    if isinstance(error, MemoryError):
        hint = "use a machine with more memory, or a smaller network"
        return MachineError("this needs more memory than the machine has", hint=hint)
    no_folder = isinstance(error, FileNotFoundError) and "temporary directory" in str(error.strerror)
    if isinstance(error, OSError) and (error.errno in (*_LACKING, *_REFUSED) or no_folder):
        path = error.filename if isinstance(error.filename, str) else ""
        is_full = error.errno in _FULL or no_folder
        hint = "free space there, or name another folder for temporary files (TMPDIR)" if is_full else ""
        return MachineError(f"the system refuses: {error.strerror}", path=path, hint=hint)
    import traceback  # takes start-up time, and only faults need it

    frames = traceback.extract_tb(error.__traceback__)
    where = f" ({os.path.basename(frames[-1].filename)}:{frames[-1].lineno})" if frames else ""  # noqa: PTH119
    internal = InternalError(
        f"internal error: {type(error).__name__}: {error}{where}",
        hint="this is an error in buildtool: please report it with this text, and the model if you can",
    )
    internal.trace = "".join(traceback.format_exception(error))
    return internal


def to_data(error: BuildtoolError) -> ErrorData:
    """Returns an error as plain values, for JSON and for messages between processes."""
    data = {name: getattr(error, name) for name in ErrorData.__annotations__ if name != "hints"}
    return cast(ErrorData, data | {"hints": [hint.data() for hint in error.hints]})


def from_data(data: Mapping[str, Any]) -> BuildtoolError:
    """Returns the exception that `to_data` described. The code decides its class. Values of a wrong type
    become text.
    """
    classes = {cls.code: cls for cls in BuildtoolError.__subclasses__()}
    code = str(data.get("code", "")) or BuildtoolError.code
    error = classes.get(code, BuildtoolError)(str(data.get("text", "")))
    error.code = code
    for name in ("path", "operator", "tensor", "option"):
        setattr(error, name, str(data.get(name, "")))
    for name in ("line", "column"):
        number = data.get(name)
        setattr(error, name, number if isinstance(number, int) else 0)
    hints = data.get("hints")
    for hint in hints if isinstance(hints, list) else ():
        if isinstance(hint, Mapping):
            settings = hint.get("settings")
            pairs = settings.items() if isinstance(settings, Mapping) else ()
            values = {
                str(k): v if v is None or isinstance(v, str | int | float) else str(v) for k, v in pairs
            }
            error.hints = (*error.hints, Hint(str(hint.get("text", "")), tuple(values.items())))
    return error


def described(error: BaseException) -> str:
    """Returns the text of an error that foreign code raised, with its place in that code:
    "KeyError: 'x' (packing.py, line 19)".
    """
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    where = f" ({trace.tb_frame.f_code.co_filename}, line {trace.tb_lineno})" if trace is not None else ""
    return f"{type(error).__name__}: {error}{where}"


def shown(value: object) -> str:
    """Returns a value as Python writes it, shortened if long, for a message."""
    try:
        words = repr(value)
    except ValueError:  # Python refuses to write an integer of thousands of digits
        return "a number of thousands of digits"
    return words if len(words) <= _MOST_SHOWN else f"{words[:_MOST_SHOWN]}..."


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Returns a hint that names the known word closest to `word`, or all known words if none is close."""
    names = sorted(known)
    close = closest(word, names)
    return f"did you mean '{close[0]}'?" if close else "known: " + ", ".join(names)


def closest(word: str, known: Sequence[str], most: int = 1) -> list[str]:
    """Returns the known words that are similar to `word`, the closest first, at most `most` of them."""
    import difflib  # only mistakes need it

    return difflib.get_close_matches(word, known, n=most, cutoff=0.6)
