"""Other weights for the same sums: positive scales, and ordinary convolutions of one input channel.

Converters that fold a batch norm late leave channels whose weights have a negative scale. Negating the
channel's weights and bias negates its sums, so sum * factor, all that is ever rounded, stays the same.
Kernels for such factors exist, but the fast ones want them positive.

A depthwise convolution of one input channel is an ordinary one: every output channel reads that channel; the
sums, their order of rounding and the clamp are the same. A depth multiplier of 1 stays: there is one output
channel, and no kernel for many of them.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from buildtool.graph.rewrite.draft import Draft, Node
from buildtool.graph.types import (
    AsUint8,
    ConvAsUint8,
    ConvAttrs,
    DepthwiseAttrs,
    OpKind,
    Quantization,
    Source,
    Tensor,
)

_WEIGHTED = frozenset(
    {OpKind.CONV_2D, OpKind.DEPTHWISE_CONV_2D, OpKind.TRANSPOSE_CONV, OpKind.FULLY_CONNECTED}
)


def positive_scales(draft: Draft) -> None:
    """Turns all channels that can be: -128 among the weights has no opposite."""
    for node in draft.each(*_WEIGHTED):
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
    quant = tensor.quant
    if quant is not None and len(quant.scales) == len(turned):
        scales = tuple(-s if t else s for s, t in zip(quant.scales, turned, strict=True))
        quant = Quantization(scales, quant.zero_points, quant.axis)
    return replace(tensor, data=data, quant=quant)


# ---- one input channel --------------------------------------------------------------------------------

_OHWI = (3, 1, 2, 0)  # of a filter (1, rows, columns, channels) the dimensions that make (channels, ..., 1)


def convolve_single_channels(draft: Draft) -> None:
    """Turns every DEPTHWISE_CONV_2D of one input channel and a depth multiplier above 1."""
    for node in draft.each(OpKind.DEPTHWISE_CONV_2D):
        attrs, weights = node.attributes(DepthwiseAttrs), draft.tensors[node.inputs[1]]
        if attrs.depth_multiplier < 2 or draft.tensors[node.inputs[0]].nhwc[3] != 1:
            continue
        if weights.data is not None:  # the consistency check refuses all others
            draft.set_input(node, 1, draft.add_tensor(_as_ohwi(weights)))
            made = ConvAsUint8 if isinstance(attrs, AsUint8) else ConvAttrs
            plain = made(attrs.stride, attrs.dilation, attrs.pad, attrs.activation)
            draft.become(node, OpKind.CONV_2D, plain)


def _as_ohwi(weights: Tensor) -> Tensor:
    """The filter (1, rows, columns, channels) as (channels, rows, columns, 1); scales go by channel."""
    assert weights.data is not None and weights.quant is not None
    data = np.ascontiguousarray(weights.data.transpose(_OHWI))
    source = weights.source
    if source is not None:
        before = source.perm or tuple(range(len(_OHWI)))
        source = Source(source.index, tuple(before[d] for d in _OHWI))
    quant = replace(weights.quant, axis=0)
    return replace(weights, shape=data.shape, data=data, quant=quant, source=source)
