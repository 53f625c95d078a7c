"""What code was found to take, by core and compiler: the tables in recorded/, which a command writes.

    python benchmarks/record_sizes.py BOARD...

Cores with the same compiler flags, and vectors as long, share a table. Nothing is compiled or asked for here.
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
    """Of one compiler, in bytes.

    `code`: source of a kernel ("family/file") -> its code and constants, at most. `stack`: symbol of a kernel
    or routine -> the stack that a call takes. `support`: function of the run-time support -> its code;
    `helpers`: symbol -> which of them it calls, "" for the firmware around a network. `firmware`: code and
    constants of start-up, runtime and test firmware; `variables`: theirs, and a network's.

    `network`: feature of emitted code -> bytes each, which together bound a network's own code and constants;
    `frame`: the same for what its own functions take of the stack.
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
    """All that is recorded of a core, the newest compiler last; empty for an unknown one."""
    return read(core.cflags, core.vector_bits)[1]


@cache
def _tables() -> dict[tuple[tuple[str, ...], int], tuple[Path, tuple[Recorded, ...]]]:
    found = {}
    for path in sorted(FOLDER.glob("*.toml")):
        table = tomllib.loads(path.read_text(encoding="utf-8"))
        entries = tuple(Recorded(**entry) for entry in table["compilers"])
        found[tuple(table["cflags"]), table["vector_bits"]] = (path, entries)
    return found


def read(cflags: Sequence[str], vector_bits: int) -> tuple[Path | None, tuple[Recorded, ...]]:
    """The table of a core with these flags, and its file; (None, ()) where there is none."""
    return _tables().get((tuple(cflags), vector_bits), (None, ()))
