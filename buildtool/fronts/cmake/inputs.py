"""Checks a network's inputs by content in every build, because Ninja and Make only compare times.

`run.py check FILE` reads FILE, which was written when CMake configured the project. It writes two records
beside FILE, and changes a record only if its content changes: FILE.inputs (the network's files and
buildtool's code) and FILE.compiler (the compiler that its name stands for). The network's targets depend on
these records.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from buildtool.client import Digests, code_digest, hashing_always, identify
from buildtool.fronts.cmake.quoting import write_whole
from buildtool.fronts.cmake.requests import Context, read_stat_cache

if TYPE_CHECKING:
    from buildtool.client import answers

SUFFIXES = (".inputs", ".compiler")


def write(context: Context, files: list[str], answer: answers.DescribeAnswer) -> str:
    """Writes FILE for a network whose request names `files`, with what `check` compares; returns its path.

    `answer` is the answer to `describe`, which lists further files that the network depends on.
    """
    from buildtool.client.descriptions import OURS  # `check`, which every build runs, needs neither
    from buildtool.fronts.cmake.describing import locate

    path = f"{context['emitted']}.check"
    seen = read_stat_cache()
    configured = {locate(answer, place) for place in answer["depends"] if place["root"] not in OURS}
    content = {
        "files": [name for name in files if name not in context.generated],
        "configured": {
            name: _digest(seen, name) for name in sorted(configured) if name not in context.generated
        },
        "compiler": [*context.compiler, *context.flags],
        "hashed": bool(context["hash_inputs"]),
    }
    seen.save()
    write_whole(Path(path), json.dumps(content, indent=1).encode(errors="surrogateescape"))
    return path


def check(path: str) -> int:
    """Updates the records. Returns the exit status: 1 if the folder must be configured again."""
    configuration = json.loads(Path(path).read_bytes())
    with hashing_always(configuration["hashed"]):
        seen = read_stat_cache()
        configured = configuration["configured"]
        changed = [name for name, digest in configured.items() if _digest(seen, name) != digest]
        contents = [[name, _digest(seen, name)] for name in configuration["files"]]
        contents += sorted([name, digest] for name, digest in configured.items())
        seen.save()
        if changed:
            os.utime(path)  # the configuration depends on it
            text = "it has changed since the folder was configured, but its time does not show that"
            hint = "build once more: CMake will configure again"
            sys.stderr.write(f"{changed[0]}: error: {text}\n  hint: {hint}\n")
            return 1
        compiler = identify(configuration["compiler"], os.environ, ())
        values = ([contents, code_digest()], compiler and compiler.digest)
        for suffix, value in zip(SUFFIXES, values, strict=True):
            write_whole(Path(path).with_suffix(suffix), json.dumps(value, indent=1).encode())
    return 0


def _digest(seen: Digests, path: str) -> str:
    try:
        return seen.digest(path)
    except OSError:
        return ""
