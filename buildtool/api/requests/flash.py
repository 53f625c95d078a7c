"""The request `flash`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from buildtool.api.requests.parts import COMPILED, Made, Needs, Planning


@dataclass(frozen=True, kw_only=True)
class Flash(Planning):
    """Test firmware that answers over a wire, for a board's flash; `made`: as for `validate`."""

    kind: ClassVar = "flash"
    takes: ClassVar = (*Planning.takes, *COMPILED, "wire", "elf")
    handler: ClassVar = "buildtool.firmware.run.handover:flashed"
    needs: ClassVar = Needs.PROGRAMS
    made: Made | None = None
    tool: str = ""
