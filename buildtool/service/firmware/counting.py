"""How a footprint is come by: from recorded sizes, which takes no tool, or by compiling and linking."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from buildtool.emit.sources import emit
from buildtool.errors import ToolError
from buildtool.graph.types import Graph
from buildtool.plan.types import Plan
from buildtool.service.firmware.linked import linked
from buildtool.service.firmware.sizes import is_native
from buildtool.service.pipeline.footprint import Footprint
from buildtool.session import Session
from buildtool.target.registry import plugin, toolchain
from buildtool.target.types import Target, Toolchain

LINKED, BOUND, UNCOUNTED = "linked", "bound", "uncounted"


@dataclass(frozen=True)
class Count:
    """A footprint (None: nothing is known of the code's size), and why it was not linked, if it was not."""

    footprint: Footprint | None
    note: str = ""

    @property
    def how(self) -> str:
        """linked, bound or uncounted."""
        if self.footprint is None:
            return UNCOUNTED
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
    if is_native(target.board):
        return Count(
            None, "images for this board run on this machine: their code says nothing about the board's"
        )
    sources = emit(graph, plan, target, name, session)
    try:
        tools: Toolchain | None = toolchain(target, "")
        missing = ""
    except ToolError as error:
        tools, missing = None, error.text
    if tools is None:
        return Count(None, missing)
    return Count(linked(sources, plan, target, plugin(target.board), tools))
