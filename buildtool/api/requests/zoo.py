"""The request `zoo`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from buildtool.api.requests.parts import Request, Values
from buildtool.base.errors import UsageError


@dataclass(frozen=True)
class Zoo(Request):
    """The networks that can be made by name; with `model`, that one's file."""

    kind: ClassVar = "zoo"
    handler: ClassVar = "buildtool.api.answers.lists:zoo"
    model: str = ""

    @classmethod
    def read(cls, values: Values) -> Request:
        """The request; a file is nothing that can be made."""
        model = values.get("model", "")
        if not isinstance(model, str):
            raise UsageError("it must be the name of a network", option="model")
        return cls(model)
