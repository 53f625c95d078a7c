"""Where the code is that answers requests, and a digest of it: what was made by other code is stale."""

from __future__ import annotations

import hashlib
import importlib.util
from collections.abc import Iterator
from pathlib import Path

_SUFFIXES = (".py", ".toml")  # planner and emitter; boards and kernel catalogues


def home() -> str:
    """The folder that holds the package, for PYTHONPATH: the checkout, or site-packages."""
    return str(Path(__file__).resolve().parents[1])


def code_digest() -> str:
    """SHA-256 (hex) over buildtool, its target plugins and its kernel catalogues."""
    digest = hashlib.sha256()
    for folder in _folders():
        for path in sorted(p for p in folder.rglob("*") if p.suffix in _SUFFIXES):
            name = path.relative_to(folder).as_posix().encode()
            digest.update(b"%d %s\0" % (path.stat().st_size, name))
            digest.update(path.read_bytes())
    return digest.hexdigest()


def _folders() -> Iterator[Path]:
    root = Path(home())
    yield root / "buildtool"
    for name, beside in (
        ("buildtool_plugins", "plugins/buildtool_plugins"),
        ("buildtool_kernels", "kernels"),
    ):
        if (root / beside).is_dir():
            yield root / beside
        elif (spec := importlib.util.find_spec(name)) and spec.submodule_search_locations:
            yield from map(Path, spec.submodule_search_locations)
