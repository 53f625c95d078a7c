"""Measured sizes of code and stack, by core and compiler: the tables in recorded/. A command writes them:

    python benchmarks/record_sizes.py BOARD...

Cores with the same compiler flags and the same vector length share a table. Nothing is compiled here.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from buildtool.target.hardware import Core

FOLDER = Path(__file__).resolve().parent / "recorded"


@dataclass(frozen=True)
class Recorded:
    """The sizes for one compiler, in bytes.

    `code`: the largest code and constants of a kernel's source ("family/file").
    `stack`: the stack of a call, by the symbol of a kernel or routine.
    `support`: the code of each function of the run-time support.
    `helpers`: the support functions that a symbol calls; "" stands for the firmware around a network.
    `firmware`: code and constants of start-up code, runtime and test firmware.
    `variables`: their variables, and those of a network.
    `network`: bytes for each feature of emitted code; the sum bounds a network's own code and constants.
    `frame`: the same for the stack of the network's own functions.
    """

    compiler: str
    toolchain: str
    code: Mapping[str, int]
    stack: Mapping[str, int]
    support: Mapping[str, int]
    helpers: Mapping[str, Sequence[str]]
    firmware: int
    variables: int
    network: Mapping[str, float]
    frame: Mapping[str, float]


def recorded_sizes(core: Core) -> tuple[Recorded, ...]:
    """Returns the recorded sizes for a core, the newest compiler last; empty if there are none."""
    return read(core.cflags, core.vector_bits)[1]


def read(cflags: Sequence[str], vector_bits: int) -> tuple[Path | None, tuple[Recorded, ...]]:
    """Returns the file and the sizes for cores with these flags; (None, ()) if there are none."""
    path = _find_files().get((tuple(cflags), vector_bits))
    return path, _read(path) if path else ()


@cache
def _find_files() -> dict[tuple[tuple[str, ...], int], Path]:
    """Returns the tables' files by flags and vector length, which stand before the sizes."""
    files = {}
    for path in sorted(FOLDER.glob("*.toml")):
        head = tomllib.loads(path.read_text(encoding="utf-8").partition("\n[[")[0])
        files[tuple(head["cflags"]), head["vector_bits"]] = path
    return files


@cache
def _read(path: Path) -> tuple[Recorded, ...]:
    table = tomllib.loads(path.read_text(encoding="utf-8"))
    return tuple(Recorded(**entry) for entry in table["compilers"])
