"""Constants that are loaded into the arena: each load has a buffer of its own, for as long as it is read.

In a streamed region the constants of an operator may come again: with every turn of its group, or to
another place. There the replay finds out whether they are in the arena in every step that reads them.
"""

from __future__ import annotations

from buildtool.base.errors import PlanError
from buildtool.graph.types import Graph, Op, OpKind
from buildtool.plan.schedule.timeline import Timeline
from buildtool.plan.types import Buffer, BufferKind, Plan


def refuse_mixed(graph: Graph, op: Op, source: Buffer, output: Buffer) -> None:
    """PlanError where an operator that goes over its input for every slice of channels writes over it.

    Channel by channel, a depthwise convolution may: it does where both lie whole pixels apart.
    """
    if source.offset + source.size <= output.offset or output.offset + output.size <= source.offset:
        return
    pixel = graph.tensors[op.outputs[0]].pixel_bytes
    if not keeps_channels(graph, op) or (source.offset - output.offset) % pixel:
        raise PlanError("writes over its input, which it reads for every slice", operator=op.place)


def keeps_channels(graph: Graph, op: Op) -> bool:
    """Whether every channel of an operator's output is made of the same channel of its input alone."""
    same = graph.tensors[op.inputs[0]].nhwc[3] == graph.tensors[op.outputs[0]].nhwc[3]
    return op.kind is OpKind.DEPTHWISE_CONV_2D and same and not op.seen


def check_loads(plan: Plan, timeline: Timeline) -> None:
    """Every load has a buffer of its own; the buffers of an operator's loads live while it runs."""
    graph, runs = timeline.graph, timeline.lives
    streamed = {op for region in timeline.regions if region.is_streamed for op in region.ops}
    taken: set[int] = set()
    later: dict[int, Buffer] = {}  # operator -> the buffer of its latest load
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
        before = later.get(load.op)
        starts = runs[load.op].first if before is None else before.last + 1
        if buffer.first > starts or (before is not None and buffer.first < starts):
            raise PlanError("its constants do not live as long as it runs", operator=place)
        if load.op not in streamed and (before is not None or load.by_turns):
            raise PlanError("its constants come more than once, but it runs in one step", operator=place)
        if load.by_turns and (load.channels or load.slots > 1):
            raise PlanError("its constants come by turns and in slices", operator=place)
        later[load.op] = buffer
        if load.slots not in (1, 2) or (not load.channels and (load.slots > 1 or buffer.size < load.size)):
            raise PlanError(
                f"a buffer of {buffer.size} bytes cannot hold its {load.size} bytes of constants",
                operator=place,
            )
        if load.channels < 0 or (load.channels and runs[load.op].first != runs[load.op].last):
            raise PlanError("runs in slices of its channels, but in more than one step", operator=place)
        if load.channels:
            for overlap in (o for o in plan.overlaps if o.op == load.op):
                refuse_mixed(
                    graph, graph.ops[load.op], plan.buffers[overlap.input], plan.buffers[overlap.output]
                )
    for op, buffer in later.items():
        if buffer.last < runs[op].last:
            raise PlanError("its constants do not live as long as it runs", operator=graph.ops[op].place)
