"""Networks whose weights fit into four bits, and marks for storing them so."""

from dataclasses import replace

import numpy as np

from buildtool.emit.fourbits import stored_bytes
from buildtool.graph.numbering import graph_of
from buildtool.graph.types import DepthwiseAttrs, DType, Graph, OpKind, Quantization, WeightedAttrs
from buildtool.plan.types import Narrowed
from buildtool.target.catalogue import features, select_all
from buildtool.zoo.drawn import NetBuilder, WideNetBuilder

SIGNED = (-8, 7)


def with_narrow_weights(graph: Graph, rng: np.random.Generator, ends: tuple[int, int] = SIGNED) -> Graph:
    """Returns the graph with filters of int8 drawn anew from `ends[0]` to `ends[1]`.

    Sums are about as large as before, as the scales are 16 times larger.
    """
    tensors = list(graph.tensors)
    for op in graph.ops:
        if not isinstance(op.attrs, WeightedAttrs):
            continue
        filters = tensors[op.inputs[1]]
        if filters.data is None or filters.dtype is not DType.INT8:
            continue
        data = rng.integers(ends[0], ends[1] + 1, filters.shape).astype(np.int8)
        tensors[op.inputs[1]] = replace(filters, data=data, quant=_sixteen_times(filters.quant))
        for t in (t for t in op.inputs[2:3] if t >= 0):
            bias = tensors[t]
            tensors[t] = replace(bias, data=bias.data // 16, quant=_sixteen_times(bias.quant))
    return graph_of(graph.name, tensors, graph.ops, graph.inputs, graph.outputs, graph.states)


def _sixteen_times(quant: Quantization) -> Quantization:
    return replace(quant, scales=tuple(float(np.float32(16 * scale)) for scale in quant.scales))


def marked(graph: Graph, target, rng: np.random.Generator) -> tuple[Graph, tuple[Narrowed, ...]]:
    """Returns the graph with marks at all operators of weights that fit, and the marks.

    The numbers of channels that are expanded at a time are drawn, and may leave a smaller slice.
    """
    ops, marks = list(graph.ops), []
    for position, (op, kernel) in enumerate(zip(graph.ops, select_all(target, graph), strict=True)):
        if not isinstance(op.attrs, WeightedAttrs) or op.kind is OpKind.TRANSPOSE_CONV:
            continue
        data = graph.tensors[op.inputs[1]].data
        values = features(graph, op)
        if data is None or data.dtype != np.int8 or data.min() < SIGNED[0] or data.max() > SIGNED[1]:
            continue
        whole = isinstance(op.attrs, DepthwiseAttrs) or values["groups"] > 1
        expanded = values["cout"] if whole else int(rng.integers(1, values["cout"] + 1))
        stored = stored_bytes(graph, op, kernel, expanded)
        marks.append(Narrowed(position, expanded, stored))
        ops[position] = replace(op, attrs=replace(op.attrs, expanded=expanded, stored=stored))
    return replace(graph, ops=tuple(ops)), tuple(marks)


def wide_network(seed: int = 3) -> Graph:
    """Returns a network of int16 activations with narrow weights."""
    net = WideNetBuilder(seed)
    x = net.conv(net.input((1, 9, 7, 20)), 70, kernel=(3, 3), same=True)
    x = net.conv(x, 0, kernel=(3, 3), stride=(2, 2), same=True, depth_multiplier=1)
    x = net.dense(net.flatten(net.conv(x, 24)), 11)
    return with_narrow_weights(net.graph([net.dense(x, 5)]), net.rng)


def narrow_network(seed: int = 0, ends: tuple[int, int] = SIGNED) -> Graph:
    """Returns a network with layers of every kind that has narrow weights, of few and of many constants."""
    net = NetBuilder(seed)
    x = net.conv(net.input((1, 9, 7, 20)), 70, kernel=(3, 3), same=True)
    x = net.conv(x, 0, kernel=(3, 3), stride=(2, 2), same=True, depth_multiplier=1)
    y = net.conv(x, 24)
    y = net.conv(y, 36, kernel=(3, 3), same=True, groups=4)
    y = net.conv(y, 70)
    x = net.elementwise(OpKind.ADD, x, y)
    x = net.dense(net.flatten(x), 11)
    return with_narrow_weights(net.graph([net.softmax(x)]), net.rng, ends)
