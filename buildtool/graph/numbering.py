"""Canonical numbers of tensors: 0, 1, 2, ... in the order in which the network first mentions them.

A network mentions its inputs first, then each operator's inputs and outputs in execution order, then its
outputs, then the tensors `before` and `after` of its states, which are sorted by `before`. Activations and
constants are numbered alike. An absent operand stays -1, and a tensor that is not mentioned is left out.
So two graphs with the same topology have equal numbers, whichever reader, builder or rewrite made them. A
plan refers to tensors by number and is valid for both.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain

from buildtool.graph.types import Graph, Op, State, Tensor


def number_tensors(graph: Graph) -> Graph:
    """Returns the graph with canonical numbers, or `graph` itself where it has them already."""
    if is_numbered(graph):
        return graph
    numbered = graph_of(graph.name, graph.tensors, graph.ops, graph.inputs, graph.outputs, graph.states)
    return replace(numbered, window=graph.window)


def is_numbered(graph: Graph) -> bool:
    """Whether the network mentions all of its tensors, and they have canonical numbers."""
    mentions = _first_mentions(graph.ops, graph.inputs, graph.outputs, graph.states)
    states = [state.before for state in graph.states]
    return mentions == list(range(len(graph.tensors))) and states == sorted(states)


def graph_of(
    name: str,
    tensors: Sequence[Tensor] | Mapping[int, Tensor],
    ops: Iterable[Op],
    inputs: Iterable[int],
    outputs: Iterable[int],
    states: Iterable[State] = (),
) -> Graph:
    """Builds a graph with canonical numbers from parts that refer to `tensors` by any numbers."""
    ops, inputs, outputs, states = tuple(ops), tuple(inputs), tuple(outputs), tuple(states)
    order = _first_mentions(ops, inputs, outputs, states)
    new = {old: number for number, old in enumerate(order)} | {-1: -1}
    renumbered = (replace(s, before=new[s.before], after=new[s.after]) for s in states)

    def numbers(old: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(new[t] for t in old)

    return Graph(
        name,
        tuple(tensors[old] for old in order),
        tuple(
            replace(op, inputs=numbers(op.inputs), outputs=numbers(op.outputs), seen=numbers(op.seen))
            for op in ops
        ),
        numbers(inputs),
        numbers(outputs),
        tuple(sorted(renumbered, key=lambda s: s.before)),
    )


def _first_mentions(
    ops: Sequence[Op], inputs: Iterable[int], outputs: Iterable[int], states: Sequence[State]
) -> list[int]:
    """Returns the tensor numbers in the order of their first mention."""
    of_ops = chain.from_iterable((*op.inputs, *op.outputs) for op in ops)
    mentions = chain(inputs, of_ops, outputs, (s.before for s in states), (s.after for s in states))
    return list(dict.fromkeys(t for t in mentions if t >= 0))
