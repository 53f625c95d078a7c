"""What the operators of one group need from each other: which tensors, and how many pixels.

Most groups are chains. A group may also contain whole residual blocks, so that one of its tensors has
several readers in it. One pixel of the group's output then needs the union of the pixels that it needs
along each path.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TypeVar

from buildtool.base.errors import PlanError
from buildtool.graph.ops import UNEVEN_KINDS
from buildtool.graph.types import Graph
from buildtool.plan.schedule.axis import Axis, AxisTable, tabulate, union
from buildtool.plan.schedule.branches import exits
from buildtool.plan.schedule.receptive import axes, by_rows, columns, fed_in_parts, row_inputs, rows, streams
from buildtool.plan.types import Group, Scheme
from buildtool.target.types import KernelVariant

Axes = tuple[Axis, Axis]  # rows, columns
T = TypeVar("T")


def remember(graph: Graph, kind: str, key: Hashable, make: Callable[[], T]) -> T:
    """Returns the result of `make` for a group of the graph. The graph caches it: plans share most groups.

    `kind`: what the result is. `key`: the group, and what else the result depends on.
    """
    results: dict[Hashable, T] = graph.facts.setdefault(kind, {})
    if key not in results:
        results[key] = make()
    return results[key]


def inner_tensors(graph: Graph, group: Group) -> tuple[int, ...]:
    """Returns the tensors between a group's operators, in order: all outputs except the last operator's."""
    return tuple(graph.ops[position].outputs[0] for position in group.ops[:-1])


def whole_tensors(graph: Graph, group: Group) -> frozenset[int]:
    """Returns the tensors between a group's operators that an operator outside of the group reads later."""
    inside, readers = frozenset(group.ops), graph.consumers()
    return frozenset(
        t
        for t in inner_tensors(graph, group)
        if t in graph.outputs or not inside.issuperset(readers.get(t, ()))
    )


def needs(graph: Graph, group: Group) -> Mapping[int, Axes]:
    """Returns tensor -> the row axis and the column axis from this tensor to the group's output.

    The tensors are those that the group reads row by row, and those that it makes. For branches that end in
    several tensors (see `exits`) the axes cover all of these outputs. Raises PlanError if an operator other
    than the last one feeds no operator of the group, or if two paths from one tensor have different strides.
    """
    ends = exits(graph, group.ops) if group.scheme is Scheme.BRANCHES else ()
    return remember(graph, "needs", (group.ops, ends), lambda: _needs(graph, group, ends))


def _needs(graph: Graph, group: Group, ending: Sequence[int]) -> dict[int, Axes]:
    last = graph.ops[group.ops[-1]]
    along = {graph.ops[position].outputs[0]: (Axis(), Axis()) for position in (group.ops[-1], *ending)}

    def as_tables(axes_: Axes, tensor: int) -> Axes:
        _, height, width, _ = graph.tensors[tensor].nhwc
        return tabulate(axes_[0], rows(graph, last), height), tabulate(axes_[1], columns(graph, last), width)

    for position in reversed(group.ops):
        op = graph.ops[position]
        if op.outputs[0] not in along:
            raise PlanError("no other operator of its group reads its output", operator=op.place)
        after, own = along[op.outputs[0]], axes(graph, op)
        if op.kind in UNEVEN_KINDS and len(group.ops) > 1:
            after = as_tables(after, op.outputs[0])
        for t in row_inputs(graph, op):
            path: Axes = (after[0].after(own[0]), after[1].after(own[1]))
            other = along.get(t)
            if other is not None:
                if isinstance(path[0], AxisTable) or isinstance(other[0], AxisTable):
                    other, path = as_tables(other, t), as_tables(path, t)
                if any(a.stride != b.stride for a, b in zip(other, path, strict=True)):
                    text = "two paths from one tensor to it have different strides"
                    raise PlanError(text, operator=op.place)
                path = union(other[0], path[0]), union(other[1], path[1])
            along[t] = path
    return along


def driving_tensor(graph: Graph, groups: Sequence[Group], index: int) -> int:
    """Returns the tensor that drives group `index` of a region: its rows decide when the group advances.

    This is the output of the group before it, or else the first tensor that the group reads row by row.
    Raises PlanError if the group begins with an operator that reads nothing row by row.
    """
    op = graph.ops[groups[index].ops[0]]
    first = row_inputs(graph, op)
    if not first:
        raise PlanError("the plan runs it row by row, but it reads no tensor row by row", operator=op.place)
    before = graph.ops[groups[index - 1].ops[-1]].outputs[0] if index else -1
    return before if before in first else first[0]


