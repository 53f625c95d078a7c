"""How a footprint is come by: from recorded sizes, which takes no tool, or by compiling and linking."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from buildtool.base.errors import ToolError
from buildtool.base.session import Session
from buildtool.emit.sources import Sources, emit
from buildtool.firmware.bound import bound, foreseen, is_estimated
from buildtool.firmware.footprint import Footprint
from buildtool.firmware.linked import linked
from buildtool.graph.types import Graph
from buildtool.plan.types import Plan
from buildtool.target.registry import plugin, toolchain
from buildtool.target.types import Target, Toolchain

_STACK = re.compile(rb"#define \w+_STACK_BYTES (\d+)")
LINKED, BOUND, ESTIMATED, UNCOUNTED = "linked", "bound", "estimated", "uncounted"


@dataclass(frozen=True)
class Count:
    """A footprint (None: nothing is known of the code's size), and why it was not linked, if it was not.

    `estimated`: by what code takes on another core. `stack`: bytes of it that an invoke takes at most, None
    where nothing is recorded of that.
    """

    footprint: Footprint | None
    note: str = ""
    estimated: bool = False
    stack: int | None = None

    @property
    def how(self) -> str:
        """linked, bound, estimated or uncounted."""
        if self.footprint is None:
            return UNCOUNTED
        if self.estimated:
            return ESTIMATED
        return LINKED if self.footprint.exact else BOUND


def counted(
    graph: Graph,
    plan: Plan,
    target: Target,
    name: str,
    suffices: Callable[[Footprint], bool],
    session: Session,
) -> Count:
    """The footprint of a network's test firmware on a board.

    It is compiled and linked where the board's compiler is there, unless `suffices` says that an upper bound
    from recorded sizes will do.
    """
    if target.board.is_native:
        note = "images for this board run on this machine: their code says nothing about the board's"
        return Count(foreseen(graph, plan, target, session), note, is_estimated(target))
    sources, family = emit(graph, plan, target, name, session), plugin(target.board)
    tools, note = _tools(target)
    stack = _stack(sources)
    above = bound(sources, plan, target, tools.identity if tools else "")
    if above is not None and suffices(above):
        return Count(above, note, stack=stack)
    if tools is not None:
        try:
            return Count(linked(sources, plan, target, family, tools), stack=stack)
        except ToolError as error:
            note = error.text.partition("\n")[0]
    return Count(above, note, stack=stack)


def _stack(sources: Sources) -> int | None:
    """What the network's header says of the stack."""
    headers = (data for name, data in sources.files.items() if name.endswith(".h"))
    found = filter(None, (_STACK.search(data) for data in headers))
    return max((int(one[1]) for one in found), default=None)


def _tools(target: Target) -> tuple[Toolchain | None, str]:
    """The board's compiler, or why there is none."""
    try:
        return toolchain(target, ""), ""
    except ToolError as error:
        return None, error.text
