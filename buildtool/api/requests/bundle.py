"""The request `bundle`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from buildtool.api.requests.parts import Needs, Planning


@dataclass(frozen=True, kw_only=True)
class Bundle(Planning):
    """The sources of a network and all that has to be compiled with them; `name` as for `emit`."""

    kind: ClassVar = "bundle"
    handler: ClassVar = "buildtool.api.bundling:answer"
    needs: ClassVar = Needs.PROGRAMS
    name: str = ""
