"""The request `describe`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from buildtool.api.requests.parts import (
    AS_BIN,
    COMPILED,
    DESK,
    FLASHED,
    TARGET,
    Flashing,
    Needs,
    Request,
    Values,
)
from buildtool.base.errors import UsageError, suggest

if TYPE_CHECKING:
    from buildtool.base.files import Named
    from buildtool.options.values import TargetChoice


@dataclass(frozen=True, kw_only=True)
class Describe(Request):
    """What a build system has to know to build for a board, and with `model` that network.

    `name`: the prefix of the network's C interface ("": the model's name).
    """

    kind: ClassVar = "describe"
    takes: ClassVar = ("board", *TARGET, *COMPILED, *FLASHED, *DESK)
    handler: ClassVar = "buildtool.api.describe:answer"
    needs: ClassVar = Needs.COMPILERS
    prepared: ClassVar = True
    model: Named | None = None
    name: str = ""
    flashing: Flashing = AS_BIN
    target: TargetChoice

    @classmethod
    def read(cls, values: Values) -> Request:
        """The request; a name is of a model."""
        if values.get("name", "") and "model" not in values.given:
            text = "it has no effect without a model"
            raise UsageError(text, option="name", hint=suggest(name=None))
        return super().read(values)
