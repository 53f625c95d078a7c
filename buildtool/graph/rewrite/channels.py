"""Moves of channels: a SPLIT becomes slices, and a shuffle one operator that keeps rows and columns.

Both then run row by row: each makes a row of its one output of a row of its input.
"""

from __future__ import annotations

import math

from buildtool.graph.rewrite.draft import Draft, Node
from buildtool.graph.types import AxisAttrs, OpKind, ShuffleAttrs, SliceAttrs, TransposeAttrs


def slice_channels(draft: Draft) -> None:
    """Turns every SPLIT of an image's channels into a SLICE for each output."""
    for node in draft.each(OpKind.SPLIT):
        shape = draft.tensors[node.inputs[0]].shape
        if node.attrs == AxisAttrs(3) and len(shape) == 4 and shape[0] == 1 < shape[1] * shape[2]:
            _slice(draft, node)


def _slice(draft: Draft, node: Node) -> None:
    source, outputs = node.inputs[0], list(node.outputs)
    draft.remove(node)
    start, behind = 0, node
    for t in outputs:
        shape = draft.tensors[t].shape
        attrs = SliceAttrs((0, 0, 0, start), (1, 1, 1, 1), shape)
        part = Node(OpKind.SLICE, [source], [t], attrs, node.index)
        draft.insert(behind, part)
        start, behind = start + shape[3], part


def shuffle_channels(draft: Draft) -> None:
    """Turns RESHAPE, TRANSPOSE and RESHAPE that shuffle an image's channels into one operator."""
    for node in draft.each(OpKind.TRANSPOSE):
        if isinstance(node.attrs, TransposeAttrs):
            _shuffle(draft, node, node.attrs.perm)


def _shuffle(draft: Draft, node: Node, perm: tuple[int, ...]) -> None:
    """Groups of channels are a dimension for a while, which changes places with the channels of a group."""
    before, after = draft.producer(node.inputs[0]), draft.only_reader(node.outputs[0])
    if before is None or after is None or draft.only_reader(node.inputs[0]) is None:
        return
    if before.kind is not OpKind.RESHAPE or after.kind is not OpKind.RESHAPE:
        return
    image, grouped = (draft.tensors[t].shape for t in (before.inputs[0], node.inputs[0]))
    last = len(grouped) - 1
    fits = (
        last >= 2
        and perm == (*range(last - 1), last, last - 1)
        and len(image) == 4
        and image == draft.tensors[after.outputs[0]].shape
        and image[3] == math.prod(grouped[-2:])
    )
    if fits:
        draft.become(node, OpKind.TRANSPOSE, ShuffleAttrs(grouped[-2]))
        draft.set_input(node, 0, before.inputs[0])
        draft.remove(before)
        draft.remove(after)
        draft.set_outputs(node, list(after.outputs))
