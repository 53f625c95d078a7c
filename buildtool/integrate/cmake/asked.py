"""`run.py ask WHAT FILE`: answers what the CMake package asks, as CMake's own commands in FILE."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from buildtool.client import BuildtoolError
from buildtool.integrate.cmake import libraries, toolchains
from buildtool.integrate.cmake.context import Context
from buildtool.integrate.cmake.folder import write_whole

_QUESTIONS: dict[str, Callable[[Context], Iterator[str]]] = {
    "network": libraries.network,
    "firmware": libraries.firmware,
    "startup": libraries.startup,
    "toolchain": toolchains.toolchain,
}


def main(words: Sequence[str]) -> int:
    """Reads the request from standard input; the exit status: 1 after an error, which CMake shows."""
    what, out = words
    lines = sys.stdin.buffer.read().decode(errors="surrogateescape").split("\n")
    context = Context.read(lines)
    try:
        text = "\n".join(_QUESTIONS[what](context)) + "\n"
        write_whole(Path(out), text.encode(errors="surrogateescape"))
    except BuildtoolError as error:
        sys.stderr.buffer.write(_message(error).encode(errors="surrogateescape"))
        return 1
    return 0


def _message(error: BuildtoolError) -> str:
    """The error with options as CMake spells them: RAM 64K."""

    def spelled(option: str, value: object) -> str:
        return f"without {option.upper()}" if value is None else f"{option.upper()} {value}"

    return error.message(spelled, str.upper) + "\n"
