"""The request `front`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from buildtool.api.requests.parts import Planning


@dataclass(frozen=True, kw_only=True)
class Front(Planning):
    """All plans that no other beats in memory and work."""

    kind: ClassVar = "front"
    takes: ClassVar = tuple(  # it is all plans within limits: nothing chooses one
        name for name in Planning.takes if name not in ("strategy", "objective", "segments", "plan")
    )
    handler: ClassVar = "buildtool.api.answers.fronts:front_of"
    prepared: ClassVar = True
    peers: bool = False
