"""The one order of execution: what the checker, the counters and the emitted C all follow.

A streamed region is pulled from its end: to make some rows, a group first has the group before it
make the rows that it needs. The emitted C is the same loops, one inside the other. A group of
branches asks for its input little by little (see `branches`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from buildtool.errors import PlanError
from buildtool.graph.types import Graph
from buildtool.plan.schedule.branches import Branches, Progress, branches
from buildtool.plan.schedule.inner import fed_by, made, needs
from buildtool.plan.schedule.receptive import Axis, axes, columns, row_inputs, rows
from buildtool.plan.types import SOURCE, Group, Region, Scheme, Step


def schedule(region: Region, graph: Graph, image: str = "overwritable") -> tuple[Step, ...]:
    """The steps of one region, in order; rows and columns as in Tensor.nhwc of the operator's first output.

    A region that reads a streamed image (`image` is "stream") begins with the delivery of the rows
    it needs. Raises PlanError for a region that no scheme covers.
    """
    if not region.groups:
        raise PlanError("a region without groups has no schedule")
    if not region.is_streamed:
        return _operator_steps(region.groups[0], graph, image)
    return tuple(_pulled(region, graph, image))


def plan_steps(regions: Iterable[Region], graph: Graph, image: str = "overwritable") -> tuple[Step, ...]:
    """The steps of all regions, one after the other; a lifetime's unit is an index into them."""
    return tuple(step for region in regions for step in schedule(region, graph, image))


def _position(group: Group, graph: Graph) -> int:
    if not group.ops or not all(0 <= op < len(graph.ops) for op in group.ops):
        raise PlanError(f"a group of operators {list(group.ops)}")
    return group.ops[-1]


def _operator_steps(group: Group, graph: Graph, image: str) -> tuple[Step, ...]:
    """One operator, over its whole output in one step."""
    position = _position(group, graph)
    if len(group.ops) != 1 or group.scheme is not Scheme.OPERATOR:
        raise PlanError("only a single operator runs over all rows in one step", operator=str(group.ops))
    _, height, width, _ = graph.tensors[graph.ops[position].outputs[0]].nhwc
    delivered: tuple[Step, ...] = ()
    if image == "stream" and graph.inputs[0] in graph.ops[position].inputs:
        _, rows_in, width_in, _ = graph.tensors[graph.inputs[0]].nhwc
        delivered = tuple(Step(SOURCE, y, y + 1, 0, width_in) for y in range(rows_in))
    return (*delivered, Step(position, 0, height, 0, width))


@dataclass(frozen=True)
class Link:
    """A group with what its loops need: the row axis from its `input`, its rows, its input's rows.

    `branches`: of a group whose operators advance together, else None.
    """

    group: Group
    axis: Axis
    height: int
    input: int
    input_height: int
    branches: Branches | None


@dataclass(frozen=True)
class Advance:
    """Rows [y0, y1) that are made in one go inside a streamed region.

    `group`: the group's place in the region, -1 where rows of the image are delivered; `ops`: the
    operators that run for them, of which the last one has these rows.
    """

    group: int
    ops: tuple[int, ...]
    y0: int
    y1: int


def links(region: Region, graph: Graph) -> list[Link]:
    """The groups of a streamed region, in order."""
    found = []
    for index, group in enumerate(region.groups):
        if (len(group.ops) == 1) != (group.scheme is Scheme.OPERATOR) or group.rows_per_step < 1:
            raise PlanError(f"a group of operators {list(group.ops)} cannot be '{group.scheme}'")
        last = graph.ops[_position(group, graph)]
        source = fed_by(graph, region.groups, index)
        axis = needs(graph, group)[source][0]
        lanes = branches(graph, group, source) if group.scheme is Scheme.BRANCHES else None
        found.append(Link(group, axis, rows(graph, last), source, graph.tensors[source].nhwc[1], lanes))
    return found


