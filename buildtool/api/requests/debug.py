"""The request `debug`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from buildtool.api.requests.parts import INPUT, RANDOM, Inputs, Made, Needs, Planning, Request, Values
from buildtool.base.errors import UsageError


@dataclass(frozen=True, kw_only=True)
class Debug(Planning):
    """A run under a debugger that connects to `port`; `made`: as for `validate`."""

    kind: ClassVar = "debug"
    takes: ClassVar = (*Planning.takes, *INPUT, "toolchain", "elf")
    handler: ClassVar = "buildtool.firmware.run.handover:debugging"
    needs: ClassVar = Needs.PROGRAMS
    made: Made | None = None
    inputs: Inputs = RANDOM
    port: int = 3333

    @classmethod
    def read(cls, values: Values) -> Request:
        """The request; what is built for it is built for a debugger."""
        found = super().read(values)
        assert isinstance(found, cls)
        if found.made is not None and found.made.elf.data is not None:
            raise UsageError("an image for a debugger has to be a file, not bytes", option="elf")
        return replace(found, target=replace(found.target, debug=True))
