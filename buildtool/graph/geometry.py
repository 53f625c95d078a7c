"""Shapes: what every operator's output shape must be, given its inputs and attributes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

from buildtool.graph.types import (
    Attrs,
    AxisAttrs,
    ConvAttrs,
    DepthwiseAttrs,
    FullyConnectedAttrs,
    Graph,
    MeanAttrs,
    Op,
    OpKind,
    PadAttrs,
    PadMode,
    PoolAttrs,
    SliceAttrs,
    TransposeAttrs,
)

Shape = tuple[int, ...]
_A = TypeVar("_A", bound=Attrs)


class GeometryError(ValueError):
    """The inputs' shapes and the attributes do not fit together; the text says how."""


def demand(condition: bool, text: str) -> None:
    """Raises GeometryError(text) unless `condition` holds."""
    if not condition:
        raise GeometryError(text)


def window_outputs(size: int, pad: int, extent: int, stride: int) -> int:
    """Outputs of a window of `extent` (dilation included) over `size` elements and `pad` padded ones."""
    return (size + pad - extent) // stride + 1


def dilated(kernel: int, dilation: int) -> int:
    """Extent of a kernel whose taps lie `dilation` apart."""
    return (kernel - 1) * dilation + 1


def same_padding(size: int, extent: int, stride: int) -> tuple[int, int, int]:
    """TFLite's SAME: ceil(size / stride) outputs, the padding before them, and the padding after them."""
    outputs = -(-size // stride)
    total = max((outputs - 1) * stride + extent - size, 0)
    return outputs, total // 2, total - total // 2


def check_output_shapes(graph: Graph, op: Op) -> None:
    """Raises GeometryError unless the shapes of `op`'s outputs follow from its inputs and attributes."""
    shapes = [graph.tensors[t].shape if t >= 0 else () for t in op.inputs]
    outputs = [graph.tensors[t].shape for t in op.outputs]
    _RULES[op.kind](op, shapes, outputs)


def _attrs(op: Op, cls: type[_A]) -> _A:
    demand(isinstance(op.attrs, cls), f"attributes of {op.kind} must be {cls.__name__}")
    assert isinstance(op.attrs, cls)
    return op.attrs


def _expect(actual: Shape, wanted: Shape) -> None:
    demand(actual == wanted, f"the output has shape {list(actual)}, expected {list(wanted)}")


def _check_window(attrs: ConvAttrs | PoolAttrs) -> None:
    demand(all(s >= 1 for s in attrs.stride), f"stride {list(attrs.stride)} is not positive")
    pad = attrs.pad
    demand(min(pad.top, pad.bottom, pad.left, pad.right) >= 0, "negative padding")


def _spatial(x: Shape, attrs: ConvAttrs | PoolAttrs, kernel: Sequence[int]) -> tuple[int, int]:
    """Output rows and columns of a window of `kernel` (dilation included)."""
    pad = attrs.pad
    rows = window_outputs(x[1], pad.top + pad.bottom, kernel[0], attrs.stride[0])
    cols = window_outputs(x[2], pad.left + pad.right, kernel[1], attrs.stride[1])
    demand(rows >= 1 and cols >= 1, f"the window {list(kernel)} is larger than the padded input")
    return rows, cols


def _images(shapes: list[Shape], count: int) -> None:
    demand(len(shapes) >= count, f"{len(shapes)} inputs, expected at least {count}")
    for shape in shapes[:count]:
        demand(len(shape) == 4, f"shape {list(shape)} must have 4 dimensions")


def _bias(shapes: list[Shape], op: Op, channels: int) -> None:
    demand(len(shapes) == 3, f"{len(shapes)} inputs, expected 3 (bias -1 where there is none)")
    if op.inputs[2] >= 0:
        demand(shapes[2] == (channels,), f"the bias has shape {list(shapes[2])}, expected [{channels}]")


def _conv(op: Op, shapes: list[Shape], outputs: list[Shape]) -> None:
    _images(shapes, 2)
    x, (cout, kh, kw, per_group) = shapes[0], shapes[1]
    attrs = _attrs(op, ConvAttrs)
    _check_window(attrs)
    demand(min(attrs.dilation) >= 1, f"dilation {list(attrs.dilation)} is not positive")
    demand(x[3] % per_group == 0, f"{x[3]} input channels do not divide into groups of {per_group}")
    groups = x[3] // per_group
    demand(cout % groups == 0, f"{cout} output channels do not divide into {groups} groups")
    _bias(shapes, op, cout)
    extent = (dilated(kh, attrs.dilation[0]), dilated(kw, attrs.dilation[1]))
    _expect(outputs[0], (x[0], *_spatial(x, attrs, extent), cout))


def _depthwise(op: Op, shapes: list[Shape], outputs: list[Shape]) -> None:
    _images(shapes, 2)
    x, (one, kh, kw, cout) = shapes[0], shapes[1]
    attrs = _attrs(op, DepthwiseAttrs)
    _check_window(attrs)
    demand(min(attrs.dilation) >= 1, f"dilation {list(attrs.dilation)} is not positive")
    demand(one == 1, f"the filter's first dimension is {one}, expected 1")
    demand(
        attrs.depth_multiplier >= 1 and cout == x[3] * attrs.depth_multiplier,
        f"{cout} filter channels for {x[3]} input channels times {attrs.depth_multiplier}",
    )
    _bias(shapes, op, cout)
    extent = (dilated(kh, attrs.dilation[0]), dilated(kw, attrs.dilation[1]))
    _expect(outputs[0], (x[0], *_spatial(x, attrs, extent), cout))


def _transpose_conv(op: Op, shapes: list[Shape], outputs: list[Shape]) -> None:
    _images(shapes, 2)
    x, (cout, kh, kw, cin) = shapes[0], shapes[1]
    attrs = _attrs(op, ConvAttrs)
    _check_window(attrs)
    demand(attrs.dilation == (1, 1), "a transposed convolution has no dilation")
    demand(x[3] == cin, f"{x[3]} input channels, the filter has {cin}")
    _bias(shapes, op, cout)
    demand(len(outputs[0]) == 4, "the output must have 4 dimensions")
    _expect(outputs[0], (x[0], outputs[0][1], outputs[0][2], cout))
    demand(attrs.pad.top < kh and attrs.pad.left < kw, "the padding is larger than the kernel")


def _fully_connected(op: Op, shapes: list[Shape], outputs: list[Shape]) -> None:
    demand(len(shapes) == 3 and len(shapes[1]) == 2, "the filter must have 2 dimensions")
    x, (cout, cin) = shapes[0], shapes[1]
    demand(len(x) >= 1 and x[-1] == cin, f"input {list(x)} does not end in the filter's {cin} inputs")
    _bias(shapes, op, cout)
    if _attrs(op, FullyConnectedAttrs).keep_num_dims:
        _expect(outputs[0], (*x[:-1], cout))
    else:
        _expect(outputs[0], (int(np.prod(x[:-1], dtype=np.int64)), cout))


def _elementwise(_op: Op, shapes: list[Shape], outputs: list[Shape]) -> None:
    demand(len(shapes) == 2, f"{len(shapes)} inputs, expected 2")
    _expect(outputs[0], _broadcast(shapes[0], shapes[1]))


def _broadcast(a: Shape, b: Shape) -> Shape:
    try:
        return tuple(np.broadcast_shapes(a, b))
    except ValueError:
        raise GeometryError(f"shapes {list(a)} and {list(b)} do not broadcast") from None


def _pad(op: Op, shapes: list[Shape], outputs: list[Shape]) -> None:
    attrs, x = _attrs(op, PadAttrs), shapes[0]
    demand(len(attrs.paddings) == len(x), f"{len(attrs.paddings)} paddings for {len(x)} dimensions")
    demand(all(min(p) >= 0 for p in attrs.paddings), "negative padding")
    if attrs.mode != PadMode.CONSTANT:
        edge = 1 if attrs.mode == PadMode.REFLECT else 0
        for n, p in zip(x, attrs.paddings, strict=True):
            demand(max(p) <= n - edge, f"cannot mirror {max(p)} elements of a dimension of {n}")
    _expect(outputs[0], tuple(n + p[0] + p[1] for n, p in zip(x, attrs.paddings, strict=True)))


def _pool(op: Op, shapes: list[Shape], outputs: list[Shape]) -> None:
    _images(shapes, 1)
    x, attrs = shapes[0], _attrs(op, PoolAttrs)
    _check_window(attrs)
    demand(min(attrs.kernel) >= 1, f"window {list(attrs.kernel)} is not positive")
    rows, cols = _spatial(x, attrs, attrs.kernel)
    pad, (kh, kw) = attrs.pad, attrs.kernel
    empty = (
        max(pad.top, pad.bottom) >= kh
        or max(pad.left, pad.right) >= kw
        or (rows - 1) * attrs.stride[0] >= x[1] + pad.top
        or (cols - 1) * attrs.stride[1] >= x[2] + pad.left
    )
    demand(not empty, "a pooling window lies wholly in the padding")
    _expect(outputs[0], (x[0], rows, cols, x[3]))


def _mean(op: Op, shapes: list[Shape], outputs: list[Shape]) -> None:
    attrs, x = _attrs(op, MeanAttrs), shapes[0]
    axes = attrs.axes
    demand(axes == tuple(sorted(set(axes))) and len(axes) > 0, f"axes {list(axes)}")
    demand(axes[0] >= 0 and axes[-1] < len(x), f"axes {list(axes)} of {len(x)} dimensions")
    if attrs.keep_dims:
        _expect(outputs[0], tuple(1 if i in axes else n for i, n in enumerate(x)))
    else:
        _expect(outputs[0], tuple(n for i, n in enumerate(x) if i not in axes))


def _same(_op: Op, shapes: list[Shape], outputs: list[Shape]) -> None:
    _expect(outputs[0], shapes[0])


def _softmax(_op: Op, shapes: list[Shape], outputs: list[Shape]) -> None:
    demand(len(shapes[0]) >= 1, "a softmax needs at least one dimension")
    _expect(outputs[0], shapes[0])


def _prelu(_op: Op, shapes: list[Shape], outputs: list[Shape]) -> None:
    demand(len(shapes) == 2, f"{len(shapes)} inputs, expected 2")
    demand(_broadcast(shapes[0], shapes[1]) == shapes[0], "alpha is larger than the input")
    _expect(outputs[0], shapes[0])


def _alias(_op: Op, shapes: list[Shape], outputs: list[Shape]) -> None:
    before, after = (int(np.prod(s, dtype=np.int64)) for s in (shapes[0], outputs[0]))
    demand(before == after, f"{before} elements cannot take shape {list(outputs[0])}")


def _transpose(op: Op, shapes: list[Shape], outputs: list[Shape]) -> None:
    perm, x = _attrs(op, TransposeAttrs).perm, shapes[0]
    demand(sorted(perm) == list(range(len(x))), f"{list(perm)} does not permute {len(x)} dimensions")
    _expect(outputs[0], tuple(x[p] for p in perm))


def _axis(op: Op, rank: int) -> int:
    axis = _attrs(op, AxisAttrs).axis
    demand(0 <= axis < rank, f"axis {axis} of {rank} dimensions")
    return axis


def _joins(axis: int, parts: list[Shape], whole: Shape) -> None:
    """Demands that `parts` laid side by side along `axis` are `whole`."""
    for part in parts:
        resized = (*part[:axis], whole[axis], *part[axis + 1 :])
        fits = len(part) == len(whole) and resized == whole
        demand(fits, f"shape {list(part)} is not part of {list(whole)} along axis {axis}")
    total = sum(part[axis] for part in parts)
    demand(total == whole[axis], f"{total} elements along axis {axis}, expected {whole[axis]}")


def _concatenation(op: Op, shapes: list[Shape], outputs: list[Shape]) -> None:
    demand(len(shapes) >= 1, "nothing to concatenate")
    _joins(_axis(op, len(shapes[0])), shapes, outputs[0])


def _split(op: Op, shapes: list[Shape], outputs: list[Shape]) -> None:
    demand(len(outputs) >= 1, "a split without outputs")
    axis = _axis(op, len(shapes[0]))
    _joins(axis, outputs, shapes[0])
    demand(len({s[axis] for s in outputs}) == 1, "the parts of a split differ in size")


def _slice(op: Op, shapes: list[Shape], outputs: list[Shape]) -> None:
    attrs, x = _attrs(op, SliceAttrs), shapes[0]
    entries = (attrs.begin, attrs.stride, attrs.extent)
    demand(all(len(e) == len(x) for e in entries), "one begin, stride and extent a dimension are needed")
    for n, begin, stride, extent in zip(x, *entries, strict=True):
        last = begin + (extent - 1) * stride
        demand(extent >= 1 and stride != 0, "an empty slice")
        demand(0 <= begin < n and 0 <= last < n, f"elements {begin}..{last} of a dimension of {n}")
    if op.kind == OpKind.SLICE:
        _expect(outputs[0], attrs.extent)
    kept = [n for n in attrs.extent if n != 1]
    demand([n for n in outputs[0] if n != 1] == kept, f"output {list(outputs[0])} from {list(attrs.extent)}")


def _resize(_op: Op, shapes: list[Shape], outputs: list[Shape]) -> None:
    _images(shapes, 1)
    _images(outputs, 1)
    x = shapes[0]
    _expect(outputs[0], (x[0], outputs[0][1], outputs[0][2], x[3]))


_RULES: dict[OpKind, Callable[[Op, list[Shape], list[Shape]], None]] = {
    OpKind.CONV_2D: _conv,
    OpKind.DEPTHWISE_CONV_2D: _depthwise,
    OpKind.TRANSPOSE_CONV: _transpose_conv,
    OpKind.FULLY_CONNECTED: _fully_connected,
    OpKind.ADD: _elementwise,
    OpKind.SUB: _elementwise,
    OpKind.MUL: _elementwise,
    OpKind.PAD: _pad,
    OpKind.MIRROR_PAD: _pad,
    OpKind.AVERAGE_POOL_2D: _pool,
    OpKind.MAX_POOL_2D: _pool,
    OpKind.MEAN: _mean,
    OpKind.SOFTMAX: _softmax,
    OpKind.LOGISTIC: _same,
    OpKind.TANH: _same,
    OpKind.HARD_SWISH: _same,
    OpKind.RELU: _same,
    OpKind.RELU6: _same,
    OpKind.LEAKY_RELU: _same,
    OpKind.PRELU: _prelu,
    OpKind.RESHAPE: _alias,
    OpKind.SQUEEZE: _alias,
    OpKind.EXPAND_DIMS: _alias,
    OpKind.TRANSPOSE: _transpose,
    OpKind.CONCATENATION: _concatenation,
    OpKind.SPLIT: _split,
    OpKind.STRIDED_SLICE: _slice,
    OpKind.SLICE: _slice,
    OpKind.RESIZE_NEAREST_NEIGHBOR: _resize,
    OpKind.RESIZE_BILINEAR: _resize,
    OpKind.QUANTIZE: _same,
    OpKind.DEQUANTIZE: _same,
}
