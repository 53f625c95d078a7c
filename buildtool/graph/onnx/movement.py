"""Reads operators that move or pick elements, from Reshape and Transpose to Gather, Tile and ArgMax."""

import math
from dataclasses import replace

import numpy as np

from buildtool.base.errors import ModelError, UnsupportedError
from buildtool.graph.geometry import cuts, pick_elements
from buildtool.graph.onnx.context import Context
from buildtool.graph.onnx.file import Array, Node
from buildtool.graph.onnx.folding import axes_of, axis_of, broadcast_of, permutation, shape_after
from buildtool.graph.onnx.layout import canonical, order_of, place_in_memory, plain, transpose_layout
from buildtool.graph.onnx.values import ActivationValue, Constant, IndexOutput, Pending, Quantized, Value
from buildtool.graph.onnx.windows import NHWC
from buildtool.graph.ops import ONNX
from buildtool.graph.quantrules import same_quantization
from buildtool.graph.types import (
    Activation,
    AxisAttrs,
    OpKind,
    PadAttrs,
    PadMode,
    Quantization,
    SliceAttrs,
    TileAttrs,
)


def reshape(ctx: Context, node: Node) -> list[Value]:
    """Reads Reshape, Flatten, Squeeze, Unsqueeze, Identity or Dropout. Only the shape changes."""
    x = ctx.held(node, integers=True)
    parameters: list[Array] = []
    if node.kind in ("Reshape", "Squeeze", "Unsqueeze") and node.input(1):
        parameters.append(np.array(ctx.ints(node, 1, "the shape"), np.int64))
    shape = shape_after(node, x.shape, parameters)
    assert shape is not None
    if len(shape) > 16:
        raise ModelError(f"a tensor of {len(shape)} dimensions")
    return [replace(x, shape=shape)]


def cast(ctx: Context, node: Node) -> list[Value]:
    """Reads a Cast to float32, which needs no operator: its result holds the numbers of its input."""
    if node.integer("to", 0) != 1:  # TensorProto.FLOAT
        hint = "cast to float32, or leave the operator out of the network"
        raise UnsupportedError("a Cast of an activation to another type than float32", hint=hint)
    x = ctx.held(node, integers=node.input(0) in ctx.cast_inputs)
    return [replace(x, integers=False)]


def transpose(ctx: Context, node: Node) -> list[Value]:
    """Reads Transpose. Only the shape and the layout change."""
    x = ctx.held(node, integers=True)
    return [permute(ctx, x, permutation(node, len(x.shape)))]


def permute(ctx: Context, x: ActivationValue, perm: tuple[int, ...]) -> ActivationValue:
    """Returns `x` with its dimension perm[i] as dimension i."""
    shape = tuple(x.shape[p] for p in perm)
    layout = transpose_layout(x.shape, x.layout, perm)
    if layout is None:  # a dimension does not lie in one piece: transpose to the file's order first
        x = replace(x, tensor=ctx.build.in_file_order(x, range(len(x.shape))), layout=plain(x.shape))
        layout = transpose_layout(x.shape, x.layout, perm)
        assert layout is not None
    return replace(x, shape=shape, layout=layout)


