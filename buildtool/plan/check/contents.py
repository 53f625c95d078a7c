"""Checks of a plan's buffers by themselves: tensors and rows that exist, enough bytes, and no duplicates.

The replay checks that reads find the right bytes. It relies on what is checked here: rings have rows and
columns, and moves are between buffers that exist. Constants in the arena are checked here as well: each load
has a buffer of its own, which lives as long as it is read. In a streamed region the constants of an operator
may be loaded again, at each turn of its group or to another place.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from buildtool.base.errors import PlanError
from buildtool.graph.partviews import parts
from buildtool.graph.types import Graph, Op, OpKind
from buildtool.plan.check.reads import kept_rows, sums_up, swapping
from buildtool.plan.check.states import arena_groups
from buildtool.plan.schedule.delivery import delivered_image
from buildtool.plan.schedule.timeline import Timeline, group_of
from buildtool.plan.schedule.timeline import parts as parts_of_group
from buildtool.plan.types import Buffer, BufferKind, Plan

_TENSORS = (BufferKind.TENSOR, BufferKind.RING)
_SUM_BYTES = 4  # per channel of a global pooling's accumulator


def check_contents(plan: Plan, graph: Graph) -> None:
    """Raises PlanError unless every buffer is large enough, and every activation has one buffer.

    An activation has one more buffer for each of its moves. Only the graph decides which activations exist
    and which of them share their bytes.
    """
    # These texts go into comments of the emitted C and onto terminals, and must not break out of them.
    names = (buffer.name for buffer in (*plan.buffers, *plan.states))
    for text in (plan.strategy, plan.target, *plan.accounting, *names):
        if not text.isprintable() or "*/" in text or "/*" in text:
            raise PlanError(f"the plan has text that cannot be shown: {text!a:.60}")
    count = len(plan.buffers)
    for overlap in plan.overlaps:
        if not all(0 <= position < count for position in (overlap.input, overlap.output)):
            raise PlanError(f"an overlap names buffers {overlap.input} and {overlap.output} of {count}")
    for move in plan.moves:
        if not all(0 <= position < count for position in (move.source, move.target)):
            raise PlanError(f"a move names buffers {move.source} and {move.target} of {count}")
    groups, parts_of, image = arena_groups(graph), parts(graph), delivered_image(graph)
    moved = {move.target for move in plan.moves}
    first_buffers: dict[int, int] = {}  # tensor -> the buffer that it is in at first
    summed: set[int] = set()
    kept, lines, swaps = kept_rows(graph, plan.regions), set[int](), swapping(plan.regions)
    for index, buffer in enumerate(plan.buffers):
        _check_tensors(buffer, graph, groups)
        for t in buffer.tensors if index not in moved else ():
            if first_buffers.setdefault(t, index) != index:
                raise PlanError("a tensor has two buffers", tensor=graph.tensors[t].name)
        for t in buffer.tensors:
            if not buffer.rows or t != image.input:  # rows of an image are those behind its reshapes
                _check_ring(buffer, graph, t)
        if buffer.rows and image.input in buffer.tensors:
            _check_ring(buffer, graph, image.tensor)
        if buffer.kind is BufferKind.ACCUMULATOR:
            _check_sums(buffer, graph)
            if buffer.op in summed:
                raise PlanError("it has accumulators twice", operator=graph.ops[buffer.op].place)
            summed.add(buffer.op)
        if buffer.kind is BufferKind.LINES:
            _check_lines(buffer, graph, kept, swaps)
            if buffer.op in lines:
                raise PlanError("it has lines twice", operator=graph.ops[buffer.op].place)
            lines.add(buffer.op)
    for op in kept.keys() - lines - swaps:  # all columns of one that swaps may be in its window
        text = "the next steps of its group read its rows again, but it has no lines"
        raise PlanError(text, operator=graph.ops[op].place)
    for t, group in groups.items():
        holder = first_buffers.get(group)
        in_ring = holder is not None and plan.buffers[holder].kind is BufferKind.RING
        if t not in first_buffers and t in parts_of and in_ring:
            continue  # a ring has the tensor that its operator makes, without the parts that are read of it
        if t not in first_buffers or first_buffers[t] != holder:
            beside = "" if t == group else " with the tensor it aliases"
            raise PlanError(f"a tensor has no buffer{beside}", tensor=graph.tensors[t].name)


def _check_tensors(buffer: Buffer, graph: Graph, groups: dict[int, int]) -> None:
    """Raises PlanError unless all tensors of a buffer are activations that share their bytes.

    `groups`: see `alias_groups`.
    """
    for t in buffer.tensors:
        if t not in groups:
            raise PlanError(f"buffer '{buffer.name}' holds tensor {t}, which is not an activation")
    if bool(buffer.tensors) != (buffer.kind in _TENSORS) or len({groups[t] for t in buffer.tensors}) > 1:
        raise PlanError(f"buffer '{buffer.name}' holds different tensors")
    if len(set(buffer.tensors)) < len(buffer.tensors):
        raise PlanError("a tensor has two buffers", tensor=graph.tensors[buffer.tensors[0]].name)


def _check_ring(buffer: Buffer, graph: Graph, t: int) -> None:
    """Raises PlanError if a ring has more rows or columns than its tensor `t`, or too few bytes for them."""
    tensor = graph.tensors[t]
    batch, height, width, channels = tensor.nhwc
    is_within = 0 <= buffer.rows <= height and 0 <= buffer.columns <= (width if buffer.rows else 0)
    if not is_within or (buffer.rows and batch > 1):
        rings = f"buffer '{buffer.name}' keeps {buffer.rows} rows and {buffer.columns} columns"
        raise PlanError(f"{rings} of {height} x {width}", tensor=tensor.name)
    pixels = (buffer.rows or height * batch) * (buffer.columns or width)
    needed = pixels * channels * tensor.dtype.size
    if buffer.size < needed:
        raise PlanError(f"the buffer has {buffer.size} of {needed} bytes", tensor=tensor.name)


def _check_sums(buffer: Buffer, graph: Graph) -> None:
    """Raises PlanError unless the accumulators of a global pooling have a sum for each channel."""
    if not 0 <= buffer.op < len(graph.ops):
        raise PlanError(f"buffer '{buffer.name}' serves operator {buffer.op} of {len(graph.ops)}")
    op = graph.ops[buffer.op]
    if not sums_up(graph, op):
        raise PlanError("it has accumulators, and adds nothing up", operator=op.place)
    needed = sum_bytes(graph, op)
    if buffer.size < needed:
        raise PlanError(f"it needs {needed} bytes of accumulators, it has {buffer.size}", operator=op.place)


def _check_lines(buffer: Buffer, graph: Graph, kept: Mapping[int, int], swaps: Collection[int]) -> None:
    """Raises PlanError unless a buffer of LINES holds all rows of an operator's output that are read again.

    `kept`: operator -> how many rows a later step reads again. `swaps`: operators of which such a buffer has
    only some columns of each row; the others are in a window.
    """
    if buffer.op not in kept:
        raise PlanError(
            f"buffer '{buffer.name}' keeps rows of operator {buffer.op}, which are not read again"
        )
    op = graph.ops[buffer.op]
    tensor, most = graph.tensors[op.outputs[0]], 0
    if buffer.op in swaps:
        most = tensor.nhwc[2]
    needed = kept[buffer.op] * (min(buffer.columns, most) * tensor.pixel_bytes or tensor.row_bytes)
    is_within = buffer.columns == 0 if not most else 0 < buffer.columns <= most
    if buffer.size < needed or buffer.rows != kept[buffer.op] or not is_within:
        needs = f"it needs {kept[buffer.op]} rows and {needed} bytes of lines"
        raise PlanError(f"{needs}, it has {buffer.rows} and {buffer.size}", operator=op.place)


def sum_bytes(graph: Graph, op: Op) -> int:
    """Returns the bytes of the accumulators of a global pooling."""
    return _SUM_BYTES * graph.tensors[op.as_seen.inputs[0]].nhwc[3]


def refuse_mixed(graph: Graph, op: Op, source: Buffer, output: Buffer) -> None:
    """Raises PlanError if an operator writes over input that it reads again for each slice of channels.

    A depthwise convolution may write over its input if both lie whole pixels apart, since it works channel by
    channel. `source`, `output`: the buffers of the operator's input and output.
    """
    pixel = graph.tensors[op.outputs[0]].pixel_bytes
    apart = keeps_channels(graph, op) and (source.offset - output.offset) % pixel == 0
    if source.touches(output) and not apart:
        raise PlanError("writes over its input, which it reads for every slice", operator=op.place)


def keeps_channels(graph: Graph, op: Op) -> bool:
    """Returns whether every channel of an operator's output depends only on the same channel of its input."""
    same = graph.tensors[op.inputs[0]].nhwc[3] == graph.tensors[op.outputs[0]].nhwc[3]
    return op.kind is OpKind.DEPTHWISE_CONV_2D and same and not op.seen


