"""Channels of negative scale become channels of positive scale: every requantisation factor is positive.

Converters that fold a batch norm late leave channels whose weights have a negative scale. Negating the
channel's weights and bias negates its sums, so sum * factor, all that is ever rounded, stays the same.
Kernels for such factors exist, but the fast ones want them positive.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from buildtool.graph.rewrite.draft import Draft, Node
from buildtool.graph.types import OpKind, Quantization, Tensor

_WEIGHTED = frozenset(
    {OpKind.CONV_2D, OpKind.DEPTHWISE_CONV_2D, OpKind.TRANSPOSE_CONV, OpKind.FULLY_CONNECTED}
)


def positive_scales(draft: Draft) -> None:
    """Turns all channels that can be: -128 among the weights has no opposite."""
    for node in draft.nodes:
        if node.kind in _WEIGHTED and not node.dead:
            _turn(draft, node)


def _turn(draft: Draft, node: Node) -> None:
    weights = draft.tensors[node.inputs[1]]
    index = node.inputs[2] if len(node.inputs) > 2 else -1
    bias = draft.tensors[index] if index >= 0 else None
    quant = weights.quant
    if weights.data is None or quant is None or min(quant.scales) >= 0:
        return
    negative = np.array(quant.scales) < 0
    axis = quant.axis % len(weights.shape)
    others = tuple(d for d in range(len(weights.shape)) if d != axis)
    turned = negative & (weights.data != np.iinfo(np.int8).min).all(axis=others)
    if bias is not None and bias.data is not None:
        turned &= bias.data.reshape(-1) != np.iinfo(bias.dtype.value).min
    if not turned.any():
        return
    shape = tuple(-1 if d == axis else 1 for d in range(len(weights.shape)))
    draft.set_input(node, 1, draft.add_tensor(_negated(weights, turned, turned.reshape(shape))))
    if bias is not None:
        draft.set_input(node, 2, draft.add_tensor(_negated(bias, turned, turned)))


def _negated(tensor: Tensor, turned: npt.NDArray[np.bool_], where: npt.NDArray[np.bool_]) -> Tensor:
    assert tensor.data is not None
    data = np.where(where, np.negative(tensor.data.astype(np.int64)), tensor.data).astype(tensor.data.dtype)
    data.setflags(write=False)
    quant = tensor.quant
    if quant is not None and len(quant.scales) == len(turned):
        scales = tuple(-s if t else s for s, t in zip(quant.scales, turned, strict=True))
        quant = Quantization(scales, quant.zero_points, quant.axis)
    return replace(tensor, data=data, quant=quant)
