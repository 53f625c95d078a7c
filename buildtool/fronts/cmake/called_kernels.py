"""Compiles only the kernels that networks call, though CMake must name all sources before it plans.

For CMake, the library of a board's kernels has a single source, FOLDER/sources.c. Its compiler has the
launcher `run.py compile FOLDER COMPILER`, which compiles sources.c, and with the same command line each
source that FOLDER.called lists. FOLDER.CONFIG.objects lists their objects for the archiver or the linker.
Objects that are up to date stay; others come from the user's cache, if it has them. A test firmware is
compiled in the same way: one process looks up all its objects.

When all networks are planned, `run.py called FILE NETWORKS FOLDER` writes FOLDER.called. FILE, which was
written when CMake configured the project, has the sources of all kernels by name. NETWORKS lists for each
network the file that lists its kernels. COMPILER is the record of the compiler (inputs.py).
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from buildtool.fronts.cmake.quoting import write_whole

if TYPE_CHECKING:
    from buildtool.client import Digests, Objects
    from buildtool.fronts.cmake.requests import Context

_CONFIG = "-DBUILDTOOL_CONFIG="
_SHARED = ("cache_url", "cache_mode")  # settings of the project for the shared cache


def write(
    path: str, context: Context, sources: Mapping[str, str], always: Mapping[str, str] | None = None
) -> None:
    """Writes FILE, whose path is `path`: kernel sources by the names of their objects, and cache settings.

    `sources` and `always` map an object's name to its source; those in `always` are compiled even if no
    network calls them. The project's variables for the shared cache are written, too.
    """
    shared = {f"BUILDTOOL_{name.upper()}": context[name] for name in _SHARED if context[name]}
    content = {"sources": dict(sources), "always": dict(always or {}), "variables": shared}
    write_whole(Path(path), _json(content))


def update(file: str, networks: str, folder: str) -> int:
    """Writes FOLDER.called and the stamp FOLDER.stamp. Returns the exit status."""
    lists = filter(None, os.fsdecode(Path(networks).read_bytes()).split("\n"))
    called = {
        name for path in lists for name in Path(path).read_text(encoding="utf-8", errors="replace").split()
    }
    content = json.loads(Path(file).read_bytes())
    called |= content["always"].keys()
    content["sources"] = {
        name: path for name, path in (content["sources"] | content["always"]).items() if name in called
    }
    write_whole(Path(f"{folder}.called"), _json(content))
    Path(f"{folder}.stamp").write_bytes(b"")
    return 0


def compile_sources(folder: str, compiler: str, *words: str) -> int:
    """Compiles sources.c by the command line `words`, and the sources that sources.c stands for.

    Returns the exit status. The file of dependencies that the compiler writes for sources.c then has the
    dependencies of these sources, too.
    """
    from buildtool.client import Objects  # `update` needs neither
    from buildtool.fronts.cmake.requests import read_stat_cache

    content = json.loads(Path(f"{folder}.called").read_bytes())
    os.environ.update(content["variables"])
    config = next((word.removeprefix(_CONFIG) for word in words if word.startswith(_CONFIG)), "")
    command = [word for word in words if not word.startswith(_CONFIG)]
    objects, seen, identity = Objects(), read_stat_cache(), Path(compiler).read_text()
    all_compiled = [_Source(command, name, path, identity) for name, path in content["sources"].items()]
    with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
        statuses: list[int] = list(pool.map(lambda one: one.compile(objects, seen), all_compiled))
    objects.close()
    seen.save()
    if failed := [status for status in statuses if status]:
        return failed[0]
    listed = "".join(f"{_escape(str(one.target.absolute()))}\n" for one in all_compiled)
    write_whole(Path(f"{folder}.{config}.objects"), os.fsencode(listed))
    status = subprocess.run(command, check=False).returncode
    if not status and "-MF" in command:
        rule = Path(command[command.index("-MF") + 1])
        paths = dict.fromkeys(path for one in all_compiled for path in one.reads)
        with rule.open("ab") as file:
            file.write(os.fsencode(f"{_target_of(command)}: {' '.join(map(_escape_rule, paths))}\n"))
    return status


class _Source:
    """A source to compile with the command line of sources.c. `reads` are the files that it was made from."""

    def __init__(self, command: Sequence[str], name: str, source: str, compiler: str) -> None:
        main, made = command[command.index("-c") + 1], command[command.index("-o") + 1]
        self.target = Path(made).parent / name
        rule = f"{self.target}.d"
        replaced = {main: source, made: str(self.target)}
        self._words = [replaced.get(word, word) for word in command]
        for i, word in enumerate(self._words[:-1]):
            if word in ("-MF", "-MT", "-MQ"):
                self._words[i + 1] = rule if word == "-MF" else str(self.target)
        self._record = self.target.with_suffix(".json")
        self._key = hashlib.sha256(os.fsencode("\0".join([*self._words, compiler]))).hexdigest()
        self.reads: list[str] = []

    def compile(self, objects: Objects, seen: Digests) -> int:
        """Makes the object unless it is up to date. Returns the exit status."""
        with suppress(OSError, ValueError, KeyError, TypeError):  # there is no record, or a damaged one
            record = json.loads(self._record.read_bytes())
            if record["key"] == self._key and self.target.is_file():
                self.reads = list(record["reads"])
                if all(seen.digest(path) == digest for path, digest in record["reads"].items()):
                    return 0
        self.target.parent.mkdir(parents=True, exist_ok=True)
        self._record.unlink(missing_ok=True)

        def run(words: Sequence[str]) -> int:
            return subprocess.run(words, check=False).returncode

        status, self.reads = objects.compile(self._words, run, os.environ, Path.cwd())
        with suppress(OSError):
            if not status and self.reads:
                digests = {path: seen.digest(path) for path in self.reads}
                write_whole(self._record, _json({"key": self._key, "reads": digests}))
        return status


def _target_of(command: Sequence[str]) -> str:
    """Returns the target of the compiler's rule of dependencies, as the command line names it."""
    return next((value for word, value in itertools.pairwise(command) if word == "-MT"), "")


def _escape(path: str) -> str:
    """Returns a path for a file of arguments, as archivers read it."""
    return re.sub(r"[\s\"'\\]", r"\\\g<0>", path)


def _escape_rule(path: str) -> str:
    """Returns a path for a rule of dependencies."""
    return re.sub(r"[ #]", r"\\\g<0>", path).replace("$", "$$")


def _json(content: object) -> bytes:
    return json.dumps(content, indent=1, sort_keys=True).encode(errors="surrogateescape")
