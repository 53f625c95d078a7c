"""The request `report`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from buildtool.api.requests.parts import Needs, Planning


@dataclass(frozen=True, kw_only=True)
class Report(Planning):
    """A plan with all that a page about it draws, whether it fits or not; `peers`: as for `front`."""

    kind: ClassVar = "report"
    handler: ClassVar = "buildtool.api.answers.reporting:report_of"
    needs: ClassVar = Needs.COMPILERS
    peers: bool = False
