"""Compiles only the kernels that networks call, though CMake must name all sources before any is planned.

The library of a board's kernels has one small C file for each kernel that the board can run. It includes the
kernel's source if a network calls the kernel; else it is empty. `run.py called FILE NETWORKS FOLDER` writes
these files to FOLDER, in each build in which a network calls other kernels than before. FILE, which the
configuration has written, has the sources of the kernels by name. NETWORKS names the list of each network.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

from buildtool.fronts.cmake.quoting import write_whole

_EMPTY = "typedef int nn_not_called; /* no network calls this kernel */\n"


def name_file(kernel: str, source: str) -> str:
    """Returns the name of the C file that includes a kernel's source, or "" if the source itself is compiled.

    `kernel` is the kernel's name in the networks' lists, which is the name of its object file.
    """
    includable = source.endswith(".c") and '"' not in source
    return f"{kernel.removesuffix('.o')}.c" if includable else ""


def write(path: str, sources: Mapping[str, str]) -> None:
    """Writes FILE, which has the sources of the kernels by name."""
    write_whole(Path(path), json.dumps(sources, indent=1).encode())


def update(file: str, networks: str, folder: str) -> int:
    """Writes the C files that change, and then the stamp FOLDER.stamp. Returns the exit status."""
    lists = filter(None, os.fsdecode(Path(networks).read_bytes()).split("\n"))
    called = {
        name for path in lists for name in Path(path).read_text(encoding="utf-8", errors="replace").split()
    }
    for kernel, source in json.loads(Path(file).read_bytes()).items():
        text = f'#include "{source}"\n' if kernel in called else _EMPTY
        write_whole(Path(folder, name_file(kernel, source)), text.encode(errors="surrogateescape"))
    Path(f"{folder}.stamp").write_bytes(b"")
    return 0
