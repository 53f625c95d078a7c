"""Asks for the description of a board, and checks whether the project's compiler suits the board.

A compiler suits a board if it predefines the macros of the board's core.
"""

from __future__ import annotations

import contextlib
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


EMITTED = "emitted"  # in answers, the root that stands for a network's own folder
_KINDS = {"GNU": ("gcc", "BUILDTOOL_GCC"), "Clang": ("clang", "BUILDTOOL_CLANG")}


def describe(
    context: Context, request: Mapping[str, object], *, same_kind: bool = False
) -> answers.DescribeAnswer:
    """Returns the answer to the `describe` request with these options, whose paths are absolute.

    With `same_kind`, flags and start-up code are for the project's own compiler. Otherwise they are for the
    board's compiler, or for the project's own compiler if the board's is not installed: a library can also be
    compiled without the board's compiler.
    """
    if same_kind:
        with contextlib.suppress(BuildtoolError):  # mostly known: the network has asked for it
            answer = _ask(request)
            if _is_same(answer["tools"]["cc"], context["compiler"]):
                return answer
        return _ask_for_own(context, request)
    try:
        return _ask(request)
    except BuildtoolError as error:
        if error.code != "TOOL" or context["compiler_id"] not in _KINDS:
            raise
        try:
            return _ask_for_own(context, request)
        except BuildtoolError:
            raise error from None


def _is_same(one: str, other: str) -> bool:
    """Whether two paths lead to the same compiler under the same name. Compilers may act on their name."""
    return Path(one).name == Path(other).name and os.path.realpath(one) == os.path.realpath(other)


def _ask_for_own(context: Context, request: Mapping[str, object]) -> answers.DescribeAnswer:
    """Returns the answer to `describe` for the project's own compiler.

    If that compiler is neither GCC nor Clang, the answer is for the board's compiler.
    """
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
    """Returns the group of sources that has this name."""
    return next(group for group in answer["groups"] if group["name"] == name)


def locate(answer: answers.DescribeAnswer, place: answers.Place, emitted: str = "") -> str:
    """Returns the path of a place. `emitted` is the network's own folder."""
    root = emitted if place["root"] == EMITTED else answer["roots"].get(place["root"], "")
    return f"{root}/{place['path']}" if place["path"] and root else place["path"] or root


def is_native(answer: answers.DescribeAnswer) -> bool:
    """Whether the board is this machine. The answer for a network then has no files for flash."""
    return answer["network"] is not None and not answer["network"]["binaries"]


def depends(answer: answers.DescribeAnswer) -> Iterator[str]:
    """Yields the files that the answer depends on, and buildtool's own files."""
    yield from sorted({locate(answer, place) for place in answer["depends"]} | set(code_files()))


# The kernels use whole numbers only, so macros about floats do not matter.
_FLOATS = re.compile(r"FP|FMA|FLOAT|FLT|DBL|float|flen")


def check(context: Context, answer: answers.DescribeAnswer, native: bool) -> str:
    """Raises UsageError if the compiler cannot compile for the core, or if its flags select another core.

    Returns a note if the flags select no core, since a project may add such flags to its targets later; else
    "". `native` says whether the board is this machine.
    """
    board, tools, compiler = answer["board"], answer["tools"], " ".join(context.compiler)
    if native:
        if context["crosscompiling"]:
            raise UsageError(
                f"the board '{board}' is this machine, but CMake compiles for another machine "
                f"({context['system']}, {compiler})",
                hint="name the board that the program runs on: 'buildtool boards' lists all boards",
            )
        return ""
    if not tools["core"]:
        return ""
    core, command = " ".join(tools["core"]), [*context.compiler, *context.flags]
    try:
        required = _macros([*command, *tools["core"]])
    except _RefusedError as error:
        toolchain = "buildtoolBoard.cmake -DBUILDTOOL_BOARD=..."
        if Path(__file__).with_name("boards").joinpath(f"{board}.cmake").is_file():
            toolchain = f"boards/{board}.cmake"
        option = f"-DCMAKE_TOOLCHAIN_FILE=$(buildtool --cmake-dir)/{toolchain}"
        raise UsageError(
            f"the compiler cannot compile for the core of board '{board}': it refuses {core} "
            f"({compiler}: {error})",
            hint=f"choose a compiler for this core: use your own toolchain file, or {option}",
        ) from None
    macros = _macros(command)
    missing = sorted(line for line in required - macros if not _FLOATS.search(line))
    if not missing:
        return ""
    names = ", ".join(line.removeprefix("#define ").partition(" ")[0] for line in missing[:3])
    text = f"do not select the core of board '{board}' ({names} are not defined); these flags do: {core}"
    if required != _macros(context.compiler) != macros:
        raise UsageError(
            f"the flags of the compiler {text} ({compiler})",
            hint="correct CMAKE_C_FLAGS or the toolchain file, or name the board that the program runs on",
        )
    return f"the compiler flags known here {text}. Add them to the target"


class _RefusedError(Exception):
    """The compiler does not accept its flags."""


def _macros(command: Sequence[str]) -> set[str]:
    """Returns the macros that a compiler predefines, as the lines that it prints."""
    try:
        process = subprocess.run(
            [*command, "-E", "-dM", "-x", "c", os.devnull],
            capture_output=True,
            text=True,
            errors="replace",
            stdin=subprocess.DEVNULL,
            timeout=120,
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise _RefusedError(str(error)) from None
    if process.returncode:
        output = process.stderr.splitlines()
        lines = [line for line in output if "error" in line] or output
        raise _RefusedError(lines[0] if lines else f"exit status {process.returncode}")
    return set(process.stdout.splitlines())
