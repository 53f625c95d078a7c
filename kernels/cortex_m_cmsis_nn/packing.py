"""Packs the constants of the adapters to CMSIS-NN: plain arrays, in the library's format.

Unlike the project's own kernels, the library gets the input's zero point as an argument. So the packed biases
are those of the model, and do not include the zero point.
"""

from __future__ import annotations

import math

import numpy as np

from buildtool.base.errors import ModelError
from buildtool.emit.blocks import Packing, align, channel_table, filter_weights, quantization, words
from buildtool.graph.fixedpoint import INT32_MAX, quantize_multiplier
from buildtool.graph.types import Graph, Op, SoftmaxAttrs

_DIFF_INTEGER_BITS = 5  # integer bits of a softmax's scaled differences, Q5.26


def _conv(graph: Graph, op: Op) -> bytes:
    """Packs nn_conv_constants, int32 arrays of biases, multipliers and shifts, and the model's weights."""
    common, table = channel_table(graph, op, fold=False)
    return align(words(*common) + table.T.astype("<i4").tobytes()) + filter_weights(graph, op).tobytes()


def _softmax(graph: Graph, op: Op) -> bytes:
    """Packs nn_cmsis_nn_softmax, as TFLite's PreprocessSoftmaxScaling and CalculateInputRadius compute it."""
    assert isinstance(op.attrs, SoftmaxAttrs)
    scale = np.float32(quantization(graph, op, op.inputs[0]).scale)
    steps = 1 << (31 - _DIFF_INTEGER_BITS)
    multiplier, shift = quantize_multiplier(
        min(float(np.float32(op.attrs.beta)) * float(scale) * steps, INT32_MAX)
    )
    if shift < 0:  # as for the plain kernel
        text = f"the scale {scale:g} * beta {op.attrs.beta:g} is too small for a softmax"
        raise ModelError(text, operator=op.place)
    radius = math.floor(((1 << _DIFF_INTEGER_BITS) - 1) * steps / (1 << shift))
    return words(multiplier, shift, -radius)


PACKINGS: dict[str, Packing] = {"conv_cmsis_nn": _conv, "softmax_cmsis_nn": _softmax}
