"""Turns a network for a batch of images into the network for one image of the batch.

It is possible if no operator mixes images. Where an input image comes row by row, the network of one image
runs once for each image, and only that image's data is in memory.
"""

from __future__ import annotations

from dataclasses import replace

from buildtool.graph import types as g
from buildtool.graph.consistency import check_graph
from buildtool.graph.ops import ALIAS_KINDS, PIXEL_KINDS, SLIDING_KINDS, UNEVEN_KINDS
from buildtool.graph.types import Graph, Op, OpKind, Tensor

_ALONG_AXES = {
    *(OpKind.MEAN, OpKind.SUM, OpKind.REDUCE_MAX, OpKind.REDUCE_MIN, OpKind.REDUCE_PROD),
    *(OpKind.CONCATENATION, OpKind.SPLIT),
}


def one_image(graph: Graph) -> Graph | None:
    """Returns the network for one image; None if the batch is 1, or if an operator may mix images."""
    images = [graph.tensors[t] for t in graph.inputs]
    batch = images[0].shape[0] if images and len(images[0].shape) > 1 else 1
    if batch < 2 or graph.states or not all(_keeps_images_separate(graph, op, batch) for op in graph.ops):
        return None
    if any(len(image.shape) < 2 or image.shape[0] != batch for image in images):
        return None
    tensors = tuple(t if t.is_constant else replace(t, shape=(1, *t.shape[1:])) for t in graph.tensors)
    ops = tuple(replace(op, attrs=_attrs_of_one_image(op.attrs)) for op in graph.ops)
    result = replace(graph, tensors=tensors, ops=ops)
    check_graph(result)
    return result


def _attrs_of_one_image(attrs: g.Attrs) -> g.Attrs:
    return replace(attrs, extent=(1, *attrs.extent[1:])) if isinstance(attrs, g.SliceAttrs) else attrs


def _keeps_images_separate(graph: Graph, op: Op, batch: int) -> bool:
    """Whether image i of each output depends only on image i of each input. `batch`: the number of images."""
    operands = [graph.tensors[t] for t in op.inputs if t >= 0]
    varying = [t for t in (*operands, *(graph.tensors[t] for t in op.outputs)) if not t.is_constant]
    if any(len(tensor.shape) < 2 or tensor.shape[0] != batch for tensor in varying):
        return False
    constants, attrs = [t for t in operands if t.is_constant], op.attrs
    if op.kind in ALIAS_KINDS or op.kind in SLIDING_KINDS or op.kind in UNEVEN_KINDS:
        return True
    if op.kind is OpKind.FULLY_CONNECTED:
        return not constants or operands[0] is not constants[0]
    if op.kind in PIXEL_KINDS:  # a constant may repeat over the batch
        return all(_repeats(t, len(varying[-1].shape)) for t in constants)
    if op.kind in _ALONG_AXES:  # none of the batch: the output has it, too
        return not constants
    if isinstance(attrs, g.PadAttrs):
        return attrs.paddings[0] == (0, 0)
    if isinstance(attrs, g.SliceAttrs) and op.kind in (OpKind.SLICE, OpKind.STRIDED_SLICE):
        return (attrs.begin[0], attrs.stride[0], attrs.extent[0]) == (0, 1, batch)
    return isinstance(attrs, g.TransposeAttrs) and attrs.perm[0] == 0


def _repeats(tensor: Tensor, rank: int) -> bool:
    return len(tensor.shape) < rank or tensor.shape[0] == 1
