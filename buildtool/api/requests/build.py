"""The request `build`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from buildtool.api.requests.parts import AS_BIN, COMPILED, DESK, FLASHED, Flashing, Needs, Planning


@dataclass(frozen=True, kw_only=True)
class Build(Planning):
    """The test firmware of a network; `name` as for `emit`."""

    kind: ClassVar = "build"
    takes: ClassVar = (*Planning.takes, *COMPILED, *FLASHED, *DESK)
    handler: ClassVar = "buildtool.api.answers.building:build"
    needs: ClassVar = Needs.PROGRAMS
    name: str = ""
    flashing: Flashing = AS_BIN
