"""The request `front`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from buildtool.api.requests.parts import Planning

# It is all plans that there are within limits: nothing chooses one.
_TAKEN = tuple(o for o in Planning.takes if o not in ("strategy", "objective", "segments", "plan"))


@dataclass(frozen=True, kw_only=True)
class Front(Planning):
    """All plans that no other beats in memory and work."""

    kind: ClassVar = "front"
    takes: ClassVar = (*_TAKEN, "peers")
    handler: ClassVar = "buildtool.api.answers.fronts:front_of"
    prepared: ClassVar = True
    peers: bool = False
