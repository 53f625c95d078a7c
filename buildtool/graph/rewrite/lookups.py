"""Rewrites that run the reference executor: constant folding, fused clamps, lookups of functions of one byte.

Operators become one LOOKUP if each element of their result only depends on the same element of one int8
tensor. Examples are swish (MUL of x and LOGISTIC of x), a hard swish in parts (ADD 3, RELU6, MUL 1/6, MUL x),
squares, chains of lookups, and float32 operators between a DEQUANTIZE and a QUANTIZE. The table contains the
executor's results for all 256 bytes, so it is exact.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from buildtool.base.errors import UnsupportedError
from buildtool.graph import types as g
from buildtool.graph.fixedpoint import activation_range
from buildtool.graph.macs import op_macs
from buildtool.graph.numbering import graph_of
from buildtool.graph.ops import ALIAS_KINDS, ELEMENT_KINDS
from buildtool.graph.rewrite.draft import Draft, Node
from buildtool.graph.types import Activation, Attrs, DType, Graph, OpKind, Tensor

# A small file can describe huge constants. Above these limits the exporter has to compute them.
MAX_BYTES = 1 << 20  # for one result
MAX_TOTAL = 1 << 24  # bytes of all results in the graph
MAX_WORK = 1 << 26  # products and sums for one operator
_Clamping = g.ConvAttrs | g.FullyConnectedAttrs | g.ElementwiseAttrs | g.PoolAttrs
_FUSED = {
    OpKind.RELU: Activation.RELU,
    OpKind.RELU6: Activation.RELU6,
    OpKind.RELU_N1_TO_1: Activation.RELU_N1_TO_1,
}
_SUMS = frozenset({OpKind.ADD, OpKind.SUB})  # faster than a lookup on a vector unit
_BYTES = (DType.INT8, DType.BOOL)
_TYPES = (*_BYTES, DType.FLOAT32)
_EVERY = (1, 1, 1, 256)  # shape of a tensor of all bytes
_MOST = 64  # most operators of one function


# ---- constants ---------------------------------------------------------------------------------------


def fold_constants(draft: Draft) -> None:
    """Computes every operator with constant inputs. Raises UnsupportedError if a result is too large."""
    total = 0
    for node in draft.nodes:
        inputs = [t for t in node.inputs if t >= 0]
        if node.dead or not inputs or not all(draft.tensors[t].is_constant for t in inputs):
            continue
        if any(t in draft.outputs for t in node.outputs):
            text = "a network output does not depend on the input"
            raise UnsupportedError(text, operator=node.place, hint="remove the output from the network")
        total += sum(draft.tensors[t].size for t in node.outputs)
        _fold(draft, node, total)


def _fold(draft: Draft, node: Node, total: int) -> None:
    data, shapes = draft.tensors[node.inputs[0]].data, [draft.tensors[t].shape for t in node.outputs]
    assert data is not None
    if node.kind in ALIAS_KINDS:
        values = [data.reshape(shapes[0])]
    else:
        largest, graph = (
            max(draft.tensors[t].size for t in node.outputs),
            draft.single_op_graph(node, free=True),
        )
        if largest > MAX_BYTES or total > MAX_TOTAL or _estimate_work(graph) > MAX_WORK:
            text = f"it computes a constant of {largest} bytes, which is too large to fold"
            raise UnsupportedError(text, operator=node.place, hint="store the constant in the model")
        from buildtool.graph.reference import execute  # deferred: the executor is only needed here

        results = execute(graph, [data])
        values = [results[t].reshape(s).copy() for t, s in zip(graph.outputs, shapes, strict=True)]
    for t, value in zip(node.outputs, values, strict=True):
        draft.make_constant(t, replace(draft.tensors[t], data=value))
    draft.remove(node)


def _estimate_work(graph: Graph) -> int:
    """Estimates the work of a graph of one operator: its products and sums, plus one per input element."""
    op = graph.ops[0]
    window = op.attrs.kernel[0] * op.attrs.kernel[1] if isinstance(op.attrs, g.PoolAttrs) else 1
    return op_macs(graph, op) + graph.tensors[op.outputs[0]].elements * window + graph.tensors[0].elements


# ---- clamps ------------------------------------------------------------------------------------------


def fuse_activations(draft: Draft) -> None:
    """Fuses RELU, RELU6 or RELU_N1_TO_1 into the operator before it where that is exact."""
    for node in draft.each(*_FUSED):
        before = draft.producer(node.inputs[0])
        if before is not None and _can_fuse(draft, before, node):
            assert isinstance(before.attrs, _Clamping)
            before.attrs = replace(before.attrs, activation=_FUSED[node.kind])
            draft.remove(node)
            draft.set_outputs(before, list(node.outputs))


def _can_fuse(draft: Draft, before: Node, node: Node) -> bool:
    """Whether `before` can clamp its output as `node` does, with the same results for all 256 bytes.

    Only `node` may read this output, and the quantisation must be the same before and after `node`.
    """
    middle, attrs, out = node.inputs[0], before.attrs, draft.tensors[node.outputs[0]]
    if not isinstance(attrs, _Clamping) or attrs.activation != Activation.NONE:
        return False
    if out.quant is None or draft.only_reader(middle) is None:
        return False
    if not draft.same_quantization(middle, node.outputs[0]):
        return False
    if out.dtype is DType.INT16:
        return True  # a factor of 1 does not change a value
    from buildtool.graph.reference import table  # deferred: the executor is only needed here

    low, high = activation_range(_FUSED[node.kind], out.quant, out.dtype)
    values = np.arange(256, dtype=np.uint8).view(np.int8)
    clamped = np.clip(values, low, high).astype(np.int8)
    alone = draft.single_op_graph(node)
    return bool(np.array_equal(table(alone, alone.ops[0]).view(np.int8), clamped))


# ---- functions of one byte ---------------------------------------------------------------------------


@dataclass(frozen=True)
class _Function:
    """Operators that together compute a function of each element of the tensor `source`."""

    source: int
    nodes: tuple[Node, ...]  # the first writes the result; the readers of every other precede it here


def fuse_lookups(draft: Draft) -> None:
    """Turns every function of one byte into a LOOKUP if it has several operators or reads one tensor twice.

    A single operator of a tensor and a constant is not replaced. Neither are functions that consist of sums
    only. A lookup must not be slower than what it replaces, on any board. The choice depends on the network's
    structure and not on the table.
    """
    places = {id(node): place for place, node in enumerate(draft.nodes)}
    for node in reversed(draft.nodes):
        if node.dead or not is_elementwise(draft, node):
            continue
        if draft.tensors[node.outputs[0]].dtype not in _BYTES:
            continue
        function = _find_function(draft, node, places)
        if function is None or all(each.kind in _SUMS for each in function.nodes):
            continue
        if len(function.nodes) > 1 or node.inputs.count(function.source) > 1:
            _replace(draft, function)
    draft.nodes = [node for node in draft.nodes if not node.dead]


def is_elementwise(draft: Draft, node: Node) -> bool:
    """Whether each output element only depends on scalar constants and the inputs' elements at its place."""
    if node.kind not in ELEMENT_KINDS or isinstance(node.attrs, g.WidenedAttrs):
        return False
    activations = [draft.tensors[t] for t in (*_varying_inputs(draft, node), *node.outputs)]
    constants = (draft.tensors[t] for t in node.inputs if draft.tensors[t].is_constant)
    return (
        all(tensor.dtype in _TYPES and tensor.shape == activations[-1].shape for tensor in activations)
        and all(tensor.elements == 1 for tensor in constants)
        and len(activations) > 1
    )


