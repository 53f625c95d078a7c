"""Compiles C for XS3: clang's XCore back end writes text, for single issue, which buildtool's own assembler
reads.
"""

from __future__ import annotations

import functools
import subprocess
from collections.abc import Sequence
from pathlib import Path

from buildtool.base.errors import ToolError
from buildtool_plugins import baremetal
from buildtool_plugins.tools.find import Compiler, find_clang
from buildtool_plugins.xs3.assembler import assemble
from buildtool_plugins.xs3.objects import Object

BAREMETAL = Path(baremetal.__file__).resolve().parent
RUNTIME = (
    Path(__file__).resolve().parent / "runtime.c",
    *(BAREMETAL / name for name in ("integers.c", "floats.c", "memory.c")),
)
# The driver refuses the large code model, the compiler has it: it loads addresses of large objects as words.
CFLAGS = (
    *("--target=xcore", "-std=gnu99", "-ffreestanding", "-ffunction-sections", "-Xclang", "-mcmodel=large"),
    *(f"-I{BAREMETAL / 'include'}", "-DNN_PARALLEL=0"),
)
_HINT = "clang needs the back end xcore; Debian's and LLVM's own builds have it"
_SHOWN = 2000  # upper limit for the characters of the compiler's messages that an error shows


def find_compiler() -> Compiler:
    """Returns the clang of this machine. Raises ToolError if it has no back end for XCore."""
    clang = find_clang()
    if not _has_back_end(clang.path):
        raise ToolError(f"{clang.identity} has no back end for XCore", hint=_HINT)
    return clang


@functools.cache
def _has_back_end(path: str) -> bool:
    words = [path, "--print-targets"]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=120)
    return any(line.split()[:1] == ["xcore"] for line in done.stdout.splitlines())


def compile_text(source: Path | str, flags: Sequence[str] = ("-O2",)) -> str:
    """Returns the assembly text of a C file, or of C given as text. Raises ToolError if it does not
    compile.
    """
    words = [find_clang().path, *CFLAGS, *flags, "-S", "-x", "c", "-o", "-"]
    is_file = isinstance(source, Path)
    name = str(source) if is_file else "-"
    options = {"capture_output": True, "text": True, "check": False}
    done = subprocess.run([*words, name], input=None if is_file else source, **options)  # type: ignore[call-overload]
    if done.returncode:
        raise ToolError(f"this C does not compile for XS3:\n{done.stderr[:_SHOWN]}", path=name, hint=_HINT)
    text: str = done.stdout
    return text


def compile_c(source: Path | str, flags: Sequence[str] = ("-O2",)) -> Object:
    """Returns the object of a C file, or of C given as text. Raises ToolError if it does not compile."""
    return assemble(compile_text(source, flags), source.name if isinstance(source, Path) else "C")


@functools.cache
def runtime() -> tuple[Object, ...]:
    """Returns the objects with the functions that clang calls: for wide integers, floats, and copies of
    memory.
    """
    return tuple(compile_c(path) for path in RUNTIME)
