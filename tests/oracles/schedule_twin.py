"""A region's steps by definition: rows are pulled from its end, one object per step.

    steps(region, graph, image)     # must equal schedule.schedule
    describes(timeline, steps)      # asserts what a timeline says of its steps

`distance` computes from such steps how far a region's output may lie over a tensor that it reads.
"""

from __future__ import annotations

from collections.abc import Iterator

from window_twin import FAR, hand_offs, reads

from buildtool.graph.liveness import alias_roots
from buildtool.plan.schedule.branches import Progress
from buildtool.plan.schedule.delivery import delivered_image
from buildtool.plan.schedule.receptive import axes, columns, fed_in_parts, row_inputs, streams
from buildtool.plan.schedule.schedule import links
from buildtool.plan.types import SOURCE, Region, Scheme, Step


def steps(region: Region, graph, image: str = "overwritable") -> list[Step]:
    """Returns all steps, in order."""
    return list(
        _run_streamed(region, graph, image) if region.is_streamed else _run_alone(region, graph, image)
    )


def describes(timeline, steps):
    """Asserts that lives, columns and pixels are those of a walk through the steps."""
    for op in {step.op for step in steps}:
        mine = [number for number, step in enumerate(steps) if step.op == op]
        assert (timeline.lives[op].first, timeline.lives[op].last) == (mine[0], mine[-1])
        assert timeline.columns[op] == max(steps[n].x1 - steps[n].x0 for n in mine)
        area = sum((steps[n].y1 - steps[n].y0) * (steps[n].x1 - steps[n].x0) for n in mine)
        own = [run.activities[op] for run in timeline.runs if op in run.activities]
        assert sum(activity.pixels for activity in own) == area
    for number in {0, len(steps) // 2, len(steps) - 1} if steps else ():  # none: all operators are aliases
        index = timeline.region_at(number)
        assert timeline.starts[index] <= number < timeline.starts[index + 1]


def _run_alone(region: Region, graph, image: str) -> Iterator[Step]:
    (position,) = region.ops
    if image == "stream" and position == delivered_image(graph).first:
        _, height, width, _ = graph.tensors[delivered_image(graph).tensor].nhwc
        yield from (Step(SOURCE, y, y + 1, 0, width) for y in range(height))
    _, height, width, _ = graph.tensors[graph.ops[position].outputs[0]].nhwc
    yield Step(position, 0, height, 0, width)


def _run_streamed(region: Region, graph, image: str) -> Iterator[Step]:
    chain = links(region, graph)
    source = delivered_image(graph)
    from_source = image == "stream" and source.first in region.ops
    _, tall, wide, _ = graph.tensors[source.tensor].nhwc
    rows = [_first_row(link.group, graph) for link in chain]
    progress = [link.branches and Progress(link.branches) for link in chain]
    calls = [() if link.branches else hand_offs(link.group, graph) for link in chain]
    delivered = 0

    def pull(index: int, need: int) -> Iterator[Step]:
        nonlocal delivered
        if index < 0:
            while from_source and delivered < need:
                yield Step(SOURCE, delivered, delivered + 1, 0, wide)
                delivered += 1
            return
        link, group = chain[index], chain[index].group
        while rows[index] < need:
            if group.scheme is Scheme.BRANCHES:
                yield from pull(index - 1, progress[index].ask())
                for lane, y0, y1 in progress[index].advance():
                    yield Step(group.ops[lane], y0, y1, 0, columns(graph, graph.ops[group.ops[lane]]))
                rows[index] = progress[index].made[-1]
                continue
            y0 = rows[index]
            y1 = _step_end(group, graph, y0, link.height)
            yield from pull(index - 1, max(0, min(link.input_height, link.axis.high(y1))))
            spans = rows_made(group, graph, y0, y1)
            for place, x0, x1 in calls[index]:
                yield Step(group.ops[place], *spans[group.ops[place]], x0, x1)
            rows[index] = y1

    if region.ops[0] != source.first or row_inputs(graph, graph.ops[source.first]) != (source.tensor,):
        yield from pull(-1, tall)
    yield from pull(len(chain) - 1, chain[-1].height)


def _step_end(group, graph, y0: int, height: int) -> int:
    """Returns one past the last row of a step. At edges it may read as many rows as away from them."""
    y1 = min(y0 + group.rows_per_step, height)
    if group.scheme is Scheme.EDGES:
        most = len(_inner_rows(group, graph, range(group.rows_per_step)))
        size = graph.tensors[graph.ops[group.ops[0]].outputs[0]].nhwc[1]
        rest = range(y0, height)  # it reads at least half as many rows as it has
        if len(rest) <= 2 * most and sum(n < size for n in _inner_rows(group, graph, rest)) <= most:
            return height
        while not y0 and sum(n >= 0 for n in _inner_rows(group, graph, range(y1 + 1))) <= most:
            y1 += 1
        return min(y1, height)
    return y1


def _inner_rows(group, graph, made: range) -> range:
    """Returns the rows of a group's first inner tensor, padding included, that rows of its output need."""
    needed = {graph.ops[group.ops[-1]].outputs[0]: set(made)}
    for op in (graph.ops[position] for position in reversed(group.ops[1:])):
        axis, _ = axes(graph, op)
        read = {n for q in needed[op.outputs[0]] for n in range(axis.low(q), axis.low(q) + axis.kernel)}
        for t in row_inputs(graph, op):
            needed[t] = needed.get(t, set()) | read
    first = needed[graph.ops[group.ops[0]].outputs[0]]
    return range(min(first), max(first) + 1)


def rows_made(group, graph, y0: int, y1: int) -> dict[int, tuple[int, int]]:
    """Returns operator -> its rows for rows [y0, y1) of the last one."""
    if group.in_bands:
        before, after = (_rows_so_far(group, graph, y) for y in (y0, y1))
        return {position: (before[position], after[position]) for position in group.ops}
    needed = {graph.ops[group.ops[-1]].outputs[0]: set(range(y0, y1))}
    begins, rows = {graph.ops[group.ops[-1]].outputs[0]: y0}, {}
    for position in reversed(group.ops):
        op = graph.ops[position]
        own, begin = needed[op.outputs[0]], begins[op.outputs[0]]
        rows[position] = (min(own), max(own) + 1) if own else (begin, begin)
        for t in row_inputs(graph, op):
            read = {y for y in reads(graph, op, 0, range(*rows[position])) if y >= 0}
            every = {y for y in reads(graph, op, 0, range(FAR)) if y >= 0}
            first = min(
                max(axes(graph, op)[0].low(begin), min(every)), max(every) + 1
            )  # it would begin there
            needed[t], begins[t] = needed.get(t, set()) | read, min(begins.get(t, first), first)
    return rows


def _rows_so_far(group, graph, made: int) -> dict[int, int]:
    """Returns operator -> how many rows a group of bands needs of it for the first `made` rows, in all."""
    rows = {}
    for position in reversed(group.ops):
        op = graph.ops[position]
        rows[position] = max(0, made)
        made = max((n + 1 for n in reads(graph, op, 0, range(-FAR, made))), default=-FAR)
    return rows


def _first_row(group, graph) -> int:
    """Returns the row from which a group counts its steps: none of its operators has made rows before it."""
    first = 0
    while group.in_bands and any(_rows_so_far(group, graph, first).values()):
        first -= group.rows_per_step
    return first


def distance(graph, run: list[Step], source: int, result: int) -> int | None:
    """Returns the least safe offset(source) - offset(result): writes stay below all later reads."""
    roots = alias_roots(graph)
    row = graph.tensors[result].nhwc[2] * graph.tensors[result].nhwc[3]
    least = 0
    for number, writing in enumerate(run):
        if writing.op == SOURCE or result not in graph.ops[writing.op].outputs:
            continue
        if fed_in_parts(graph, graph.ops[writing.op]):
            return None
        for later in (step for step in run[number:] if step.y0 < step.y1):
            op = graph.ops[later.op] if later.op != SOURCE else None
            for t in op.inputs if op else ():
                if roots.get(t) == source:
                    least = max(least, writing.y1 * row - _find_first_byte(graph, op, t, later))
    return least


def _find_first_byte(graph, op, tensor: int, step: Step) -> int:
    _, _, width, channels = graph.tensors[tensor].nhwc
    if fed_in_parts(graph, op):
        return step.y0 * width * channels
    if not streams(graph, op) or tensor not in row_inputs(graph, op):
        return 0
    return max(0, axes(graph, op)[0].low(step.y0)) * width * channels
