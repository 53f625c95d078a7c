"""Turns SPACE_TO_BATCH_ND and BATCH_TO_SPACE_ND into dilated convolutions if possible, else into copies.

Older converters write dilated convolutions with these operators. SPACE_TO_BATCH_ND divides an image into
several: image (i, j) has every b-th row from i on and every b-th column from j on. A convolution of these is
a dilated convolution of the whole image, and BATCH_TO_SPACE_ND restores the order. Row r of image i reads the
rows (r + k) * b + i of the padded image, as row r * b + i of the dilated convolution does. Paddings are
added, crops are subtracted.
"""

from dataclasses import replace

from buildtool.graph import types as g
from buildtool.graph.ops import ALIAS_KINDS
from buildtool.graph.rewrite.draft import Draft, Node, variant
from buildtool.graph.types import Attrs, OpKind, Pad, Tensor

_CONVOLUTIONS = (OpKind.CONV_2D, OpKind.DEPTHWISE_CONV_2D)
Shape = tuple[int, ...]
_Step = tuple[OpKind, Attrs, Shape]  # an operator of one input: kind, attributes, shape of its output


def dilate_convolutions(draft: Draft) -> None:
    """Turns SPACE_TO_BATCH_ND, convolution, BATCH_TO_SPACE_ND into a dilated convolution if possible."""
    for node in draft.each(OpKind.SPACE_TO_BATCH_ND, OpKind.BATCH_TO_SPACE_ND):
        if len(_attrs(node).block) == 1:
            _make_image(draft, node)
        if node.kind is OpKind.SPACE_TO_BATCH_ND:
            _dilate(draft, node)


def lower_blocks(draft: Draft) -> None:
    """Replaces the remaining SPACE_TO_BATCH_ND and BATCH_TO_SPACE_ND by PAD, RESHAPE, TRANSPOSE and SLICE."""
    for node in draft.each(OpKind.SPACE_TO_BATCH_ND, OpKind.BATCH_TO_SPACE_ND):
        x, y = draft.tensors[node.inputs[0]].shape, draft.tensors[node.outputs[0]].shape
        divide = node.kind is OpKind.SPACE_TO_BATCH_ND
        _replace(draft, node, (_divide_steps if divide else _join_steps)(_attrs(node), x, y))


def _attrs(node: Node) -> g.BatchBlockAttrs:
    return node.attributes(g.BatchBlockAttrs)


# ---- dilated convolutions ----------------------------------------------------------------------------


def _dilate(draft: Draft, node: Node) -> None:
    """Replaces SPACE_TO_BATCH_ND, a convolution and BATCH_TO_SPACE_ND by one convolution if that is exact.

    `node` is the SPACE_TO_BATCH_ND.
    """
    conv = draft.only_reader(node.outputs[0])
    if conv is None or conv.kind not in _CONVOLUTIONS or conv.inputs.count(node.outputs[0]) != 1:
        return
    back = draft.only_reader(conv.outputs[0])
    attrs, before = conv.attributes(g.ConvAttrs), _attrs(node)
    x = draft.tensors[node.inputs[0]]
    if back is None or back.kind is not OpKind.BATCH_TO_SPACE_ND or attrs.stride != (1, 1):
        return
    after = _attrs(back)
    if after.block != before.block or x.quant is None or x.quant.zero_point != before.value:
        return
    (top, bottom), (left, right) = before.edges
    crops, (rows, columns) = after.edges, before.block
    pads = (
        attrs.pad.top * rows + top - crops[0][0],
        attrs.pad.bottom * rows + bottom - crops[0][1],
        attrs.pad.left * columns + left - crops[1][0],
        attrs.pad.right * columns + right - crops[1][1],
    )
    dilation = (attrs.dilation[0] * rows, attrs.dilation[1] * columns)
    conv.attrs = replace(attrs, dilation=dilation, pad=Pad(*(max(n, 0) for n in pads)))
    target = back.outputs[0]
    draft.set_input(conv, 0, node.inputs[0])
    draft.remove(back)
    draft.remove(node)
    draft.set_outputs(conv, [target])
    cuts = [max(-n, 0) for n in pads]  # a crop beyond the padding removes rows and columns of the output
    if any(cuts):
        result = draft.tensors[target]
        batch, height, width, depth = result.shape
        shape = (batch, height + cuts[0] + cuts[1], width + cuts[2] + cuts[3], depth)
        part = g.SliceAttrs((0, cuts[0], cuts[2], 0), (1,) * 4, result.shape)
        draft.put_after(conv, variant(result, "uncut", shape), OpKind.SLICE, part)