def advances(region: Region, graph: Graph, image: str) -> Iterator[Advance]:
    """How a streamed region's groups advance, in order."""
    chain = links(region, graph)
    from_source = image == "stream" and chain[0].input == graph.inputs[0]
    done = [0] * len(chain)
    moving = [link.branches and Progress(link.branches) for link in chain]
    delivered = 0

    def pull(index: int, need: int) -> Iterator[Advance]:
        nonlocal delivered
        if index < 0:
            if from_source and delivered < need:
                start, delivered = delivered, need
                yield Advance(-1, (SOURCE,), start, need)
            return
        link, progress = chain[index], moving[index]
        while done[index] < need:
            if progress:
                yield from pull(index - 1, progress.ask())
                for lane, y0, y1 in progress.advance():
                    yield Advance(index, link.group.ops[lane : lane + 1], y0, y1)
                done[index] = progress.made[-1]
                continue
            y0 = done[index]
            y1 = min(y0 + link.group.rows_per_step, link.height)
            yield from pull(index - 1, max(0, min(link.input_height, link.axis.high(y1))))
            yield Advance(index, link.group.ops, y0, y1)
            done[index] = y1

    yield from pull(len(chain) - 1, chain[-1].height)


def _pulled(region: Region, graph: Graph, image: str) -> Iterator[Step]:
    for advance in advances(region, graph, image):
        if advance.group < 0:
            width = graph.tensors[graph.inputs[0]].nhwc[2]
            yield from (Step(SOURCE, y, y + 1, 0, width) for y in range(advance.y0, advance.y1))
        elif region.groups[advance.group].scheme is Scheme.BRANCHES:
            (position,) = advance.ops
            yield Step(position, advance.y0, advance.y1, 0, columns(graph, graph.ops[position]))
        else:
            yield from group_steps(region.groups[advance.group], graph, advance.y0, advance.y1)


def row_ranges(group: Group, graph: Graph, y0: int, y1: int) -> list[tuple[int, int]]:
    """Per operator of a group, the rows it makes for rows [y0, y1) of the last one."""
    wanted = {graph.ops[group.ops[-1]].outputs[0]: (y0, y1)}
    ranges = []
    for position in reversed(group.ops):
        op = graph.ops[position]
        low, high = wanted[op.outputs[0]]
        ranges.append((low, high))
        axis, _ = axes(graph, op)
        for t in row_inputs(graph, op):
            height = graph.tensors[t].nhwc[1]
            need = (max(0, axis.low(low)), min(height, axis.high(high)))
            known = wanted.get(t, need)
            wanted[t] = (min(known[0], need[0]), max(known[1], need[1]))
    return ranges[::-1]


def group_steps(group: Group, graph: Graph, y0: int, y1: int) -> Iterator[Step]:
    """The steps that make rows [y0, y1) of a group: from hand-off to hand-off, operator by operator."""
    spans = row_ranges(group, graph, y0, y1)
    for index, x0, x1 in hand_offs(group, graph):
        yield Step(group.ops[index], *spans[index], x0, x1)


@lru_cache(maxsize=256)
def hand_offs(group: Group, graph: Graph) -> tuple[tuple[int, int, int], ...]:
    """(operator's place in the group, columns from, columns to) for one row of a group, in order."""
    width = columns(graph, graph.ops[group.ops[-1]])
    step = group.hand_off or width
    done = [0] * len(group.ops)
    found = []
    for x in range(first_column(group, graph), width, step):
        ends = column_ends(group, graph, min(width, x + step))
        for index, end in enumerate(ends):
            if done[index] < end:
                found.append((index, done[index], end))
                done[index] = end
    return tuple(found)


def first_column(group: Group, graph: Graph) -> int:
    """Where the columns' loop begins: 0, or so far to the left of it that all operators start empty.

    Begun at 0, the first hand-off would make much more of the first tensors than the later ones do,
    and their windows had to hold that.
    """
    if not group.hand_off or len(group.ops) == 1:
        return 0
    along = needs(graph, group)
    ahead = 0  # hand-offs
    for t in made(graph, group):
        axis = along[t][1]
        made_at_zero = axis.high(0)
        ahead = max(ahead, -(-made_at_zero // (axis.stride * group.hand_off)))
    return -ahead * group.hand_off


def column_ends(group: Group, graph: Graph, end: int) -> list[int]:
    """Per operator of a group, one past the last column it has made when the last one has made `end`.

    Not above 0: it has made none yet.
    """
    wanted = {graph.ops[group.ops[-1]].outputs[0]: end}
    ends = []
    for position in reversed(group.ops):
        op = graph.ops[position]
        ends.append(wanted[op.outputs[0]])
        _, axis = axes(graph, op)
        for t in row_inputs(graph, op):
            need = min(graph.tensors[t].nhwc[2], axis.high(ends[-1]))
            wanted[t] = max(need, wanted.get(t, need))
    return ends[::-1]