def _varying_inputs(draft: Draft, node: Node) -> Iterable[int]:
    return (t for t in dict.fromkeys(node.inputs) if not draft.tensors[t].is_constant)


def _find_function(draft: Draft, last: Node, places: dict[int, int]) -> _Function | None:
    """Returns the largest function of one int8 tensor that ends with `last`, or None.

    The operators are collected from `last` towards the network's input. The next one is always the producer
    that runs last (`places`: each operator's place in execution order). All readers of its result run later,
    so they have been seen. The search ends if one of them does not belong to the function.
    """
    nodes, pending = [last], set(_varying_inputs(draft, last))
    function = None
    while len(nodes) <= _MOST:
        if len(pending) == 1:
            (source,) = pending
            if draft.tensors[source].dtype is DType.INT8:
                function = _Function(source, tuple(nodes))
        producers = [(t, draft.producer(t)) for t in pending]
        tensor, producer = max(producers, key=lambda pair: -1 if pair[1] is None else places[id(pair[1])])
        if producer is None or not draft.private(tensor) or not is_elementwise(draft, producer):
            break
        if any(reader not in nodes for reader in draft.readers(tensor)):
            break
        nodes.append(producer)
        pending = (pending - {tensor}) | set(_varying_inputs(draft, producer))
    return function


def _replace(draft: Draft, function: _Function) -> None:
    """Makes the last operator a LOOKUP and removes the others."""
    from buildtool.graph.reference import execute  # deferred: the executor is only needed here

    last, *others = function.nodes
    ops = [node.op() for node in reversed(function.nodes)]
    tensors = {t: _for_every_byte(draft.tensors[t]) for op in ops for t in (*op.inputs, *op.outputs)}
    graph = graph_of(draft.name, tensors, ops, [function.source], ops[-1].outputs)
    all_bytes = np.arange(256, dtype=np.uint8).view(np.int8).reshape(_EVERY)
    try:
        values = execute(graph, [all_bytes])[graph.outputs[0]].reshape(256).view(np.int8).copy()
    except UnsupportedError:  # the operators stay; their own computation reports the error
        return
    name = f"{draft.tensors[last.outputs[0]].name}/table"
    table = draft.add_tensor(Tensor(name, values.shape, DType.INT8, data=values))
    draft.become(last, OpKind.LOOKUP, Attrs())
    draft.set_inputs(last, [function.source, table])
    for node in others:
        draft.remove(node)


def _for_every_byte(tensor: Tensor) -> Tensor:
    """Returns a tensor like `tensor` with 256 elements, one for each byte; a constant keeps one element."""
    if tensor.data is None:
        return replace(tensor, shape=_EVERY)
    return replace(tensor, shape=(1, 1, 1, 1), data=tensor.data.reshape(1, 1, 1, 1))
