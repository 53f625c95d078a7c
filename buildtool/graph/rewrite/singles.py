"""A depthwise convolution of one input channel becomes the ordinary convolution that it is.

Every output channel reads the one input channel, as with CONV_2D of one channel; the sums, their order of
rounding and the clamp are the same. A depth multiplier of 1 stays: there is one output channel, and no
kernel for many of them.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from buildtool.graph.rewrite.draft import Draft, Node
from buildtool.graph.types import AsUint8, ConvAsUint8, ConvAttrs, DepthwiseAttrs, OpKind, Source, Tensor

_OHWI = (3, 1, 2, 0)  # of a filter (1, rows, columns, channels) the dimensions that make (channels, ..., 1)


def convolve_single_channels(draft: Draft) -> None:
    """Turns every DEPTHWISE_CONV_2D of one input channel and a depth multiplier above 1."""
    for node in draft.nodes:
        attrs = node.attrs
        if node.dead or not isinstance(attrs, DepthwiseAttrs) or attrs.depth_multiplier < 2:
            continue
        if draft.tensors[node.inputs[0]].nhwc[3] == 1:
            _turn(draft, node, attrs)


def _turn(draft: Draft, node: Node, attrs: DepthwiseAttrs) -> None:
    weights = draft.tensors[node.inputs[1]]
    if weights.data is not None:  # the consistency check refuses all others
        draft.set_input(node, 1, draft.add_tensor(_as_ohwi(weights)))
        made = ConvAsUint8 if isinstance(attrs, AsUint8) else ConvAttrs
        plain = made(attrs.stride, attrs.dilation, attrs.pad, attrs.activation)
        draft.become(node, OpKind.CONV_2D, plain)


def _as_ohwi(weights: Tensor) -> Tensor:
    """The filter (1, rows, columns, channels) as (channels, rows, columns, 1); scales go by channel."""
    assert weights.data is not None and weights.quant is not None
    data = np.ascontiguousarray(weights.data.transpose(_OHWI))
    data.setflags(write=False)
    source = weights.source
    if source is not None:
        before = source.perm or tuple(range(len(_OHWI)))
        source = Source(source.index, tuple(before[d] for d in _OHWI))
    quant = replace(weights.quant, axis=0)
    return replace(weights, shape=data.shape, data=data, quant=quant, source=source)
