"""Shapes: what every operator's output shape must be, given its inputs and attributes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

from buildtool.graph.types import (
    PAIR_KINDS,
    Attrs,
    AxisAttrs,
    BatchBlockAttrs,
    BlockAttrs,
    ConvAttrs,
    DepthwiseAttrs,
    FullyConnectedAttrs,
    GatherAttrs,
    Graph,
    MatmulAttrs,
    MeanAttrs,
    Op,
    OpKind,
    PadAttrs,
    PadMode,
    PoolAttrs,
    ShuffleAttrs,
    SliceAttrs,
    TileAttrs,
    TransposeAttrs,
    WidenedAttrs,
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


def _elementwise(op: Op, shapes: list[Shape], outputs: list[Shape]) -> None:
    if isinstance(op.attrs, WidenedAttrs):
        _widened(op.attrs, shapes, outputs)
        return
    demand(len(shapes) == 2, f"{len(shapes)} inputs, expected 2")
    _expect(outputs[0], broadcast(shapes[0], shapes[1]))


def _widened(attrs: WidenedAttrs, shapes: list[Shape], outputs: list[Shape]) -> None:
    demand(len(shapes) == 3, f"{len(shapes)} inputs, expected 3")
    whole, narrow, filling = shapes
    demand(len(whole) > 0 and whole[:-1] == narrow[:-1], f"shapes {list(whole)} and {list(narrow)}")
    behind = whole[-1] - narrow[-1] - attrs.before
    demand(min(attrs.before, behind) >= 0, f"{narrow[-1]} channels from {attrs.before} on of {whole[-1]}")
    demand(filling == (max(attrs.before, behind),), f"a filling of shape {list(filling)}")
    _expect(outputs[0], whole)


def _select(_op: Op, shapes: list[Shape], outputs: list[Shape]) -> None:
    demand(len(shapes) == 3, f"{len(shapes)} inputs, expected 3")
    _expect(outputs[0], broadcast(shapes[0], broadcast(shapes[1], shapes[2])))


def broadcast(a: Shape, b: Shape) -> Shape:
    """The shape of two operands together; GeometryError where there is none."""
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
    demand(len(shapes[0]) >= 1, f"{_op.kind} needs at least one dimension")
    _expect(outputs[0], shapes[0])


def _prelu(_op: Op, shapes: list[Shape], outputs: list[Shape]) -> None:
    demand(len(shapes) == 2, f"{len(shapes)} inputs, expected 2")
    demand(broadcast(shapes[0], shapes[1]) == shapes[0], "alpha is larger than the input")
    _expect(outputs[0], shapes[0])


def _alias(_op: Op, shapes: list[Shape], outputs: list[Shape]) -> None:
    before, after = (int(np.prod(s, dtype=np.int64)) for s in (shapes[0], outputs[0]))
    demand(before == after, f"{before} elements cannot take shape {list(outputs[0])}")


def _transpose(op: Op, shapes: list[Shape], outputs: list[Shape]) -> None:
    if isinstance(op.attrs, ShuffleAttrs):
        groups = op.attrs.groups
        demand(len(shapes[0]) == 4, f"a shuffle of {len(shapes[0])} dimensions")
        demand(groups > 0 and shapes[0][3] % groups == 0, f"{groups} groups of {shapes[0][3]} channels")
        _expect(outputs[0], shapes[0])
        return
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
        fits = len(part) == len(whole) and (*part[:axis], whole[axis], *part[axis + 1 :]) == whole
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


def _shift(op: Op, shapes: list[Shape], outputs: list[Shape]) -> None:
    demand(len(shapes) == 2 and shapes[0] == outputs[0], "a shift whose output has another shape")
    axis = _axis(op, len(shapes[0]))
    rest = [(a, b) for d, (a, b) in enumerate(zip(*shapes, strict=False)) if d != axis]
    fits = len(shapes[1]) == len(shapes[0]) and all(a == b for a, b in rest)
    demand(fits and shapes[1][axis] < shapes[0][axis], f"{list(shapes[1])} into {list(shapes[0])}")


def _lookup(_op: Op, shapes: list[Shape], outputs: list[Shape]) -> None:
    _expect(outputs[0], shapes[0])
    demand(shapes[1] == (256,), f"a table of shape {list(shapes[1])}, expected [256]")


def _tile(op: Op, shapes: list[Shape], outputs: list[Shape]) -> None:
    multiples, x = _attrs(op, TileAttrs).multiples, shapes[0]
    demand(len(multiples) == len(x), f"{len(multiples)} multiples for {len(x)} dimensions")
    demand(all(n >= 1 for n in multiples), f"multiples {list(multiples)} are not positive")
    _expect(outputs[0], tuple(n * m for n, m in zip(x, multiples, strict=True)))


def _gather(op: Op, shapes: list[Shape], outputs: list[Shape]) -> None:
    attrs, x = _attrs(op, GatherAttrs), shapes[0]
    demand(0 <= attrs.axis < len(x), f"axis {attrs.axis} of {len(x)} dimensions")
    size = x[attrs.axis]
    demand(len(attrs.indices) >= 1, "nothing is gathered")
    demand(all(0 <= i < size for i in attrs.indices), f"an index is outside a dimension of {size}")
    _expect(outputs[0], (*x[: attrs.axis], len(attrs.indices), *x[attrs.axis + 1 :]))


def _squares(op: Op, shapes: list[Shape], outputs: list[Shape]) -> None:
    """DEPTH_TO_SPACE, SPACE_TO_DEPTH."""
    _images(shapes, 1)
    block, (batch, rows, columns, depth) = _attrs(op, BlockAttrs).block, shapes[0]
    demand(block >= 1, f"a block of {block}")
    if op.kind is OpKind.DEPTH_TO_SPACE:
        demand(depth % block**2 == 0, f"{depth} channels are not whole blocks of {block} x {block}")
        _expect(outputs[0], (batch, rows * block, columns * block, depth // block**2))
        return
    text = f"{rows} x {columns} pixels are not whole blocks of {block} x {block}"
    demand(rows % block == 0 and columns % block == 0, text)
    _expect(outputs[0], (batch, rows // block, columns // block, depth * block**2))


def _batch_blocks(op: Op, shapes: list[Shape], outputs: list[Shape]) -> None:
    """SPACE_TO_BATCH_ND, BATCH_TO_SPACE_ND."""
    attrs, x = _attrs(op, BatchBlockAttrs), shapes[0]
    count = len(attrs.block)
    demand(len(attrs.edges) == count < len(x), f"{count} blocks for {len(x)} dimensions")
    demand(min(attrs.block) >= 1 and all(min(e) >= 0 for e in attrs.edges), "a negative edge, or no block")
    squares = int(np.prod(attrs.block, dtype=np.int64))
    sides = []
    for n, block, (before, after) in zip(x[1:], attrs.block, attrs.edges, strict=False):
        if op.kind is OpKind.BATCH_TO_SPACE_ND:
            demand(n * block > before + after, f"{before} + {after} elements cropped of {n * block}")
            sides.append(n * block - before - after)
        else:
            padded = n + before + after
            demand(padded % block == 0, f"{padded} elements are not whole blocks of {block}")
            sides.append(padded // block)
    if op.kind is OpKind.BATCH_TO_SPACE_ND:
        demand(x[0] % squares == 0, f"a batch of {x[0]} is not whole blocks of {squares}")
        batch = x[0] // squares
    else:
        batch = x[0] * squares
    _expect(outputs[0], (batch, *sides, *x[1 + count :]))


def _arg(op: Op, shapes: list[Shape], outputs: list[Shape]) -> None:
    axis = _axis(op, len(shapes[0]))
    _expect(outputs[0], (*shapes[0][:axis], *shapes[0][axis + 1 :]))


def _matmul(op: Op, shapes: list[Shape], outputs: list[Shape]) -> None:
    attrs = _attrs(op, MatmulAttrs)
    demand(len(shapes) == 2 and min(map(len, shapes)) >= 2, "two operands of 2 dimensions or more are needed")
    x, y = shapes
    rows, inner = x[-2:] if not attrs.adj_x else x[:-3:-1]
    height, columns = y[-2:] if not attrs.adj_y else y[:-3:-1]
    demand(inner == height, f"{inner} columns of the first operand for {height} rows of the second")
    _expect(outputs[0], (*broadcast(x[:-2], y[:-2]), rows, columns))


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
    OpKind.ABS: _same,
    OpKind.EXP: _same,
    OpKind.LOG: _same,
    OpKind.GELU: _same,
    OpKind.NEG: _same,
    OpKind.SQRT: _same,
    OpKind.RSQRT: _same,
    OpKind.ELU: _same,
    OpKind.RELU_N1_TO_1: _same,
    OpKind.RELU_0_TO_1: _same,
    OpKind.LOGICAL_NOT: _same,
    **dict.fromkeys(PAIR_KINDS, _elementwise),
    OpKind.SELECT_V2: _select,
    OpKind.L2_NORMALIZATION: _softmax,
    OpKind.LOG_SOFTMAX: _softmax,
    OpKind.PRELU: _prelu,
    OpKind.RESHAPE: _alias,
    OpKind.SQUEEZE: _alias,
    OpKind.EXPAND_DIMS: _alias,
    OpKind.TRANSPOSE: _transpose,
    OpKind.CONCATENATION: _concatenation,
    OpKind.SPLIT: _split,
    OpKind.STRIDED_SLICE: _slice,
    OpKind.SLICE: _slice,
    OpKind.TILE: _tile,
    OpKind.GATHER: _gather,
    OpKind.DEPTH_TO_SPACE: _squares,
    OpKind.SPACE_TO_DEPTH: _squares,
    OpKind.BATCH_TO_SPACE_ND: _batch_blocks,
    OpKind.SPACE_TO_BATCH_ND: _batch_blocks,
    OpKind.REDUCE_MAX: _mean,
    OpKind.REDUCE_MIN: _mean,
    OpKind.ARG_MAX: _arg,
    OpKind.ARG_MIN: _arg,
    OpKind.BATCH_MATMUL: _matmul,
    OpKind.RESIZE_NEAREST_NEIGHBOR: _resize,
    OpKind.RESIZE_BILINEAR: _resize,
    OpKind.QUANTIZE: _same,
    OpKind.CAST: _same,
    OpKind.DEQUANTIZE: _same,
    OpKind.READ_VARIABLE: _same,
    OpKind.ASSIGN_VARIABLE: _same,
    OpKind.SHIFT: _shift,
    OpKind.LOOKUP: _lookup,
}
