"""Operators that arrange elements anew, from a file and into one: packs, cuts, gathers, tiles, blocks.

Most are a few of the operators that there are: a PACK is a CONCATENATION of reshaped operands, a REVERSE_V2
a STRIDED_SLICE. What costs less as an operator of its own (TILE, GATHER, blocks of pixels) is one.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from buildtool.base.errors import ModelError, UnsupportedError
from buildtool.graph import types as g
from buildtool.graph.picking import picking
from buildtool.graph.quantrules import same_quantization
from buildtool.graph.tflite.fileops import FileOp, Lowering, OptionValue
from buildtool.graph.tflite.flat import RawTensor
from buildtool.graph.tflite.opview import MAX_PARAMETERS, Chain, Decoded, Folded, Made, OpView
from buildtool.graph.tflite.schema import tflite
from buildtool.graph.types import (
    Attrs,
    AxisAttrs,
    BatchBlockAttrs,
    GatherAttrs,
    OpKind,
    SliceAttrs,
    TileAttrs,
)

_Ints = npt.NDArray[np.int64]


def pack(view: OpView) -> Chain:
    """PACK: every operand gets a dimension of size 1, along which they are joined."""
    chain = Chain()
    options = view.options(tflite.PackOptions)
    parts = [view.input(n) for n in range(len(view.op.inputs))]
    if not parts or options.ValuesCount() != len(parts):
        raise ModelError(f"{options.ValuesCount()} values, but {len(parts)} inputs")
    axis = view.axis(int(options.Axis()), len(parts[0].shape) + 1)
    inputs = []
    for part in parts:
        shape = (*part.shape[:axis], 1, *part.shape[axis:])
        inputs.append(chain.then(OpKind.RESHAPE, part.index, Made(part.index, shape)))
    chain.last(OpKind.CONCATENATION, tuple(inputs), view.op.outputs, AxisAttrs(axis))
    return chain


def unpack(view: OpView) -> Chain:
    """UNPACK: a slice an output, which loses the dimension."""
    chain, source = Chain(), view.input(0)
    options = view.options(tflite.UnpackOptions)
    axis = view.axis(int(options.Axis()), len(source.shape))
    if options.Num() != len(view.op.outputs) or source.shape[axis] != len(view.op.outputs):
        text = f"{options.Num()} parts of {source.shape[axis]} elements, but {len(view.op.outputs)} outputs"
        raise ModelError(text)
    _cut(chain, view, source, axis, [1] * len(view.op.outputs), OpKind.STRIDED_SLICE)
    return chain


def split_v(view: OpView) -> Chain:
    """SPLIT_V (x, sizes, axis): a SPLIT where all are of one size, else a slice a part."""
    chain, source = Chain(), view.input(0)
    sizes, axes = list(view.ints(1)), view.ints(2)
    if len(axes) != 1 or len(sizes) != len(view.op.outputs):
        raise ModelError(f"{len(axes)} axes, {len(sizes)} sizes for {len(view.op.outputs)} outputs")
    axis = view.axis(axes[0], len(source.shape))
    if sizes.count(-1) == 1:
        sizes[sizes.index(-1)] = source.shape[axis] - sum(sizes) - 1
    if min(sizes) < 0 or sum(sizes) != source.shape[axis]:
        raise ModelError(f"parts of {sizes} elements of a dimension of {source.shape[axis]}")
    if len(set(sizes)) == 1:
        chain.last(OpKind.SPLIT, (source.index,), view.op.outputs, AxisAttrs(axis))
    else:
        _cut(chain, view, source, axis, sizes, OpKind.SLICE)
    return chain


def _cut(chain: Chain, view: OpView, x: RawTensor, axis: int, sizes: list[int], kind: OpKind) -> None:
    """One slice after the other along `axis`."""
    start = 0
    for size, output in zip(sizes, view.op.outputs, strict=True):
        begin, extent = [0] * len(x.shape), list(x.shape)
        begin[axis], extent[axis] = start, size
        attrs = SliceAttrs(tuple(begin), (1,) * len(x.shape), tuple(extent))
        chain.last(kind, (x.index,), (output,), attrs)
        start += size


def reverse_v2(view: OpView) -> Decoded:
    """REVERSE_V2: a STRIDED_SLICE that goes backwards."""
    shape = view.input(0).shape
    axes = sorted({view.axis(a, len(shape)) for a in view.ints(1)})
    if not axes or axes != list(range(axes[0], axes[-1] + 1)):
        view.refuse("axes that are not neighbours", "LiteRT refuses them too: reverse them one by one")
    begin = tuple(n - 1 if d in axes else 0 for d, n in enumerate(shape))
    stride = tuple(-1 if d in axes else 1 for d in range(len(shape)))
    return view.decoded(OpKind.STRIDED_SLICE, SliceAttrs(begin, stride, shape))


def gather(view: OpView) -> Chain:
    """GATHER (x, indices): a slice where the indices are equally far apart.

    With leading dimensions in common, the elements' places in all of them are gathered.
    """
    x, indices = view.input(0), _indices(view)
    options = view.optional_options(tflite.GatherOptions)
    axis = view.axis(int(options.Axis()) if options is not None else 0, len(x.shape))
    common = int(options.BatchDims()) if options is not None else 0
    common = common + indices.ndim if common < 0 else common
    if not 0 <= common <= min(axis, indices.ndim) or x.shape[:common] != indices.shape[:common]:
        raise ModelError(f"{common} dimensions in common of {list(x.shape)} and {list(indices.shape)}")
    _within(indices, x.shape[axis])
    _shaped(view, (*x.shape[:axis], *indices.shape[common:], *x.shape[axis + 1 :]))
    if not common:
        return _gathered(view, x, x.shape, axis, indices.reshape(-1))
    each, own, size = math.prod(x.shape[common:axis]), math.prod(indices.shape[common:]), x.shape[axis]
    count, places = indices.size * each, math.prod(x.shape[: axis + 1])
    if count > MAX_PARAMETERS or places >= 1 << 31:
        view.refuse(f"{count} elements gathered, more than {MAX_PARAMETERS}", "gather without batch_dims")
    rows = np.arange(places // size if count else 0, dtype=np.int64).reshape(-1, each, 1)
    taken = rows * size + indices.reshape(len(rows), 1, own)
    return _gathered(view, x, (places, *x.shape[axis + 1 :]), 0, taken.reshape(-1))


def gather_nd(view: OpView) -> Chain:
    """GATHER_ND (x, indices): the indexed dimensions become one, of which elements are gathered."""
    x, indices = view.input(0), _indices(view)
    depth = indices.shape[-1] if indices.ndim else 0
    if not 1 <= depth <= len(x.shape):
        raise ModelError(f"{depth} indices an element of {len(x.shape)} dimensions")
    places = np.zeros(indices.shape[:-1], np.int64)
    for d in range(depth):
        _within(indices[..., d], x.shape[d])
        places = places * x.shape[d] + indices[..., d]
    _shaped(view, (*indices.shape[:-1], *x.shape[depth:]))
    flat = (math.prod(x.shape[:depth]), *x.shape[depth:])
    return _gathered(view, x, flat, 0, places.reshape(-1))


def _indices(view: OpView) -> _Ints:
    """The indices, which have to be constant."""
    tensor = view.input(1)
    if tensor.is_constant or tensor.elements == 0 or view.known(tensor.index) is not None:
        values = view.ints_of(tensor)
        return np.asarray(values, np.int64).reshape(tensor.shape)
    return view.refuse(
        f"the indices '{tensor.name}' are computed at run time",
        "index with constants, or outside the network",
    )


def _within(indices: _Ints, size: int) -> None:
    if indices.size and not 0 <= int(indices.min()) <= int(indices.max()) < size:
        raise ModelError(f"an index is outside a dimension of {size}")


def _shaped(view: OpView, shape: tuple[int, ...]) -> None:
    """The output's shape is checked here: a reshape of what was gathered would hide another order."""
    if view.output.shape != shape:
        raise ModelError(f"output shape {list(view.output.shape)}, expected {list(shape)}")


