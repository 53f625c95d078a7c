"""The answer to `trace`: a plan over time, as a file that trace viewers open."""

from __future__ import annotations

from typing import TYPE_CHECKING

from buildtool.firmware.planned import planned_or_given
from buildtool.plan.others.chrometrace import Clock, trace
from buildtool.plan.summary.steps import plan_steps

if TYPE_CHECKING:
    from buildtool.api.requests.kinds import Trace
    from buildtool.base.session import Session
    from buildtool.schema.plans import TraceAnswer
    from buildtool.target.types import Target


def clock_of(target: Target) -> Clock:
    """What a unit of cost is in a trace: time where costs are cycles and the board's clock is known."""
    if target.cost_ms is None:
        unit = target.cost_unit.removesuffix("s")
        return Clock(words=f"1 us stands for 1 {unit} of the estimated cost; it is no time")
    clock = (target.board.clock_hz or 0) / 1e6
    return Clock(target.cost_ms * 1e6, f"estimated: cycles of the cost model at {clock:g} MHz")


def traced(request: Trace, session: Session) -> TraceAnswer:
    """A plan over time, as a file that trace viewers open; also of a plan that does not fit."""
    made = planned_or_given(request.model, request.target, request.options, request.lock, session)
    plan, graph, target = made.plan, made.graph, made.target
    steps = plan_steps(plan, graph, target.named(plan.kernels), target.costs, made.session)
    clock = clock_of(target)
    about = {"model": made.model.name, "board": target.board.name}
    found = trace(steps, plan, graph, clock, about, target.board.holders)
    return {
        "model": made.model.name,
        "board": target.board.name,
        "cost_unit": str(target.cost_unit),
        "time": clock.words,
        "steps": len(steps.cost),
        "slices": found.slices,
        "merged": found.merged,
        "buffers": len(steps.held),
        "files": {f"{made.model.name}.trace.json": found.data},
    }
