"""Canonical numbers of tensors: 0, 1, 2, ... in the order in which the network first mentions them.

A network mentions its inputs first, then each operator's inputs and outputs in execution order, then
its outputs, then what its states are before an invoke, and after it; states are in the order of these.
Activations and constants are numbered alike, a constant that several operators share where
the first of them reads it; -1, an operand that is absent, stays -1; a tensor that nothing mentions is
left out. So two graphs of one topology have equal numbers, whichever reader, builder or rewrite made
them, and what refers to tensors by number (a plan) holds for both.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain

from buildtool.graph.types import Graph, Op, State, Tensor


def numbered(graph: Graph) -> Graph:
    """The graph with canonical numbers: `graph` itself where it has them already."""
    if is_numbered(graph):
        return graph
    return graph_of(graph.name, graph.tensors, graph.ops, graph.inputs, graph.outputs, graph.states)


def is_numbered(graph: Graph) -> bool:
    """Whether the tensors have canonical numbers, and all of them are mentioned."""
    found = _first_mentions(graph.ops, graph.inputs, graph.outputs, graph.states)
    ordered = [state.before for state in graph.states]
    if ordered != sorted(ordered):
        return False
    return all(old == new for new, old in enumerate(found)) and len(found) == len(graph.tensors)


def graph_of(
    name: str,
    tensors: Sequence[Tensor] | Mapping[int, Tensor],
    ops: Iterable[Op],
    inputs: Iterable[int],
    outputs: Iterable[int],
    states: Iterable[State] = (),
) -> Graph:
    """The network of operators whose tensors may have any numbers: `tensors` by these, others unused."""
    ops, inputs, outputs, states = tuple(ops), tuple(inputs), tuple(outputs), tuple(states)
    order = _first_mentions(ops, inputs, outputs, states)
    new = {old: number for number, old in enumerate(order)} | {-1: -1}
    renumbered = (replace(s, before=new[s.before], after=new[s.after]) for s in states)
    return Graph(
        name,
        tuple(tensors[old] for old in order),
        tuple(
            replace(
                op,
                inputs=tuple(new[t] for t in op.inputs),
                outputs=tuple(new[t] for t in op.outputs),
                seen=tuple(new[t] for t in op.seen),
            )
            for op in ops
        ),
        tuple(new[t] for t in inputs),
        tuple(new[t] for t in outputs),
        tuple(sorted(renumbered, key=lambda s: s.before)),
    )


def _first_mentions(
    ops: Sequence[Op], inputs: Iterable[int], outputs: Iterable[int], states: Sequence[State]
) -> list[int]:
    """The numbers that are mentioned, each once, in the order of their first mention."""
    of_ops = chain.from_iterable((*op.inputs, *op.outputs) for op in ops)
    mentions = chain(inputs, of_ops, outputs, (s.before for s in states), (s.after for s in states))
    return list(dict.fromkeys(t for t in mentions if t >= 0))
