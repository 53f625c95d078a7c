"""The request `target`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from buildtool.api.requests.parts import Needs, Request
from buildtool.base.files import Named


@dataclass(frozen=True)
class Target(Request):
    """The kernels of a target plugin against the reference, on `boards` (none: all that can be run).

    `cases`: random networks for each kernel, made from `seed`.
    """

    kind: ClassVar = "target"
    handler: ClassVar = "buildtool.api.checking.check:check"
    needs: ClassVar = Needs.PROGRAMS
    plugin: str
    boards: tuple[Named, ...] = ()
    toolchain: str = ""
    cases: int = 4
    seed: int = 0
