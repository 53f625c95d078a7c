"""Tiles, gathered elements, blocks, extremes and products of matrices for a .tflite file."""

from __future__ import annotations

from buildtool.base.errors import UnsupportedError
from buildtool.graph import types as g
from buildtool.graph.tflite.fileops import FileOp, Lowering, OptionValue


def tile(low: Lowering, op: g.Op) -> FileOp:
    """TILE; the multiples are a tensor."""
    attrs = op.attrs
    assert isinstance(attrs, g.TileAttrs)
    multiples = low.parameter(op, "multiples", attrs.multiples)
    return FileOp("TILE", 2, (*op.inputs, multiples), op.outputs, "TileOptions")


def gather(low: Lowering, op: g.Op) -> FileOp:
    """GATHER; the indices are a tensor."""
    attrs = op.attrs
    assert isinstance(attrs, g.GatherAttrs)
    indices = low.parameter(op, "indices", attrs.indices)
    options: dict[str, OptionValue] = {"Axis": attrs.axis}
    return FileOp("GATHER", 2, (*op.inputs, indices), op.outputs, "GatherOptions", options)


def squares(low: Lowering, op: g.Op) -> FileOp:
    """DEPTH_TO_SPACE and SPACE_TO_DEPTH."""
    attrs = op.attrs
    assert isinstance(attrs, g.BlockAttrs)
    table = "DepthToSpaceOptions" if op.kind is g.OpKind.DEPTH_TO_SPACE else "SpaceToDepthOptions"
    return FileOp(op.kind, 1, op.inputs, op.outputs, table, {"BlockSize": attrs.block})


def batch_blocks(low: Lowering, op: g.Op) -> FileOp:
    """SPACE_TO_BATCH_ND and BATCH_TO_SPACE_ND; blocks and edges are tensors."""
    attrs = op.attrs
    assert isinstance(attrs, g.BatchBlockAttrs)
    shrinks = op.kind is g.OpKind.BATCH_TO_SPACE_ND
    quant = low.graph.tensors[op.outputs[0]].quant
    if not shrinks and quant is not None and attrs.value != quant.zero_point:
        raise UnsupportedError("SPACE_TO_BATCH_ND pads with the zero point only", operator=op.place)
    operands = (
        low.parameter(op, "block", attrs.block),
        low.parameter(op, "crops" if shrinks else "paddings", attrs.edges),
    )
    table = "BatchToSpaceNDOptions" if shrinks else "SpaceToBatchNDOptions"
    return FileOp(op.kind, 2, (*op.inputs, *operands), op.outputs, table)


def extreme(low: Lowering, op: g.Op) -> FileOp:
    """REDUCE_MAX and REDUCE_MIN; the axes are a tensor."""
    attrs = op.attrs
    assert isinstance(attrs, g.MeanAttrs)
    axes = low.parameter(op, "axes", attrs.axes)
    options: dict[str, OptionValue] = {"KeepDims": attrs.keep_dims}
    return FileOp(op.kind, 2, (*op.inputs, axes), op.outputs, "ReducerOptions", options)


def arg_extreme(low: Lowering, op: g.Op) -> FileOp:
    """ARG_MAX and ARG_MIN; the axis is a tensor."""
    attrs = op.attrs
    assert isinstance(attrs, g.AxisAttrs)
    axis = low.parameter(op, "axis", attrs.axis)
    wide = low.graph.tensors[op.outputs[0]].dtype is g.DType.INT64
    table = "ArgMaxOptions" if op.kind is g.OpKind.ARG_MAX else "ArgMinOptions"
    options: dict[str, OptionValue] = {"OutputType": 4 if wide else 2}  # the schema's TensorType
    return FileOp(op.kind, 2, (*op.inputs, axis), op.outputs, table, options)


def batch_matmul(low: Lowering, op: g.Op) -> FileOp:
    """BATCH_MATMUL."""
    attrs = op.attrs
    assert isinstance(attrs, g.MatmulAttrs)
    options: dict[str, OptionValue] = {"AdjX": attrs.adj_x, "AdjY": attrs.adj_y}
    return FileOp("BATCH_MATMUL", 2, op.inputs, op.outputs, "BatchMatMulOptions", options)
