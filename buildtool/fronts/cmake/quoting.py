"""Quotes text and file names for CMake, and finds the folder for `-Dbuildtool_DIR=...`."""

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

# Text that CMake, Make or Ninja interprets even inside quotes.
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
    """Returns a text as a bracket argument, inside which CMake interprets nothing."""
    equals = ""
    while f"]{equals}]" in text or text.endswith(f"]{equals}"):
        equals += "="
    start = "\n" if text.startswith("\n") else ""  # CMake drops the first line break
    return f"[{equals}[{start}{text}]{equals}]"


def path(text: str, option: str = "") -> str:
    """Returns the path `text`. Raises UsageError if CMake cannot handle it.

    `option` is the option with this path.
    """
    special = next((words for mark, words in _SPECIAL.items() if mark in text), "")
    if not special and text.count("[") != text.count("]"):
        special = "a single bracket"
    if special:
        raise UsageError(
            f"CMake cannot handle {special} in the name of a file",
            path=text,
            option=option,
            hint="rename the file, or the folder that it is in",
        )
    return text


def set_list(name: str, values: Iterable[str]) -> str:
    """Returns `set(name values...)`. If there are no values, it sets an empty text."""
    return f"set({name} {' '.join(map(quote, values)) or quote('')})"


def set_lines(name: str, values: Iterable[str]) -> str:
    """Returns `set(name ...)` with one value per line, for long lists."""
    lines = "".join(f"\n  {quote(value)}" for value in values)
    return f"set({name}{lines or ' ' + quote('')})"


def shell(words: Iterable[str]) -> str:
    """Returns words as one item of a list of compile options, which CMake keeps together and in order."""
    return "SHELL:" + shlex.join(words).replace("$<", "'$'<")


# ---- the folder that leads to this installation and this interpreter ---------------------------------------

PACKAGE = Path(__file__).resolve().parent
_INSTALLED = re.compile(r"(.*)/lib[^/]*/(python[0-9.]+)/site-packages/buildtool/fronts/cmake")


def cmake_folder() -> Path:
    """Returns the folder of the CMake package, for `-Dbuildtool_DIR=...`.

    In an installation it is the package's own folder: CMake finds the Python interpreter from its place below
    the interpreter's prefix. A checkout may serve several interpreters. So it is then a folder of the user,
    with files that name the interpreter and include the package's files. Raises UsageError if that folder
    cannot be written.
    """
    match = _INSTALLED.fullmatch(PACKAGE.as_posix())
    if match:
        program = Path(match[1], "bin", match[2])
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
        settings = f"-Dbuildtool_DIR={PACKAGE} -DBUILDTOOL_PYTHON={sys.executable}"
        raise UsageError(
            f"cannot write the folder that names the Python interpreter for CMake: {error}",
            hint=f"set XDG_DATA_HOME, or give CMake {settings}",
        ) from None
    return folder


def write_whole(path: Path, data: bytes) -> None:
    """Writes a file unless it already has this content.

    If the process is killed meanwhile, the file is the old one or the new one.
    """
    if path.is_file() and path.read_bytes() == data:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    number, temporary = tempfile.mkstemp(dir=path.parent)
    with os.fdopen(number, "wb") as file:
        file.write(data)
    os.replace(temporary, path)  # noqa: PTH105 - if two processes write, the last one wins
