"""Where the code is that answers requests, and a digest of it: what was made by other code is stale."""

from __future__ import annotations

import hashlib
import importlib.util
from collections.abc import Iterator
from pathlib import Path

_OURS = (".py", ".c", ".h")  # planner and emitter; the planner's search is in C
_DATA = (".py", ".toml")  # boards, kernel catalogues with their costs, packing


def home() -> str:
    """The folder that holds the package, for PYTHONPATH: the checkout, or site-packages."""
    return str(Path(__file__).resolve().parents[1])


def code_digest() -> str:
    """SHA-256 (hex) over buildtool, its target plugins and its kernel catalogues.

    The C of kernels and start-up code has no part in it: it decides no plan, and a build system knows
    it as sources. C that planning runs on this machine has: it lies beside a module of its name, or is
    called NAME_ask.h.
    """
    digest = hashlib.sha256()
    for folder, suffixes in _folders():
        for path in sorted(p for p in folder.rglob("*") if p.suffix in suffixes or _is_asked(p)):
            name = path.relative_to(folder).as_posix().encode()
            digest.update(b"%d %s\0" % (path.stat().st_size, name))
            digest.update(path.read_bytes())
    return digest.hexdigest()


def _is_asked(path: Path) -> bool:
    """Whether planning asks what is in this C file."""
    return path.name.endswith("_ask.h") or (path.suffix == ".c" and path.with_suffix(".py").is_file())


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
