"""How operators run on turned signals (see `turns`): their attributes, and the shapes of their operands.

A signal is a tensor (1, 1, L, C), (1, L, C) or (1, L, 1, C) of L samples in time with C channels. Turned, it
is an image of L rows and one column, (1, L, 1, C).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from buildtool.graph import types as g
from buildtool.graph.ops import ALIAS_KINDS, PIXEL_KINDS
from buildtool.graph.types import Attrs, DType, Graph, Op, OpKind, Tensor

Shape = tuple[int, ...]

# The dimension of a turned signal that each dimension of another one becomes.
_OF_LINES = (0, 1, 3)  # (1, L, C)
OF_ROWS = (0, 2, 1, 3)  # (1, 1, L, C)
_OF_COLUMNS = (0, 1, 2, 3)  # (1, L, 1, C)


def turned_shape(shape: Shape) -> Shape | None:
    """Returns the shape (1, L, 1, C) of a signal of shape `shape`; None if the shape is not a signal's."""
    match shape:
        case (1, length, channels) | (1, 1, length, channels) | (1, length, 1, channels):
            return 1, length, 1, channels
    return None


def turned_attrs(graph: Graph, op: Op, fixed: Iterable[int]) -> Attrs | None:
    """Returns an operator's attributes for turned signals (time along the rows); None if it cannot run so.

    `fixed` are tensors that must keep their shape: an operator that reads or writes one is not turned.
    """
    activations = [t for t in (*op.inputs, *op.outputs) if t >= 0 and not graph.tensors[t].is_constant]
    source, result = graph.tensors[op.inputs[0]], graph.tensors[op.outputs[0]]
    if len(op.outputs) != 1 or not set(activations).isdisjoint(fixed) or op.kind in ALIAS_KINDS:
        return None
    if op.kind is OpKind.MEAN:
        return _turn_mean(op, source, result)
    if not all(turned_shape(graph.tensors[t].shape) for t in activations):
        return None
    if op.kind in PIXEL_KINDS:
        return op.attrs if _broadcasts(graph, op) else None
    order = order_of(graph, activations)
    if order is None:
        return None
    attrs = op.attrs
    if op.kind is OpKind.CONCATENATION and isinstance(attrs, g.AxisAttrs):
        return g.AxisAttrs(order[attrs.axis])
    if isinstance(attrs, g.PadAttrs):
        return replace(attrs, paddings=_permute(attrs.paddings, order, (0, 0)))
    if isinstance(attrs, g.SliceAttrs) and len(result.shape) == len(source.shape):
        begin = _permute(attrs.begin, order, 0)
        stride, extent = (_permute(values, order, 1) for values in (attrs.stride, attrs.extent))
        return replace(attrs, begin=begin, stride=stride, extent=extent)
    if op.kind is OpKind.RESIZE_NEAREST_NEIGHBOR:
        return attrs
    if isinstance(attrs, g.ConvAttrs | g.PoolAttrs):
        stored = isinstance(attrs, g.WeightedAttrs) and attrs.stored  # bytes as packed for filters of one row
        return attrs if order == _OF_COLUMNS else None if stored else _turn_window(graph, op, attrs)
    return None


def order_of(graph: Graph, activations: Iterable[int]) -> Shape | None:
    """Returns which dimension of a turned signal each dimension of these activations becomes.

    Returns None if the activations do not agree in this.
    """
    shapes = [graph.tensors[t].shape for t in activations]
    if all(len(shape) == 3 for shape in shapes):
        return _OF_LINES
    if any(len(shape) == 3 for shape in shapes):
        return None
    if all(shape[2] == 1 for shape in shapes):
        return _OF_COLUMNS
    return OF_ROWS if all(shape[1] == 1 for shape in shapes) else None


def _permute(values: Sequence[Any], order: Shape, missing: Any) -> tuple[Any, ...]:
    """Returns one value for each of the 4 dimensions of a turned signal.

    `values` has one value for each dimension before turning, and `order` says which dimension each becomes.
    The other dimensions get `missing`.
    """
    places = dict(zip(order, values, strict=True))
    return tuple(places.get(dimension, missing) for dimension in range(4))