def together(graph: Graph, ops: Sequence[int]) -> bool:
    """Returns whether operators may form one chain.

    An operator whose rows follow a table (see `axis`) needs a group of its own.
    """
    return len(ops) == 1 or not any(graph.ops[position].kind in UNEVEN_KINDS for position in ops)


def meets_input(graph: Graph, ops: Sequence[int]) -> bool:
    """Returns whether each row that a group makes from a tensor inside it reads a row of that tensor.

    A row that does not is made of padding alone.
    """
    later = (graph.ops[position] for position in ops[1:])
    reads = ((op, t) for op in later for t in row_inputs(graph, op))
    return all(axes(graph, op)[0].meets(rows(graph, op), graph.tensors[t].nhwc[1]) for op, t in reads)


def forks_over_padding(graph: Graph, ops: Sequence[int]) -> bool:
    """Returns whether two operators of a group read one of its tensors, and some rows are padding alone.

    The rows that such readers need together are no range: one of them may need none.
    """
    inner = {graph.ops[position].outputs[0] for position in ops[:-1]}
    read = [t for position in ops for t in row_inputs(graph, graph.ops[position]) if t in inner]
    return len(set(read)) < len(read) and not meets_input(graph, ops)


def read_whole(graph: Graph, group: Group) -> frozenset[int]:
    """Returns the tensors of which a group's operators need all rows for every row that they make."""
    return frozenset(
        t
        for op in (graph.ops[position] for position in group.ops)
        for t in set(op.inputs).difference(row_inputs(graph, op))
        if t >= 0 and not graph.tensors[t].is_constant
    )


def columns_per_call(graph: Graph, group: Group) -> dict[int, int]:
    """Returns operator -> the most output columns of one of its calls; empty if calls make whole rows."""
    if not group.hand_off:
        return {}
    along = needs(graph, group)
    strides = {position: along[graph.ops[position].outputs[0]][1].stride for position in group.ops}
    return {position: group.hand_off * stride for position, stride in strides.items()}


def objection(
    graph: Graph, ops: tuple[int, ...], kernels: Sequence[KernelVariant | None] = ()
) -> tuple[int, str] | None:
    """Returns why `ops` cannot be a group of several operators; None if they can.

    The result is the position of an operator, and what is wrong with it in words. `kernels`: one per operator
    of the graph; some compute whole tensors only. Without kernels only the graph decides.

    The operators of a group run row by row and feed each other. Other operators may read their tensors, too
    (see `whole_tensors`), if the group makes every row of such a tensor.
    """
    for position in ops:
        op = graph.ops[position]
        if not streams(graph, op):
            return position, "does not run row by row"
        kernel = kernels[position] if kernels else None
        if kernel is not None and not by_rows(graph, op, kernel):
            return position, f"has kernel '{kernel.name}', which computes whole tensors only"
        if fed_in_parts(graph, op) and position != ops[-1]:
            return position, "needs all rows before it has any"
    if not together(graph, ops):
        uneven = next(position for position in ops if graph.ops[position].kind in UNEVEN_KINDS)
        return uneven, "enlarges its input: it runs in a group of its own"
    if forks_over_padding(graph, ops):
        return ops[-1], "is in a group with rows of padding alone, and a tensor that two operators read"
    group, last = Group(ops), graph.ops[ops[-1]]
    try:
        along = needs(graph, group)
    except PlanError as error:
        return ops[-1], error.text
    if not read_whole(graph, group).isdisjoint(inner_tensors(graph, group)):
        return ops[-1], "needs a tensor of its group as a whole"
    for t in sorted(whole_tensors(graph, group)):
        ends, sizes = (rows(graph, last), columns(graph, last)), graph.tensors[t].nhwc[1:3]
        for axis, end, size in zip(along[t], ends, sizes, strict=True):  # every row is made, up to the last
            if axis.kernel < axis.stride or axis.pad < 0 or axis.high(end) < size:
                return ops[-1], f"leaves out rows of '{graph.tensors[t].name}', which is read elsewhere"
    return None
