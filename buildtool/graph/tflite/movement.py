"""Operators that move elements, from a file and into one: pads, shapes, joins and cuts."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from buildtool.base.errors import ModelError, UnsupportedError
from buildtool.graph import types as g
from buildtool.graph.quantrules import same_quantization
from buildtool.graph.tflite.fileops import FileOp, Lowering, OptionValue
from buildtool.graph.tflite.opview import Decoded, OpView
from buildtool.graph.tflite.schema import tflite
from buildtool.graph.types import AxisAttrs, OpKind, PadAttrs, PadMode, SliceAttrs, TransposeAttrs


def _paddings(view: OpView) -> tuple[tuple[int, int], ...]:
    """The (before, after) pairs of the second input."""
    flat = view.ints(1)
    if len(flat) != 2 * len(view.input(0).shape):
        raise ModelError(f"{len(flat)} paddings for {len(view.input(0).shape)} dimensions")
    return tuple(zip(flat[::2], flat[1::2], strict=True))


def pad(view: OpView) -> Decoded:
    """PAD: TFLite fills with the output's zero point."""
    quant = view.output.quant
    value = quant.zero_point if quant is not None else 0
    return view.decoded(OpKind.PAD, PadAttrs(_paddings(view), PadMode.CONSTANT, value))


def pad_v2(view: OpView) -> Decoded:
    """PADV2: the filling is a constant in the output's quantisation."""
    filling = view.input(2)
    if not filling.is_constant or filling.dtype != view.output.dtype or filling.elements != 1:
        view.refuse(f"the padding value is not one {view.output.dtype} constant")
    if filling.quant is not None and not same_quantization(filling.quant, view.output.quant):
        view.refuse("the padding value is quantised otherwise than the output")
    value = int(filling.array().reshape(-1)[0])
    return view.decoded(OpKind.PAD, PadAttrs(_paddings(view), PadMode.CONSTANT, value))


def mirror_pad(view: OpView) -> Decoded:
    """MIRROR_PAD."""
    code = view.options(tflite.MirrorPadOptions).Mode()
    modes = {
        tflite.MirrorPadMode.REFLECT: PadMode.REFLECT,
        tflite.MirrorPadMode.SYMMETRIC: PadMode.SYMMETRIC,
    }
    if code not in modes:
        raise ModelError(f"mirror mode {code} does not exist")
    return view.decoded(OpKind.MIRROR_PAD, PadAttrs(_paddings(view), modes[code]))


def reshape(view: OpView) -> Decoded:
    """RESHAPE; the new shape stands in the second input or, in old files, in the options."""
    wanted: tuple[int, ...] | None = None
    parameter = view.optional(1)
    if parameter is not None:
        wanted = view.ints(1)
    else:
        options = view.optional_options(tflite.ReshapeOptions)
        if options is not None and 0 < options.NewShapeLength() <= 16:
            wanted = tuple(int(n) for n in options.NewShapeAsNumpy())
    if wanted is not None:
        _check_reshape(view, wanted)
    return view.decoded(OpKind.RESHAPE)


