"""Finds the code that answers requests, and computes its digest.

The digest is part of cache keys: a result that other code has computed is stale.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import os
import sys
from collections.abc import Iterator
from pathlib import Path

ENTRY_POINTS = "buildtool.targets"  # the group under which packages offer boards
# Planner, emitter and recorded sizes. The C libraries (buildtool/base/compiled.py) count as well as their
# sources: they may be older or newer than these.
_OWN_SUFFIXES = (".py", ".c", ".h", ".toml", ".so", ".dll")
_DATA_SUFFIXES = (".py", ".toml")  # boards, kernel catalogues with their costs, packing
ALL = ("",)  # every file beside foreign code counts: the code may read any of them


def home() -> str:
    """Returns the folder that contains the package `buildtool`: the checkout, or site-packages."""
    return str(Path(__file__).resolve().parents[2])


def environment() -> dict[str, str]:
    """Returns the environment for another Python process that imports this same package."""
    paths = [home(), *filter(None, [os.environ.get("PYTHONPATH")])]
    return os.environ | {"PYTHONPATH": os.pathsep.join(paths)}


def interpreter() -> str:
    """Returns a text that identifies the running Python: its real file, and the folder of its environment.
    Virtual environments that share the file differ: each has its own packages.
    """
    file = os.path.realpath(sys.executable) if sys.executable else ""  # "" where Python is embedded
    return f"{file} in {os.path.realpath(sys.prefix)}"


def namesakes() -> list[str]:
    """Returns the installed `buildtool-VERSION.dist-info` folders. They belong to another package of that
    name.
    """
    found = {entry for entry in _list_distributions() if entry[1].lower().startswith("buildtool-")}
    return sorted(os.path.join(*entry) for entry in found)  # noqa: PTH118


def code_digest() -> str:
    """Returns the SHA-256 (hex) of buildtool, its target plugins and its kernel catalogues.

    The C of kernels and start-up code does not count: it decides no plan, and the build system tracks it. C
    that planning compiles and runs on this machine counts: a .c file with the stem of a module beside it, and
    NAME_ask.h. If another distribution offers boards, all files of its package count. Unchanged files are not
    read again.
    """
    from buildtool.base.digests import Digests  # callers that only need a folder load no msgpack

    digests = Digests(f"code of {home()}")
    digest = hashlib.sha256()
    for folder, name in _list_files():
        try:
            content = digests.digest(f"{folder}/{name}")
        except FileNotFoundError:
            continue  # a dangling link: editors mark open files with one
        digest.update(f"{name}\0{content}\0".encode(errors="surrogateescape"))
    digests.save()
    return digest.hexdigest()


def code_files() -> list[str]:
    """Returns the absolute paths of the files that the digest covers."""
    return [f"{folder}/{name}" for folder, name in _list_files()]


def code_folders() -> list[str]:
    """Returns the folders that the digest covers."""
    return [str(folder) for folder, _ in _list_folders()]


def below(folder: str, suffixes: tuple[str, ...]) -> list[str]:
    """Returns the relative paths, sorted, of files below `folder`: those with one of the suffixes (ALL: every
    file except .pyc), and C files that planning compiles and runs on this machine.
    """
    files = []
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name != "__pycache__"]
        siblings = set(names)
        for name in names:
            stem, dot, end = name.rpartition(".")
            runs_here = name.endswith("_ask.h") or (end == "c" and f"{stem}.py" in siblings)
            if f"{dot}{end}" in suffixes or runs_here or (suffixes == ALL and end != "pyc"):
                files.append(f"{place}/{name}"[len(folder) + 1 :].replace(os.sep, "/"))
    return sorted(files)


def _list_files() -> Iterator[tuple[str, str]]:
    """Yields the folder and the relative path of every file that the digest covers."""
    for folder, suffixes in _list_folders():
        for name in below(str(folder), suffixes):
            yield str(folder), name


def _list_folders() -> Iterator[tuple[Path, tuple[str, ...]]]:
    """Yields each folder that the digest covers, with the suffixes of the files that count in that folder."""
    root = Path(home())
    yield root / "buildtool", _OWN_SUFFIXES
    for name, in_checkout in (
        ("buildtool_plugins", "plugins/buildtool_plugins"),
        ("buildtool_kernels", "kernels"),
    ):
        if (root / in_checkout).is_dir():
            yield root / in_checkout, _DATA_SUFFIXES
        else:
            yield from ((folder, _DATA_SUFFIXES) for folder in _find_package(name))
    # foreign packages that offer boards, by the files that installers write: importlib.metadata is slow
    paths = {f"{folder}/{name}/entry_points.txt" for folder, name in _list_distributions()}
    packages = {package for path in paths for package in _read_packages(path)}
    for name in sorted(packages - {"buildtool_plugins"}):
        yield from ((folder, ALL) for folder in _find_package(name))


def _find_package(name: str) -> list[Path]:
    """Returns the folders of a package, wherever it is installed."""
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return []
    return [Path(folder) for folder in (spec.submodule_search_locations or ())] if spec else []


def _list_distributions() -> Iterator[tuple[str, str]]:
    """Yields folder and name of each distribution's metadata."""
    for folder in sys.path:
        with contextlib.suppress(OSError):
            for name in os.listdir(folder or "."):  # noqa: PTH208
                if name.endswith((".dist-info", ".egg-info")):
                    yield folder, name


def _read_packages(path: str) -> set[str]:
    """Returns the packages from which a distribution offers boards; `path` is its entry_points.txt."""
    try:
        text = Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return set()
    _, header, section = text.partition(f"[{ENTRY_POINTS}]")
    lines = section.partition("\n[")[0].splitlines() if header else []
    modules = (line.partition("=")[2].partition(":")[0].strip() for line in lines)
    return {module.partition(".")[0] for module in modules if module}
