"""RESIZE_NEAREST_NEIGHBOR and RESIZE_BILINEAR, 8 bits."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from buildtool.graph.fixedpoint import divide_towards_zero
from buildtool.graph.geometry import attributes
from buildtool.graph.reference.tensors import Int64, Values
from buildtool.graph.types import Graph, Op, ResizeAttrs

FRACTION_BITS = 10  # of bilinear's positions


def nearest_indices(size: int, out: int, attrs: ResizeAttrs) -> Int64:
    """The input row (or column) of each output row; positions are float32."""
    aligned = attrs.align_corners and out > 1
    scale = np.float32(size - 1) / np.float32(out - 1) if aligned else np.float32(size) / np.float32(out)
    offset = np.float32(0.5 if attrs.half_pixel_centers else 0.0)
    position = (np.arange(out, dtype=np.float32) + offset) * scale
    if attrs.align_corners:  # halves away from zero
        whole = np.floor(position.astype(np.float64) + 0.5)
    else:
        whole = np.floor(position).astype(np.float64)
    return np.clip(whole.astype(np.int64), 0, size - 1)


def nearest(graph: Graph, op: Op, inputs: list[Values]) -> list[Values]:
    """RESIZE_NEAREST_NEIGHBOR."""
    attrs = attributes(op, ResizeAttrs)
    out = graph.tensors[op.outputs[0]].shape
    rows, columns = (nearest_indices(inputs[0].shape[i], out[i], attrs) for i in (1, 2))
    return [np.ascontiguousarray(inputs[0][:, rows[:, None], columns])]


def bilinear_positions(size: int, out: int, attrs: ResizeAttrs) -> tuple[Int64, Int64, Int64]:
    """(lower index, upper index, position) of each output row or column; 2^10 is one input pixel."""
    one = 1 << FRACTION_BITS
    scale = (one * size + out // 2) // out
    if attrs.align_corners and out > 1:
        scale = (one * (size - 1) + (out - 1) // 2) // (out - 1)
    position = np.arange(out, dtype=np.int64) * scale
    if attrs.half_pixel_centers:
        position += scale // 2 - one // 2
    lower = np.maximum(divide_towards_zero(position, one), 0)
    upper = np.minimum(divide_towards_zero(position + one - 1, one), size - 1)
    return lower, upper, position


def bilinear(graph: Graph, op: Op, inputs: list[Values]) -> list[Values]:
    """RESIZE_BILINEAR in integers: weights of 2^10, the sum divided by 2^20 with rounding."""
    attrs = attributes(op, ResizeAttrs)
    out = graph.tensors[op.outputs[0]]
    x = inputs[0].astype(np.int64)
    y0, y1, y = bilinear_positions(x.shape[1], out.shape[1], attrs)
    x0, x1, columns = bilinear_positions(x.shape[2], out.shape[2], attrs)
    one = 1 << FRACTION_BITS
    fy = (y - one * y0)[:, None, None]
    fx = (columns - one * x0)[:, None]

    def corner(rows: npt.NDArray[np.int64], cols: npt.NDArray[np.int64]) -> Int64:
        return x[:, rows[:, None], cols]

    total = corner(y0, x0) * (one - fy) * (one - fx) + corner(y0, x1) * (one - fy) * fx
    total += corner(y1, x0) * fy * (one - fx) + corner(y1, x1) * fy * fx
    half = 1 << (2 * FRACTION_BITS - 1)
    rounded = divide_towards_zero(total + np.where(total > 0, half, -half), 1 << (2 * FRACTION_BITS))
    return [rounded.astype(out.dtype.value)]
