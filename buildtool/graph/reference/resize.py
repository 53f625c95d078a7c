"""RESIZE_NEAREST_NEIGHBOR and RESIZE_BILINEAR of 8-bit elements."""

import numpy as np

from buildtool.graph.fixedpoint import divide_towards_zero
from buildtool.graph.geometry import attributes
from buildtool.graph.reference.tensors import Int64, Values
from buildtool.graph.types import Graph, Op, ResizeAttrs

FRACTION_BITS = 10  # fraction bits of positions in RESIZE_BILINEAR
_ONE = 1 << FRACTION_BITS


def nearest_indices(size: int, out: int, attrs: ResizeAttrs) -> Int64:
    """Returns the input row (or column) of each output row. Positions are float32."""
    aligned = attrs.align_corners and out > 1
    scale = np.float32(size - 1) / np.float32(out - 1) if aligned else np.float32(size) / np.float32(out)
    offset = np.float32(0.5 if attrs.half_pixel_centers else 0.0)
    position = (np.arange(out, dtype=np.float32) + offset) * scale
    exact = position.astype(np.float64) + (0.5 if attrs.align_corners else 0.0)  # 0.5: halves away from zero
    return np.asarray(np.clip(np.floor(exact).astype(np.int64), 0, size - 1))


def nearest(graph: Graph, op: Op, inputs: list[Values]) -> list[Values]:
    """Computes RESIZE_NEAREST_NEIGHBOR."""
    attrs, out = attributes(op, ResizeAttrs), graph.tensors[op.outputs[0]].shape
    rows, columns = (nearest_indices(inputs[0].shape[i], out[i], attrs) for i in (1, 2))
    return [np.ascontiguousarray(inputs[0][:, rows[:, None], columns])]


def bilinear_positions(size: int, out: int, attrs: ResizeAttrs) -> tuple[Int64, Int64, Int64]:
    """Returns (lower index, upper index, position) of each output row or column. 2^10 is one input pixel."""
    scale = (_ONE * size + out // 2) // out
    if attrs.align_corners and out > 1:
        scale = (_ONE * (size - 1) + (out - 1) // 2) // (out - 1)
    position = np.arange(out, dtype=np.int64) * scale
    if attrs.half_pixel_centers:
        position += scale // 2 - _ONE // 2
    lower = np.maximum(divide_towards_zero(position, _ONE), 0)
    upper = np.minimum(divide_towards_zero(position + _ONE - 1, _ONE), size - 1)
    return lower, upper, position


def bilinear(graph: Graph, op: Op, inputs: list[Values]) -> list[Values]:
    """Computes RESIZE_BILINEAR in integers: the weights are in steps of 2^-10, and the sum is rounded."""
    attrs, out = attributes(op, ResizeAttrs), graph.tensors[op.outputs[0]]
    x = inputs[0].astype(np.int64)
    y0, y1, y = bilinear_positions(x.shape[1], out.shape[1], attrs)
    x0, x1, columns = bilinear_positions(x.shape[2], out.shape[2], attrs)
    fy = (y - _ONE * y0)[:, None, None]
    fx = (columns - _ONE * x0)[:, None]
    upper, lower = (x[:, rows[:, None], x0] * (_ONE - fx) + x[:, rows[:, None], x1] * fx for rows in (y0, y1))
    total = upper * (_ONE - fy) + lower * fy
    half = 1 << (2 * FRACTION_BITS - 1)
    rounded = divide_towards_zero(total + np.where(total > 0, half, -half), _ONE * _ONE)
    return [rounded.astype(out.dtype.value)]
