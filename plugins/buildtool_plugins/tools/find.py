"""Finds compilers on this machine: which one to use, what identifies it, and what to install if it is
missing.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from buildtool.base.errors import ToolError

NEWEST_CLANG, OLDEST_CLANG = 30, 16  # ./dev has the same two numbers
CLANG_VARIABLE = "BUILDTOOL_CLANG"
APT_CLANG = "apt-get install clang-22 lld-22 (or the newest available: clang-19 lld-19, clang-18 lld-18)"
APT_GCC_ARM = "apt-get install gcc-arm-none-eabi"


@dataclass(frozen=True)
class Compiler:
    """An installed C compiler that has answered to --version."""

    kind: str  # "clang" | "gcc"
    name: str  # without a version: "clang", "arm-none-eabi-gcc"
    path: str
    version: tuple[int, ...]

    @property
    def identity(self) -> str:
        """The compiler's name and version, such as "clang 22.1.8". It is the same on every machine."""
        return f"{self.name} {'.'.join(map(str, self.version))}"


def find_clang() -> Compiler:
    """Returns the newest clang, or the one that BUILDTOOL_CLANG names. Raises ToolError if there is none."""
    override = os.environ.get(CLANG_VARIABLE)
    if override:
        compiler = _find_override(CLANG_VARIABLE, override, "clang")
        if compiler.version[0] < OLDEST_CLANG:
            raise ToolError(
                f"{CLANG_VARIABLE}: '{override}' is {compiler.identity};"
                f" clang {OLDEST_CLANG} or newer is needed",
                hint=f"unset {CLANG_VARIABLE}, or name a newer clang",
            )
        return compiler
    for name in (*(f"clang-{n}" for n in range(NEWEST_CLANG, OLDEST_CLANG - 1, -1)), "clang"):
        candidate = _find_named(name, "clang")
        if candidate and candidate.version[0] >= OLDEST_CLANG:
            return candidate
    raise ToolError(f"clang {OLDEST_CLANG} or newer was not found", hint=APT_CLANG)


def is_chosen(kind: str) -> bool:
    """Whether the user has named the compiler of this kind in an environment variable."""
    return kind == "clang" and bool(os.environ.get(CLANG_VARIABLE))


def find_lld(clang: Compiler) -> str:
    """Returns the path of an ld.lld. One of clang's version is preferred, then one beside clang.

    Raises ToolError if there is none.
    """
    version = clang.version[0]
    sibling = Path(clang.path).resolve().parent / "ld.lld"
    if path := _first_installed(f"ld.lld-{version}", str(sibling), "ld.lld"):
        return path
    hint = f"apt-get install lld-{version}"
    raise ToolError(f"the linker ld.lld-{version} for clang {version} was not found", hint=hint)


def find_gcc(program: str, hint: str, variable: str = "BUILDTOOL_GCC") -> Compiler:
    """Returns the gcc called `program`; if the environment variable `variable` names a gcc, that one. Raises
    ToolError with `hint` if it is not installed.
    """
    override = os.environ.get(variable) if program != "gcc" else None
    if override:
        return replace(_find_override(variable, override, "gcc"), name=program)
    compiler = _find_named(program, "gcc")
    if compiler is None:
        raise ToolError(f"the compiler {program} was not found", hint=hint)
    return replace(compiler, name=program)


def find_host_compiler() -> str:
    """Returns the path of a compiler for programs of this machine: cc, gcc or clang. Raises ToolError if
    there is none.
    """
    if path := _first_installed("cc", "gcc"):
        return path
    try:
        return find_clang().path
    except ToolError:
        raise ToolError("no C compiler for this machine was found", hint="apt-get install gcc") from None


def find_ar(compiler: Compiler, cross: str = "") -> str:
    """Returns the path of an archiver for the compiler's objects. `cross` is the prefix of the GNU tools'
    names. GNU ar and llvm-ar can read each other's archives.
    """
    folder = Path(compiler.path).resolve().parent
    version = compiler.version[0]
    names: tuple[str, ...] = (str(folder / f"{cross}ar"), f"{cross}ar")
    if compiler.kind == "clang":
        names = (f"llvm-ar-{version}", str(folder / "llvm-ar"), "llvm-ar", f"{cross}ar", "ar")
    if path := _first_installed(*names):
        return path
    raise ToolError(f"no archiver (ar) was found for {compiler.identity}", hint="apt-get install binutils")


def _first_installed(*names: str) -> str:
    """Returns the path of the first of these programs that is installed; "" if none is."""
    return next((path for path in map(shutil.which, names) if path), "")


def _find_override(variable: str, value: str, kind: str) -> Compiler:
    hint = f"unset {variable}, or correct it"
    if not shutil.which(value):
        raise ToolError(f"{variable}: there is no program '{value}'", hint=hint)
    compiler = _find_named(value, kind)
    if compiler is None:
        text = f"{variable}: '{value}' is not a {kind} that runs: its --version does not say so"
        raise ToolError(text, hint=hint)
    return compiler


def _find_named(name: str, kind: str) -> Compiler | None:
    """Returns the compiler called `name` if it is in PATH, can be run, and is of the `kind`, such as "clang";
    otherwise None.
    """
    path = shutil.which(name)
    version = _find_version(path, kind) if path else None
    return Compiler(kind, kind, path, version) if path and version else None


def _find_version(path: str, kind: str) -> tuple[int, ...] | None:
    """Returns the version of the compiler at `path`; None if it is not of the `kind`.

    The compiler is asked again only if its file has changed. A script is asked each time, because it may call
    another compiler.
    """
    try:
        stat = Path(path).stat()
        with Path(path).open("rb") as file:
            is_script = file.read(2) == b"#!"
    except OSError:
        return None
    if is_script:
        return _run_version.__wrapped__(path, kind, ())
    return _run_version(path, kind, (stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino))


@cache
def _run_version(path: str, kind: str, _stat: tuple[int, ...]) -> tuple[int, ...] | None:
    try:
        process = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=120, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    first_line = process.stdout.splitlines()[0] if process.stdout else ""
    # gcc: "arm-none-eabi-gcc (packager's words) 12.2.1 20221205".
    pattern = r"clang version (\d+(?:\.\d+)*)" if kind == "clang" else r"\) (\d+(?:\.\d+)+)"
    match = re.search(pattern, first_line)
    if match is None or (kind == "gcc" and "clang" in process.stdout.lower()):
        return None
    return tuple(int(part) for part in match[1].split("."))
