"""Standard output and standard error, which may be closed, full, unread or of a small character set."""

from __future__ import annotations

import contextlib
import io
import itertools
import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from buildtool import __version__
from buildtool.base.errors import BuildtoolError, InternalError, MachineError, from_exception, to_data
from buildtool.fronts.texts.table import WIDTH
from buildtool.options import spell, spell_name
from buildtool.schema import SCHEMA

PATIENCE_SECONDS = 1.0  # before it is said what takes so long
LEAST_WIDTH = 40  # narrower terminals break lines themselves


def prepare() -> None:
    """Before anything is opened: no file may take the number of a stream that is closed.

    Characters that a stream's encoding lacks are written as Python escapes them.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # it gets the lowest number that is free: this one
    if sys.stderr is None:
        sys.stderr = io.TextIOWrapper(io.FileIO(2, "w", closefd=False), write_through=True)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def columns(stream: int = 1) -> int:
    """Characters of a line: as COLUMNS says, or of the terminal behind a stream's number; 0: not known."""
    text = os.environ.get("COLUMNS", "")
    if text.isascii() and text.isdecimal() and 0 < len(text) < 10 and int(text):
        return int(text)
    try:
        return os.get_terminal_size(stream).columns
    except (OSError, ValueError):
        return 0


def width() -> int:
    """Characters of a line: of the terminal, or as COLUMNS says; else what tables have by themselves."""
    return max(columns() or WIDTH, LEAST_WIDTH)


def is_coloured(stream: Any) -> bool:
    """Whether texts for a stream are in colours: on terminals that have them, or where that is asked for.

    NO_COLOR and FORCE_COLOR decide, in this order, where they are set and not empty (FORCE_COLOR=0: no).
    """
    if os.environ.get("NO_COLOR"):
        return False
    if forced := os.environ.get("FORCE_COLOR"):
        return forced not in ("0", "false")
    return _is_terminal(stream)


def _is_terminal(stream: Any) -> bool:
    """Whether people read a stream at a terminal that can go back and change colours."""
    try:
        return stream is not None and stream.isatty() and os.environ.get("TERM") not in (None, "", "dumb")
    except ValueError:  # it is closed
        return False


def write_text(text: str) -> None:
    """Writes a command's answer for people: as wide as the lines are, and in colours where there are any."""
    from buildtool.fronts.texts import table

    folded = table.fold(text)
    write(table.coloured(folded) if is_coloured(sys.stdout) else folded)


def write(text: str) -> None:
    """Writes a command's whole answer; MachineError where it cannot be written."""
    if sys.stdout is None:
        raise MachineError("cannot write the answer: standard output is closed")
    try:
        print(text, flush=True)
    except BrokenPipeError:
        raise  # who reads has enough
    except OSError as error:
        raise unwritable(error) from None


@contextlib.contextmanager
def progress(first: str = "") -> Iterator[Callable[[Mapping[str, Any]], None]]:
    """A listener to messages of progress: on a terminal, what takes longer than a second is said in one line.

    `first` is said until there is a message. The line is gone when the block ends. Nothing is said where
    standard error is no terminal.
    """
    if not _is_terminal(sys.stderr):
        yield lambda _: None
        return
    import threading  # of terminals alone: it costs start-up time

    lock, begun = threading.Lock(), time.monotonic()
    latest, shown, ended = "", 0, False

    def show() -> None:
        nonlocal shown
        with lock, contextlib.suppress(OSError, ValueError):
            text = latest[: max((columns(2) or WIDTH) - 4, 1)]  # a line that breaks cannot vanish
            if not ended and (text or shown):
                print(f"\r{text.ljust(shown)}", end="", file=sys.stderr, flush=True)
                shown = len(text)

    def hear(message: Mapping[str, Any]) -> None:
        nonlocal latest
        about = message.get("progress")
        if isinstance(about, dict):
            latest = str(about.get("text", ""))
            if time.monotonic() - begun >= PATIENCE_SECONDS:
                show()

    timer = threading.Timer(PATIENCE_SECONDS, show)
    timer.daemon = True
    hear({"progress": {"text": first}})
    if PATIENCE_SECONDS > 0:
        timer.start()
    try:
        yield hear
    finally:
        timer.cancel()
        with lock, contextlib.suppress(OSError, ValueError):
            ended = True
            if shown:
                print(f"\r{' ' * shown}\r", end="", file=sys.stderr, flush=True)


def unwritable(error: OSError) -> MachineError:
    """The error for what standard output did not take; from now on it takes everything, for nobody."""
    silence()
    return MachineError(f"cannot write the answer to standard output: {error.strerror}")


def silence() -> None:
    """Whatever standard output still holds goes nowhere: the interpreter must not try to write it again."""
    if sys.stdout is not None:
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.stdout = None  # as the interpreter has it where there is none


def as_json(value: object) -> str:
    """JSON with text keys; bytes are left out."""
    return json.dumps(_plain(value), indent=2, sort_keys=True)


def _plain(value: object) -> object:
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items() if not isinstance(item, bytes)}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value


def _before_dashes(argv: Sequence[str]) -> Sequence[str]:
    """The words of a command line that may be options."""
    return argv[: argv.index("--")] if "--" in argv else argv


def report(error: Exception, argv: Sequence[str]) -> BuildtoolError:
    """Prints an error: on standard error, or as the answer where that is JSON. Returns it as one of ours."""
    told = from_exception(error)
    about: dict[str, str] = {}
    trace: list[str] = []
    if isinstance(told, InternalError):  # what those who look into a fault of ours need
        import platform

        trace = told.trace.splitlines()
        about["asked"] = " ".join(["buildtool", *argv])
        about["version"] = f"buildtool {__version__}, Python {platform.python_version()}, {platform.system()}"
    if any(word.partition("=")[0] == "--json" for word in _before_dashes(argv)):
        try:
            more = {"report": {**about, "traceback": trace}} if about else {}
            write(as_json({"schema": SCHEMA, "error": to_data(told), **more}))
            return told
        except MachineError:
            pass  # then in words
    with contextlib.suppress(OSError, ValueError):
        lines = [*(f"{name}: {value}" for name, value in about.items()), *trace]
        words = "\n".join([told.message(spell, spell_name), *(f"  {line}" for line in lines)])
        if is_coloured(sys.stderr):
            from buildtool.fronts.texts import table

            words = table.coloured_message(words)
        print(words, file=sys.stderr, flush=True)
    return told


def write_sarif(
    argv: Sequence[str],
    found: Sequence[BuildtoolError],
    status: int,
    answer: Mapping[str, Any] | None = None,
) -> None:
    """Writes what was wrong where a command line, right or wrong, asks for a SARIF file."""
    words = _before_dashes(argv)
    named = ""
    for word, after in itertools.zip_longest(words, words[1:], fillvalue=""):
        if word.partition("=")[0] == "--sarif":
            named = word.partition("=")[2] or after
    if not named:
        return
    from buildtool.base.outfiles import write as write_files
    from buildtool.fronts.texts import sarif

    path = Path(named)
    write_files({path.name: sarif.log(found, __version__, status, answer).encode()}, path.parent)
