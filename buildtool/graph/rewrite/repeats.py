"""Repeated operands are not made where they need not be; extremes over images are poolings."""

from __future__ import annotations

from buildtool.graph.quantrules import same_quantization
from buildtool.graph.rewrite.draft import Draft, Node, variant
from buildtool.graph.types import Attrs, ElementwiseAttrs, MeanAttrs, OpKind, PoolAttrs, TileAttrs


def drop_repeats(draft: Draft) -> None:
    """Lets arithmetic that broadcasts by itself read what a TILE repeats."""
    for node in draft.each(OpKind.TILE):
        for reader in draft.readers(node.outputs[0]):
            if isinstance(reader.attrs, ElementwiseAttrs) and _broadcasts(draft, node, reader):
                position = reader.inputs.index(node.outputs[0])
                draft.set_input(reader, position, node.inputs[0])
        if draft.private(node.outputs[0]) and not draft.readers(node.outputs[0]):
            draft.remove(node)


def _broadcasts(draft: Draft, tile: Node, reader: Node) -> bool:
    """Whether the reader gives the same without the repetitions."""
    x, repeated = draft.tensors[tile.inputs[0]], draft.tensors[tile.outputs[0]]
    if reader.inputs.count(tile.outputs[0]) != 1 or not same_quantization(x.quant, repeated.quant):
        return False
    multiples = tile.attributes(TileAttrs).multiples
    if any(n != 1 and times != 1 for n, times in zip(x.shape, multiples, strict=True)):
        return False
    out = draft.tensors[reader.outputs[0]].shape
    other = reader.inputs[1 - reader.inputs.index(tile.outputs[0])]
    leading = x.shape[: len(x.shape) - 3]
    whole = leading == out[: len(out) - 3] or all(n == 1 for n in leading)
    return draft.tensors[other].shape == out and whole


def pool_extremes(draft: Draft) -> None:
    """REDUCE_MAX over the rows and columns of images as MAX_POOL_2D, which has kernels of its own."""
    for node in draft.each(OpKind.REDUCE_MAX):
        attrs, x = node.attributes(MeanAttrs), draft.tensors[node.inputs[0]]
        if len(x.shape) != 4 or attrs.axes != (1, 2):
            continue
        draft.become(node, OpKind.MAX_POOL_2D, PoolAttrs(x.shape[1:3], (1, 1)))
        if not attrs.keep_dims:
            out = draft.tensors[node.outputs[0]]
            pooled = variant(out, "pooled", (x.shape[0], 1, 1, x.shape[3]))
            draft.put_behind(node, pooled, OpKind.RESHAPE, Attrs())
