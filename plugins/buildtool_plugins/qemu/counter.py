"""The instruction-counting QEMU plugin: compiled on first use, kept per user, its results parsed."""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
from pathlib import Path

from buildtool.errors import ToolError

SOURCE = Path(__file__).resolve().parent / "count.c"
HEADER = SOURCE.with_name("plugin.h")
FLAGS = ("-std=gnu99", "-O2", "-shared", "-fPIC", "-fvisibility=hidden")
OUTPUT = "counts.txt"  # in the run's folder


def cache_folder() -> Path:
    """$XDG_CACHE_HOME/buildtool/qemu, or ~/.cache/buildtool/qemu."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "buildtool" / "qemu"


def counting_plugin() -> Path:
    """The plugin's shared object; raises ToolError when no host compiler is found or it fails."""
    content = [SOURCE.read_bytes(), HEADER.read_bytes()]
    key = hashlib.sha256(b"\0".join([*content, *map(str.encode, FLAGS), platform.machine().encode()]))
    built = cache_folder() / f"count-{key.hexdigest()[:16]}.so"
    if not built.is_file():
        _build(built)
    return built


def _build(built: Path) -> None:
    """Compiles beside the final place and renames: two builds at once both end well."""
    from buildtool_plugins.tools.find import find_host_compiler

    compiler = find_host_compiler()
    try:
        built.parent.mkdir(parents=True, exist_ok=True)
        part = Path(tempfile.mkdtemp(prefix="build-", dir=built.parent))
    except OSError as error:
        raise ToolError(
            f"the cache folder {built.parent} cannot be written: {error.strerror}",
            hint="set XDG_CACHE_HOME to a folder that can",
        ) from None
    try:
        made = part / built.name
        done = subprocess.run(
            [compiler, *FLAGS, str(SOURCE), "-o", str(made)],
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            check=False,
        )
        if done.returncode:
            raise ToolError(
                f"QEMU's counting plugin does not compile:\n{done.stderr.strip()}", path=str(SOURCE)
            )
        made.replace(built)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def parse_counts(text: bytes) -> tuple[dict[int, int], int]:
    """Instructions by operator, and of all invokes; raises ToolError."""
    counts: dict[int, int] = {}
    found = {"invokes": 0, "total": 0}
    for line in text.decode("ascii", "replace").splitlines():
        key, _, number = line.partition(" ")
        if not number.isdecimal() or not (key.isdecimal() or key in found):
            raise ToolError(f"QEMU's counting plugin wrote '{line}'")
        if key.isdecimal():
            counts[int(key)] = int(number)
        else:
            found[key] = int(number)
    if not found["invokes"]:
        raise ToolError(
            "no invoke was counted",
            hint="the image holds no network of buildtool's, or it ended before the first invoke",
        )
    return counts, found["total"]
