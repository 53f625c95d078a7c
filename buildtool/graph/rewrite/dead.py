"""Operators that no output needs are dropped; tensors that nothing mentions too."""

from __future__ import annotations

from dataclasses import replace

from buildtool.graph.rewrite.draft import Draft
from buildtool.graph.types import Graph


def drop_dead(draft: Draft) -> None:
    """Removes operators whose results are never used, last ones first."""
    for node in reversed(draft.nodes):
        if not node.dead and not any(draft.readers(t) or t in draft.outputs for t in node.outputs):
            draft.remove(node)


def compact(graph: Graph) -> Graph:
    """Numbers the tensors that are mentioned anew, in their old order."""
    used = set(graph.inputs) | set(graph.outputs)
    for op in graph.ops:
        used.update(t for t in (*op.inputs, *op.outputs) if t >= 0)
    place = {old: new for new, old in enumerate(sorted(used))}
    place[-1] = -1
    ops = tuple(
        replace(op, inputs=tuple(place[t] for t in op.inputs), outputs=tuple(place[t] for t in op.outputs))
        for op in graph.ops
    )
    return Graph(
        graph.name,
        tuple(graph.tensors[old] for old in sorted(used)),
        ops,
        tuple(place[t] for t in graph.inputs),
        tuple(place[t] for t in graph.outputs),
    )
