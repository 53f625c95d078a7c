"""Second passes (recomputation): operators run twice, so that a tensor need not stay whole for a late reader.

Squeeze-and-excitation reads a tensor twice: a global pooling adds it up, and a gate (a few layers on the
sums) multiplies it. The tensor has to stay whole from the first reader to the second one, unless the
operators that compute it run again for the product. A network with second passes is an ordinary network that
has these operators twice, with the same weights. It computes the same values.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from buildtool.base.errors import PlanError
from buildtool.graph.numbering import number_tensors
from buildtool.graph.types import Graph, Op, SecondPass, cached_on_graph


class _Places(NamedTuple):
    """Where the operators of a network with second passes come from.

    `again`: for each repeated operator, by position, the position of its first run.
    `once`: for every other operator, its position in the network without second passes.
    """

    again: Mapping[int, int]
    once: Mapping[int, int]


def with_second_passes(graph: Graph, passes: Sequence[SecondPass]) -> Graph:
    """Repeats the operators of each pass directly before its reader. `graph` has no second passes yet.

    Raises PlanError unless each pass repeats operators from before its reader, and the readers are in
    ascending order.
    """
    passes = tuple(passes)
    if not passes:
        return graph
    before = -1
    for one in passes:
        if not before < one.first <= one.last < one.reader < len(graph.ops):
            raise PlanError(f"a second pass of operators {one.first} to {one.last} before {one.reader}")
        before = one.reader
        inside = {t for op in graph.ops[one.first : one.last + 1] for t in op.outputs}
        if not inside.intersection(graph.ops[one.reader].inputs):
            text = "reads nothing that its second pass makes"
            raise PlanError(text, operator=graph.ops[one.reader].place)
    tensors, ops = list(graph.tensors), []
    starting = {one.reader: one for one in passes}
    for position, op in enumerate(graph.ops):
        new: dict[int, int] = {}
        if position in starting:
            for repeated in graph.ops[starting[position].first : starting[position].last + 1]:
                for t in repeated.outputs:
                    new[t] = len(tensors)
                    tensors.append(replace(graph.tensors[t], name=f"{graph.tensors[t].name} (second pass)"))
                ops.append(
                    _replace_inputs(replace(repeated, outputs=tuple(new[t] for t in repeated.outputs)), new)
                )
        ops.append(_replace_inputs(op, new) if new else op)
    twice = number_tensors(replace(graph, tensors=tuple(tensors), ops=tuple(ops)))
    return replace(twice, second_passes=passes)


def _replace_inputs(op: Op, new: Mapping[int, int]) -> Op:
    """Returns the operator with other inputs; `new` maps old tensors to new ones."""
    inputs, seen = (tuple(new.get(t, t) for t in operands) for operands in (op.inputs, op.seen))
    return replace(op, inputs=inputs, seen=seen)


class Repetition(NamedTuple):
    """A second pass: the operators `again` repeat the operators `first`, for the operator `reader`.

    All are positions in the network with second passes.
    """

    first: tuple[int, ...]
    again: tuple[int, ...]
    reader: int


def repetitions(graph: Graph) -> tuple[Repetition, ...]:
    """Returns the second passes of a network, in order."""
    again, once = _places(graph)
    where = {before: position for position, before in once.items()}
    passes = []
    for one in graph.second_passes:
        reader = where[one.reader]
        repeated = tuple(range(reader - (one.last - one.first) - 1, reader))
        passes.append(Repetition(tuple(again[p] for p in repeated), repeated, reader))
    return tuple(passes)


def repeated_ops(graph: Graph) -> Mapping[int, int]:
    """Maps the position of each repeated operator to the position of its first run."""
    return _places(graph).again


def once_positions(graph: Graph) -> Mapping[int, int]:
    """Maps each operator's position to its position in the network without second passes.

    Repeated operators are left out.
    """
    return _places(graph).once


def without_second_passes(graph: Graph) -> Graph:
    """Returns the network without its second passes."""
    if not graph.second_passes:
        return graph
    places = _places(graph)
    first = {
        t: u
        for position, original in places.again.items()
        for t, u in zip(graph.ops[position].outputs, graph.ops[original].outputs, strict=True)
    }
    ops = tuple(_replace_inputs(graph.ops[position], first) for position in places.once)
    return number_tensors(replace(graph, ops=ops, second_passes=()))


@cached_on_graph
def _places(graph: Graph) -> _Places:
    again: dict[int, int] = {}
    once: dict[int, int] = {}
    where: list[int] = []  # position without second passes -> position with them
    waiting = {one.reader: one for one in graph.second_passes}
    position = 0
    while position < len(graph.ops):
        one = waiting.pop(len(where), None)
        if one is not None:
            for original in range(one.first, one.last + 1):
                again[position] = where[original]
                position += 1
        once[position] = len(where)
        where.append(position)
        position += 1
    return _Places(again, once)
