"""Compilers on this machine: which is used, its identity, and what to install when there is none."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from buildtool.base.errors import ToolError

NEWEST_CLANG, OLDEST_CLANG = 30, 16  # ./dev has the same two
CLANG_VARIABLE = "BUILDTOOL_CLANG"
APT_CLANG = "apt-get install clang-22 lld-22 (or the newest there is: clang-19 lld-19, clang-18 lld-18)"
APT_GCC_ARM = "apt-get install gcc-arm-none-eabi"


@dataclass(frozen=True)
class Compiler:
    """A C compiler that answered to --version."""

    kind: str  # "clang" | "gcc"
    name: str  # without a version: "clang", "arm-none-eabi-gcc"
    path: str
    version: tuple[int, ...]

    @property
    def identity(self) -> str:
        """Name and version, the same on every machine: "clang 22.1.8"."""
        return f"{self.name} {'.'.join(map(str, self.version))}"


def find_clang() -> Compiler:
    """The newest clang, or the one that BUILDTOOL_CLANG names; raises ToolError."""
    chosen = os.environ.get(CLANG_VARIABLE)
    if chosen:
        named = _override(CLANG_VARIABLE, chosen, "clang")
        if named.version[0] < OLDEST_CLANG:
            raise ToolError(
                f"{CLANG_VARIABLE}: '{chosen}' is {named.identity}; clang {OLDEST_CLANG} or newer is needed",
                hint=f"unset {CLANG_VARIABLE}, or name a newer clang",
            )
        return named
    for name in (*(f"clang-{n}" for n in range(NEWEST_CLANG, OLDEST_CLANG - 1, -1)), "clang"):
        compiler = _find_named(name, "clang")
        if compiler and compiler.version[0] >= OLDEST_CLANG:
            return compiler
    raise ToolError(f"clang {OLDEST_CLANG} or newer was not found", hint=APT_CLANG)


def is_chosen(kind: str) -> bool:
    """Whether the environment names the compiler of this kind."""
    return kind == "clang" and bool(os.environ.get(CLANG_VARIABLE))


def find_lld(clang: Compiler) -> str:
    """The ld.lld that belongs to `clang`: of its version, beside it, or any; raises ToolError."""
    version = clang.version[0]
    beside = Path(clang.path).resolve().parent / "ld.lld"
    if path := _first(f"ld.lld-{version}", str(beside), "ld.lld"):
        return path
    hint = f"apt-get install lld-{version}"
    raise ToolError(f"the linker ld.lld-{version} for clang {version} was not found", hint=hint)


def find_gcc(program: str, hint: str, variable: str = "BUILDTOOL_GCC") -> Compiler:
    """The gcc called `program`, or the one that `variable` names if `program` is a cross compiler."""
    chosen = os.environ.get(variable) if program != "gcc" else None
    if chosen:
        return replace(_override(variable, chosen, "gcc"), name=program)
    compiler = _find_named(program, "gcc")
    if compiler is None:
        raise ToolError(f"the compiler {program} was not found", hint=hint)
    return replace(compiler, name=program)


def find_host_compiler() -> str:
    """A compiler for this machine, for what runs here: cc, gcc or clang; raises ToolError."""
    if path := _first("cc", "gcc"):
        return path
    try:
        return find_clang().path
    except ToolError:
        raise ToolError("no C compiler for this machine was found", hint="apt-get install gcc") from None


def find_ar(compiler: Compiler, cross: str = "") -> str:
    """An archiver for the compiler's objects; GNU ar and llvm-ar read each other's."""
    folder = Path(compiler.path).resolve().parent
    version = compiler.version[0]
    names: tuple[str, ...] = (str(folder / f"{cross}ar"), f"{cross}ar")
    if compiler.kind == "clang":
        names = (f"llvm-ar-{version}", str(folder / "llvm-ar"), "llvm-ar", f"{cross}ar", "ar")
    if path := _first(*names):
        return path
    raise ToolError(f"no archiver (ar) was found for {compiler.identity}", hint="apt-get install binutils")


def _first(*names: str) -> str:
    """The path of the first of these programs that is there; "" where none is."""
    return next((path for path in map(shutil.which, names) if path), "")


def _override(variable: str, value: str, kind: str) -> Compiler:
    hint = f"unset {variable}, or correct it"
    if not shutil.which(value):
        raise ToolError(f"{variable}: there is no program '{value}'", hint=hint)
    compiler = _find_named(value, kind)
    if compiler is None:
        text = f"{variable}: '{value}' is not a {kind} that runs: it does not answer to --version as one"
        raise ToolError(text, hint=hint)
    return compiler


def _find_named(name: str, kind: str) -> Compiler | None:
    """The compiler `name` if it is on the PATH, runs, and is of `kind`."""
    path = shutil.which(name)
    version = _version(path, kind) if path else None
    return Compiler(kind, kind, path, version) if path and version else None


def _version(path: str, kind: str) -> tuple[int, ...] | None:
    """What the program says; it is asked again where another one is there now, as after an upgrade.

    A script is asked each time: another compiler may run behind it.
    """
    try:
        there = Path(path).stat()
        with Path(path).open("rb") as file:
            is_script = file.read(2) == b"#!"
    except OSError:
        return None
    if is_script:
        return _ask_version.__wrapped__(path, kind, ())
    return _ask_version(path, kind, (there.st_size, there.st_mtime_ns, there.st_ctime_ns, there.st_ino))


@cache
def _ask_version(path: str, kind: str, _there: tuple[int, ...]) -> tuple[int, ...] | None:
    try:
        done = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=120, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    first = done.stdout.splitlines()[0] if done.stdout else ""
    # gcc: "arm-none-eabi-gcc (packager's words) 12.2.1 20221205".
    match = re.search(r"clang version (\d+(?:\.\d+)*)" if kind == "clang" else r"\) (\d+(?:\.\d+)+)", first)
    if match is None or (kind == "gcc" and "clang" in done.stdout.lower()):
        return None
    return tuple(int(part) for part in match[1].split("."))
