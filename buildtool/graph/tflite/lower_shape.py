"""Reductions, reshapes, slices, resizes for a .tflite file: their parameters become tensors."""

from __future__ import annotations

import itertools

from buildtool.base.errors import UnsupportedError
from buildtool.graph import types as g
from buildtool.graph.tflite.fileops import FileOp, Lowering, OptionValue
from buildtool.graph.tflite.lower_weighted import rows_columns


def mean(low: Lowering, op: g.Op) -> FileOp:
    """MEAN; the axes are a tensor."""
    attrs = op.attrs
    assert isinstance(attrs, g.MeanAttrs)
    axes = low.parameter(op, "axes", attrs.axes)
    options: dict[str, OptionValue] = {"KeepDims": attrs.keep_dims}
    return FileOp("MEAN", 2, (*op.inputs, axes), op.outputs, "ReducerOptions", options)


def reshape(low: Lowering, op: g.Op) -> FileOp:
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


def squeeze(low: Lowering, op: g.Op) -> FileOp:
    """SQUEEZE; one that drops nothing is a RESHAPE."""
    tensors = low.graph.tensors
    dims = _dropped_ones(tensors[op.inputs[0]].shape, tensors[op.outputs[0]].shape, op)
    if not dims:  # no dimensions named would mean all of them
        return reshape(low, op)
    return FileOp("SQUEEZE", 1, op.inputs, op.outputs, "SqueezeOptions", {"SqueezeDims": dims})


def expand_dims(low: Lowering, op: g.Op) -> FileOp:
    """EXPAND_DIMS; the axis is a tensor."""
    tensors = low.graph.tensors
    dims = _dropped_ones(tensors[op.outputs[0]].shape, tensors[op.inputs[0]].shape, op)
    if len(dims) != 1:
        raise UnsupportedError("EXPAND_DIMS adds exactly one dimension", operator=op.place)
    axis = low.parameter(op, "axis", dims[0])
    return FileOp("EXPAND_DIMS", 1, (*op.inputs, axis), op.outputs, "ExpandDimsOptions")


def transpose(low: Lowering, op: g.Op) -> FileOp:
    """TRANSPOSE; the permutation is a tensor."""
    attrs = op.attrs
    assert isinstance(attrs, g.TransposeAttrs)
    perm = low.parameter(op, "perm", attrs.perm)
    return FileOp("TRANSPOSE", 2, (*op.inputs, perm), op.outputs, "TransposeOptions")


def concatenation(low: Lowering, op: g.Op) -> FileOp:
    """CONCATENATION."""
    attrs = op.attrs
    assert isinstance(attrs, g.AxisAttrs)
    return FileOp("CONCATENATION", 2, op.inputs, op.outputs, "ConcatenationOptions", {"Axis": attrs.axis})


def split(low: Lowering, op: g.Op) -> FileOp:
    """SPLIT; the axis comes first of the inputs."""
    attrs = op.attrs
    assert isinstance(attrs, g.AxisAttrs)
    axis = low.parameter(op, "axis", attrs.axis)
    options: dict[str, OptionValue] = {"NumSplits": len(op.outputs)}
    return FileOp("SPLIT", 2, (axis, *op.inputs), op.outputs, "SplitOptions", options)


def slice_(low: Lowering, op: g.Op) -> FileOp:
    """SLICE; begin and size are tensors."""
    attrs = op.attrs
    assert isinstance(attrs, g.SliceAttrs)
    if any(step != 1 for step in attrs.stride):
        raise UnsupportedError("SLICE has no strides", operator=op.place, hint="use STRIDED_SLICE")
    begin = low.parameter(op, "begin", attrs.begin)
    size = low.parameter(op, "size", attrs.extent)
    return FileOp("SLICE", 2, (*op.inputs, begin, size), op.outputs, "SliceOptions")


def strided_slice(low: Lowering, op: g.Op) -> FileOp:
    """STRIDED_SLICE; begin, end and strides are tensors, dropped axes and whole ends masks."""
    attrs = op.attrs
    assert isinstance(attrs, g.SliceAttrs)
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


def resize(low: Lowering, op: g.Op) -> FileOp:
    """RESIZE_NEAREST_NEIGHBOR and RESIZE_BILINEAR; the size is a tensor."""
    attrs = op.attrs
    assert isinstance(attrs, g.ResizeAttrs)
    size = low.parameter(op, "size", rows_columns(low.graph.tensors[op.outputs[0]]))
    options: dict[str, OptionValue] = {
        "AlignCorners": attrs.align_corners,
        "HalfPixelCenters": attrs.half_pixel_centers,
    }
    nearest = op.kind is g.OpKind.RESIZE_NEAREST_NEIGHBOR
    table = "ResizeNearestNeighborOptions" if nearest else "ResizeBilinearOptions"
    version = 3 if attrs.half_pixel_centers or attrs.align_corners else 2
    return FileOp(op.kind, version, (*op.inputs, size), op.outputs, table, options)
