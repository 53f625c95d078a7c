"""The request `boards`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from buildtool.api.requests.parts import Request


@dataclass(frozen=True)
class Boards(Request):
    """The known boards and their memories."""

    kind: ClassVar = "boards"
    handler: ClassVar = "buildtool.api.answers.lists:boards"
