"""Where the code is that answers requests, and a digest of it: what was made by other code is stale."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import os
import sys
from collections.abc import Iterator
from pathlib import Path

ENTRY_POINTS = "buildtool.targets"  # the group under which packages offer boards
# Planner, emitter and what is recorded; the search is in C, whose libraries (buildtool/base/compiled.py) may
# be older or newer than their sources.
_OURS = (".py", ".c", ".h", ".toml", ".so", ".pyd")
_DATA = (".py", ".toml")  # boards, kernel catalogues with their costs, packing
ALL = ("",)  # of the code of others, which may read whatever lies beside it


def home() -> str:
    """The folder that holds the package, for PYTHONPATH: the checkout, or site-packages."""
    return str(Path(__file__).resolve().parents[2])


def environment() -> dict[str, str]:
    """The environment for another Python that imports this very package."""
    paths = [home(), *filter(None, [os.environ.get("PYTHONPATH")])]
    return os.environ | {"PYTHONPATH": os.pathsep.join(paths)}


def interpreter() -> str:
    """The Python that runs this: its file, whatever it was called by, and its environment's folder.
    Virtual environments that share a file are different: each finds packages of its own.
    """
    file = os.path.realpath(sys.executable) if sys.executable else ""  # "" where Python is embedded
    return f"{file} in {os.path.realpath(sys.prefix)}"


def namesakes() -> list[str]:
    """The `buildtool-VERSION.dist-info` folders here: somebody else's package has that name."""
    places = {place for place in _distributions() if place[1].lower().startswith("buildtool-")}
    return sorted(os.path.join(*place) for place in places)  # noqa: PTH118


def code_digest() -> str:
    """SHA-256 (hex) over buildtool, its target plugins and its kernel catalogues.

    Not over the C of kernels and start-up code, which decides no plan and is the build system's; but over
    the C that planning runs here: beside a module of its name, or called NAME_ask.h. Packages of others that
    offer boards count whole. Files that have not changed since an earlier call are not read again.
    """
    from buildtool.base.digests import Digests  # a caller that asks for a folder alone loads no msgpack

    seen = Digests(f"code of {home()}")
    digest = hashlib.sha256()
    for folder, name in _files():
        try:
            content = seen.digest(f"{folder}/{name}")
        except FileNotFoundError:
            continue  # a link to nothing, by which editors say that they have a file open
        digest.update(f"{name}\0{content}\0".encode(errors="surrogateescape"))
    seen.save()
    return digest.hexdigest()


def code_files() -> list[str]:
    """The files that the digest is of: absolute paths."""
    return [f"{folder}/{name}" for folder, name in _files()]


def code_folders() -> list[str]:
    """The folders that the digest is of."""
    return [str(folder) for folder, _ in _folders()]


def below(folder: str, suffixes: tuple[str, ...]) -> list[str]:
    """The files below `folder` with one of the suffixes, and the C that planning runs: relative, sorted."""
    files = []
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name != "__pycache__"]
        there = set(names)
        for name in names:
            stem, dot, end = name.rpartition(".")
            asked = name.endswith("_ask.h") or (end == "c" and f"{stem}.py" in there)
            if f"{dot}{end}" in suffixes or asked or (suffixes == ALL and end != "pyc"):
                files.append(f"{place}/{name}"[len(folder) + 1 :].replace(os.sep, "/"))
    return sorted(files)


def _files() -> Iterator[tuple[str, str]]:
    """Folder and name of every file that counts."""
    for folder, suffixes in _folders():
        for name in below(str(folder), suffixes):
            yield str(folder), name


def _folders() -> Iterator[tuple[Path, tuple[str, ...]]]:
    """The folders, and the suffixes of the files that count there."""
    root = Path(home())
    yield root / "buildtool", _OURS
    for name, beside in ("buildtool_plugins", "plugins/buildtool_plugins"), ("buildtool_kernels", "kernels"):
        if (root / beside).is_dir():
            yield root / beside, _DATA
        else:
            yield from ((folder, _DATA) for folder in _package(name))
    # packages of others that offer boards, as installers note them: importlib.metadata takes long
    noted = {f"{folder}/{name}/entry_points.txt" for folder, name in _distributions()}
    for name in sorted({one for path in noted for one in _offered_packages(path)} - {"buildtool_plugins"}):
        yield from ((folder, ALL) for folder in _package(name))


def _package(name: str) -> list[Path]:
    """The folders of a package, wherever it is installed."""
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return []
    return [Path(folder) for folder in (spec.submodule_search_locations or ())] if spec else []


def _distributions() -> Iterator[tuple[str, str]]:
    """Folder and name of each distribution's metadata."""
    for folder in sys.path:
        with contextlib.suppress(OSError):
            for name in os.listdir(folder or "."):  # noqa: PTH208
                if name.endswith((".dist-info", ".egg-info")):
                    yield folder, name


def _offered_packages(path: str) -> set[str]:
    """The packages that one distribution offers boards from."""
    try:
        text = Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return set()
    _, there, section = text.partition(f"[{ENTRY_POINTS}]")
    lines = section.partition("\n[")[0].splitlines() if there else []
    modules = (line.partition("=")[2].partition(":")[0].strip() for line in lines)
    return {module.partition(".")[0] for module in modules if module}
