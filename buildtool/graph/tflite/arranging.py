"""Operators that rearrange elements, from a file and into one: packs, cuts, gathers, tiles, blocks.

Most become other operators: a PACK a CONCATENATION of reshaped operands, a REVERSE_V2 a STRIDED_SLICE.
Those that cost less as an operator of their own (TILE, GATHER, blocks of pixels) have a kind.
"""

import math
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from buildtool.base.errors import ModelError, UnsupportedError
from buildtool.graph.geometry import attributes, cuts, picking
from buildtool.graph.quantrules import same_quantization
from buildtool.graph.tflite.fileops import FileOp, Lowering
from buildtool.graph.tflite.movement import pairs
from buildtool.graph.tflite.opview import MAX_PARAMETERS, OpView
from buildtool.graph.tflite.schema import tflite
from buildtool.graph.types import AxisAttrs, BatchBlockAttrs, Op, OpKind, SliceAttrs, TileAttrs

_Ints = npt.NDArray[np.int64]


def pack(view: OpView) -> None:
    """PACK: every operand gets a dimension of size 1, along which they are joined."""
    options = view.options(tflite.PackOptions)
    parts = [view.input(n) for n in range(len(view.op.inputs))]
    if not parts or options.ValuesCount() != len(parts):
        raise ModelError(f"{options.ValuesCount()} values, but {len(parts)} inputs")
    axis = view.axis(int(options.Axis()), len(parts[0].shape) + 1)
    inputs = []
    for n, part in enumerate(parts):
        shape = (*part.shape[:axis], 1, *part.shape[axis:])
        inputs.append(view.then(OpKind.RESHAPE, view.operand(n), shape))
    view.emit(OpKind.CONCATENATION, inputs, AxisAttrs(axis))


def unpack(view: OpView) -> None:
    """UNPACK: one slice per output, which loses the dimension."""
    source, count = view.input(0), len(view.op.outputs)
    options = view.options(tflite.UnpackOptions)
    axis = view.axis(int(options.Axis()), len(source.shape))
    if options.Num() != count or source.shape[axis] != count:
        raise ModelError(f"{options.Num()} parts of {source.shape[axis]} elements, but {count} outputs")
    _cut(view, OpKind.STRIDED_SLICE, axis, [1] * count)


def split_v(view: OpView) -> None:
    """SPLIT_V (x, sizes, axis): a SPLIT where all sizes are equal, else one slice per part."""
    source = view.input(0)
    sizes, axes = list(view.ints(1)), view.ints(2)
    if len(axes) != 1 or len(sizes) != len(view.op.outputs):
        raise ModelError(f"{len(axes)} axes, {len(sizes)} sizes for {len(view.op.outputs)} outputs")
    axis = view.axis(axes[0], len(source.shape))
    if sizes.count(-1) == 1:
        sizes[sizes.index(-1)] = source.shape[axis] - sum(sizes) - 1
    if min(sizes) < 0 or sum(sizes) != source.shape[axis]:
        raise ModelError(f"parts of {sizes} elements of a dimension of {source.shape[axis]}")
    if len(set(sizes)) == 1:
        view.same(OpKind.SPLIT, AxisAttrs(axis))
    else:
        _cut(view, OpKind.SLICE, axis, sizes)


def _cut(view: OpView, kind: OpKind, axis: int, sizes: list[int]) -> None:
    """One slice after the other along `axis`."""
    for attrs, output in zip(cuts(view.input(0).shape, axis, sizes), view.outputs(), strict=True):
        view.emit(kind, (view.operand(0),), attrs, (output,))


def reverse_v2(view: OpView) -> None:
    """REVERSE_V2: a STRIDED_SLICE that goes backwards."""
    shape = view.input(0).shape
    axes = sorted({view.axis(a, len(shape)) for a in view.ints(1)})
    if not axes or axes != list(range(axes[0], axes[-1] + 1)):
        view.refuse("axes that are not neighbours", "LiteRT refuses them too: reverse them one by one")
    begin = tuple(n - 1 if d in axes else 0 for d, n in enumerate(shape))
    stride = tuple(-1 if d in axes else 1 for d in range(len(shape)))
    view.same(OpKind.STRIDED_SLICE, SliceAttrs(begin, stride, shape))