def check_loads(plan: Plan, timeline: Timeline) -> None:
    """Raises PlanError unless every load has its own buffer, which lives while its operator runs."""
    graph, runs = timeline.graph, timeline.lives
    streamed = {op for region in timeline.regions if region.is_streamed for op in region.ops}
    taken: set[int] = set()
    latest: dict[int, Buffer] = {}  # operator -> the buffer of its latest load
    firsts: dict[int, list[int]] = {}  # operator -> steps before which it is loaded; not at turns
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
            text = "its constants are loaded more than once, but it runs in one step"
        elif load.by_turns and (load.channels or load.slots > 1):
            text = "its constants are loaded both at each turn and in slices"
        elif load.slots not in (1, 2) or too_small:
            text = f"a buffer of {buffer.size} bytes cannot hold its {load.size} bytes of constants"
        elif load.channels < 0 or (load.channels and life.first != life.last):
            text = "runs in slices of its channels, but in more than one step"
        elif load.by_turns and before is not None:
            text = "its constants are loaded at each turn, but not before they are loaded to another place"
        elif buffer.first > life.last:
            text = "its constants are loaded after it has run"
        elif plan.second_at:
            text = "its constants are loaded, but the arena lies in two memories"
        if text:
            raise PlanError(text, operator=graph.ops[load.op].place)
        latest[load.op] = buffer
        if not load.by_turns:
            firsts.setdefault(load.op, []).append(buffer.first)
        for o in (o for o in plan.overlaps if load.channels and o.op == load.op):
            refuse_mixed(graph, graph.ops[load.op], plan.buffers[o.input], plan.buffers[o.output])
    for op, steps in firsts.items():
        _check_beginnings(timeline, op, steps)
    for op, buffer in latest.items():
        if buffer.last < runs[op].last:
            raise PlanError("its constants do not live as long as it runs", operator=graph.ops[op].place)


def _check_beginnings(timeline: Timeline, op: int, steps: Sequence[int]) -> None:
    """Raises PlanError if an operator's constants are loaded at a wrong time.

    The loads must all begin with the first steps of regions, or else all with steps in which the operator's
    group begins to compute some rows. `op`: the operator. `steps`: the steps with which its loads begin.
    """
    if set(steps) <= set(timeline.starts):
        return
    index = timeline.region_at(timeline.lives[op].first)
    run, region = timeline.runs[index], timeline.regions[index]
    begins = set[int]()
    if region.is_streamed:
        own = parts_of_group(run, timeline, group_of(region, op))
        begins = {timeline.starts[index] + part.step for part in own}
    if not begins.issuperset(steps):
        text = "its constants are loaded in the middle of a region, while no group begins to compute rows"
        raise PlanError(text, operator=timeline.graph.ops[op].place)
