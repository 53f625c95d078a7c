"""Folds crops and samples of pixels into the convolutions that read them.

A crop leaves out rows and columns at the sides. A sample takes every second (or nth) one. Both are slices,
and poolings of one pixel are samples. The convolution begins further inside the tensor, which is a negative
padding, and takes longer steps. NASNet's shortcuts shift an image by one pixel in this way: PAD, a slice, a
pooling of one pixel.
"""

from dataclasses import dataclass, replace

from buildtool.graph import types as g
from buildtool.graph.geometry import dilated_extent, window_outputs
from buildtool.graph.rewrite.draft import Draft, Node
from buildtool.graph.rewrite.pads import outlives
from buildtool.graph.types import Activation, OpKind, Pad

_SLICES = (OpKind.SLICE, OpKind.STRIDED_SLICE)
_POOLS = (OpKind.AVERAGE_POOL_2D, OpKind.MAX_POOL_2D)
Pair = tuple[int, int]  # of rows, of columns


@dataclass(frozen=True)
class _Sample:
    """Output pixel (y, x) is input pixel (first + y * step, ...). `end`: one past the last one read."""

    first: Pair
    step: Pair
    end: Pair


def fold_crops(draft: Draft) -> None:
    """Folds every crop and sample whose readers are convolutions, where no step then needs more memory.

    This is so if its input is in memory until its last reader has run anyway. It is also so if its only
    reader runs right after it and makes at most as many bytes as the crop has.
    """
    for node in draft.each(*_SLICES, *_POOLS):
        sample, out = _sample(draft, node), node.outputs[0]
        readers = draft.readers(out)
        if sample is None or not readers or not draft.private(out):
            continue
        folded = [_with_sample(draft, node, sample, reader) for reader in readers]
        if any(attrs is None for attrs in folded) or not _saves(draft, node, readers):
            continue
        for reader, attrs in zip(readers, folded, strict=True):
            assert attrs is not None
            reader.attrs = attrs
            draft.set_input(reader, 0, node.inputs[0])
        draft.remove(node)


def _sample(draft: Draft, node: Node) -> _Sample | None:
    """Which pixels an operator takes; None where it does anything else."""
    x, out, attrs = draft.tensors[node.inputs[0]], draft.tensors[node.outputs[0]], node.attrs
    alike = x.quant is not None and draft.same_quantization(node.inputs[0], node.outputs[0])
    if len(x.shape) != 4 or len(out.shape) != 4 or x.is_constant or not alike:
        return None
    if isinstance(attrs, g.PoolAttrs):
        plain = attrs.kernel == (1, 1) and attrs.pad == Pad() and attrs.activation is Activation.NONE
        first, step = (0, 0), attrs.stride
    elif isinstance(attrs, g.SliceAttrs):
        plain = (x.shape[0], x.shape[3]) == (out.shape[0], out.shape[3]) and min(attrs.stride) > 0
        first, step = (attrs.begin[1], attrs.begin[2]), (attrs.stride[1], attrs.stride[2])
    else:
        return None
    rows, columns = (first[i] + (out.shape[i + 1] - 1) * step[i] + 1 for i in range(2))
    return _Sample(first, step, (rows, columns)) if plain else None


def _with_sample(draft: Draft, node: Node, sample: _Sample, reader: Node) -> g.ConvAttrs | None:
    """Returns the attributes with which a convolution reads the sample's input, None where it cannot.

    Its own padding must not stand where the sample left out pixels. Only windows of one pixel take longer
    steps: the others would be dilated.
    """
    if (
        reader.kind not in (OpKind.CONV_2D, OpKind.DEPTHWISE_CONV_2D)
        or reader.inputs.count(node.outputs[0]) != 1
    ):
        return None
    conv, size = reader.attributes(g.ConvAttrs), draft.tensors[node.inputs[0]].shape
    kernel, out = draft.tensors[reader.inputs[1]].shape, draft.tensors[reader.outputs[0]].shape
    sides, strides = [], []
    for axis, (before, after) in enumerate(
        ((conv.pad.top, conv.pad.bottom), (conv.pad.left, conv.pad.right))
    ):
        first, step, stride = sample.first[axis], sample.step[axis], conv.stride[axis] * sample.step[axis]
        extent = dilated_extent(kernel[axis + 1], conv.dilation[axis])
        cut = (first > 0 and before > 0) or (sample.end[axis] < size[axis + 1] and after > 0)
        if cut or (step > 1 and (extent > 1 or before or after)):
            return None
        top = before - first
        over = (out[axis + 1] - 1) * stride - top + extent - size[axis + 1]  # what the last window needs
        unread = window_outputs(size[axis + 1], top, extent, stride) == out[axis + 1]
        sides += [top, 0 if unread else over]
        strides.append(stride)
    return replace(conv, stride=(strides[0], strides[1]), pad=Pad(*sides))


def _saves(draft: Draft, node: Node, readers: list[Node]) -> bool:
    """Whether no step needs more memory if `readers` read the input of `node`."""
    if outlives(draft, node.inputs[0], node, readers):
        return True
    at, sizes = draft.nodes.index(node), [draft.tensors[of.outputs[0]].size for of in (readers[0], node)]
    following = next(other for other in draft.nodes[at + 1 :] if not other.dead)
    return len(readers) == 1 and following is readers[0] and sizes[0] <= sizes[1]
