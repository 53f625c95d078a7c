"""Operators that move elements without changing them: paddings, slices, concatenations, blocks, ...

Some of them run no code (aliases): input and output share one buffer, and the output is the same bytes with
another shape. Planning turns some slices and concatenations of channels into two further kinds that run no
code (see `partviews`). A VIEW is a slice whose reader reads parts of the input's pixels. A JOINED is a
concatenation whose parts are written into parts of its output's pixels.
"""

import math
from dataclasses import replace
from functools import partial

from buildtool.graph import quantrules
from buildtool.graph import types as g
from buildtool.graph.geometry import attributes, axis_of, check_images, demand
from buildtool.graph.ops.types import NO_INT16, CallForm, OpDef, Plain, Shape, Spelling, Trait
from buildtool.graph.quantrules import QuantError, same_quantization
from buildtool.graph.types import DType, Graph, Op, OpKind


def _pad_shape(op: Op, shapes: list[Shape], _outputs: list[Shape]) -> Shape:
    attrs, x = attributes(op, g.PadAttrs), shapes[0]
    demand(len(attrs.paddings) == len(x), f"{len(attrs.paddings)} paddings for {len(x)} dimensions")
    demand(all(min(p) >= 0 for p in attrs.paddings), "negative padding")
    if attrs.mode != g.PadMode.CONSTANT:
        edge = 1 if attrs.mode == g.PadMode.REFLECT else 0
        for n, p in zip(x, attrs.paddings, strict=True):
            demand(max(p) <= n - edge, f"cannot mirror {max(p)} elements of a dimension of {n}")
    return tuple(n + p[0] + p[1] for n, p in zip(x, attrs.paddings, strict=True))


def _transpose_shape(op: Op, shapes: list[Shape], _outputs: list[Shape]) -> Shape:
    if isinstance(op.attrs, g.ShuffleAttrs):
        groups = op.attrs.groups
        demand(len(shapes[0]) == 4, f"a shuffle of {len(shapes[0])} dimensions")
        text = f"{shapes[0][3]} channels do not divide into {groups} groups"
        demand(groups > 0 and shapes[0][3] % groups == 0, text)
        return shapes[0]
    perm, x = attributes(op, g.TransposeAttrs).perm, shapes[0]
    demand(sorted(perm) == list(range(len(x))), f"{list(perm)} does not permute {len(x)} dimensions")
    return tuple(x[p] for p in perm)


def _check_parts(axis: int, parts: list[Shape], whole: Shape) -> None:
    """Demands that `parts`, joined along `axis`, have the shape `whole`."""
    for part in parts:
        fits = len(part) == len(whole) and (*part[:axis], whole[axis], *part[axis + 1 :]) == whole
        demand(fits, f"shape {list(part)} is not part of {list(whole)} along axis {axis}")
    total = sum(part[axis] for part in parts)
    demand(total == whole[axis], f"{total} elements along axis {axis}, expected {whole[axis]}")


def _concatenation_shape(op: Op, shapes: list[Shape], outputs: list[Shape]) -> Shape:
    demand(len(shapes) >= 1, "nothing to concatenate")
    axis, first = axis_of(op, len(shapes[0])), shapes[0]
    if not outputs:
        outputs = [(*first[:axis], sum(shape[axis] for shape in shapes), *first[axis + 1 :])]
    _check_parts(axis, shapes, outputs[0])
    return outputs[0]


def _split_shape(op: Op, shapes: list[Shape], outputs: list[Shape]) -> Shape:
    demand(len(outputs) >= 1, "a split without outputs")
    axis = axis_of(op, len(shapes[0]))
    _check_parts(axis, outputs, shapes[0])
    demand(len({s[axis] for s in outputs}) == 1, "the parts of a split differ in size")
    return outputs[0]


def _slice_shape(op: Op, shapes: list[Shape], outputs: list[Shape]) -> Shape:
    attrs, x = attributes(op, g.SliceAttrs), shapes[0]
    entries = (attrs.begin, attrs.stride, attrs.extent)
    demand(all(len(e) == len(x) for e in entries), "each dimension needs a begin, a stride and an extent")
    for n, begin, stride, extent in zip(x, *entries, strict=True):
        last = begin + (extent - 1) * stride
        demand(extent >= 1 and stride != 0, "an empty slice")
        demand(0 <= begin < n and 0 <= last < n, f"elements {begin}..{last} of a dimension of {n}")
    if op.kind is OpKind.SLICE or not outputs:
        return attrs.extent
    output, expected = ([n for n in shape if n != 1] for shape in (outputs[0], attrs.extent))
    demand(output == expected, f"output {list(outputs[0])} from {list(attrs.extent)}")
    return outputs[0]


def _tile_shape(op: Op, shapes: list[Shape], _outputs: list[Shape]) -> Shape:
    multiples, x = attributes(op, g.TileAttrs).multiples, shapes[0]
    demand(len(multiples) == len(x), f"{len(multiples)} multiples for {len(x)} dimensions")
    demand(all(n >= 1 for n in multiples), f"multiples {list(multiples)} are not positive")
    return tuple(n * m for n, m in zip(x, multiples, strict=True))


