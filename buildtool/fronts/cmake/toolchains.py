"""The answer for a toolchain file: the board's own compiler and flags, as CMake's variables."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from buildtool.client import options as table
from buildtool.fronts.cmake import quoting, requests
from buildtool.fronts.cmake.context import Context
from buildtool.fronts.cmake.describing import depends, describe, is_native

if TYPE_CHECKING:
    from buildtool.client import answers

_TARGET = "--target="
_OWN = ("-O", "-std=", _TARGET)  # what CMake decides itself: build types, language standards, the target
_ANY = "network.tflite"  # of a network, describe says whether its board is this machine; the file is not read


def toolchain(context: Context) -> Iterator[str]:
    """Compilers, flags and the system's name; start-up code and linker script are no part of it.

    The digest tells whether what CMake took over when it configured a folder first is still the same.
    """
    board = requests.file_or_name(context, table.BY_NAME["board"], context["board"])
    chosen = {"toolchain": context["toolchain"]} if context["toolchain"] else {}
    answer = describe(context, {"board": board, "model": _ANY, **chosen})
    settings = list(_settings(answer, board))
    yield from settings
    yield _set(
        "toolchain_digest", hashlib.sha256("\n".join(settings).encode(errors="surrogateescape")).hexdigest()
    )
    yield quoting.set_lines("configure_depends", depends(answer))


def _settings(answer: answers.DescribeAnswer, board: str) -> Iterator[str]:
    tools, native = answer["tools"], is_native(answer)
    target = next((word.removeprefix(_TARGET) for word in tools["cflags"] if word.startswith(_TARGET)), "")
    yield _set("BUILDTOOL_BOARD", board)
    if not native:
        yield _set("CMAKE_SYSTEM_NAME", "Generic")
        yield _set("CMAKE_SYSTEM_PROCESSOR", target.partition("-")[0] or answer["board"])
        yield _set("CMAKE_TRY_COMPILE_TARGET_TYPE", "STATIC_LIBRARY")  # nothing links without a linker script
    flags = quoting.flags(word for word in tools["cflags"] if not word.startswith(_OWN))
    for language, compiler in (("C", tools["cc"]), ("CXX", _cxx(tools)), ("ASM", tools["cc"])):
        yield _set(f"CMAKE_{language}_COMPILER", compiler)
        yield _set(f"CMAKE_{language}_FLAGS_INIT", flags)
        yield _set(f"CMAKE_{language}_FLAGS_DEBUG_INIT", "-Og")
        if target:
            yield _set(f"CMAKE_{language}_COMPILER_TARGET", target)
        if not native:
            yield _set(f"CMAKE_EXECUTABLE_SUFFIX_{language}", ".elf")
        yield from _archiving(language, tools)
        libraries = quoting.flags(word for word in tools["ldflags"] if word.startswith("-l"))
        yield _set(f"CMAKE_{language}_STANDARD_LIBRARIES_INIT", libraries)
    yield _set("CMAKE_AR", tools["ar"])
    linked = [word for word in tools["ldflags"] if not word.startswith(("-l", _TARGET))]
    yield _set("CMAKE_EXE_LINKER_FLAGS_INIT", quoting.flags(linked))


def _archiving(language: str, tools: answers.Tools) -> Iterator[str]:
    """The board's archiver alone: CMake would look for a ranlib of another compiler's."""
    words = quoting.flags(tools["arflags"])
    for rule in ("CREATE", "APPEND"):
        text = f"<CMAKE_AR> {words} <TARGET> <LINK_FLAGS> <OBJECTS>"
        yield _set(f"CMAKE_{language}_ARCHIVE_{rule}", text)
    yield _set(f"CMAKE_{language}_ARCHIVE_FINISH", "")


def _cxx(tools: answers.Tools) -> str:
    """The C++ compiler beside the C compiler, which compiles C++ itself where there is none."""
    cc = Path(tools["cc"])
    for c, cxx in (("clang", "clang++"), ("gcc", "g++")):
        if c in cc.name:
            beside = cc.with_name(cc.name.replace(c, cxx))
            return str(beside) if beside.is_file() else str(cc)
    return str(cc)


def _set(name: str, value: str) -> str:
    return f"set({name} {quoting.quoted(value)})"
