"""Whether the project's own compiler compiles for a board's core: told by the macros that it predefines."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

from buildtool.client import BuildtoolError, Client, UsageError, code_digest, code_files, fetch_description
from buildtool.fronts.cmake.requests import Context, read_stat_cache

if TYPE_CHECKING:
    from buildtool.client import answers


EMITTED = "emitted"  # the root in an answer that a network's own folder stands for
_KINDS = {"GNU": ("gcc", "BUILDTOOL_GCC"), "Clang": ("clang", "BUILDTOOL_CLANG")}


def describe(
    context: Context, request: Mapping[str, object], *, same_kind: bool = False
) -> answers.DescribeAnswer:
    """The answer to `describe`; paths in the request are absolute.

    `same_kind`: flags and start-up code are for the project's own compiler. What makes a library needs no
    compiler of the board's: it is asked with the project's where the board's own is not installed.
    """
    if same_kind:
        return _as_own(context, request)
    try:
        return _ask(request)
    except BuildtoolError as error:
        if error.code != "TOOL" or context["compiler_id"] not in _KINDS:
            raise
        try:
            return _as_own(context, request)
        except BuildtoolError:
            raise error from None


def _as_own(context: Context, request: Mapping[str, object]) -> answers.DescribeAnswer:
    """With the project's compiler, if it is of a kind that boards know; else with the board's."""
    kind, variable = _KINDS.get(context["compiler_id"], ("", ""))
    if not kind:
        return _ask(request)
    before = os.environ.get(variable)
    os.environ[variable] = context["compiler"]
    try:
        return _ask({**request, "toolchain": kind})
    finally:
        os.environ.pop(variable)
        if before is not None:
            os.environ[variable] = before


def _ask(request: Mapping[str, object]) -> answers.DescribeAnswer:
    folder = str(Path.cwd())
    seen = read_stat_cache()
    with Client(folder) as client:
        answer = fetch_description(
            {"kind": "describe", **request}, folder, code_digest(), seen, client.request
        )
    seen.save()
    return cast("answers.DescribeAnswer", answer)


def group(answer: answers.DescribeAnswer, name: str) -> answers.SourceGroup:
    """A group of sources by its name."""
    return next(group for group in answer["groups"] if group["name"] == name)


def locate(answer: answers.DescribeAnswer, place: answers.Place, emitted: str = "") -> str:
    """The path of a place; `emitted` is the network's own folder."""
    root = emitted if place["root"] == EMITTED else answer["roots"].get(place["root"], "")
    return f"{root}/{place['path']}" if place["path"] and root else place["path"] or root


def is_native(answer: answers.DescribeAnswer) -> bool:
    """Whether the board is this machine: its image needs no other form. The answer is of a network."""
    return answer["network"] is not None and not answer["network"]["binaries"]


def depends(answer: answers.DescribeAnswer) -> Iterator[str]:
    """The files that the answer depends on, buildtool's own among them."""
    yield from sorted({locate(answer, place) for place in answer["depends"]} | set(code_files()))


# The kernels compute with whole numbers alone: how a project passes floats is its own affair.
_FLOATS = re.compile(r"FP|FMA|FLOAT|FLT|DBL|float|flen")


def check(context: Context, answer: answers.DescribeAnswer, native: bool) -> str:
    """UsageError where the compiler cannot compile for the core, or its flags select another one.

    Gives a note where the flags select none: a project may add them to its targets later. `native`: the board
    is this machine.
    """
    board, tools, compiler = answer["board"], answer["tools"], " ".join(context.compiler)
    if native:
        if context["crosscompiling"]:
            raise UsageError(
                f"the board '{board}' is this machine, and CMake compiles for another one "
                f"({context['system']}, {compiler})",
                hint="name the board that the program runs on: 'buildtool boards' lists them",
            )
        return ""
    if not tools["core"]:
        return ""
    core, theirs = " ".join(tools["core"]), [*context.compiler, *context.flags]
    try:
        wanted = _macros([*theirs, *tools["core"]])
    except _RefusedError as error:
        toolchain = "buildtoolBoard.cmake -DBUILDTOOL_BOARD=..."
        if Path(__file__).with_name("boards").joinpath(f"{board}.cmake").is_file():
            toolchain = f"boards/{board}.cmake"
        named = f"-DCMAKE_TOOLCHAIN_FILE=$(buildtool --cmake-dir)/{toolchain}"
        raise UsageError(
            f"the compiler cannot compile for the core of board '{board}': it refuses {core} "
            f"({compiler}: {error})",
            hint=f"choose a compiler for this core: a toolchain file of yours, or {named}",
        ) from None
    macros = _macros(theirs)
    missing = sorted(line for line in wanted - macros if not _FLOATS.search(line))
    if not missing:
        return ""
    named = ", ".join(line.removeprefix("#define ").partition(" ")[0] for line in missing[:3])
    text = f"do not select the core of board '{board}' (they lack {named}); it is selected by: {core}"
    if wanted != _macros(context.compiler) != macros:
        raise UsageError(
            f"the flags of the compiler {text} ({compiler})",
            hint="correct CMAKE_C_FLAGS or the toolchain file, or name the board that the program runs on",
        )
    return f"the flags that are known here {text}. The target needs them"


class _RefusedError(Exception):
    """The compiler does not take its flags."""


def _macros(command: Sequence[str]) -> set[str]:
    """The macros that a compiler predefines, as it prints them."""
    try:
        done = subprocess.run(
            [*command, "-E", "-dM", "-x", "c", os.devnull],
            capture_output=True,
            text=True,
            errors="replace",
            stdin=subprocess.DEVNULL,
            timeout=120,
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise _RefusedError(str(error)) from None
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if "error" in line] or done.stderr.splitlines()
        raise _RefusedError(lines[0] if lines else f"exit status {done.returncode}")
    return set(done.stdout.splitlines())