def _check_reshape(view: OpView, wanted: tuple[int, ...]) -> None:
    """ModelError unless `wanted`, its one -1 resolved, is the output's shape."""
    shape, elements = view.output.shape, view.input(0).elements
    if wanted.count(-1) == 1:
        rest = -math.prod(wanted)
        if rest > 0 and elements % rest == 0:
            wanted = tuple(elements // rest if n == -1 else n for n in wanted)
    if wanted != shape and not (wanted == (0,) and shape == ()):
        raise ModelError(f"output shape {list(shape)}, the parameter says {list(wanted)}")


def squeeze(view: OpView) -> Decoded:
    """SQUEEZE; without dimensions in the options, all of size 1 go."""
    shape = view.input(0).shape
    options = view.optional_options(tflite.SqueezeOptions)
    count = options.SqueezeDimsLength() if options is not None else 0
    if count > len(shape):
        raise ModelError(f"{count} dimensions to squeeze of {len(shape)}")
    given = options.SqueezeDimsAsNumpy() if count else ()
    dims = {view.axis(int(d), len(shape)) for d in given} or {i for i, n in enumerate(shape) if n == 1}
    if any(shape[d] != 1 for d in dims):
        raise ModelError(f"dimensions {sorted(dims)} of {list(shape)} are not all 1")
    wanted = tuple(n for i, n in enumerate(shape) if i not in dims)
    if view.output.shape != wanted:
        raise ModelError(f"output shape {list(view.output.shape)}, expected {list(wanted)}")
    return view.decoded(OpKind.SQUEEZE)


def expand_dims(view: OpView) -> Decoded:
    """EXPAND_DIMS."""
    shape, axes = view.input(0).shape, view.ints(1)
    if len(axes) != 1:
        raise ModelError(f"{len(axes)} axes, expected 1")
    axis = view.axis(axes[0], len(shape) + 1)
    wanted = (*shape[:axis], 1, *shape[axis:])
    if view.output.shape != wanted:
        raise ModelError(f"output shape {list(view.output.shape)}, expected {list(wanted)}")
    return view.decoded(OpKind.EXPAND_DIMS)


def transpose(view: OpView) -> Decoded:
    """TRANSPOSE."""
    rank = len(view.input(0).shape)
    perm = tuple(view.axis(p, rank) for p in view.ints(1))
    return view.decoded(OpKind.TRANSPOSE, TransposeAttrs(perm))


def concatenation(view: OpView) -> Decoded:
    """CONCATENATION."""
    options = view.options(tflite.ConcatenationOptions)
    if options.FusedActivationFunction() != tflite.ActivationFunctionType.NONE:
        view.refuse("a fused activation on a concatenation", "use it as an operator of its own")
    axis = view.axis(int(options.Axis()), len(view.input(0).shape))
    return view.decoded(OpKind.CONCATENATION, AxisAttrs(axis), len(view.op.inputs))


def split(view: OpView) -> Decoded:
    """SPLIT (axis, x) as (x)."""
    axes = view.ints(0)
    if len(axes) != 1:
        raise ModelError(f"{len(axes)} axes, expected 1")
    axis = view.axis(axes[0], len(view.input(1).shape))
    parts = view.options(tflite.SplitOptions).NumSplits()
    if parts != len(view.op.outputs):
        raise ModelError(f"{parts} parts, but {len(view.op.outputs)} outputs")
    return Decoded(OpKind.SPLIT, (view.op.inputs[1],), view.op.outputs, AxisAttrs(axis))


def slice_(view: OpView) -> Decoded:
    """SLICE (x, begin, size); a size of -1 takes all that follows."""
    attrs = slice_spec(view.input(0).shape, view.ints(1), view.ints(2))
    return view.decoded(OpKind.SLICE, attrs)


def strided_slice(view: OpView) -> Decoded:
    """STRIDED_SLICE (x, begin, end, strides) with its masks resolved."""
    attrs, shape = strided_spec(view)
    if shape != view.output.shape:
        raise ModelError(f"output shape {list(view.output.shape)}, expected {list(shape)}")
    return view.decoded(OpKind.STRIDED_SLICE, attrs)


def slice_spec(shape: Sequence[int], begin: Sequence[int], size: Sequence[int]) -> SliceAttrs:
    """SLICE's parameters; a size of -1 takes all that follows."""
    if not len(shape) == len(begin) == len(size):
        raise ModelError(f"{len(begin)} begins and {len(size)} sizes for {len(shape)} dimensions")
    extent = tuple(n - b if s == -1 else s for n, b, s in zip(shape, begin, size, strict=True))
    return SliceAttrs(tuple(begin), (1,) * len(shape), extent)


@dataclass
class _Dim:
    """What STRIDED_SLICE does to one dimension of the input (or adds to the output)."""

    begin: int | None = None  # None: from the first element in the stride's direction
    end: int | None = None  # None: to the last
    stride: int = 1
    shrink: bool = False
    new: bool = False


def strided_spec(view: OpView) -> tuple[SliceAttrs, tuple[int, ...]]:
    """STRIDED_SLICE's (attributes, output shape), as TFLite resolves begins, ends and masks.

    An ellipsis stands for as many whole dimensions as are missing, a new axis for none; begins and
    ends are clamped to the dimension; a shrunk axis takes one element and vanishes.
    """
    shape = view.input(0).shape
    begin: list[int] = []
    stride: list[int] = []
    extent: list[int] = []
    output: list[int] = []
    position = 0
    for dim in _dimensions(view, len(shape)):
        if dim.new:
            output.append(1)
            continue
        first, count = _resolve(dim, shape[position])
        if count < 1:
            raise ModelError(f"the slice takes nothing of dimension {position}")
        begin.append(first)
        stride.append(dim.stride)
        extent.append(count)
        if not dim.shrink:
            output.append(count)
        position += 1
    return SliceAttrs(tuple(begin), tuple(stride), tuple(extent)), tuple(output)


def _dimensions(view: OpView, rank: int) -> list[_Dim]:
    """The specification one entry a dimension, ellipsis and missing ones written out."""
    begin, end, strides = view.ints(1), view.ints(2), view.ints(3)
    options = view.options(tflite.StridedSliceOptions)
    if not len(begin) == len(end) == len(strides) or len(begin) > 16:
        raise ModelError(f"{len(begin)} begins, {len(end)} ends, {len(strides)} strides")
    if options.Offset():
        view.refuse("ends given as offsets from the begins", "re-export with absolute ends")
    count = len(begin)
    given = [
        i for i in range(count) if not (options.EllipsisMask() >> i & 1 or options.NewAxisMask() >> i & 1)
    ]
    missing = rank - len(given)
    if missing < 0:
        raise ModelError(f"{len(given)} dimensions sliced of {rank}")
    found: list[_Dim] = []
    for i in range(count):
        bit = 1 << i
        if options.EllipsisMask() & bit:
            found += [_Dim() for _ in range(missing)]
            missing = 0
        elif options.NewAxisMask() & bit:
            found.append(_Dim(new=True))
        else:
            if strides[i] == 0:
                raise ModelError("a stride of 0")
            found.append(
                _Dim(
                    None if options.BeginMask() & bit else begin[i],
                    None if options.EndMask() & bit else end[i],
                    strides[i],
                    bool(options.ShrinkAxisMask() & bit),
                )
            )
    return found + [_Dim() for _ in range(missing)]


def _resolve(dim: _Dim, size: int) -> tuple[int, int]:
    """(first element, number of elements) taken of a dimension of `size`."""
    low, high = (0, size) if dim.stride > 0 else (-1, size - 1)
    first = low if dim.stride > 0 else high
    if dim.begin is not None:
        first = min(max(dim.begin + size if dim.begin < 0 else dim.begin, low), high)
    if dim.shrink:
        return first, int(0 <= first < size)
    last = high if dim.stride > 0 else low
    if dim.end is not None:
        last = min(max(dim.end + size if dim.end < 0 else dim.end, low), high)
    return first, max(0, -((first - last) // dim.stride))


# ---- into a file -------------------------------------------------------------------------------


def write_pad(low: Lowering, op: g.Op) -> FileOp:
    """PAD, PADV2, MIRROR_PAD."""
    attrs = op.attrs
    assert isinstance(attrs, PadAttrs)
    operand = low.parameter(op, "paddings", attrs.paddings)
    if attrs.mode is not PadMode.CONSTANT:
        mode = 0 if attrs.mode is PadMode.REFLECT else 1
        inputs = (*op.inputs, operand)
        return FileOp("MIRROR_PAD", 2, inputs, op.outputs, "MirrorPadOptions", {"Mode": mode})
    source = low.graph.tensors[op.inputs[0]]
    if source.quant is None or attrs.value == source.quant.zero_point:
        return FileOp("PAD", 2, (*op.inputs, operand), op.outputs, "PadOptions")
    data = np.array([attrs.value], source.dtype.value)
    value = low.add(op, "padding_value", data, source.dtype, source.quant)
    return FileOp("PADV2", 2, (*op.inputs, operand, value), op.outputs, "PadV2Options")


def write_reshape(low: Lowering, op: g.Op) -> FileOp:
    """RESHAPE, as a tensor and as an option: old readers want the one, new ones the other."""
    shape = low.graph.tensors[op.outputs[0]].shape
    operand = low.parameter(op, "shape", shape)
    return FileOp("RESHAPE", 1, (*op.inputs, operand), op.outputs, "ReshapeOptions", {"NewShape": shape})


def _dropped_ones(full: tuple[int, ...], left: tuple[int, ...], op: g.Op) -> tuple[int, ...]:
    """The dimensions of size 1 whose removal from `full` gives `left`."""
    ones = [i for i, n in enumerate(full) if n == 1]
    for dropped in itertools.combinations(ones, max(len(full) - len(left), 0)):
        if tuple(n for i, n in enumerate(full) if i not in dropped) == left:
            return dropped
    raise UnsupportedError(f"shape {full} does not become {left} by dropping ones", operator=op.place)


def write_squeeze(low: Lowering, op: g.Op) -> FileOp:
    """SQUEEZE; one that drops nothing is a RESHAPE."""
    tensors = low.graph.tensors
    dims = _dropped_ones(tensors[op.inputs[0]].shape, tensors[op.outputs[0]].shape, op)
    if not dims:  # no dimensions named would mean all of them
        return write_reshape(low, op)
    return FileOp("SQUEEZE", 1, op.inputs, op.outputs, "SqueezeOptions", {"SqueezeDims": dims})


def write_expand_dims(low: Lowering, op: g.Op) -> FileOp:
    """EXPAND_DIMS; the axis is a tensor."""
    tensors = low.graph.tensors
    dims = _dropped_ones(tensors[op.outputs[0]].shape, tensors[op.inputs[0]].shape, op)
    if len(dims) != 1:
        raise UnsupportedError("EXPAND_DIMS adds exactly one dimension", operator=op.place)
    axis = low.parameter(op, "axis", dims[0])
    return FileOp("EXPAND_DIMS", 1, (*op.inputs, axis), op.outputs, "ExpandDimsOptions")


def write_transpose(low: Lowering, op: g.Op) -> FileOp:
    """TRANSPOSE; the permutation is a tensor."""
    attrs = op.attrs
    assert isinstance(attrs, TransposeAttrs)
    perm = low.parameter(op, "perm", attrs.perm)
    return FileOp("TRANSPOSE", 2, (*op.inputs, perm), op.outputs, "TransposeOptions")


def write_concatenation(low: Lowering, op: g.Op) -> FileOp:
    """CONCATENATION."""
    attrs = op.attrs
    assert isinstance(attrs, AxisAttrs)
    return FileOp("CONCATENATION", 2, op.inputs, op.outputs, "ConcatenationOptions", {"Axis": attrs.axis})


def write_split(low: Lowering, op: g.Op) -> FileOp:
    """SPLIT; the axis comes first of the inputs."""
    attrs = op.attrs
    assert isinstance(attrs, AxisAttrs)
    axis = low.parameter(op, "axis", attrs.axis)
    options: dict[str, OptionValue] = {"NumSplits": len(op.outputs)}
    return FileOp("SPLIT", 2, (axis, *op.inputs), op.outputs, "SplitOptions", options)


def write_slice(low: Lowering, op: g.Op) -> FileOp:
    """SLICE; begin and size are tensors."""
    attrs = op.attrs
    assert isinstance(attrs, SliceAttrs)
    if any(step != 1 for step in attrs.stride):
        raise UnsupportedError("SLICE has no strides", operator=op.place, hint="use STRIDED_SLICE")
    begin = low.parameter(op, "begin", attrs.begin)
    size = low.parameter(op, "size", attrs.extent)
    return FileOp("SLICE", 2, (*op.inputs, begin, size), op.outputs, "SliceOptions")


def write_strided_slice(low: Lowering, op: g.Op) -> FileOp:
    """STRIDED_SLICE; begin, end and strides are tensors, dropped axes and whole ends masks."""
    attrs = op.attrs
    assert isinstance(attrs, SliceAttrs)
    shrunk = _dropped_ones(attrs.extent, low.graph.tensors[op.outputs[0]].shape, op)
    strides = [1 if i in shrunk else step for i, step in enumerate(attrs.stride)]
    ends, end_mask = [], 0
    for i, (first, step, extent) in enumerate(zip(attrs.begin, strides, attrs.extent, strict=True)):
        end = first + step * (extent - 1) + (1 if step > 0 else -1)
        if end < 0:  # a negative end would count from the back: the mask says "to the very end"
            end_mask |= 1 << i
        ends.append(end)
    operands = (
        low.parameter(op, "begin", attrs.begin),
        low.parameter(op, "end", ends),
        low.parameter(op, "strides", strides),
    )
    options: dict[str, OptionValue] = {
        "EndMask": end_mask,
        "ShrinkAxisMask": sum(1 << i for i in shrunk),
    }
    return FileOp("STRIDED_SLICE", 2, (*op.inputs, *operands), op.outputs, "StridedSliceOptions", options)
