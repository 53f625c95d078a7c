"""Which step binds: where the arena is fullest, and which operator runs there."""

from __future__ import annotations

from dataclasses import dataclass

from buildtool.base.session import Session
from buildtool.graph.types import Graph
from buildtool.plan.place.arena import arena_problem
from buildtool.plan.place.bounds import bound
from buildtool.plan.schedule.timeline import Timeline
from buildtool.plan.summary.summary import peak
from buildtool.plan.types import SOURCE, Plan


@dataclass(frozen=True)
class Binding:
    """The fullest step (the first, of several): its operator's position (-1: there is none).

    `place`: the operator as messages call it. `live_bytes`: aligned; what buffers share counts once, and
    in a streamed region windows and scratch count only while they are in use.
    """

    op: int
    place: str
    step: int
    live_bytes: int


def binding(plan: Plan, graph: Graph, session: Session | None = None) -> Binding:
    """Where `plan` is fullest. `session`: what may know the plan's timeline already."""
    if any(region.is_streamed for region in plan.regions):
        moment = peak(plan, graph, session=session)
        assert moment is not None
        place = "" if moment.step.op == SOURCE else graph.ops[moment.step.op].place
        return Binding(moment.step.op, place, moment.number, moment.bytes)
    most = bound(arena_problem(plan.buffers, plan.overlaps, plan.alignment))
    steps = Timeline.of(graph, plan.regions, plan.image, session).steps[:, 0].tolist()
    if most.time >= len(steps):
        return Binding(-1, "", most.time, most.live)
    op = steps[most.time]
    if op == SOURCE:
        return Binding(op, "", most.time, most.live)
    return Binding(op, graph.ops[op].place, most.time, most.live)