def _gathered(view: OpView, x: RawTensor, shape: tuple[int, ...], axis: int, indices: _Ints) -> Chain:
    """`x` under `shape`, of whose `axis` some elements are taken, under the output's shape."""
    chain, output = Chain(), view.output
    taken = (*shape[:axis], indices.size, *shape[axis + 1 :])
    source = x.index
    if shape != x.shape:
        source = chain.then(OpKind.RESHAPE, source, Made(x.index, shape))
    kind, attrs = picking(shape, axis, [int(i) for i in indices])
    if taken == output.shape:
        chain.last(kind, (source,), view.op.outputs, attrs)
    else:
        made = chain.then(kind, source, Made(output.index, taken), attrs)
        chain.last(OpKind.RESHAPE, (made,), view.op.outputs, Attrs())
    return chain


def tile(view: OpView) -> Decoded:
    """TILE (x, multiples)."""
    return view.decoded(OpKind.TILE, TileAttrs(view.ints(1)))


def broadcast_to(view: OpView) -> Chain:
    """BROADCAST_TO (x, shape): a TILE of the dimensions of size 1, missing ones first."""
    chain, x, wanted = Chain(), view.input(0), view.ints(1)
    shape = (1,) * (len(wanted) - len(x.shape)) + x.shape
    fits = len(shape) == len(wanted) and all(n in (1, w) for n, w in zip(shape, wanted, strict=True))
    if not fits or min(wanted, default=1) < 1:
        raise ModelError(f"shape {list(x.shape)} does not broadcast to {list(wanted)}")
    source = x.index if shape == x.shape else chain.then(OpKind.RESHAPE, x.index, Made(x.index, shape))
    multiples = tuple(w // n for n, w in zip(shape, wanted, strict=True))
    chain.last(OpKind.TILE, (source,), view.op.outputs, TileAttrs(multiples))
    return chain


def space_to_batch_nd(view: OpView) -> Decoded:
    """SPACE_TO_BATCH_ND (x, block, paddings), filled with the output's zero point."""
    quant = view.output.quant
    value = quant.zero_point if quant is not None else 0
    return view.decoded(OpKind.SPACE_TO_BATCH_ND, _batch_blocks(view, value))


def batch_to_space_nd(view: OpView) -> Decoded:
    """BATCH_TO_SPACE_ND (x, block, crops)."""
    return view.decoded(OpKind.BATCH_TO_SPACE_ND, _batch_blocks(view, 0))


def _batch_blocks(view: OpView, value: int) -> BatchBlockAttrs:
    block, flat, rank = view.ints(1), view.ints(2), len(view.input(0).shape)
    if len(flat) != 2 * len(block) or rank not in (3, 4) or len(block) != rank - 2:
        raise ModelError(f"blocks {list(block)} and {len(flat)} edges for {rank} dimensions")
    return BatchBlockAttrs(block, tuple(zip(flat[::2], flat[1::2], strict=True)), value)


def fill(view: OpView) -> Folded:
    """FILL (shape, value) of an int8 or uint8 constant: the output is a constant."""
    value, output = view.input(1), view.output
    if not value.is_constant or value.elements != 1 or value.dtype not in ("int8", "uint8"):
        view.refuse("the value is not one constant of int8 or uint8", "fill with a constant")
    if not same_quantization(value.quant, output.quant):
        view.refuse("the value is quantised otherwise than the output")
    if view.ints(0) != output.shape:
        raise ModelError(f"output shape {list(output.shape)}, the parameter says {list(view.ints(0))}")
    if output.elements > MAX_PARAMETERS * 256:
        view.refuse(f"a constant of {output.elements} bytes", "store the constant in the model")
    if output.dtype != value.dtype:
        view.refuse(f"a value of {value.dtype} for an output of {output.dtype}")
    return Folded(output.index, np.full(output.shape, value.array().reshape(-1)[0]))


# ---- into a file -------------------------------------------------------------------------------


def write_tile(low: Lowering, op: g.Op) -> FileOp:
    """TILE; the multiples are a tensor."""
    attrs = op.attrs
    assert isinstance(attrs, TileAttrs)
    multiples = low.parameter(op, "multiples", attrs.multiples)
    return FileOp("TILE", 2, (*op.inputs, multiples), op.outputs, "TileOptions")


def write_gather(low: Lowering, op: g.Op) -> FileOp:
    """GATHER; the indices are a tensor."""
    attrs = op.attrs
    assert isinstance(attrs, GatherAttrs)
    indices = low.parameter(op, "indices", attrs.indices)
    options: dict[str, OptionValue] = {"Axis": attrs.axis}
    return FileOp("GATHER", 2, (*op.inputs, indices), op.outputs, "GatherOptions", options)


def write_batch_blocks(low: Lowering, op: g.Op) -> FileOp:
    """SPACE_TO_BATCH_ND and BATCH_TO_SPACE_ND; blocks and edges are tensors."""
    attrs = op.attrs
    assert isinstance(attrs, BatchBlockAttrs)
    shrinks = op.kind is OpKind.BATCH_TO_SPACE_ND
    quant = low.graph.tensors[op.outputs[0]].quant
    if not shrinks and quant is not None and attrs.value != quant.zero_point:
        raise UnsupportedError("SPACE_TO_BATCH_ND pads with the zero point only", operator=op.place)
    operands = (
        low.parameter(op, "block", attrs.block),
        low.parameter(op, "crops" if shrinks else "paddings", attrs.edges),
    )
    table = "BatchToSpaceNDOptions" if shrinks else "SpaceToBatchNDOptions"
    return FileOp(op.kind, 2, (*op.inputs, *operands), op.outputs, table)
