"""AVERAGE_POOL_2D and MAX_POOL_2D: 8 bits, padded positions do not count."""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from buildtool.graph.fixedpoint import RANGES
from buildtool.graph.geometry import attributes
from buildtool.graph.reference.tensors import Int64, Values, output_limits
from buildtool.graph.types import AsUint8, Graph, Op, OpKind, PoolAttrs


def _windows(x: Int64, attrs: PoolAttrs, out: tuple[int, ...], fill: int) -> Int64:
    """A view (batch, rows, columns, channels, kernel rows, kernel columns) of the padded input."""
    # Windows of the last rows and columns may reach past the explicit padding.
    need = [(out[i + 1] - 1) * attrs.stride[i] + attrs.kernel[i] for i in range(2)]
    before = (attrs.pad.top, attrs.pad.left)
    after = [max(need[i] - x.shape[i + 1] - before[i], 0) for i in range(2)]
    widths = ((0, 0), (before[0], after[0]), (before[1], after[1]), (0, 0))
    padded = np.pad(x, widths, constant_values=fill)
    view = sliding_window_view(padded, attrs.kernel, axis=(1, 2))
    return view[:, :: attrs.stride[0], :: attrs.stride[1]][:, : out[1], : out[2]]


def pool(graph: Graph, op: Op, inputs: list[Values]) -> list[Values]:
    """Both kinds; the input's and output's quantisations are taken to be equal, as in TFLite."""
    attrs = attributes(op, PoolAttrs)
    out = graph.tensors[op.outputs[0]]
    x = inputs[0].astype(np.int64)
    if op.kind is OpKind.MAX_POOL_2D:
        y = _windows(x, attrs, out.shape, RANGES[out.dtype][0]).max(axis=(4, 5))
    else:
        inside = np.ones((1, *x.shape[1:3], 1), np.int64)
        count = _windows(inside, attrs, out.shape, 0).sum(axis=(4, 5))
        total = _windows(x, attrs, out.shape, 0).sum(axis=(4, 5))
        sign = 1 if isinstance(attrs, AsUint8) else np.sign(total)  # halves up, or away from zero
        y = sign * ((sign * total + count // 2) // count)
    return [np.clip(y, *output_limits(graph, op)).astype(out.dtype.value)]