def gather(view: OpView) -> None:
    """GATHER (x, indices): a slice where the indices are equally far apart.

    With leading dimensions in common, the elements' places in all of them are gathered.
    """
    x, indices = view.input(0), _indices(view)
    options, axis, common = view.op.options(tflite.GatherOptions), 0, 0
    if options is not None:
        axis, common = int(options.Axis()), int(options.BatchDims())
    axis = view.axis(axis, len(x.shape))
    common = common + indices.ndim if common < 0 else common
    if not 0 <= common <= min(axis, indices.ndim) or x.shape[:common] != indices.shape[:common]:
        raise ModelError(f"{common} dimensions in common of {list(x.shape)} and {list(indices.shape)}")
    _check_indices(indices, x.shape[axis])
    # checked here, as a reshape of the gathered elements would hide another order
    view.demand_output((*x.shape[:axis], *indices.shape[common:], *x.shape[axis + 1 :]))
    if not common:
        _gather(view, x.shape, axis, indices)
        return
    each, own, size = math.prod(x.shape[common:axis]), math.prod(indices.shape[common:]), x.shape[axis]
    count, places = indices.size * each, math.prod(x.shape[: axis + 1])
    if count > MAX_PARAMETERS or places >= 1 << 31:
        view.refuse(f"{count} elements gathered, more than {MAX_PARAMETERS}", "gather without batch_dims")
    rows = np.arange(places // size if count else 0, dtype=np.int64).reshape(-1, each, 1)
    taken = rows * size + indices.reshape(len(rows), 1, own)
    _gather(view, (places, *x.shape[axis + 1 :]), 0, taken)


def gather_nd(view: OpView) -> None:
    """GATHER_ND (x, indices): the indexed dimensions become one, of which elements are gathered."""
    x, indices = view.input(0), _indices(view)
    depth = indices.shape[-1] if indices.ndim else 0
    if not 1 <= depth <= len(x.shape):
        raise ModelError(f"{depth} indices an element of {len(x.shape)} dimensions")
    places = np.zeros(indices.shape[:-1], np.int64)
    for d in range(depth):
        _check_indices(indices[..., d], x.shape[d])
        places = places * x.shape[d] + indices[..., d]
    view.demand_output((*indices.shape[:-1], *x.shape[depth:]))
    _gather(view, (math.prod(x.shape[:depth]), *x.shape[depth:]), 0, places)


def _indices(view: OpView) -> _Ints:
    """The indices, which have to be constant."""
    tensor = view.input(1)
    if tensor.is_constant or tensor.elements == 0 or tensor.index in view.network.known:
        return np.asarray(view.ints(1), np.int64).reshape(tensor.shape)
    text = f"the indices '{tensor.name}' are computed at run time"
    return view.refuse(text, "index with constants, or outside the network")


def _check_indices(indices: _Ints, size: int) -> None:
    if indices.size and not 0 <= int(indices.min()) <= int(indices.max()) < size:
        raise ModelError(f"an index is outside a dimension of {size}")


def _gather(view: OpView, shape: tuple[int, ...], axis: int, indices: _Ints) -> None:
    """Some elements of `axis` of the input under `shape`, as the output under its own shape."""
    source, taken = view.operand(0), (*shape[:axis], indices.size, *shape[axis + 1 :])
    if shape != view.input(0).shape:
        source = view.then(OpKind.RESHAPE, source, shape)
    kind, attrs = picking(shape, axis, [int(i) for i in indices.reshape(-1)])
    if taken == view.output.shape:
        view.emit(kind, (source,), attrs)
    else:
        (output,) = view.outputs()
        view.emit(OpKind.RESHAPE, (view.then(kind, source, taken, attrs, like=output),))


def tile(view: OpView) -> None:
    """TILE (x, multiples)."""
    view.same(OpKind.TILE, TileAttrs(view.ints(1)))


def broadcast_to(view: OpView) -> None:
    """BROADCAST_TO (x, shape): a TILE of the dimensions of size 1, missing ones first."""
    x, wanted = view.input(0), view.ints(1)
    shape = (1,) * (len(wanted) - len(x.shape)) + x.shape
    fits = len(shape) == len(wanted) and all(n in (1, w) for n, w in zip(shape, wanted, strict=True))
    if not fits or min(wanted, default=1) < 1:
        raise ModelError(f"shape {list(x.shape)} does not broadcast to {list(wanted)}")
    source = view.operand(0)
    if shape != x.shape:
        source = view.then(OpKind.RESHAPE, source, shape)
    view.emit(OpKind.TILE, (source,), TileAttrs(tuple(w // n for n, w in zip(shape, wanted, strict=True))))


def batch_blocks(view: OpView) -> None:
    """SPACE_TO_BATCH_ND (x, block, paddings), filled with the output's zero point; BATCH_TO_SPACE_ND."""
    block, flat, rank = view.ints(1), view.ints(2), len(view.input(0).shape)
    if len(flat) != 2 * len(block) or rank not in (3, 4) or len(block) != rank - 2:
        raise ModelError(f"blocks {list(block)} and {len(flat)} edges for {rank} dimensions")
    quant = view.output.quant if view.kind is OpKind.SPACE_TO_BATCH_ND else None
    view.same(view.kind, BatchBlockAttrs(block, pairs(flat), quant.zero_point if quant is not None else 0))


def fill(view: OpView) -> None:
    """FILL (shape, value) of an int8 or uint8 constant: the output is a constant."""
    value, output = view.input(1), view.output
    if not value.is_constant or value.elements != 1 or value.dtype not in ("int8", "uint8"):
        view.refuse("the value is not one constant of int8 or uint8", "fill with a constant")
    if not same_quantization(value.quant, output.quant):
        view.refuse("the value is quantised otherwise than the output")
    view.demand_output(view.ints(0), "the parameter says")
    if output.elements > MAX_PARAMETERS * 256:
        view.refuse(f"a constant of {output.elements} bytes", "store the constant in the model")
    if output.dtype != value.dtype:
        view.refuse(f"a value of {value.dtype} for an output of {output.dtype}")
    data = np.full(output.shape, value.array().reshape(-1)[0])
    data.setflags(write=False)
    tensors, place = view.network.tensors, view.network.place(output.index)
    tensors[place] = replace(tensors[place], data=data)


# ---- into a file -------------------------------------------------------------------------------


def write_batch_blocks(low: Lowering, op: Op) -> FileOp:
    """SPACE_TO_BATCH_ND and BATCH_TO_SPACE_ND; blocks and edges are tensors."""
    attrs = attributes(op, BatchBlockAttrs)
    shrinks = op.kind is OpKind.BATCH_TO_SPACE_ND
    quant = low.graph.tensors[op.outputs[0]].quant
    if not shrinks and quant is not None and attrs.value != quant.zero_point:
        raise UnsupportedError("SPACE_TO_BATCH_ND pads with the zero point only", operator=op.place)
    block = low.parameter(op, "block", attrs.block)
    edges = low.parameter(op, "crops" if shrinks else "paddings", attrs.edges)
    table = "BatchToSpaceNDOptions" if shrinks else "SpaceToBatchNDOptions"
    return low.file_op(op, 2, block, edges, table=table)
