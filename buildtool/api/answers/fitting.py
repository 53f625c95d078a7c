"""A network on a board, counted: its plan, what firmware needs of each memory, and whether that is there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from buildtool.emit.image import image_layout
from buildtool.firmware.counting import Count, counted
from buildtool.firmware.needs import CODE, Footprint, Need, needs, needs_of
from buildtool.plan.choose.choose import nearest
from buildtool.plan.choose.limits import estimated_ms
from buildtool.plan.choose.memories import waiting

if TYPE_CHECKING:
    from buildtool.graph.types import Graph
    from buildtool.plan.choose.problem import Prepared
    from buildtool.plan.types import Plan

SPARE_CODE = 0.05  # of the code that is bounded: where less is left, the firmware is linked


@dataclass(frozen=True)
class Fitting:
    """A plan, and the memories that its firmware takes: the arena's and the weights' first.

    `flash`: bytes of the weight image; `stack`: bytes that an invoke takes of it at most, None where that is
    not known.
    """

    prepared: Prepared
    graph: Graph
    plan: Plan
    flash: int
    needs: tuple[Need, ...]
    count: Count

    @property
    def fits(self) -> bool:
        """Whether every memory, every limit and the stack suffice."""
        return not self.stack_excess and fits(self.needs)

    @property
    def stack_excess(self) -> int:
        """Bytes by which an invoke may take more stack than the board gives; 0 where that is not known."""
        return max(0, (self.count.stack or 0) - self.prepared.target.board.stack_bytes)

    @property
    def cost(self) -> float:
        """The plan's cost, with what its reads and writes wait for the arena's memories."""
        prepared = self.prepared
        return self.plan.cost + waiting(self.plan, self.graph, prepared.target, prepared.session)

    @property
    def estimated_ms(self) -> float | None:
        """The cost at the board's clock; None where it is no time."""
        return estimated_ms(self.cost, self.prepared.target)


def fitted(prepared: Prepared, name: str, *, exactly: bool) -> Fitting:
    """The plan of a problem, or the nearest one to its limits, and what its firmware needs.

    `name`: of the network. `exactly`: the firmware is compiled and linked wherever that can be; otherwise
    only where an upper bound leaves a doubt. BuildtoolError where there is no plan.
    """
    return fitted_plan(prepared, *nearest(prepared), name, exactly=exactly)


def fitted_plan(prepared: Prepared, graph: Graph, plan: Plan, name: str, *, exactly: bool) -> Fitting:
    """As `fitted`, of a plan that is at hand."""
    target, options = prepared.target, prepared.options
    flash = image_layout(graph, target.named(plan.kernels)).size
    least = needs(plan, target, flash, options)

    def suffices(bound: Footprint) -> bool:
        above = needs_of(bound, plan, target, flash, options)
        return not exactly and (_fits_surely(above) or not fits(least))

    count = counted(graph, plan, target, name, suffices, prepared.session)
    found = least
    if count.footprint is not None:
        found = needs_of(count.footprint, plan, target, flash, options)
    return Fitting(prepared, graph, plan, flash, found, count)


def fits(found: Sequence[Need]) -> bool:
    """Whether nothing is exceeded."""
    return not any(need.excess for need in found)


def _fits_surely(found: Sequence[Need]) -> bool:
    """Whether a bound fits with room for code that the recorded sizes do not foresee."""
    for need in found:
        code = sum(part.bytes for part in need.parts if part.name.startswith(CODE))
        if need.required + code * SPARE_CODE > need.available:
            return False
    return True
