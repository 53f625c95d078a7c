"""Decodes and writes operators that rearrange elements: packs, cuts, gathers, tiles, blocks.

Most of them become other operators in the graph: PACK a CONCATENATION of reshaped operands, REVERSE_V2 a
STRIDED_SLICE. TILE, GATHER and blocks of pixels have their own kinds, because that costs less.
"""

import math
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from buildtool.base.errors import ModelError, UnsupportedError
from buildtool.graph.geometry import attributes, cuts, pick_elements
from buildtool.graph.quantrules import same_quantization
from buildtool.graph.tflite.fileops import FileOp, Lowering
from buildtool.graph.tflite.movement import pairs
from buildtool.graph.tflite.opview import MAX_PARAMETERS, OpView
from buildtool.graph.tflite.schema import tflite
from buildtool.graph.types import AxisAttrs, BatchBlockAttrs, GatherAttrs, Op, OpKind, SliceAttrs, TileAttrs

_Ints = npt.NDArray[np.int64]


def decode_pack(view: OpView) -> None:
    """Decodes PACK. Every operand gets a new dimension of size 1; the operands are joined along it."""
    options = view.options(tflite.PackOptions)
    parts = [view.input(n) for n in range(len(view.op.inputs))]
    if not parts or options.ValuesCount() != len(parts):
        raise ModelError(f"{options.ValuesCount()} values, but {len(parts)} inputs")
    axis = view.axis(int(options.Axis()), len(parts[0].shape) + 1)
    inputs = []
    for n, part in enumerate(parts):
        shape = (*part.shape[:axis], 1, *part.shape[axis:])
        inputs.append(view.emit_new(OpKind.RESHAPE, view.operand(n), shape))
    view.emit(OpKind.CONCATENATION, inputs, AxisAttrs(axis))


def decode_unpack(view: OpView) -> None:
    """Decodes UNPACK as one slice per output. The outputs do not have the unpacked dimension."""
    source, count = view.input(0), len(view.op.outputs)
    options = view.options(tflite.UnpackOptions)
    axis = view.axis(int(options.Axis()), len(source.shape))
    if options.Num() != count or source.shape[axis] != count:
        raise ModelError(f"{options.Num()} parts of a dimension of {source.shape[axis]}, but {count} outputs")
    _cut(view, OpKind.STRIDED_SLICE, axis, [1] * count)


def decode_split_v(view: OpView) -> None:
    """Decodes SPLIT_V (x, sizes, axis) as a SPLIT if all sizes are equal, otherwise as one slice per part."""
    source = view.input(0)
    sizes, axes = list(view.ints(1)), view.ints(2)
    if len(axes) != 1 or len(sizes) != len(view.op.outputs):
        raise ModelError(f"{len(axes)} axes and {len(sizes)} sizes for {len(view.op.outputs)} outputs")
    axis = view.axis(axes[0], len(source.shape))
    if sizes.count(-1) == 1:
        sizes[sizes.index(-1)] = source.shape[axis] - sum(sizes) - 1
    if min(sizes) < 0 or sum(sizes) != source.shape[axis]:
        raise ModelError(f"sizes {sizes} do not fit a dimension of {source.shape[axis]}")
    if len(set(sizes)) == 1:
        view.emit_like_file(OpKind.SPLIT, AxisAttrs(axis))
    else:
        _cut(view, OpKind.SLICE, axis, sizes)


def _cut(view: OpView, kind: OpKind, axis: int, sizes: list[int]) -> None:
    """Adds one slice per output. Together the slices cut the input along `axis` into parts of `sizes`.

    `kind` is SLICE, or STRIDED_SLICE where the outputs do not have the axis.
    """
    for attrs, output in zip(cuts(view.input(0).shape, axis, sizes), view.outputs(), strict=True):
        view.emit(kind, (view.operand(0),), attrs, (output,))


def decode_reverse_v2(view: OpView) -> None:
    """Decodes REVERSE_V2 as a STRIDED_SLICE with negative strides."""
    shape = view.input(0).shape
    axes = sorted({view.axis(a, len(shape)) for a in view.ints(1)})
    if not axes or axes != list(range(axes[0], axes[-1] + 1)):
        view.refuse("the axes are not adjacent", "LiteRT refuses this too: reverse one axis at a time")
    begin = tuple(n - 1 if d in axes else 0 for d, n in enumerate(shape))
    stride = tuple(-1 if d in axes else 1 for d in range(len(shape)))
    view.emit_like_file(OpKind.STRIDED_SLICE, SliceAttrs(begin, stride, shape))


