"""Where the code is that answers requests, and a digest of it: what was made by other code is stale."""

from __future__ import annotations

import hashlib
import importlib.util
import os
from collections.abc import Iterator
from pathlib import Path

from buildtool.seen import Seen

_OURS = (".py", ".c", ".h")  # planner and emitter; the planner's search is in C
_DATA = (".py", ".toml")  # boards, kernel catalogues with their costs, packing


def home() -> str:
    """The folder that holds the package, for PYTHONPATH: the checkout, or site-packages."""
    return str(Path(__file__).resolve().parents[1])


def code_digest() -> str:
    """SHA-256 (hex) over buildtool, its target plugins and its kernel catalogues.

    The C of kernels and start-up code has no part in it: it decides no plan, and a build system knows
    it as sources. C that planning runs on this machine has: it lies beside a module of its name, or is
    called NAME_ask.h. Files that have not changed since an earlier call are not read again.
    """
    seen = Seen(f"code of {home()}")
    digest = hashlib.sha256()
    for folder, suffixes in _folders():
        for name in below(str(folder), suffixes):
            content = seen.digest(f"{folder}/{name}")
            digest.update(f"{name}\0{content}\0".encode(errors="surrogateescape"))
    seen.save()
    return digest.hexdigest()


def below(folder: str, suffixes: tuple[str, ...]) -> list[str]:
    """The files below `folder` that have one of the suffixes, or that planning asks: relative, sorted."""
    found = []
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name != "__pycache__"]
        there = set(names)
        for name in names:
            stem, dot, end = name.rpartition(".")
            asked = name.endswith("_ask.h") or (end == "c" and f"{stem}.py" in there)
            if f"{dot}{end}" in suffixes or asked:
                found.append(f"{place}/{name}"[len(folder) + 1 :].replace(os.sep, "/"))
    return sorted(found)


def _folders() -> Iterator[tuple[Path, tuple[str, ...]]]:
    """The folders, and the suffixes of the files that count there."""
    root = Path(home())
    yield root / "buildtool", _OURS
    for name, beside in (
        ("buildtool_plugins", "plugins/buildtool_plugins"),
        ("buildtool_kernels", "kernels"),
    ):
        if (root / beside).is_dir():
            yield root / beside, _DATA
        elif (spec := importlib.util.find_spec(name)) and spec.submodule_search_locations:
            yield from ((Path(folder), _DATA) for folder in spec.submodule_search_locations)
