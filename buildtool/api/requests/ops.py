"""The request `ops`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from buildtool.api.requests.parts import Request
from buildtool.base.files import Named


@dataclass(frozen=True)
class Ops(Request):
    """Which operators run, and by which kernel, on every known board; with `model`, those that it has."""

    kind: ClassVar = "ops"
    handler: ClassVar = "buildtool.api.answers.lists:ops"
    model: Named | None = None
