"""Folds operators that crop or subsample an image into the convolutions that read the result.

A crop leaves out rows and columns at the sides. Subsampling takes every second (or nth) one. Both are slices,
and poolings of one pixel subsample. The convolution begins further inside the tensor, which is a negative
padding, and has larger strides. NASNet's shortcuts shift an image by one pixel in this way: PAD, a slice, a
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
    """Which pixels a crop or subsampling takes, as (row, column).

    Output pixel (y, x) is input pixel (first[0] + y * step[0], first[1] + x * step[1]). `end` is one past the
    last row and column that are taken.
    """

    first: Pair
    step: Pair
    end: Pair


def fold_crops(draft: Draft) -> None:
    """Folds crops and subsamplings that only convolutions read, if no operator then needs more memory.

    No operator needs more memory in two cases: if the crop's input is in memory until the last reader has run
    anyway, or if the only reader runs right after the crop and has an output that is not larger than the
    crop's.
    """
    for node in draft.each(*_SLICES, *_POOLS):
        sample, out = _sample(draft, node), node.outputs[0]
        readers = draft.readers(out)
        if sample is None or not readers or not draft.private(out):
            continue
        folded = [_with_sample(draft, node, sample, reader) for reader in readers]
        if any(attrs is None for attrs in folded) or not _needs_no_more_memory(draft, node, readers):
            continue
        for reader, attrs in zip(readers, folded, strict=True):
            assert attrs is not None
            reader.attrs = attrs
            draft.set_input(reader, 0, node.inputs[0])
        draft.remove(node)


def _sample(draft: Draft, node: Node) -> _Sample | None:
    """Returns which pixels an operator takes; None if it is neither a crop nor subsampling."""
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
    """Returns attributes with which the convolution `reader` can read the input of the crop `node`, or None.

    `sample`: which pixels the crop takes. None if the convolution pads a side where pixels were cropped. Only
    windows of one pixel can have larger strides: other windows would have to be dilated as well.
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


def _needs_no_more_memory(draft: Draft, node: Node, readers: list[Node]) -> bool:
    """Whether no operator needs more memory if `readers` read the input of `node`."""
    if outlives(draft, node.inputs[0], node, readers):
        return True
    at = draft.nodes.index(node)
    result, crop = (draft.tensors[each.outputs[0]] for each in (readers[0], node))
    following = next(other for other in draft.nodes[at + 1 :] if not other.dead)
    return len(readers) == 1 and following is readers[0] and result.size <= crop.size
