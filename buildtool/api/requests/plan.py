"""The request `plan`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from buildtool.api.requests.parts import Planning


@dataclass(frozen=True, kw_only=True)
class Plan(Planning):
    """How a model will run on a board."""

    kind: ClassVar = "plan"
    handler: ClassVar = "buildtool.api.answers.planreport:answer"
    prepared: ClassVar = True
    compare: bool = False
