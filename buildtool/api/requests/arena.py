"""The request `arena`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from buildtool.api.requests.parts import Request
from buildtool.base.files import File


@dataclass(frozen=True)
class Arena(Request):
    """An arena problem; `capacity` in bytes and `budget` in nodes, where there are such limits."""

    kind: ClassVar = "arena"
    handler: ClassVar = "buildtool.api.answers.arena:arena"
    file: File
    capacity: int | None = None
    budget: int | None = None
