"""The request `profile`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from buildtool.api.requests.parts import COMPILED, DESK, INPUT, RANDOM, Inputs, Made, Needs, OnDesk, Planning
from buildtool.base.modes import Reference


@dataclass(frozen=True, kw_only=True)
class Profile(Planning):
    """A run that counts the instructions of every operator; `made`, `desk`: as for `validate`."""

    kind: ClassVar = "profile"
    takes: ClassVar = (*Planning.takes, *COMPILED, *INPUT, *DESK, "flashed", "tool", "elf")
    handler: ClassVar = "buildtool.firmware.run.profiling:profiling"
    needs: ClassVar = Needs.PROGRAMS
    made: Made | None = None
    inputs: Inputs = RANDOM
    desk: OnDesk | None = None
    reference: Reference = Reference.AUTO
