"""Decodes and writes operators that move elements: pads, reshapes, concatenations, splits and slices."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from buildtool.base.errors import ModelError, UnsupportedError
from buildtool.graph.geometry import attributes
from buildtool.graph.quantrules import same_quantization
from buildtool.graph.tflite.fileops import FileOp, Lowering
from buildtool.graph.tflite.opview import OpView
from buildtool.graph.tflite.schema import tflite
from buildtool.graph.types import AxisAttrs, DType, Op, OpKind, PadAttrs, PadMode, SliceAttrs, TransposeAttrs


def pairs(flat: Sequence[int]) -> tuple[tuple[int, int], ...]:
    """Returns a (before, after) pair for each dimension. `flat` lists the numbers of all pairs."""
    return tuple(zip(flat[::2], flat[1::2], strict=True))


def _emit_pad(view: OpView, kind: OpKind, mode: PadMode, value: int = 0) -> None:
    flat = view.ints(1)
    if len(flat) != 2 * len(view.input(0).shape):
        raise ModelError(f"{len(flat)} paddings for {len(view.input(0).shape)} dimensions")
    view.emit_like_file(kind, PadAttrs(pairs(flat), mode, value))


def decode_pad(view: OpView) -> None:
    """Decodes PAD. TFLite pads with the output's zero point."""
    quant = view.output.quant
    _emit_pad(view, OpKind.PAD, PadMode.CONSTANT, quant.zero_point if quant is not None else 0)


def decode_pad_v2(view: OpView) -> None:
    """Decodes PADV2. The padding value is a constant in the output's quantisation, or a float32."""
    filling = view.input(2)
    if not filling.is_constant or filling.dtype != view.output.dtype or filling.elements != 1:
        view.refuse(f"the padding value is not a {view.output.dtype} constant of one element")
    if filling.quant is not None and not same_quantization(filling.quant, view.output.quant):
        view.refuse("the padding value and the output have different quantisations")
    value = filling.array().reshape(-1)
    stored = value.view(np.int32) if value.dtype == np.float32 else value
    _emit_pad(view, OpKind.PAD, PadMode.CONSTANT, int(stored[0]))


def decode_mirror_pad(view: OpView) -> None:
    """Decodes MIRROR_PAD."""
    code = view.options(tflite.MirrorPadOptions).Mode()
    if code not in (0, 1):
        raise ModelError(f"unknown mirror mode {code}")
    _emit_pad(view, OpKind.MIRROR_PAD, PadMode.SYMMETRIC if code else PadMode.REFLECT)


def decode_reshape(view: OpView) -> None:
    """Decodes RESHAPE. `settle_shape` has set its output's shape before."""
    target = _reshape_target(view)
    if target is not None:
        view.demand_output(target, "the parameter says")
    view.emit_like_file(OpKind.RESHAPE)


def settle_shape(view: OpView) -> None:
    """Gives a RESHAPE's output the shape that its parameter specifies.

    LiteRT does so before it runs a network. In some files the output's own shape is only a placeholder.
    """
    target = _reshape_target(view)
    if target is not None and math.prod(target) == view.input(0).elements and min(target, default=1) > 0:
        view.file.set_shape(view.output.index, target)


