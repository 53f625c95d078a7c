"""Constant folding: an operator whose inputs are all constant is computed now."""

from __future__ import annotations

from dataclasses import replace

from buildtool.base.errors import UnsupportedError
from buildtool.graph.macs import op_macs
from buildtool.graph.ops import ALIAS_KINDS
from buildtool.graph.rewrite.draft import Draft, Node
from buildtool.graph.types import Graph, PoolAttrs

# A file may ask for far more than it holds: larger results are left to the exporter.
MAX_BYTES = 1 << 20  # of one result
MAX_TOTAL = 1 << 24  # of all results in the graph
MAX_WORK = 1 << 26  # products and sums


def fold_constants(draft: Draft) -> None:
    """Computes every constant operator, in execution order; UnsupportedError if one is too large."""
    total = 0
    for node in draft.nodes:
        inputs = [t for t in node.inputs if t >= 0]
        if node.dead or not inputs or not all(draft.tensors[t].is_constant for t in inputs):
            continue
        if any(t in draft.outputs for t in node.outputs):
            text = "a network output that does not depend on the input"
            raise UnsupportedError(text, operator=node.place, hint="remove the output from the network")
        total += sum(draft.tensors[t].size for t in node.outputs)
        _fold(draft, node, total)


def _fold(draft: Draft, node: Node, total: int) -> None:
    largest = max(draft.tensors[t].size for t in node.outputs)
    if node.kind in ALIAS_KINDS:
        target = node.outputs[0]
        tensor, data = draft.tensors[target], draft.tensors[node.inputs[0]].data
        assert data is not None
        view = data.reshape(tensor.shape)
        draft.make_constant(target, replace(tensor, data=view))
        draft.remove(node)
        return
    graph = draft.alone(node, free=True)
    if largest > MAX_BYTES or total > MAX_TOTAL or _work(graph) > MAX_WORK:
        text = f"computes a constant of {largest} bytes, too large to fold"
        raise UnsupportedError(text, operator=node.place, hint="store the constant in the model")
    from buildtool.graph.reference import execute  # deferred: the executor is only needed here

    data = draft.tensors[node.inputs[0]].data
    assert data is not None
    results = execute(graph, [data])
    for made, t in zip(graph.outputs, node.outputs, strict=True):
        value = results[made].reshape(draft.tensors[t].shape).copy()
        draft.make_constant(t, replace(draft.tensors[t], data=value))
    draft.remove(node)


def _work(graph: Graph) -> int:
    """Products and sums of the graph's one operator, roughly; the input counts once."""
    op = graph.ops[0]
    window = 1
    if isinstance(op.attrs, PoolAttrs):
        window = op.attrs.kernel[0] * op.attrs.kernel[1]
    return op_macs(graph, op) + graph.tensors[op.outputs[0]].elements * window + graph.tensors[0].elements