def _turn_mean(op: Op, source: Tensor, result: Tensor) -> Attrs | None:
    """Returns the attributes of a mean over all samples of a turned signal; None for other means."""
    shape, attrs, last = turned_shape(source.shape), op.attrs, len(source.shape) - 1
    if not isinstance(attrs, g.MeanAttrs) or shape is None or last in attrs.axes:
        return None
    keep = turned_shape(result.shape) == (1, 1, 1, shape[3])
    all_samples = math.prod(source.shape[axis] for axis in attrs.axes) == shape[1]
    return g.MeanAttrs((1, 2), keep) if all_samples and (keep or result.shape == (1, shape[3])) else None


def _turn_window(graph: Graph, op: Op, attrs: g.ConvAttrs | g.PoolAttrs) -> Attrs | None:
    """Returns the attributes of a convolution or pooling with rows and columns exchanged.

    None if a sum of floats would then be in another order, which changes its rounding.
    """
    pad = g.Pad(attrs.pad.left, attrs.pad.right, attrs.pad.top, attrs.pad.bottom)
    stride = attrs.stride[::-1]
    if isinstance(attrs, g.PoolAttrs):
        kernel: Shape = attrs.kernel
        turned: Attrs = replace(attrs, kernel=attrs.kernel[::-1], stride=stride, pad=pad)
    else:
        kernel = graph.tensors[op.inputs[1]].shape[1:3]
        turned = replace(attrs, stride=stride, dilation=attrs.dilation[::-1], pad=pad)
    # the order of a sum decides how floats are rounded
    is_float = graph.tensors[op.inputs[0]].dtype is DType.FLOAT32
    return None if is_float and 1 not in kernel else turned


def _broadcasts(graph: Graph, op: Op) -> bool:
    """Whether the operands of an operator still broadcast to its result when all of them are turned."""
    result = graph.tensors[op.outputs[0]].shape
    shapes = [operand_shape(graph.tensors[t], result) for t in op.inputs if t >= 0]
    if any(shape is None for shape in shapes):
        return False
    try:
        return np.broadcast_shapes(*(shape for shape in shapes if shape)) == turned_shape(result)
    except ValueError:  # it broadcasts in its own way
        return False


def operand_shape(tensor: Tensor, result: Shape) -> Shape | None:
    """Returns the shape of an operand that is broadcast to a turned result; None if it has no such shape.

    `result` is the shape of the result before it is turned.
    """
    if not tensor.is_constant:
        return turned_shape(tensor.shape)
    if math.prod(tensor.shape[:-1]) == 1:
        return tensor.shape[-1:]
    return turned_shape((1,) * (len(result) - len(tensor.shape)) + tensor.shape)


def samples_at_once(graph: Graph, op: Op) -> int:
    """Returns how many samples of a convolution's input can form one row, as its channels; 1 for none.

    The window's first sample, length and stride must be multiples of that number. Then the filter has the
    same bytes as for single samples.
    """
    source, attrs = graph.tensors[op.inputs[0]], op.attrs
    if (
        op.kind is not OpKind.CONV_2D
        or not isinstance(attrs, g.ConvAttrs)
        or turned_shape(source.shape) is None
    ):
        return 1
    along, filters = 1 if source.shape[2] == 1 else 2, graph.tensors[op.inputs[1]].shape
    pad = attrs.pad if along == 1 else g.Pad(attrs.pad.left, attrs.pad.right, attrs.pad.top, attrs.pad.bottom)
    flat = filters[3 - along] == 1 and (pad.left, pad.right) == (0, 0) and attrs.dilation[along - 1] == 1
    if not flat or filters[3] != source.shape[3] or attrs.stored:
        return 1
    return math.gcd(attrs.stride[along - 1], filters[along], pad.top, source.shape[along])
