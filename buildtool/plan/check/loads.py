"""Constants that are loaded into the arena: each load has a buffer of its own, for as long as it is read."""

from __future__ import annotations

from buildtool.errors import PlanError
from buildtool.plan.schedule.timeline import Timeline
from buildtool.plan.types import BufferKind, Plan


def check_loads(plan: Plan, timeline: Timeline) -> None:
    """Every load has a buffer of its own, which lives while its operator runs."""
    graph, runs = timeline.graph, timeline.lives
    taken: set[int] = set()
    for load in plan.loads:
        if (
            load.op < 0
            or load.op not in runs
            or not 0 <= load.buffer < len(plan.buffers)
            or load.buffer in taken
        ):
            raise PlanError(f"buffer {load.buffer} cannot take the constants of operator {load.op}")
        taken.add(load.buffer)
        buffer, place = plan.buffers[load.buffer], graph.ops[load.op].place
        if buffer.kind is not BufferKind.WEIGHTS or buffer.op != load.op:
            raise PlanError(
                f"its constants are loaded into '{buffer.name}', another's buffer", operator=place
            )
        if buffer.first > runs[load.op].first or buffer.last < runs[load.op].last:
            raise PlanError("its constants do not live as long as it runs", operator=place)
        if load.slots not in (1, 2) or (not load.channels and (load.slots > 1 or buffer.size < load.size)):
            raise PlanError(
                f"a buffer of {buffer.size} bytes cannot hold its {load.size} bytes of constants",
                operator=place,
            )
        if load.channels < 0 or (load.channels and runs[load.op].first != runs[load.op].last):
            raise PlanError("runs in slices of its channels, but in more than one step", operator=place)
        if load.channels and any(o.op == load.op for o in plan.overlaps):
            raise PlanError("writes over its input, which it reads for every slice", operator=place)