def _gather_shape(op: Op, shapes: list[Shape], _outputs: list[Shape]) -> Shape:
    attrs, x = attributes(op, g.GatherAttrs), shapes[0]
    demand(0 <= attrs.axis < len(x), f"axis {attrs.axis} of {len(x)} dimensions")
    size = x[attrs.axis]
    if len(shapes) == 2:
        demand(not attrs.axis and not attrs.indices, "computed indices are of the first dimension")
        return (*shapes[1], *x[1:])
    demand(len(attrs.indices) >= 1, "there are no indices to gather")
    demand(all(0 <= i < size for i in attrs.indices), f"an index is outside a dimension of {size}")
    return (*x[: attrs.axis], len(attrs.indices), *x[attrs.axis + 1 :])


def _gather_types(graph: Graph, op: Op) -> None:
    """Checks that elements have one type, and that computed indices are int32."""
    quantrules.check_int8_or_int16(graph, replace(op, inputs=op.inputs[:1]))
    for t in op.inputs[1:]:
        quantrules.check_type(graph.tensors[t], DType.INT32)


def _squares_shape(op: Op, shapes: list[Shape], _outputs: list[Shape]) -> Shape:
    """Returns the output shape of DEPTH_TO_SPACE or SPACE_TO_DEPTH."""
    check_images(shapes, 1)
    block, (batch, rows, columns, depth) = attributes(op, g.BlockAttrs).block, shapes[0]
    demand(block >= 1, f"a block of {block}")
    if op.kind is OpKind.DEPTH_TO_SPACE:
        demand(depth % block**2 == 0, f"{depth} channels are not whole blocks of {block} x {block}")
        return (batch, rows * block, columns * block, depth // block**2)
    text = f"{rows} x {columns} pixels are not whole blocks of {block} x {block}"
    demand(rows % block == 0 and columns % block == 0, text)
    return (batch, rows // block, columns // block, depth * block**2)


def _batch_blocks_shape(op: Op, shapes: list[Shape], _outputs: list[Shape]) -> Shape:
    """Returns the output shape of SPACE_TO_BATCH_ND or BATCH_TO_SPACE_ND."""
    attrs, x = attributes(op, g.BatchBlockAttrs), shapes[0]
    count = len(attrs.block)
    demand(len(attrs.edges) == count < len(x), f"{count} blocks for {len(x)} dimensions")
    demand(min(attrs.block) >= 1 and all(min(e) >= 0 for e in attrs.edges), "a negative edge or empty block")
    squares = math.prod(attrs.block)
    sides = []
    for n, block, (before, after) in zip(x[1:], attrs.block, attrs.edges, strict=False):
        if op.kind is OpKind.BATCH_TO_SPACE_ND:
            demand(n * block > before + after, f"{before} + {after} elements cropped from {n * block}")
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
    return (batch, *sides, *x[1 + count :])


def _alias_shape(_op: Op, shapes: list[Shape], outputs: list[Shape]) -> Shape:
    before, after = (math.prod(s) for s in (shapes[0], outputs[0]))
    demand(before == after, f"{before} elements cannot take shape {list(outputs[0])}")
    return outputs[0]


def _concatenation_scales(graph: Graph, op: Op) -> None:
    out = graph.tensors[op.outputs[0]].quant
    for t in op.inputs:
        if not same_quantization(graph.tensors[t].quant, out):
            text = "its quantisation differs from that of the concatenation's output"
            raise QuantError(text, graph.tensors[t])


# Strided copies of elements.
_copied = partial(OpDef, types=quantrules.check_moved_types, call=CallForm.COPIES)
_padded = partial(
    OpDef,
    bounds="bounds:pad",
    shape=_pad_shape,
    reference="shape:pad",
    floats="floats:pad",
    written="movement:write_pad",
    case="pad",
    traits=Trait.CHANNEL,
)
# DEPTH_TO_SPACE, SPACE_TO_DEPTH.
_squares = partial(
    OpDef,
    shape=_squares_shape,
    reference="shape:squares",
    no_int16=NO_INT16,
    call=CallForm.ONE_TO_ONE,
    case="squares",
)
# SPACE_TO_BATCH_ND, BATCH_TO_SPACE_ND: the rewrite replaces them by other operators.
_batch_blocks = partial(
    OpDef,
    shape=_batch_blocks_shape,
    decode="arranging:decode_batch_blocks",
    written="arranging:write_batch_blocks",
    quant=quantrules.check_same_quant,
)
_alias = partial(OpDef, types=quantrules.check_moved_types, traits=Trait.ALIAS)
_shaped = partial(
    _alias, bounds="bounds:reshape", shape=_alias_shape, reference="shape:reshape", floats="shape:reshape"
)
_READ = "movement:reshape"  # the ONNX reader

DEFS = (
    _padded(
        OpKind.PAD,
        decode="movement:decode_pad",
        also=(Spelling("PADV2", "movement:decode_pad_v2"),),
        call=CallForm.FILLED,
        onnx={"Pad": "movement:pad"},
        copies="strided:pad",
    ),
    _padded(OpKind.MIRROR_PAD, decode="movement:decode_mirror_pad", call=CallForm.MIRRORED),
    _copied(
        OpKind.TRANSPOSE,
        bounds="bounds:reshape",
        shape=_transpose_shape,
        reference="shape:transpose",
        floats="shape:transpose",
        decode="movement:decode_transpose",
        written=Plain(2, parameters={"perm": "perm"}),
        case="transpose",
        onnx={"Transpose": "movement:transpose"},
        copies="strided:transpose",
    ),
    _copied(
        OpKind.CONCATENATION,
        traits=Trait.CHANNEL,
        bounds="bounds:concatenation",
        shape=_concatenation_shape,
        reference="shape:concatenation",
        floats="shape:concatenation",
        decode="movement:decode_concatenation",
        also=(Spelling("PACK", "arranging:decode_pack"),),
        written=Plain(2, None, g.AxisAttrs, {"Axis": "axis"}),
        quant=_concatenation_scales,
        case="concatenation",
        operands=None,
        onnx={"Concat": "movement:concat"},
        copies="strided:concatenation",
    ),
    _copied(
        OpKind.SPLIT,
        traits=Trait.CHANNEL,
        bounds="bounds:split",
        results=None,
        shape=_split_shape,
        reference="shape:split",
        floats="shape:split",
        decode="movement:decode_split",
        written="movement:write_split",
        case="split",
        onnx={"Split": "movement:split"},
        copies="strided:split",
    ),
    _copied(
        OpKind.STRIDED_SLICE,
        bounds="bounds:slice_",
        shape=_slice_shape,
        reference="shape:slice_",
        floats="shape:slice_",
        decode="movement:decode_strided_slice",
        also=(Spelling("REVERSE_V2", "arranging:decode_reverse_v2"),),
        written="movement:write_strided_slice",
        case="slice",
        copies="strided:slice_",
    ),
    _copied(
        OpKind.SLICE,
        bounds="bounds:slice_",
        shape=_slice_shape,
        reference="shape:slice_",
        floats="shape:slice_",
        decode="movement:decode_slice",
        also=(Spelling("SPLIT_V", "arranging:decode_split_v"), Spelling("UNPACK", "arranging:decode_unpack")),
        written="movement:write_slice",
        case="slice",
        onnx={"Slice": "movement:slice_"},
        copies="strided:slice_",
    ),
    OpDef(
        OpKind.TILE,
        _tile_shape,
        "shape:tile",
        floats="shape:tile",
        decode="arranging:decode_tile",
        also=(
            Spelling("BROADCAST_TO", "arranging:decode_broadcast_to"),
            Spelling("FILL", "arranging:decode_fill"),
        ),
        written=Plain(2, parameters={"multiples": "multiples"}),
        call=CallForm.COPIES,
        case="tile",
        onnx={"Tile": "movement:tile", "Expand": "movement:expand"},
        copies="strided:tile",
    ),
    OpDef(
        OpKind.GATHER,
        _gather_shape,
        "shape:gather",
        floats="shape:gather",
        decode="arranging:decode_gather",
        also=(
            Spelling("GATHER_ND", "arranging:decode_gather_nd"),
            Spelling("EMBEDDING_LOOKUP", "arranging:decode_embedding_lookup"),
        ),
        written="arranging:write_gather",
        types=_gather_types,
        operands=None,
        call=CallForm.GATHERED,
        case="gather",
        onnx={"Gather": "movement:gather"},
    ),
    _squares(
        OpKind.DEPTH_TO_SPACE,
        traits=Trait.UNEVEN,
        written=Plain(1, None, g.BlockAttrs, {"BlockSize": "block"}, needed=True),
        onnx={"DepthToSpace": "movement:depth_to_space"},
    ),
    _squares(
        OpKind.SPACE_TO_DEPTH,
        traits=Trait.SLIDING,
        written=Plain(1, None, g.BlockAttrs, {"BlockSize": "block"}, needed=True),
        onnx={"SpaceToDepth": "movement:depth_to_space"},
    ),
    _batch_blocks(OpKind.BATCH_TO_SPACE_ND, reference="shape:batch_to_space"),
    _batch_blocks(OpKind.SPACE_TO_BATCH_ND, reference="shape:space_to_batch"),
    _shaped(
        OpKind.RESHAPE,
        decode="movement:decode_reshape",
        written="movement:write_reshape",
        onnx={"Reshape": _READ, "Flatten": _READ, "Identity": _READ, "Dropout": _READ},
    ),
    _shaped(
        OpKind.SQUEEZE,
        decode="movement:decode_squeeze",
        written="movement:write_squeeze",
        onnx={"Squeeze": _READ},
    ),
    _shaped(
        OpKind.EXPAND_DIMS,
        decode="movement:decode_expand_dims",
        written="movement:write_expand_dims",
        onnx={"Unsqueeze": _READ},
    ),
    _alias(OpKind.VIEW, shape=None, reference="shape:slice_", floats="shape:slice_"),
    _alias(
        OpKind.JOINED,
        shape=None,
        reference="shape:concatenation",
        floats="shape:concatenation",
        operands=None,
    ),
)