def _reshape_target(view: OpView) -> tuple[int, ...] | None:
    """Returns the shape in the second input, or in the options (old files). One size may be -1.

    Returns None if the file only has the output's shape.
    """
    target: tuple[int, ...] = ()
    if view.optional(1) is not None:
        target = view.ints(1)
    else:
        options = view.op.options(tflite.ReshapeOptions)
        if options is None or not 0 < options.NewShapeLength() <= 16:
            return None
        target = tuple(int(n) for n in options.NewShapeAsNumpy())
    if target == (0,) and view.output.shape == ():  # how old converters write a scalar's shape
        return None
    elements, rest = view.input(0).elements, -math.prod(target)
    if target.count(-1) == 1 and rest > 0 and elements % rest == 0:
        return tuple(elements // rest if n == -1 else n for n in target)
    return target


def decode_squeeze(view: OpView) -> None:
    """Decodes SQUEEZE. Without dimensions in the options, it removes all dimensions of size 1."""
    shape = view.input(0).shape
    options = view.op.options(tflite.SqueezeOptions)
    count = options.SqueezeDimsLength() if options is not None else 0
    if count > len(shape):
        raise ModelError(f"{count} dimensions to remove from {len(shape)}")
    listed = options.SqueezeDimsAsNumpy() if count else ()
    dims = {view.axis(int(d), len(shape)) for d in listed} or {i for i, n in enumerate(shape) if n == 1}
    if any(shape[d] != 1 for d in dims):
        raise ModelError(f"dimensions {sorted(dims)} of {list(shape)} do not all have size 1")
    view.demand_output(tuple(n for i, n in enumerate(shape) if i not in dims))
    view.emit_like_file(OpKind.SQUEEZE)


def decode_expand_dims(view: OpView) -> None:
    """Decodes EXPAND_DIMS."""
    shape = view.input(0).shape
    axis = view.read_axis(1, len(shape) + 1)
    view.demand_output((*shape[:axis], 1, *shape[axis:]))
    view.emit_like_file(OpKind.EXPAND_DIMS)


def decode_transpose(view: OpView) -> None:
    """Decodes TRANSPOSE."""
    rank = len(view.input(0).shape)
    view.emit_like_file(OpKind.TRANSPOSE, TransposeAttrs(tuple(view.axis(p, rank) for p in view.ints(1))))


def decode_concatenation(view: OpView) -> None:
    """Decodes CONCATENATION."""
    options = view.options(tflite.ConcatenationOptions)
    if options.FusedActivationFunction() != tflite.ActivationFunctionType.NONE:
        view.refuse("a fused activation on a concatenation", "use a separate operator for it")
    axis = view.axis(int(options.Axis()), len(view.input(0).shape))
    view.emit_like_file(OpKind.CONCATENATION, AxisAttrs(axis), len(view.op.inputs))


def decode_split(view: OpView) -> None:
    """Decodes SPLIT (axis, x). The axis becomes an attribute."""
    axis = view.read_axis(0, len(view.input(1).shape))
    parts = view.options(tflite.SplitOptions).NumSplits()
    if parts != len(view.op.outputs):
        raise ModelError(f"{parts} parts, but {len(view.op.outputs)} outputs")
    view.emit(OpKind.SPLIT, (view.operand(1),), AxisAttrs(axis))


def decode_slice(view: OpView) -> None:
    """Decodes SLICE (x, begin, size). A size of -1 means up to the end of the dimension."""
    shape, begin, size = view.input(0).shape, view.ints(1), view.ints(2)
    if not len(shape) == len(begin) == len(size):
        raise ModelError(f"{len(begin)} begins and {len(size)} sizes for {len(shape)} dimensions")
    extent = tuple(n - b if s == -1 else s for n, b, s in zip(shape, begin, size, strict=True))
    view.emit_like_file(OpKind.SLICE, SliceAttrs(begin, (1,) * len(shape), extent))


def decode_strided_slice(view: OpView) -> None:
    """Decodes STRIDED_SLICE (x, begin, end, strides) and resolves its masks."""
    attrs, shape = strided_spec(view)
    view.demand_output(shape)
    view.emit_like_file(OpKind.STRIDED_SLICE, attrs)


def strided_spec(view: OpView) -> tuple[SliceAttrs, tuple[int, ...]]:
    """Returns the attributes and the output shape of a STRIDED_SLICE. Resolves its masks as TFLite does.

    An ellipsis stands for all missing dimensions. A new axis uses no dimension of the input. Begins and ends
    are clamped to the dimension, as in Python. A shrunk axis takes one element and is removed.
    """
    shape = view.input(0).shape
    ranges: list[range] = []
    output: list[int] = []
    for taken, shrinks in _read_dimensions(view, len(shape)):
        if taken is None:
            output.append(1)
            continue
        size = shape[len(ranges)]
        elements = range(*taken.indices(size))
        if shrinks:
            first, step = elements.start, elements.step
            elements = range(first, first + step, step) if 0 <= first < size else range(0)
        else:
            output.append(len(elements))
        if not elements:
            raise ModelError(f"the slice of dimension {len(ranges)} is empty")
        ranges.append(elements)
    begin, stride = tuple(r.start for r in ranges), tuple(r.step for r in ranges)
    return SliceAttrs(begin, stride, tuple(map(len, ranges))), tuple(output)


def _read_dimensions(view: OpView, rank: int) -> list[tuple[slice | None, bool]]:
    """Returns (what a STRIDED_SLICE takes, whether the dimension is removed) for each dimension.

    It takes a slice, or None for a new axis. An ellipsis becomes one slice of everything per dimension.
    """
    begin, end, strides = view.ints(1), view.ints(2), view.ints(3)
    options = view.options(tflite.StridedSliceOptions)
    if not len(begin) == len(end) == len(strides) or len(begin) > 16:
        raise ModelError(f"{len(begin)} begins, {len(end)} ends, {len(strides)} strides")
    if options.Offset():
        view.refuse("ends given as offsets from the begins", "re-export with absolute ends")
    bits = [1 << i for i in range(len(begin))]
    used = sum(not (options.EllipsisMask() | options.NewAxisMask()) & bit for bit in bits)
    missing = rank - used
    if missing < 0:
        raise ModelError(f"it slices {used} dimensions, but the input has {rank}")
    dimensions: list[tuple[slice | None, bool]] = []
    for bit, first, last, step in zip(bits, begin, end, strides, strict=True):
        if options.EllipsisMask() & bit:
            dimensions += [(slice(None), False)] * missing
            missing = 0
        elif options.NewAxisMask() & bit:
            dimensions.append((None, False))
        elif step == 0:
            raise ModelError("a stride is 0")
        else:
            start = None if options.BeginMask() & bit else first
            stop = None if options.EndMask() & bit else last
            dimensions.append((slice(start, stop, step), bool(options.ShrinkAxisMask() & bit)))
    return dimensions + [(slice(None), False)] * missing


# ---- into a file -------------------------------------------------------------------------------


def add_pad(low: Lowering, op: Op, paddings: npt.ArrayLike, value: int | None, out: int) -> FileOp:
    """Returns a PAD from the first operand of `op` to tensor `out`.

    It is a PADV2, which pads with `value`, if this is not None.
    """
    source, (x, *_) = low.graph.tensors[op.inputs[0]], op.inputs
    operand = low.parameter(op, "paddings", paddings)
    if value is None:
        return FileOp("PAD", 2, (x, operand), (out,), "PadOptions")
    is_float = source.dtype is DType.FLOAT32
    stored = np.array([value], np.int32 if is_float else source.dtype.value)
    filling = low.add(op, "padding_value", stored.view(source.dtype.value), source.quant)
    return FileOp("PADV2", 2, (x, operand, filling), (out,), "PadV2Options")


def write_pad(low: Lowering, op: Op) -> FileOp:
    """Writes PAD and MIRROR_PAD; a PAD with another value than the zero point as PADV2."""
    attrs, quant = attributes(op, PadAttrs), low.graph.tensors[op.inputs[0]].quant
    if attrs.mode is PadMode.CONSTANT:
        plain = attrs.value == (0 if quant is None else quant.zero_point)
        return add_pad(low, op, attrs.paddings, None if plain else attrs.value, op.outputs[0])
    paddings = low.parameter(op, "paddings", attrs.paddings)
    return low.file_op(op, 2, paddings, Mode=0 if attrs.mode is PadMode.REFLECT else 1)


def write_reshape(low: Lowering, op: Op) -> FileOp:
    """Writes RESHAPE. New readers of files use the shape in a tensor, old ones that in the options."""
    shape = low.graph.tensors[op.outputs[0]].shape
    operand = low.parameter(op, "shape", shape)
    return FileOp("RESHAPE", 1, (*op.inputs, operand), op.outputs, "ReshapeOptions", {"NewShape": shape})


def _find_removed_dims(full: tuple[int, ...], result: tuple[int, ...], op: Op) -> tuple[int, ...]:
    """Returns the dimensions of size 1 whose removal from `full` gives `result`."""
    ones = [i for i, n in enumerate(full) if n == 1]
    for removed in itertools.combinations(ones, max(len(full) - len(result), 0)):
        if tuple(n for i, n in enumerate(full) if i not in removed) == result:
            return removed
    text = f"shape {full} does not become {result} by removing dimensions of size 1"
    raise UnsupportedError(text, operator=op.place)


def write_squeeze(low: Lowering, op: Op) -> FileOp:
    """Writes SQUEEZE, or RESHAPE if it removes no dimension."""
    tensors = low.graph.tensors
    dims = _find_removed_dims(tensors[op.inputs[0]].shape, tensors[op.outputs[0]].shape, op)
    # an empty list would remove all dimensions of size 1
    return low.file_op(op, 1, SqueezeDims=dims) if dims else write_reshape(low, op)


def write_expand_dims(low: Lowering, op: Op) -> FileOp:
    """Writes EXPAND_DIMS. The axis is a tensor in the file."""
    tensors = low.graph.tensors
    dims = _find_removed_dims(tensors[op.outputs[0]].shape, tensors[op.inputs[0]].shape, op)
    if len(dims) != 1:
        raise UnsupportedError("EXPAND_DIMS adds exactly one dimension", operator=op.place)
    return low.file_op(op, 1, low.parameter(op, "axis", dims[0]))


def write_split(low: Lowering, op: Op) -> FileOp:
    """Writes SPLIT. Its first input in the file is the axis."""
    axis = low.parameter(op, "axis", attributes(op, AxisAttrs).axis)
    return low.file_op(replace(op, inputs=(axis, *op.inputs)), 2, NumSplits=len(op.outputs))


def write_slice(low: Lowering, op: Op) -> FileOp:
    """Writes SLICE. Begin and size are tensors in the file."""
    attrs = attributes(op, SliceAttrs)
    if any(step != 1 for step in attrs.stride):
        raise UnsupportedError("SLICE does not support strides", operator=op.place, hint="use STRIDED_SLICE")
    begin, size = low.parameter(op, "begin", attrs.begin), low.parameter(op, "size", attrs.extent)
    return low.file_op(op, 2, begin, size)


def write_strided_slice(low: Lowering, op: Op) -> FileOp:
    """Writes STRIDED_SLICE with three tensors, and with masks for removed axes and slices without an end."""
    attrs = attributes(op, SliceAttrs)
    shrunk = _find_removed_dims(attrs.extent, low.graph.tensors[op.outputs[0]].shape, op)
    strides = [1 if i in shrunk else step for i, step in enumerate(attrs.stride)]
    ends, end_mask = [], 0
    for i, (first, step, extent) in enumerate(zip(attrs.begin, strides, attrs.extent, strict=True)):
        end = first + step * (extent - 1) + (1 if step > 0 else -1)
        if end < 0:  # a negative end would count from the back; the mask means "to the end"
            end_mask |= 1 << i
        ends.append(end)
    values = {"begin": attrs.begin, "end": ends, "strides": strides}
    operands = [low.parameter(op, role, value) for role, value in values.items()]
    return low.file_op(op, 2, *operands, EndMask=end_mask, ShrinkAxisMask=sum(1 << i for i in shrunk))