def decode_gather(view: OpView) -> None:
    """Decodes GATHER (x, indices). It becomes a slice if the distances between the indices are equal.

    With batch_dims, all dimensions up to the axis are merged into one, and the indices refer to that one.
    """
    options, axis, common = view.op.options(tflite.GatherOptions), 0, 0
    if options is not None:
        axis, common = int(options.Axis()), int(options.BatchDims())
    x = view.input(0)
    axis = view.axis(axis, len(x.shape))
    if _computed(view, 1):
        if axis or common:
            text = f"indices that are computed at run time, of dimension {axis}, with batch_dims {common}"
            view.refuse(text, "gather rows of a table (axis 0)")
        _look_up(view, 0, 1)
        return
    indices = _indices(view)
    common = common + indices.ndim if common < 0 else common
    if not 0 <= common <= min(axis, indices.ndim) or x.shape[:common] != indices.shape[:common]:
        text = f"shapes {list(x.shape)} and {list(indices.shape)}"
        raise ModelError(f"{text} do not have {common} dimensions in common")
    _check_indices(indices, x.shape[axis])
    # checked here: a reshape of the gathered elements would hide a wrong order of dimensions
    view.demand_output((*x.shape[:axis], *indices.shape[common:], *x.shape[axis + 1 :]))
    if not common:
        _gather(view, x.shape, axis, indices)
        return
    each, own, size = math.prod(x.shape[common:axis]), math.prod(indices.shape[common:]), x.shape[axis]
    count, places = indices.size * each, math.prod(x.shape[: axis + 1])
    if count > MAX_PARAMETERS or places >= 1 << 31:
        view.refuse(f"it gathers {count} elements, more than {MAX_PARAMETERS}", "gather without batch_dims")
    rows = np.arange(places // size if count else 0, dtype=np.int64).reshape(-1, each, 1)
    flat = rows * size + indices.reshape(len(rows), 1, own)
    _gather(view, (places, *x.shape[axis + 1 :]), 0, flat)


def decode_embedding_lookup(view: OpView) -> None:
    """Decodes EMBEDDING_LOOKUP (indices, table), which takes rows of the table."""
    if not _computed(view, 0):
        view.refuse("constant indices", "use GATHER")
    _look_up(view, 1, 0)


def _computed(view: OpView, position: int) -> bool:
    """Whether the indices in an input depend on the network's input data."""
    tensor = view.input(position)
    return not tensor.is_constant and tensor.elements > 0 and tensor.index not in view.network.known


def _look_up(view: OpView, table: int, indices: int) -> None:
    """Adds a GATHER whose indices are computed at run time.

    `table` and `indices` are the positions of its two inputs in the file.
    """
    x, places = view.input(table), view.input(indices)
    if places.dtype != "int32":
        view.refuse(f"computed indices of type {places.dtype}", "convert with int32 indices")
    view.demand_output((*places.shape, *x.shape[1:]))
    view.emit(OpKind.GATHER, (view.operand(table), view.operand(indices)), GatherAttrs(0, ()))


def decode_gather_nd(view: OpView) -> None:
    """Decodes GATHER_ND (x, indices). Merges the indexed dimensions into one.

    The indices then refer to that one.
    """
    x, indices = view.input(0), _indices(view)
    depth = indices.shape[-1] if indices.ndim else 0
    if not 1 <= depth <= len(x.shape):
        raise ModelError(f"{depth} indices per element of a tensor of {len(x.shape)} dimensions")
    places = np.zeros(indices.shape[:-1], np.int64)
    for d in range(depth):
        _check_indices(indices[..., d], x.shape[d])
        places = places * x.shape[d] + indices[..., d]
    view.demand_output((*indices.shape[:-1], *x.shape[depth:]))
    _gather(view, (math.prod(x.shape[:depth]), *x.shape[depth:]), 0, places)


def _indices(view: OpView) -> _Ints:
    """Returns the indices of a gather. Refuses indices that are not constant."""
    tensor = view.input(1)
    if tensor.is_constant or tensor.elements == 0 or tensor.index in view.network.known:
        return np.asarray(view.ints(1), np.int64).reshape(tensor.shape)
    text = f"the indices '{tensor.name}' are computed at run time"
    return view.refuse(text, "use GATHER of the first dimension, or index outside the network")


def _check_indices(indices: _Ints, size: int) -> None:
    if indices.size and not 0 <= int(indices.min()) <= int(indices.max()) < size:
        raise ModelError(f"an index is outside a dimension of {size}")


def _gather(view: OpView, shape: tuple[int, ...], axis: int, indices: _Ints) -> None:
    """Reshapes the input to `shape`, takes elements along `axis` and reshapes them to the output's shape."""
    source, result = view.operand(0), (*shape[:axis], indices.size, *shape[axis + 1 :])
    if shape != view.input(0).shape:
        source = view.emit_new(OpKind.RESHAPE, source, shape)
    kind, attrs = pick_elements(shape, axis, [int(i) for i in indices.reshape(-1)])
    if result == view.output.shape:
        view.emit(kind, (source,), attrs)
    else:
        (output,) = view.outputs()
        view.emit(OpKind.RESHAPE, (view.emit_new(kind, source, result, attrs, like=output),))


def decode_tile(view: OpView) -> None:
    """Decodes TILE (x, multiples)."""
    view.emit_like_file(OpKind.TILE, TileAttrs(view.ints(1)))


def decode_broadcast_to(view: OpView) -> None:
    """Decodes BROADCAST_TO (x, shape) as a TILE, after a RESHAPE if dimensions are missing."""
    x, target = view.input(0), view.ints(1)
    shape = (1,) * (len(target) - len(x.shape)) + x.shape
    fits = len(shape) == len(target) and all(n in (1, size) for n, size in zip(shape, target, strict=True))
    if not fits or min(target, default=1) < 1:
        raise ModelError(f"shape {list(x.shape)} does not broadcast to {list(target)}")
    source = view.operand(0)
    if shape != x.shape:
        source = view.emit_new(OpKind.RESHAPE, source, shape)
    multiples = tuple(size // n for n, size in zip(shape, target, strict=True))
    view.emit(OpKind.TILE, (source,), TileAttrs(multiples))


def decode_batch_blocks(view: OpView) -> None:
    """Decodes SPACE_TO_BATCH_ND, which pads with the output's zero point, and BATCH_TO_SPACE_ND."""
    block, flat, rank = view.ints(1), view.ints(2), len(view.input(0).shape)
    if len(flat) != 2 * len(block) or rank not in (3, 4) or len(block) != rank - 2:
        raise ModelError(f"block {list(block)} and {len(flat)} paddings or crops for {rank} dimensions")
    quant = view.output.quant if view.kind is OpKind.SPACE_TO_BATCH_ND else None
    view.emit_like_file(
        view.kind, BatchBlockAttrs(block, pairs(flat), quant.zero_point if quant is not None else 0)
    )


_FILLINGS = ("int8", "uint8", "int16", "float32")


def decode_fill(view: OpView) -> None:
    """Decodes FILL (shape, value) with a constant value. The output becomes a constant."""
    value, output = view.input(1), view.output
    if not value.is_constant or value.elements != 1 or value.dtype not in _FILLINGS:
        text = "the value is not an int8, uint8, int16 or float32 constant of one element"
        view.refuse(text, "use a constant value")
    if not same_quantization(value.quant, output.quant):
        view.refuse("the value and the output have different quantisations")
    view.demand_output(view.ints(0), "the parameter says")
    if output.elements > MAX_PARAMETERS * 256:
        view.refuse(f"a constant of {output.elements} bytes", "store the constant in the model")
    if output.dtype != value.dtype:
        view.refuse(f"the value is {value.dtype}, but the output is {output.dtype}")
    data = np.full(output.shape, value.array().reshape(-1)[0])
    data.setflags(write=False)
    tensors, place = view.network.tensors, view.network.place(output.index)
    tensors[place] = replace(tensors[place], data=data)


# ---- into a file -------------------------------------------------------------------------------


def write_gather(low: Lowering, op: Op) -> FileOp:
    """Writes GATHER. Its constant indices are a tensor in the file, too."""
    attrs = attributes(op, GatherAttrs)
    indices = () if len(op.inputs) == 2 else (low.parameter(op, "indices", attrs.indices),)
    return low.file_op(op, 2, *indices, Axis=attrs.axis)


def write_batch_blocks(low: Lowering, op: Op) -> FileOp:
    """Writes SPACE_TO_BATCH_ND and BATCH_TO_SPACE_ND. Blocks, paddings and crops are tensors in the file."""
    attrs = attributes(op, BatchBlockAttrs)
    shrinks = op.kind is OpKind.BATCH_TO_SPACE_ND
    quant = low.graph.tensors[op.outputs[0]].quant
    if not shrinks and quant is not None and attrs.value != quant.zero_point:
        text = "in .tflite, SPACE_TO_BATCH_ND can only pad with the zero point"
        raise UnsupportedError(text, operator=op.place)
    block = low.parameter(op, "block", attrs.block)
    edges = low.parameter(op, "crops" if shrinks else "paddings", attrs.edges)
    table = "BatchToSpaceNDOptions" if shrinks else "SpaceToBatchNDOptions"
    return low.file_op(op, 2, block, edges, table=table)
