"""The request `split`."""

from __future__ import annotations

from typing import ClassVar

from buildtool.api.requests.parts import Needs, Request
from buildtool.options import OPTIONS, Group


class Split(Request):
    """A network that is split for a board: the command answers it, and has a type of its own for it."""

    kind: ClassVar = "split"
    takes: ClassVar = (
        "board",
        "ram",
        "max_ms",
        "seed",
        "normalise",
        *(option.name for option in OPTIONS if option.group is Group.SPLIT),
    )
    answers: ClassVar = "SplitAnswer"
    needs: ClassVar = Needs.PROGRAMS
