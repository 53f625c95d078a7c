"""Second passes: operators that run twice, so that a tensor need not stay whole for its last reader.

Squeeze-and-excitation reads a tensor twice: a global pooling adds it up, and the product with the gate, which
follows from the sums, reads it again. Until then the tensor has to be whole, unless its producers run again
for the product. A network with second passes is an ordinary network in which these operators stand twice,
with the same weights; it computes the same values.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from buildtool.base.errors import PlanError
from buildtool.graph.numbering import number_tensors
from buildtool.graph.types import Graph, Op, SecondPass, of_graph


class _Places(NamedTuple):
    """Positions in a network with second passes.

    `again`: of an operator that runs again -> of its first run; `once`: of every other operator -> its
    position in the network without second passes.
    """

    again: Mapping[int, int]
    once: Mapping[int, int]


def with_second_passes(graph: Graph, passes: Sequence[SecondPass]) -> Graph:
    """`graph`, which has none, with second passes: operators that run again stand right before their reader.

    PlanError unless each pass repeats operators that stand before its reader, one pass after the other.
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
            raise PlanError("a second pass makes nothing that it reads", operator=graph.ops[one.reader].place)
    tensors, ops = list(graph.tensors), []
    starting = {one.reader: one for one in passes}
    for position, op in enumerate(graph.ops):
        new: dict[int, int] = {}
        if position in starting:
            for repeated in graph.ops[starting[position].first : starting[position].last + 1]:
                for t in repeated.outputs:
                    new[t] = len(tensors)
                    tensors.append(replace(graph.tensors[t], name=f"{graph.tensors[t].name} (second pass)"))
                ops.append(_reading(replace(repeated, outputs=tuple(new[t] for t in repeated.outputs)), new))
        ops.append(_reading(op, new) if new else op)
    twice = number_tensors(replace(graph, tensors=tuple(tensors), ops=tuple(ops)))
    return replace(twice, second_passes=passes)


def _reading(op: Op, new: Mapping[int, int]) -> Op:
    """An operator that reads other tensors, by the ones it read before."""
    inputs, seen = (tuple(new.get(t, t) for t in operands) for operands in (op.inputs, op.seen))
    return replace(op, inputs=inputs, seen=seen)


class Repetition(NamedTuple):
    """A second pass by positions in the network that has it: `again` repeat `first` for `reader`."""

    first: tuple[int, ...]
    again: tuple[int, ...]
    reader: int


def repetitions(graph: Graph) -> tuple[Repetition, ...]:
    """The second passes of a network, in order."""
    again, once = _places(graph)
    where = {before: position for position, before in once.items()}
    passes = []
    for one in graph.second_passes:
        reader = where[one.reader]
        repeated = tuple(range(reader - (one.last - one.first) - 1, reader))
        passes.append(Repetition(tuple(again[p] for p in repeated), repeated, reader))
    return tuple(passes)


def repeated_ops(graph: Graph) -> Mapping[int, int]:
    """Position of an operator that runs again -> position of its first run."""
    return _places(graph).again


def once_positions(graph: Graph) -> Mapping[int, int]:
    """Position of an operator that is no repetition -> its position in the network without second passes."""
    return _places(graph).once


def without_second_passes(graph: Graph) -> Graph:
    """The network without its second passes."""
    if not graph.second_passes:
        return graph
    places = _places(graph)
    first = {
        t: u
        for position, original in places.again.items()
        for t, u in zip(graph.ops[position].outputs, graph.ops[original].outputs, strict=True)
    }
    ops = tuple(_reading(graph.ops[position], first) for position in places.once)
    return number_tensors(replace(graph, ops=ops, second_passes=()))


@of_graph
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
