"""Standard output and standard error, which may be closed or full, or may lack characters."""

from __future__ import annotations

import contextlib
import io
import itertools
import os
import stat
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from buildtool import __version__
from buildtool.base.errors import BuildtoolError, InternalError, MachineError, from_exception, to_data
from buildtool.fronts.asking import as_json
from buildtool.fronts.texts.table import WIDTH
from buildtool.options import FRONT
from buildtool.schema import SCHEMA

PATIENCE_SECONDS = 1.0  # before the progress line appears
LEAST_WIDTH = 40  # narrower terminals wrap lines themselves


def prepare() -> None:
    """Makes the standard streams usable. It has to run before any file is opened.

    Otherwise a file could get the number of a closed stream. Characters that a stream's encoding lacks are
    written as Python escapes.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # it gets the lowest free number: this one
    if sys.stderr is None:
        sys.stderr = io.TextIOWrapper(io.FileIO(2, "w", closefd=False), write_through=True)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def columns(stream: int = 1) -> int:
    """Returns the line width in characters, from COLUMNS or the stream's terminal, or 0 if neither is known.

    If the stream is a pipe, such as to `less`, it takes the terminal of standard error or standard input,
    because a shell does not export COLUMNS.
    """
    text = os.environ.get("COLUMNS", "")
    if text.isascii() and text.isdecimal() and 0 < len(text) < 10 and int(text):
        return int(text)
    for number in (stream, 2, 0) if _is_pipe(stream) else (stream,):
        with contextlib.suppress(OSError, ValueError):
            return os.get_terminal_size(number).columns
    return 0


def _is_pipe(stream: int) -> bool:
    try:
        return stat.S_ISFIFO(os.fstat(stream).st_mode)
    except OSError:
        return False


def width() -> int:
    """Returns the line width in characters, from COLUMNS, the terminal, or the default width of tables."""
    return max(columns() or WIDTH, LEAST_WIDTH)


def is_coloured(stream: Any) -> bool:
    """Whether texts for a stream are coloured. By default, only texts for terminals with colours are.

    If NO_COLOR is set, no text is coloured. Otherwise FORCE_COLOR decides if it is set: "0" and "false" mean
    no colours. Empty variables have no effect.
    """
    if os.environ.get("NO_COLOR"):
        return False
    if force := os.environ.get("FORCE_COLOR"):
        return force not in ("0", "false")
    return _is_terminal(stream)


def _is_terminal(stream: Any) -> bool:
    """Whether a stream is a terminal that can move the cursor and change colours."""
    try:
        return stream is not None and stream.isatty() and os.environ.get("TERM") not in (None, "", "dumb")
    except ValueError:  # it is closed
        return False


def write_text(text: str) -> None:
    """Writes a command's answer for people, wrapped to the line width.

    It is coloured if the terminal allows it.
    """
    from buildtool.fronts.texts import table

    folded = table.fold(text)
    write(table.coloured(folded) if is_coloured(sys.stdout) else folded)


def write(text: str) -> None:
    """Writes a command's whole answer. Raises MachineError if that fails."""
    if sys.stdout is None:
        raise MachineError("cannot write the answer: standard output is closed")
    try:
        print(text, flush=True)
    except BrokenPipeError:
        raise  # the reader closed the pipe
    except OSError as error:
        raise write_failure(error) from None


@contextlib.contextmanager
def progress(first: str = "") -> Iterator[Callable[[Mapping[str, Any]], None]]:
    """Yields a listener for progress messages, which shows the latest message in a line of the terminal.

    The line appears after a second and vanishes when the block ends. It shows `first` until there is a
    message. Nothing is shown if standard error is not a terminal.
    """
    if not _is_terminal(sys.stderr):
        yield lambda _: None
        return
    import threading  # only for terminals: it costs start-up time

    lock, start = threading.Lock(), time.monotonic()
    latest, shown, ended = "", 0, False

    def show() -> None:
        nonlocal shown
        with lock, contextlib.suppress(OSError, ValueError):
            text = latest[: max((columns(2) or WIDTH) - 4, 1)]  # a wrapped line cannot be erased
            if not ended and (text or shown):
                print(f"\r{text.ljust(shown)}", end="", file=sys.stderr, flush=True)
                shown = len(text)

    def receive(message: Mapping[str, Any]) -> None:
        nonlocal latest
        state = message.get("progress")
        if isinstance(state, dict):
            latest = str(state.get("text", ""))
            if time.monotonic() - start >= PATIENCE_SECONDS:
                show()

    timer = threading.Timer(PATIENCE_SECONDS, show)
    timer.daemon = True
    receive({"progress": {"text": first}})
    if PATIENCE_SECONDS > 0:
        timer.start()
    try:
        yield receive
    finally:
        timer.cancel()
        with lock, contextlib.suppress(OSError, ValueError):
            ended = True
            if shown:
                print(f"\r{' ' * shown}\r", end="", file=sys.stderr, flush=True)


def write_failure(error: OSError) -> MachineError:
    """Returns the error for a failed write to standard output, and discards all further output."""
    silence()
    return MachineError(f"cannot write the answer to standard output: {error.strerror}")


def silence() -> None:
    """Discards what standard output still buffers: the interpreter must not try to write it again."""
    if sys.stdout is not None:
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.stdout = None  # as the interpreter sets it if there is no stream


def _before_dashes(argv: Sequence[str]) -> Sequence[str]:
    """Returns the words of a command line that come before `--`. Only these may be options."""
    return argv[: argv.index("--")] if "--" in argv else argv


def report(error: Exception, argv: Sequence[str]) -> BuildtoolError:
    """Prints an error on standard error, or as JSON in place of the answer. Returns it as BuildtoolError."""
    reported = from_exception(error)
    about: dict[str, str] = {}
    trace: list[str] = []
    if isinstance(reported, InternalError):  # what a bug report needs
        import platform

        trace = reported.trace.splitlines()
        about["asked"] = " ".join(["buildtool", *argv])
        about["version"] = f"buildtool {__version__}, Python {platform.python_version()}, {platform.system()}"
    if any(word.partition("=")[0] == "--json" for word in _before_dashes(argv)):
        try:
            more = {"report": {**about, "traceback": trace}} if about else {}
            write(as_json({"schema": SCHEMA, "error": to_data(reported), **more}))
            return reported
        except MachineError:
            pass  # then print it as text
    with contextlib.suppress(OSError, ValueError):
        lines = [*(f"{name}: {value}" for name, value in about.items()), *trace]
        text = "\n".join([reported.message(*FRONT.get()), *(f"  {line}" for line in lines)])
        if is_coloured(sys.stderr):
            from buildtool.fronts.texts import table

            text = table.coloured_message(text)
        print(text, file=sys.stderr, flush=True)
    return reported


def write_sarif(
    argv: Sequence[str],
    errors: Sequence[BuildtoolError],
    status: int,
    answer: Mapping[str, Any] | None = None,
) -> None:
    """Writes a SARIF log if a command line asks for one, even if its other words are wrong."""
    words = _before_dashes(argv)
    name = ""
    for word, after in itertools.zip_longest(words, words[1:], fillvalue=""):
        if word.partition("=")[0] == "--sarif":
            name = word.partition("=")[2] or after
    if not name:
        return
    from buildtool.base.outfiles import write as write_files
    from buildtool.fronts.texts import sarif

    path = Path(name)
    write_files({path.name: sarif.log(errors, __version__, status, answer).encode()}, path.parent)
