"""RESIZE_NEAREST_NEIGHBOR and RESIZE_BILINEAR."""

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from buildtool.graph.fixedpoint import divide_towards_zero
from buildtool.graph.geometry import attributes
from buildtool.graph.reference.tensors import Int64, Values
from buildtool.graph.types import AsUint8, DType, Graph, Op, ResizeAttrs

Floats: TypeAlias = npt.NDArray[np.float32]
FRACTION_BITS = 10  # fraction bits of positions in RESIZE_BILINEAR
_ONE = 1 << FRACTION_BITS


def _real_step(size: int, out: int, attrs: ResizeAttrs) -> np.float32:
    """Returns the distance between two output rows (or columns) in input rows (or columns)."""
    less = int(attrs.align_corners and out > 1)
    return np.float32(size - less) / np.float32(out - less)


def nearest_indices(size: int, out: int, attrs: ResizeAttrs) -> Int64:
    """Returns the input row (or column) of each output row. Positions are float32."""
    scale = _real_step(size, out, attrs)
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
    """Returns (lower index, upper index, position) of each output row or column.

    The position is in the input, in steps of 2^-10 of a pixel.
    """
    scale = (_ONE * size + out // 2) // out
    if attrs.align_corners and out > 1:
        scale = (_ONE * (size - 1) + (out - 1) // 2) // (out - 1)
    position = np.arange(out, dtype=np.int64) * scale
    if attrs.half_pixel_centers:
        position += scale // 2 - _ONE // 2
    lower = np.maximum(divide_towards_zero(position, _ONE), 0)
    upper = np.minimum(divide_towards_zero(position + _ONE - 1, _ONE), size - 1)
    return lower, upper, position


def real_positions(size: int, out: int, attrs: ResizeAttrs) -> tuple[Int64, Int64, Floats]:
    """Returns (lower index, upper index, weight of the upper one) of each output row or column."""
    centre = np.float32(0.5 if attrs.half_pixel_centers else 0)
    position = (np.arange(out, dtype=np.float32) + centre) * _real_step(size, out, attrs) - centre
    lower = np.maximum(np.floor(position).astype(np.int64), 0)
    upper = np.minimum(np.ceil(position).astype(np.int64), size - 1)
    return lower, upper, position - lower.astype(np.float32)


def bilinear_corners(graph: Graph, op: Op, axis: int) -> tuple[Int64, Int64]:
    """Returns the first and the last input row (`axis` 1) or column (2) of each output row or column."""
    size, out = (graph.tensors[t].nhwc[axis] for t in (op.inputs[0], op.outputs[0]))
    real = isinstance(op.attrs, AsUint8) or graph.tensors[op.inputs[0]].dtype is DType.FLOAT32
    lower, upper, _ = (real_positions if real else bilinear_positions)(size, out, attributes(op, ResizeAttrs))
    return np.minimum(lower, size - 1), upper


def _mixed(graph: Graph, op: Op, x: Floats, offset: float) -> Floats:
    """Returns the interpolated float32 values plus `offset`, computed in the order of LiteRT's kernel."""
    attrs, shape = attributes(op, ResizeAttrs), graph.tensors[op.outputs[0]].shape
    (y0, y1, fy), (x0, x1, fx) = (real_positions(x.shape[i], shape[i], attrs) for i in (1, 2))
    down, across = fy[:, None, None], fx[:, None]
    one = np.float32(1)
    with np.errstate(all="ignore"):
        total = x[:, y0[:, None], x0] * (one - down) * (one - across)
        total = total + x[:, y1[:, None], x0] * down * (one - across)
        total = total + x[:, y0[:, None], x1] * (one - down) * across
        total = total + x[:, y1[:, None], x1] * down * across
        return np.asarray(total + np.float32(offset), np.float32)


def bilinear_of_floats(graph: Graph, op: Op, inputs: list[Values]) -> list[Values]:
    """Computes RESIZE_BILINEAR of float32."""
    return [_mixed(graph, op, inputs[0].astype(np.float32, copy=False), 0)]


def bilinear(graph: Graph, op: Op, inputs: list[Values]) -> list[Values]:
    """Computes RESIZE_BILINEAR of integers: the weights are in steps of 2^-10, and the sum is rounded.

    In uint8 networks it interpolates in float32, and rounds halves up.
    """
    if isinstance(op.attrs, AsUint8):
        stored = inputs[0].astype(np.float32) + np.float32(128)
        return [(_mixed(graph, op, stored, 0.5).astype(np.int64) - 128).astype(np.int8)]
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
