"""The request `sizes`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from buildtool.api.requests.parts import AS_BIN, FLASHED, Flashing, Needs, Request
from buildtool.base.files import File, Named


@dataclass(frozen=True)
class Sizes(Request):
    """What a linked image takes of each of the board's memories; `map`: what its linker wrote with it."""

    kind: ClassVar = "sizes"
    takes: ClassVar = FLASHED
    handler: ClassVar = "buildtool.api.answers.building:sizes"
    needs: ClassVar = Needs.PROGRAMS
    board: Named
    elf: File
    flashing: Flashing = AS_BIN
    map: File | None = None
