"""A clamp of its own (RELU, RELU6, RELU_N1_TO_1) becomes that of the operator before it, if that is exact."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from buildtool.graph.fixedpoint import activation_range
from buildtool.graph.quantrules import same_quantization
from buildtool.graph.rewrite.draft import Draft, Node
from buildtool.graph.types import (
    Activation,
    ConvAttrs,
    DType,
    ElementwiseAttrs,
    FullyConnectedAttrs,
    OpKind,
    PoolAttrs,
)

_Clamping = ConvAttrs | FullyConnectedAttrs | ElementwiseAttrs | PoolAttrs
_FUSED = {
    OpKind.RELU: Activation.RELU,
    OpKind.RELU6: Activation.RELU6,
    OpKind.RELU_N1_TO_1: Activation.RELU_N1_TO_1,
}


def fuse_activations(draft: Draft) -> None:
    """Fuses every activation that its producer can take over."""
    for node in draft.each(*_FUSED):
        before = draft.producer(node.inputs[0])
        if before is not None and _fusible(draft, before, node):
            assert isinstance(before.attrs, _Clamping)
            before.attrs = replace(before.attrs, activation=_FUSED[node.kind])
            draft.remove(node)
            draft.set_outputs(before, list(node.outputs))


def _fusible(draft: Draft, before: Node, node: Node) -> bool:
    """Whether `before` may clamp instead: same quantisation, one reader, and equal on all values."""
    middle, target = node.inputs[0], node.outputs[0]
    attrs = before.attrs
    if not isinstance(attrs, _Clamping):
        return False
    if attrs.activation != Activation.NONE or draft.only_reader(middle) is None:
        return False
    quant = draft.tensors[target].quant
    if quant is None or not same_quantization(draft.tensors[middle].quant, quant):
        return False
    if draft.tensors[target].dtype is DType.INT16:
        return True  # a factor of 1 gives every value back
    from buildtool.graph.reference import table  # deferred: the executor is only needed here

    low, high = activation_range(_FUSED[node.kind], quant, draft.tensors[target].dtype)
    values = np.arange(256, dtype=np.uint8).view(np.int8)
    clamped = np.clip(values, low, high).astype(np.int8)
    alone = draft.alone(node)
    return bool(np.array_equal(table(alone, alone.ops[0]).view(np.int8), clamped))
