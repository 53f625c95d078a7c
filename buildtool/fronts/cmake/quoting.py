"""Text and names of files as CMake reads them, and the folder for `-Dbuildtool_DIR=...`."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from buildtool.client import UsageError

# What CMake, or the Make or Ninja that it writes for, reads in its own way; no quotes keep it from that.
_SPECIAL = {
    ";": "a semicolon",
    "\n": "a line break",
    "\r": "a carriage return",
    "\\": "a backslash",
    "$<": "'$<'",
    "$(": "'$('",
    "|": "'|'",
    "%": "'%'",
    "*": "'*'",
    "`": "a backquote",
    "^": "'^'",
    "<": "'<'",
    ">": "'>'",
}


def quote(text: str) -> str:
    """A bracket argument: nothing in it is read, whatever it is."""
    equals = ""
    while f"]{equals}]" in text or text.endswith(f"]{equals}"):
        equals += "="
    start = "\n" if text.startswith("\n") else ""  # CMake drops the first one
    return f"[{equals}[{start}{text}]{equals}]"


def path(text: str, option: str = "") -> str:
    """A path; UsageError for one that CMake would split. `option`: the option that gives it."""
    named = next((words for mark, words in _SPECIAL.items() if mark in text), "")
    if not named and text.count("[") != text.count("]"):
        named = "a single bracket"
    if named:
        raise UsageError(
            f"CMake cannot handle {named} in the name of a file",
            path=text,
            option=option,
            hint="give the file, or the folder that it is in, another name",
        )
    return text


def set_list(name: str, values: Iterable[str]) -> str:
    """`set(name values...)`; a list without elements is empty text."""
    return f"set({name} {' '.join(map(quote, values)) or quote('')})"


def set_lines(name: str, values: Iterable[str]) -> str:
    """`set(name ...)`, a value a line: for long lists."""
    lines = "".join(f"\n  {quote(value)}" for value in values)
    return f"set({name}{lines or ' ' + quote('')})"


def shell(words: Iterable[str]) -> str:
    """Words as one item of a list of options, which CMake keeps together and in order."""
    return "SHELL:" + shlex.join(words).replace("$<", "'$'<")


# ---- the folder, which leads to this very installation, run by this very interpreter ----------------------

PACKAGE = Path(__file__).resolve().parent
_INSTALLED = re.compile(r"(.*)/lib[^/]*/(python[0-9.]+)/site-packages/buildtool/fronts/cmake")


def cmake_folder() -> Path:
    """The package's own folder where it tells which interpreter is meant, else one that points to it.

    An installation lies below the prefix of its interpreter. A checkout may serve several of them: then the
    folder is one of the user's, whose files name the interpreter and include those of the package.
    UsageError where that cannot be written.
    """
    found = _INSTALLED.fullmatch(PACKAGE.as_posix())
    if found:
        program = Path(found[1], "bin", found[2])
        this = f"python{sys.version_info.major}.{sys.version_info.minor}"
        if program.is_file() and program == Path(sys.executable).parent / this:
            return PACKAGE
    name = hashlib.sha256(f"{sys.executable}\0{PACKAGE}".encode(errors="surrogateescape")).hexdigest()[:16]
    try:
        base = os.environ.get("XDG_DATA_HOME") or str(Path.home() / ".local/share")
        folder = Path(base).absolute() / "buildtool" / "cmake" / name
        for path in [*PACKAGE.glob("*.cmake"), *PACKAGE.glob("boards/*.cmake"), PACKAGE / "CMakeLists.txt"]:
            lines = (
                "# Written by `buildtool --cmake-dir`: the package, and the interpreter that it belongs to.",
                "if(NOT DEFINED CACHE{BUILDTOOL_PYTHON})",
                f"  set(BUILDTOOL_PYTHON {quote(sys.executable)})",
                "endif()",
                f"include({quote(path.as_posix())})\n",
            )
            write_whole(folder / path.relative_to(PACKAGE), "\n".join(lines).encode(errors="surrogateescape"))
    except (OSError, RuntimeError) as error:
        given = f"-Dbuildtool_DIR={PACKAGE} -DBUILDTOOL_PYTHON={sys.executable}"
        raise UsageError(
            f"cannot write the folder that tells CMake which Python is meant: {error}",
            hint=f"set XDG_DATA_HOME, or give CMake {given}",
        ) from None
    return folder


def write_whole(path: Path, data: bytes) -> None:
    """Puts a whole file in place, where it is not there already: who writes may be ended at any time."""
    if path.is_file() and path.read_bytes() == data:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    number, temporary = tempfile.mkstemp(dir=path.parent)
    with os.fdopen(number, "wb") as file:
        file.write(data)
    os.replace(temporary, path)  # noqa: PTH105 - of two that write, the last one wins