def _make_image(draft: Draft, node: Node) -> None:
    """Turns an operator on (batch, elements, channels) into one on images of 4 dimensions.

    An image is one row of pixels, or one column where a neighbouring alias has such images.
    """
    attrs, inner, neighbour = _attrs(node), node.outputs[0], draft.only_reader(node.outputs[0])
    if node.kind is OpKind.BATCH_TO_SPACE_ND:
        inner, neighbour = node.inputs[0], draft.producer(node.inputs[0])
    tall = False
    if neighbour is not None and neighbour.kind in ALIAS_KINDS:
        other = neighbour.inputs[0] if node.kind is OpKind.BATCH_TO_SPACE_ND else neighbour.outputs[0]
        shape = draft.tensors[inner].shape
        tall = draft.tensors[other].shape == (shape[0], shape[1], 1, *shape[2:])

    def image(t: int) -> Tensor:
        tensor = draft.tensors[t]
        batch, length, *rest = tensor.shape
        return variant(tensor, "image", (batch, length, 1, *rest) if tall else (batch, 1, length, *rest))

    block, edges = attrs.block[0], attrs.edges[0]
    block_2d = (block, 1) if tall else (1, block)
    edges_2d = (edges, (0, 0)) if tall else ((0, 0), edges)
    node.attrs = replace(attrs, block=block_2d, edges=edges_2d)
    draft.put_reshape_before(node, image(node.inputs[0]))
    draft.put_after(node, image(node.outputs[0]), OpKind.RESHAPE, Attrs())


# ---- copies ------------------------------------------------------------------------------------------


def _divide_steps(attrs: g.BatchBlockAttrs, x: Shape, y: Shape) -> list[_Step]:
    """Returns SPACE_TO_BATCH_ND as PAD, RESHAPE, TRANSPOSE, RESHAPE."""
    (rows, columns), edges = attrs.block, ((0, 0), *attrs.edges, (0, 0))
    padded = tuple(n + sum(e) for n, e in zip(x, edges, strict=True))
    batch, height, width, depth = padded
    split = (batch, height // rows, rows, width // columns, columns, depth)
    divided = (rows, columns, batch, height // rows, width // columns, depth)
    steps: list[_Step] = [
        (OpKind.PAD, g.PadAttrs(edges, g.PadMode.CONSTANT, attrs.value), padded),
        (OpKind.RESHAPE, Attrs(), split),
        (OpKind.TRANSPOSE, g.TransposeAttrs((2, 4, 0, 1, 3, 5)), divided),
        (OpKind.RESHAPE, Attrs(), y),
    ]
    return steps if padded != x else steps[1:]


def _join_steps(attrs: g.BatchBlockAttrs, x: Shape, y: Shape) -> list[_Step]:
    """Returns BATCH_TO_SPACE_ND as RESHAPE, TRANSPOSE, RESHAPE, SLICE."""
    (rows, columns), (_, height, width, depth) = attrs.block, x
    batch, whole = y[0], (y[0], height * rows, width * columns, depth)
    begin = (0, attrs.edges[0][0], attrs.edges[1][0], 0)
    steps: list[_Step] = [
        (OpKind.RESHAPE, Attrs(), (rows, columns, batch, height, width, depth)),
        (
            OpKind.TRANSPOSE,
            g.TransposeAttrs((2, 3, 0, 4, 1, 5)),
            (batch, height, rows, width, columns, depth),
        ),
        (OpKind.RESHAPE, Attrs(), whole),
        (OpKind.SLICE, g.SliceAttrs(begin, (1,) * 4, y), y),
    ]
    return steps if whole != y else steps[:3]


def _replace(draft: Draft, node: Node, steps: list[_Step]) -> None:
    """Replaces `node` by a chain of operators with one input each."""
    source, target = node.inputs[0], node.outputs[0]
    last, final = node, draft.tensors[target]
    draft.set_outputs(node, [])
    for n, (kind, attrs, shape) in enumerate(steps):
        result = target
        if n + 1 < len(steps):
            result = draft.add_tensor(variant(final, str(n), shape))
        new = Node(kind, [source], [result], attrs, node.index)
        draft.insert(last, new)
        last, source = new, result
    draft.remove(node)
