"""Random networks of float32: networks of int8 with the same operators, converted to float32."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from buildtool.api.checking.cases import ADDING
from buildtool.graph.floats import MOST_WEIGHTS
from buildtool.graph.ops import DEFS
from buildtool.graph.types import DType, Graph, Op, PadAttrs, Tensor

# Kinds with a float32 form that networks of int8 can have.
REAL = tuple(kind for kind in ADDING if DEFS[kind].floats and not DEFS[kind].conversions)


def in_floats(graph: Graph) -> Graph | None:
    """Returns a network of int8 converted to float32; None if it has MOST_WEIGHTS weights or more."""
    tensors = tuple(map(_real, graph.tensors))
    weights = sum(t.elements for t in tensors if t.is_constant and t.dtype is DType.FLOAT32)
    if weights >= MOST_WEIGHTS:
        return None
    return replace(graph, tensors=tensors, ops=tuple(map(_padded_with_zeros, graph.ops)))


def _real(tensor: Tensor) -> Tensor:
    """Returns a tensor converted to float32; its constant data are multiplied by its scale. Booleans stay."""
    if tensor.dtype is DType.BOOL:
        return tensor
    data = tensor.data
    if data is not None:
        scale = tensor.quant.scale if tensor.quant else 1.0
        data = data.astype(np.float32) * np.float32(scale)
    return replace(tensor, dtype=DType.FLOAT32, quant=None, data=data)


def _padded_with_zeros(op: Op) -> Op:
    return replace(op, attrs=replace(op.attrs, value=0)) if isinstance(op.attrs, PadAttrs) else op
