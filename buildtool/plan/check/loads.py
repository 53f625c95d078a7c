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
    pixel = graph.tensors[op.outputs[0]].pixel_bytes
    apart = keeps_channels(graph, op) and (source.offset - output.offset) % pixel == 0
    if source.touches(output) and not apart:
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
    latest: dict[int, Buffer] = {}  # operator -> the buffer of its latest load
    for load in plan.loads:
        is_there = load.op >= 0 and load.op in runs and 0 <= load.buffer < len(plan.buffers)
        if not is_there or load.buffer in taken:
            raise PlanError(f"buffer {load.buffer} cannot take the constants of operator {load.op}")
        taken.add(load.buffer)
        buffer, life, before = plan.buffers[load.buffer], runs[load.op], latest.get(load.op)
        starts = life.first if before is None else before.last + 1
        too_small = not load.channels and (load.slots > 1 or buffer.size < load.size)
        text = ""
        if buffer.kind is not BufferKind.WEIGHTS or buffer.op != load.op:
            text = f"its constants are loaded into '{buffer.name}', another's buffer"
        elif buffer.first > starts or (before is not None and buffer.first < starts):
            text = "its constants do not live as long as it runs"
        elif load.op not in streamed and (before is not None or load.by_turns):
            text = "its constants come more than once, but it runs in one step"
        elif load.by_turns and (load.channels or load.slots > 1):
            text = "its constants come by turns and in slices"
        elif load.slots not in (1, 2) or too_small:
            text = f"a buffer of {buffer.size} bytes cannot hold its {load.size} bytes of constants"
        elif load.channels < 0 or (load.channels and life.first != life.last):
            text = "runs in slices of its channels, but in more than one step"
        if text:
            raise PlanError(text, operator=graph.ops[load.op].place)
        latest[load.op] = buffer
        for o in (o for o in plan.overlaps if load.channels and o.op == load.op):
            refuse_mixed(graph, graph.ops[load.op], plan.buffers[o.input], plan.buffers[o.output])
    for op, buffer in latest.items():
        if buffer.last < runs[op].last:
            raise PlanError("its constants do not live as long as it runs", operator=graph.ops[op].place)
