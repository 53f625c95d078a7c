"""Acme's layout of a convolution's constants: tap by tap, the weights of all output channels side by side.

A block begins as nn.h's does (nn_conv_constants, then nn_channel of each output channel), so that buildtool's
helpers make that part.
"""

from __future__ import annotations

import numpy as np

from buildtool.emit.blocks import Packing, channel_head, filter_weights
from buildtool.graph.types import ConvAttrs, Graph, Op


def _conv(graph: Graph, op: Op) -> bytes:
    """The head and the channels, then the weights, H W I O."""
    assert isinstance(op.attrs, ConvAttrs)
    weights = filter_weights(graph, op)  # O H W I
    head = channel_head(graph, op, op.attrs.activation)
    return head + np.ascontiguousarray(weights.transpose(1, 2, 3, 0)).tobytes()


PACKINGS: dict[str, Packing] = {"acme_conv": _conv}
