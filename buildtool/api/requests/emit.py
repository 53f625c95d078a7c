"""The request `emit`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from buildtool.api.requests.parts import Planning


@dataclass(frozen=True, kw_only=True)
class Emit(Planning):
    """The sources of a network; `name`: the prefix of its C interface ("": the model's name)."""

    kind: ClassVar = "emit"
    handler: ClassVar = "buildtool.api.answers.building:emit"
    prepared: ClassVar = True
    name: str = ""
