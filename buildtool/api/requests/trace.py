"""The request `trace`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from buildtool.api.requests.parts import Planning


@dataclass(frozen=True, kw_only=True)
class Trace(Planning):
    """A plan over time, for trace viewers."""

    kind: ClassVar = "trace"
    handler: ClassVar = "buildtool.api.answers.traces:traced"
