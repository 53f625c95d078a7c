"""Reads the measured sizes of code and stack, by core and compiler: the tables in recorded/.

This command writes them:

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

    `code`: of each kernel's source ("family/file"), the largest measured code and constants.
    `stack`: the stack of a call, by the symbol of a kernel or routine.
    `support`: the code of each function of the run-time support.
    `helpers`: the support functions that a symbol calls; "" stands for the firmware around a network.
    `firmware`: code and constants of start-up code, runtime and test firmware.
    `variables`: the variables of these, and of a network.
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
    """Returns the recorded sizes for a core, an entry for each compiler, the newest last; empty if there are
    none.
    """
    return read(core.cflags, core.vector_bits)[1]


def read(cflags: Sequence[str], vector_bits: int) -> tuple[Path | None, tuple[Recorded, ...]]:
    """Returns the file with the sizes for cores with these compiler flags, and its entries; (None, ()) if
    there is none.
    """
    path = _find_files().get((tuple(cflags), vector_bits))
    return path, _read(path) if path else ()


@cache
def _find_files() -> dict[tuple[tuple[str, ...], int], Path]:
    """Returns the paths of the tables, by the compiler flags and the vector length that are at the top of
    each.
    """
    files = {}
    for path in sorted(FOLDER.glob("*.toml")):
        head = tomllib.loads(path.read_text(encoding="utf-8").partition("\n[[")[0])
        files[tuple(head["cflags"]), head["vector_bits"]] = path
    return files


@cache
def _read(path: Path) -> tuple[Recorded, ...]:
    table = tomllib.loads(path.read_text(encoding="utf-8"))
    return tuple(Recorded(**entry) for entry in table["compilers"])
