"""`run.py ask WHAT FILE`: answers what the CMake package asks, as CMake's own commands in FILE."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from buildtool.client import BuildtoolError, hashing_always
from buildtool.client import options as table
from buildtool.fronts.cmake import libraries, toolchains
from buildtool.fronts.cmake.context import Context
from buildtool.fronts.cmake.folder import write_whole

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
        with hashing_always(bool(context["hash_inputs"])):
            text = "\n".join(_QUESTIONS[what](context)) + "\n"
        write_whole(Path(out), text.encode(errors="surrogateescape"))
    except BuildtoolError as error:
        sys.stderr.buffer.write(_message(error).encode(errors="surrogateescape"))
        return 1
    return 0


def _message(error: BuildtoolError) -> str:
    """The error with options as CMake spells them: RAM 64K."""

    def spelled(option: str, value: object) -> str:
        return f"without {_keyword(option)}" if value is None else f"{_keyword(option)} {value}"

    return error.message(spelled, _keyword) + "\n"


def _keyword(option: str) -> str:
    """An option as the package's functions have it."""
    known = table.BY_NAME.get(option)
    return (known.spelt if known and known.spelt else option).upper()
