"""Changes of a network that keep its topology: renaming, retraining, renumbering."""

import math
from dataclasses import replace

import numpy as np

from buildtool.graph.types import DType, Graph, LeakyReluAttrs, Op, PadAttrs, SoftmaxAttrs, Source, Tensor

_SHRUNK = 0.75  # factor for every constant's scale: multipliers change and stay within their range


def renumbered(graph: Graph, seed: int) -> Graph:
    """Gives the tensors other numbers and adds some unused tensors."""
    rng = np.random.default_rng(seed)
    count = len(graph.tensors)
    numbers = [int(n) for n in rng.permutation(count + int(rng.integers(0, 4)))]
    new = dict(enumerate(numbers)) | {-1: -1}
    pool = [Tensor(f"decoy{n}", (7, 3), DType.INT8) for n in numbers]
    for old, tensor in enumerate(graph.tensors):
        pool[new[old]] = tensor
    ops = tuple(
        replace(op, inputs=tuple(new[t] for t in op.inputs), outputs=tuple(new[t] for t in op.outputs))
        for op in graph.ops
    )
    inputs, outputs = (tuple(new[t] for t in side) for side in (graph.inputs, graph.outputs))
    return Graph(graph.name, tuple(pool), ops, inputs, outputs)


def renamed(graph: Graph, seed: int) -> Graph:
    """Gives the network, its tensors and their places in the file other names and numbers."""
    rng = np.random.default_rng(seed)
    places = [int(n) for n in rng.permutation(2 * len(graph.ops))]
    tensors = tuple(
        replace(t, name=f"{int(rng.integers(1 << 30)):x}", source=Source(int(rng.integers(99))))
        for t in graph.tensors
    )
    ops = tuple(replace(op, index=places[i]) for i, op in enumerate(graph.ops))
    return replace(graph, name=f"other{seed}", tensors=tensors, ops=ops)


def retrained(graph: Graph, seed: int) -> Graph:
    """Changes weights, their scales, slopes and padding values. The graph stays valid."""
    rng = np.random.default_rng(seed)
    return replace(
        graph,
        tensors=tuple(_retrain(t, rng) for t in graph.tensors),
        ops=tuple(_refill(op) for op in graph.ops),
    )


def _retrain(tensor: Tensor, rng: np.random.Generator) -> Tensor:
    if tensor.data is None:
        return tensor
    data = rng.permutation(tensor.data.reshape(-1)).reshape(tensor.shape)
    quant = tensor.quant
    if quant is not None:
        scales = tuple(float(np.float32(scale * _SHRUNK)) for scale in quant.scales)
        quant = replace(quant, scales=scales)
    return replace(tensor, data=data, quant=quant)


def _refill(op: Op) -> Op:
    if isinstance(op.attrs, SoftmaxAttrs):
        return replace(op, attrs=replace(op.attrs, beta=op.attrs.beta / 2))
    if isinstance(op.attrs, LeakyReluAttrs):
        return replace(op, attrs=replace(op.attrs, alpha=op.attrs.alpha / 2))
    if isinstance(op.attrs, PadAttrs):
        return replace(op, attrs=replace(op.attrs, value=op.attrs.value ^ 1))
    return op


def requantised(graph: Graph, seed: int) -> Graph:
    """Changes the quantisation of every tensor, for planning only: kernels might not support it."""
    rng = np.random.default_rng(seed)
    tensors = []
    for tensor in graph.tensors:
        quant = tensor.quant
        if quant is not None:
            scales = tuple(float(np.float32(math.exp(rng.uniform(-6, 1)))) for _ in quant.scales)
            points = tuple(int(n) for n in rng.integers(-128, 128, len(quant.zero_points)))
            quant = replace(quant, scales=scales, zero_points=points)
        tensors.append(replace(tensor, quant=quant))
    return replace(graph, tensors=tuple(tensors))


def disguised(graph: Graph, seed: int) -> Graph:
    """Makes all of these changes. The plan stays the same."""
    return renumbered(renamed(requantised(retrained(graph, seed), seed), seed), seed)
