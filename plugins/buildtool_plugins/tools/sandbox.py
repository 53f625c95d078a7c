"""Runs a program in an empty folder, with given files, and returns the files and the text that it writes.

There is a time limit. Errors are ToolErrors.
"""

from __future__ import annotations

import contextlib
import functools
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO

from buildtool.base.errors import ToolError
from buildtool.base.locks import scratch
from buildtool.target.plugin import ProgramError
from buildtool.target.types import RunRequest

LOOK_SECONDS = 0.5  # between two checks of a program's progress
HEAD_LINES, TAIL_LINES = 8, 12  # lines of a failed program's output that the error shows


def run_program(
    command: Sequence[str],
    request: RunRequest,
    *,
    what: str,
    links: Sequence[Path] = (),
    optional: Sequence[str] = (),
    clean: Callable[[str], str] = str.strip,
) -> tuple[dict[str, bytes], str]:
    """Runs `command`; returns its output files by name, and its text (stdout and stderr) after `clean`.

    `what` names the program in errors. `links` are files to link into the folder. `optional` outputs may be
    missing. Raises ProgramError on a non-zero exit, ToolError at the time limit or if an output is missing.
    """
    with scratch() as folder:
        work = Path(folder)
        _prepare(work, request, links)
        code, text = _execute(command, work, request, what)
        text = clean(text)
        if code is None:
            raise ToolError(
                f"{what} was still running after {request.timeout:g} s and was ended{_excerpt(text)}",
                hint="a larger timeout, if the network is that slow",
            )
        if code:
            how = f"was ended by signal {-code}" if code < 0 else f"ended with exit code {code}"
            raise ProgramError(f"{what} {how}{_excerpt(text)}")
        files = _read_written(work, (*request.outputs, *optional))
        for name in request.outputs:
            if name not in files:
                raise ToolError(f"{what} wrote no file '{name}'{_excerpt(text)}")
        return files, text


def what_is_left(command: Sequence[str], request: RunRequest, links: Sequence[Path]) -> dict[str, bytes]:
    """Runs a program that is known to fail; returns those of the request's outputs that it has written."""
    with scratch() as folder:
        work = Path(folder)
        _prepare(work, request, links)
        _execute(command, work, request, "the program")
        return _read_written(work, request.outputs)


def _prepare(work: Path, request: RunRequest, links: Sequence[Path]) -> None:
    for name, content in request.files.items():
        _path_inside(work, name).write_bytes(content)
    for source in links:
        try:
            (work / source.name).symlink_to(source.resolve())
        except OSError:  # Windows allows links to few users
            shutil.copyfile(source, work / source.name)


def _read_written(work: Path, names: Sequence[str]) -> dict[str, bytes]:
    paths = {name: _path_inside(work, name) for name in names}
    return {name: path.read_bytes() for name, path in paths.items() if path.is_file()}


def _path_inside(work: Path, name: str) -> Path:
    if Path(name).name != name:
        raise ToolError(f"'{name}' is not a plain file name")
    return work / name


def _execute(command: Sequence[str], work: Path, request: RunRequest, what: str) -> tuple[int | None, str]:
    """Runs the program in the folder `work`. Returns its exit code (None: it was ended at the time limit) and
    its text.
    """
    # The output goes to a file, so that the time limit also holds for a program that prints without end.
    with (work / ".text").open("w+b") as text:
        try:
            with start(command, text, work) as process:
                code = _wait_for_end(process, work, request)
        except OSError as error:
            raise ToolError(f"{what} cannot be started: {error.strerror}", path=command[0]) from None
    return code, (work / ".text").read_bytes().decode("utf-8", "replace")


@contextlib.contextmanager
def start(
    command: Sequence[str], output: IO[bytes], work: Path | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """A context with a running program, which is killed when the context ends. It runs in the folder `work`,
    and its text goes to `output`. On Linux the program ends with this process, even if this one is killed.

    Raises OSError if the program cannot be started.
    """
    starter = _starter(command[0])
    process = subprocess.Popen(
        [*starter, *command],
        cwd=work,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        preexec_fn=None if starter else _end_with_parent(),  # noqa: PLW1509 - one system call
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


def _starter(program: str) -> tuple[str, ...]:
    """Returns the words before a command that make its program end with this process; () if there are none.

    A `preexec_fn` does the same, but it needs a fork, which copies all page tables of this process: 50 ms
    where this process has a gigabyte. If the program is missing, the result is (): then the error names it.
    """
    return _setpriv() if shutil.which(program) else ()


@functools.cache
def _setpriv() -> tuple[str, ...]:
    """Returns the words that call setpriv; () if it is missing or has no such option, as BusyBox's."""
    program = shutil.which("setpriv")
    if program is None:
        return ()
    words = (program, "--pdeathsig", "KILL")
    done = subprocess.run(
        [*words, program, "--version"], stdin=subprocess.DEVNULL, capture_output=True, check=False
    )
    return words if done.returncode == 0 else ()


def _end_with_parent() -> Callable[[], None] | None:
    """Returns a function that makes a child process end with this process, even if this one is killed; None
    on systems other than Linux.
    """
    if not sys.platform.startswith("linux"):
        return None
    import ctypes
    import signal

    try:
        prctl = ctypes.CDLL(None).prctl  # looked up before the fork: the child only calls it
    except (OSError, AttributeError):
        return None
    return lambda: prctl(1, signal.SIGKILL) and None  # PR_SET_PDEATHSIG


def _wait_for_end(process: subprocess.Popen[bytes], work: Path, request: RunRequest) -> int | None:
    """Returns the program's exit code; None at the time limit. Meanwhile it reports the size of the first
    output file.
    """
    end = time.monotonic() + request.timeout
    while (seconds := end - time.monotonic()) > 0:
        if request.written is not None:
            output = work / request.outputs[0]
            request.written(output.stat().st_size if output.exists() else 0)
        with contextlib.suppress(subprocess.TimeoutExpired):
            return process.wait(seconds if request.written is None else min(seconds, LOOK_SECONDS))
    return None


def _excerpt(text: str) -> str:
    lines = text.strip().splitlines()
    if len(lines) > HEAD_LINES + TAIL_LINES:
        lines = [*lines[:HEAD_LINES], "...", *lines[-TAIL_LINES:]]
    return ":\n" + "\n".join(f"    {line}" for line in lines) if lines else ""