def depth_to_space(ctx: Context, node: Node) -> list[Value]:
    """Reads DepthToSpace and SpaceToDepth as a reshape, a transposition and a reshape."""
    x, b = ctx.held(node, integers=True), node.integer("blocksize", 0)
    n, c, h, w = x.shape if len(x.shape) == 4 else (0, 0, 0, 0)
    to_depth = node.kind == "SpaceToDepth"
    if len(x.shape) != 4 or not 1 <= b <= 1 << 12 or (h % b or w % b if to_depth else c % (b * b)):
        raise ModelError(f"blocks of {b} in an input of shape {list(x.shape)}")
    perm: tuple[int, ...]
    if to_depth:
        split, perm = (n, c, h // b, b, w // b, b), (0, 3, 5, 1, 2, 4)
        shape = (n, c * b * b, h // b, w // b)
    else:
        column_first = node.text("mode", "DCR") == "CRD"
        split = (n, c // (b * b), b, b, h, w) if column_first else (n, b, b, c // (b * b), h, w)
        perm = (0, 1, 4, 2, 5, 3) if column_first else (0, 3, 4, 1, 5, 2)
        shape = (n, c // (b * b), h * b, w * b)
    return [replace(permute(ctx, replace(x, shape=split), perm), shape=shape)]


# ---- parts -------------------------------------------------------------------------------------------


def concat(ctx: Context, node: Node) -> list[Value]:
    """Reads Concat. Parts with another quantisation than the result are requantised."""
    parts: list[ActivationValue] = []
    for i, name in enumerate(node.inputs):
        value = ctx.value(name)
        if isinstance(value, Quantized) or (ctx.floats and isinstance(value, Constant)):
            operand = ctx.operand(node, i)
            assert isinstance(operand, (Quantized, Constant))
            tensor = ctx.build.constant(f"{node.outputs[0]}/constant{i}", operand.data, operand.quant)
            parts.append(
                ActivationValue(tensor, operand.data.shape, plain(operand.data.shape), operand.quant)
            )
        else:
            parts.append(ctx.held(node, i, integers=True))
    if not parts or len({p.integers for p in parts}) > 1:
        raise ModelError("a Concat of no parts, or of quantised and dequantised parts")
    first = parts[0]
    axis, shape = axis_of(node, len(first.shape)), list(first.shape)
    for part in parts:
        if len(part.shape) != len(shape) or {d for d, n in enumerate(part.shape) if n != shape[d]} - {axis}:
            shapes = f"{list(first.shape)} and {list(part.shape)}"
            raise ModelError(f"parts of shapes {shapes} cannot be joined along dimension {axis}")
    shape[axis] = sum(p.shape[axis] for p in parts)
    _, order = ctx.build.without_move(max(parts, key=lambda p: math.prod(p.shape)))
    memory, layout = place_in_memory(shape, order)

    def make(out: Quantization | None, _activation: Activation, name: str) -> ActivationValue:
        operands = [ctx.build.requantize(p, out, f"{name}/part{i}") for i, p in enumerate(parts)]
        tensors = [ctx.build.in_file_order(p, order) for p in operands]
        attrs = AxisAttrs(order.index(axis))
        result = ctx.build.make(OpKind.CONCATENATION, tensors, name, memory, out, attrs)
        return ActivationValue(result, tuple(shape), layout, out, first.integers)

    if all(same_quantization(p.quant, first.quant) for p in parts):
        return [make(first.quant, Activation.NONE, node.outputs[0])]
    if first.integers:
        raise UnsupportedError("joins quantised integers of different scales", hint="export in QDQ format")
    return [Pending(tuple(shape), make)]


def split(ctx: Context, node: Node) -> list[Value]:
    """Reads Split as SPLIT if all parts have the same size, otherwise as one slice per part."""
    x = ctx.held(node, integers=True)
    axis = axis_of(node, len(x.shape))
    count, size = len(node.outputs), x.shape[axis]
    sizes = ctx.ints(node, 1, "the parts") if node.input(1) else node.integers("split")
    if sizes is None:
        if node.integer("num_outputs", count) != count or count < 1:
            raise ModelError(f"{node.integer('num_outputs', 0)} parts for {count} outputs")
        each = -(-size // count)
        sizes = (*(each for _ in range(count - 1)), size - each * (count - 1))
    if len(sizes) != count or sum(sizes) != size or min(sizes) < 1:
        raise ModelError(f"parts {list(sizes[:16])} of {size} elements")
    tensor, order = ctx.build.without_move(x)
    position = order.index(axis)
    parts = cuts([x.shape[d] for d in order], position, sizes)
    quant, slices = x.quant, list(zip(node.outputs, parts, strict=True))
    if len(set(sizes)) == 1:
        tensors = [ctx.build.activation(name, part.extent, quant) for name, part in slices]
        ctx.build.op(OpKind.SPLIT, [tensor], tensors, AxisAttrs(position))
    else:
        make = ctx.build.make
        tensors = [make(OpKind.SLICE, [tensor], name, part.extent, quant, part) for name, part in slices]
    shapes = [(*x.shape[:axis], n, *x.shape[axis + 1 :]) for n in sizes]
    pairs = zip(tensors, shapes, strict=True)
    return [ActivationValue(t, shape, canonical(shape, order), quant, x.integers) for t, shape in pairs]


def slice_(ctx: Context, node: Node) -> list[Value]:
    """Reads Slice. Steps may be negative."""
    x = ctx.held(node, integers=True)
    starts, ends = ctx.ints(node, 1, "the starts"), ctx.ints(node, 2, "the ends")
    axes = ctx.ints(node, 3, "the axes", tuple(range(len(starts))))
    steps = ctx.ints(node, 4, "the steps", (1,) * len(starts))
    if not len(starts) == len(ends) == len(axes) == len(steps) or 0 in steps:
        raise ModelError(f"{len(starts)} starts, {len(ends)} ends, {len(axes)} axes, steps {list(steps[:8])}")
    begin, stride, extent = [0] * len(x.shape), [1] * len(x.shape), list(x.shape)
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        (d,) = axes_of((axis,), len(x.shape))
        indices = range(x.shape[d])[start:end:step]
        if not indices:
            raise UnsupportedError("a Slice without elements", hint="remove it from the network")
        begin[d], stride[d], extent[d] = indices.start, step, len(indices)
    tensor, order = ctx.build.without_move(x)
    attrs = SliceAttrs(*(tuple(values[d] for d in order) for values in (begin, stride, extent)))
    kind = OpKind.SLICE if set(stride) == {1} else OpKind.STRIDED_SLICE
    return [ctx.build.move(kind, x, tensor, order, node.outputs[0], extent, attrs)]


_MODES = {"reflect": PadMode.REFLECT, "edge": PadMode.SYMMETRIC}


def pad(ctx: Context, node: Node) -> list[Value]:
    """Reads Pad in mode constant or reflect, or in mode edge if it adds at most one element per side."""
    x = ctx.held(node, integers=True)
    pairs = _read_pads(ctx, node, len(x.shape))
    mode, value = node.text("mode", "constant"), 0
    if mode == "constant" and x.integers:  # the padding value has their type
        if not node.input(2):
            text = "a Pad of quantised integers without a padding value"
            raise UnsupportedError(text, hint="pad before quantising")
        constant = ctx.array(node, 2, "the padding value")
        if constant.size != 1 or constant.dtype.name not in ("int8", "uint8"):
            raise ModelError("the padding value is not one number of the input's type")
        value = int(constant.reshape(-1)[0]) - (128 if constant.dtype == np.uint8 else 0)
    elif mode == "constant":
        before_11 = node.number("value", 0.0)
        real = ctx.scalar(node, 2, "the padding value") if node.input(2) else before_11
        value = _quantize_padding(real, x.quant)
    elif mode not in _MODES or (mode == "edge" and any(max(p) > 1 for p in pairs)):
        hint = "supported: constant, reflect, and edge by one element"
        raise UnsupportedError(f"a Pad of mode {mode[:20]}", hint=hint)
    tensor, order = ctx.build.without_move(x)
    kind = OpKind.PAD if mode == "constant" else OpKind.MIRROR_PAD
    attrs = PadAttrs(tuple(pairs[d] for d in order), _MODES.get(mode, PadMode.CONSTANT), value)
    shape = [n + sum(pair) for n, pair in zip(x.shape, pairs, strict=True)]
    return [ctx.build.move(kind, x, tensor, order, node.outputs[0], shape, attrs)]


def _quantize_padding(real: float, quant: Quantization | None) -> int:
    """Returns the padding value as int8, or as the bits of a float32 if there is no quantisation."""
    if quant is None:
        return int(np.float32(real).view(np.int32))
    steps = real / quant.scale + quant.zero_point
    if not -128.5 <= steps <= 127.5:
        hint = "pad before quantising, or quantise for a range that includes the padding value"
        raise UnsupportedError(f"a padding value of {real:g} outside the tensor's range", hint=hint)
    return min(max(round(steps), -128), 127)


def _read_pads(ctx: Context, node: Node, rank: int) -> list[tuple[int, int]]:
    """Returns (elements before, elements after) for every dimension of a Pad.

    They are an operand, before opset 11 an attribute.
    """
    flat = node.integers("pads") or () if ctx.file.opset < 11 else ctx.ints(node, 1, "the pads")
    axes = tuple(a % rank for a in ctx.ints(node, 3, "the axes", tuple(range(rank))) if -rank <= a < rank)
    if len(flat) != 2 * len(axes) or len(set(axes)) != len(axes):
        raise ModelError(f"{len(flat)} pads for {len(axes)} dimensions")
    if min(flat, default=0) < 0:
        raise UnsupportedError("a Pad with negative pads", hint="use Slice")
    ends = dict(zip(axes, zip(flat, flat[len(axes) :], strict=False), strict=True))
    return [ends.get(d, (0, 0)) for d in range(rank)]


# ---- picking and repeating elements ------------------------------------------------------------------


_MOST_GATHERED = 4096  # upper limit for the indices


def gather(ctx: Context, node: Node) -> list[Value]:
    """Reads Gather with constant indices as GATHER or as a slice."""
    x, indices = ctx.held(node, integers=True), ctx.array(node, 1, "the indices")
    axis = axis_of(node, len(x.shape))
    size = x.shape[axis]
    if indices.dtype.kind not in "iu" or not 1 <= indices.size <= _MOST_GATHERED:
        raise ModelError(f"{indices.size} indices of type {indices.dtype}")
    positions = [int(i) + size if i < 0 else int(i) for i in indices.reshape(-1)]
    if not 0 <= min(positions) <= max(positions) < size:
        raise ModelError(f"an index is outside a dimension of {size}")
    tensor, order = ctx.build.without_move(x)
    kind, attrs = pick_elements([x.shape[d] for d in order], order.index(axis), positions)
    shape = (*x.shape[:axis], len(positions), *x.shape[axis + 1 :])
    result = ctx.build.move(kind, x, tensor, order, node.outputs[0], shape, attrs)
    return [replace(result, shape=(*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :]))]


def tile(ctx: Context, node: Node) -> list[Value]:
    """Reads Tile."""
    x, repeats = ctx.held(node, integers=True), ctx.ints(node, 1, "the repeats")
    if len(repeats) != len(x.shape) or min(repeats, default=1) < 1:
        raise ModelError(f"repeats {list(repeats[:16])} for {len(x.shape)} dimensions")
    return [_tile(ctx, node, x, repeats)]


def expand(ctx: Context, node: Node) -> list[Value]:
    """Reads Expand as a TILE of dimensions of size 1."""
    x, sizes = ctx.held(node, integers=True), ctx.ints(node, 1, "the shape")
    if len(sizes) > 16 or min(sizes, default=1) < 1:
        raise ModelError(f"{list(sizes[:16])} is not a shape")
    shape = broadcast_of(x.shape, sizes)
    wide = replace(x, shape=(1,) * (len(shape) - len(x.shape)) + x.shape)
    return [_tile(ctx, node, wide, tuple(n // m for n, m in zip(shape, wide.shape, strict=True)))]


def _tile(ctx: Context, node: Node, x: ActivationValue, repeats: tuple[int, ...]) -> ActivationValue:
    tensor, order = ctx.build.without_move(x)
    sizes = [n * m for n, m in zip(x.shape, repeats, strict=True)]
    attrs = TileAttrs(tuple(repeats[d] for d in order))
    return ctx.build.move(OpKind.TILE, x, tensor, order, node.outputs[0], sizes, attrs)


def arg_extreme(ctx: Context, node: Node) -> list[Value]:
    """Reads ArgMax or ArgMin, whose result must be a network output.

    The result is int64 and lacks the reduced dimension. If it has images, their channels are last.
    """
    kind = ONNX[node.kind].kind
    x = ctx.held(node, integers=True)
    if node.integer("select_last_index", 0):
        hint = "set select_last_index to 0"
        raise UnsupportedError(f"an {node.kind} that takes the last of equal elements", hint=hint)
    rank = len(x.shape)
    axis = axis_of(node, rank)
    rest = [d for d in range(rank) if d != axis]
    if node.integer("keepdims", 1) and rank == 4:
        rest = [d for d in NHWC if d != axis]
    elif len(rest) == 4:
        rest = [rest[d] for d in NHWC]
    own = order_of(x.shape, x.layout)
    order = own if own is not None and [d for d in own if d != axis] == rest else (*rest, axis)
    tensor = ctx.build.in_file_order(x, order)
    result = ctx.build.int64_output(node.outputs[0], [x.shape[d] for d in rest])
    ctx.build.op(kind, [tensor], [result], AxisAttrs(tuple(order).index(axis)))
    return [IndexOutput(result, tuple(x.shape[d] for d in rest))]
