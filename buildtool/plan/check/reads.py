"""What an operator reads for a window of its output, only from its attributes and shapes.

This belongs to the checker. The planner computes the same in `schedule.receptive`; neither uses the other.
An operator's definition says whether it has windows, and whether they move by a whole stride.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from buildtool.graph.ops import ALIAS_KINDS, PIXEL_KINDS, SLIDING_KINDS, UNEVEN_KINDS
from buildtool.graph.reference.resize import bilinear_corners, nearest_indices
from buildtool.graph.types import (
    AxisAttrs,
    BlockAttrs,
    ConvAttrs,
    DType,
    Graph,
    MeanAttrs,
    Op,
    OpKind,
    PadAttrs,
    PoolAttrs,
    ResizeAttrs,
    ShuffleAttrs,
    SliceAttrs,
    Tensor,
    TransposeAttrs,
)
from buildtool.plan.types import Region, Scheme

Span = tuple[int, int]  # half-open: of rows, of columns, of bytes


@dataclass(frozen=True)
class Taps:
    """Which input elements (rows or columns) each output element reads along one axis.

    size: how many elements the input has.
    extent, stride, pad: output element q reads `extent` input elements from q * stride - pad on.
    spans: if the stride is not a whole number, the input elements [first, end) of each output element; else
        empty.
    """

    size: int
    extent: int = 1
    stride: int = 1
    pad: int = 0
    spans: tuple[Span, ...] = ()

    def read(self, made: Span) -> Span:
        """Returns the input elements that output elements in `made` read; padding is not read."""
        if self.spans:
            read = self.spans[made[0] : made[1]]
            return min((span[0] for span in read), default=0), max((span[1] for span in read), default=0)
        first = max(
            made[0], (self.pad - self.extent) // self.stride + 1
        )  # those before it lie in the padding
        last = min(made[1] - 1, (self.size + self.pad - 1) // self.stride)  # those after it, too
        begin, end = (q * self.stride - self.pad for q in (first, last))
        return max(0, begin), min(self.size, end + self.extent)


@dataclass(frozen=True)
class Read:
    """An activation that an operator reads. `rows` and `columns` are None if it always needs all of it."""

    tensor: int
    rows: Taps | None = None
    columns: Taps | None = None


def reads(graph: Graph, op: Op) -> tuple[Read, ...]:
    """Returns the activations that an operator reads, each once, in the order of its inputs."""
    operands = []
    for t in dict.fromkeys(op.inputs):
        if t >= 0 and not graph.tensors[t].is_constant:
            taps = _taps(graph, op, t)
            operands.append(Read(t, *taps) if taps else Read(t))
    return tuple(operands)


def sums_up(graph: Graph, op: Op) -> bool:
    """Returns whether the operator is the mean over all rows and columns for each channel."""
    source, result = graph.tensors[op.inputs[0]], graph.tensors[op.outputs[0]]
    if len(source.shape) != 4 or source.shape[0] != 1 or source.shape[1] * source.shape[2] == 1:
        return False
    if source.dtype is DType.FLOAT32:
        return False
    if isinstance(op.attrs, MeanAttrs) and op.kind is OpKind.MEAN:
        return op.attrs.axes == (1, 2)
    if not isinstance(op.attrs, PoolAttrs) or op.kind is not OpKind.AVERAGE_POOL_2D:
        return False
    pad = op.attrs.pad
    return op.attrs.kernel == source.nhwc[1:3] and result.nhwc[1:3] == (1, 1) and not (pad.top or pad.left)


def makes_planes(graph: Graph, op: Op) -> bool:
    """Returns whether the operator moves channel c of an image's pixels to plane c of its output."""
    shape = graph.tensors[op.inputs[0]].shape
    is_plane = op.kind is OpKind.TRANSPOSE and op.attrs == TransposeAttrs((0, 3, 1, 2))
    return is_plane and shape[0] == 1 and shape[1:3] != (1, 1)


def ends_rows(graph: Graph, op: Op) -> bool:
    """Returns whether the operator makes a whole output from parts of its input."""
    return sums_up(graph, op) or makes_planes(graph, op)


def _taps(graph: Graph, op: Op, tensor: int) -> tuple[Taps, Taps] | None:
    """Returns which rows and columns of `tensor` each output pixel reads; None if it needs all of them."""
    source, result = graph.tensors[tensor], graph.tensors[op.outputs[0]]
    if len(op.outputs) != 1 or len(result.shape) != 4 or result.shape[0] != 1 or sums_up(graph, op):
        return None
    _, height, width, _ = source.nhwc
    if (op.kind in SLIDING_KINDS or op.kind in UNEVEN_KINDS) and tensor != op.inputs[0]:
        return None
    if op.kind in SLIDING_KINDS:
        rows, columns = windows(graph, op)
        return Taps(height, *rows), Taps(width, *columns)
    if op.kind in UNEVEN_KINDS:
        return _uneven(graph, op, 0, height), _uneven(graph, op, 1, width)
    joined = op.kind is OpKind.CONCATENATION and op.attrs == AxisAttrs(3)
    by_pixel = op.kind in PIXEL_KINDS or joined or _keeps_pixels(op, source, result)
    if by_pixel and source.nhwc[:3] == result.nhwc[:3]:
        return Taps(height), Taps(width)
    return None


def _uneven(graph: Graph, op: Op, axis: int, size: int) -> Taps:
    """Returns which input rows (`axis` 0) or columns (1) an operator in UNEVEN_KINDS reads.

    `size`: how many rows or columns the input has.
    """
    attrs, out = op.attrs, graph.tensors[op.outputs[0]].nhwc[1 + axis]
    if op.kind is OpKind.TRANSPOSE_CONV:
        assert isinstance(attrs, ConvAttrs)
        kernel = graph.tensors[op.inputs[1]].shape[1 + axis]
        stride, pad = attrs.stride[axis], (attrs.pad.top, attrs.pad.left)[axis]
        first, end = [size] * out, [0] * out  # the inputs whose kernels cover an output
        for i in range(size):
            for q in range(max(0, i * stride - pad), min(out, i * stride - pad + kernel)):
                first[q], end[q] = min(first[q], i), i + 1
        spans = list(zip(first, end, strict=True))
    elif isinstance(attrs, BlockAttrs):
        spans = [(q // attrs.block, q // attrs.block + 1) for q in range(out)]
    else:
        assert isinstance(attrs, ResizeAttrs)
        if op.kind is OpKind.RESIZE_NEAREST_NEIGHBOR:
            spans = [(i, i + 1) for i in nearest_indices(size, out, attrs).tolist()]
        else:
            lower, upper = bilinear_corners(graph, op, 1 + axis)
            spans = list(zip(lower.tolist(), (upper + 1).tolist(), strict=True))
    return Taps(size, spans=tuple(spans))


def _keeps_pixels(op: Op, source: Tensor, result: Tensor) -> bool:
    """Returns whether each output pixel has only channels of the same input pixel, and fill values."""
    if len(source.shape) != 4 or len(result.shape) != 4:
        return False
    if isinstance(op.attrs, SliceAttrs):
        return op.attrs.begin[:3] == (0, 0, 0) and op.attrs.stride[:3] == (1, 1, 1)
    if isinstance(op.attrs, PadAttrs):
        return op.kind is OpKind.PAD and all(side == (0, 0) for side in op.attrs.paddings[:3])
    return isinstance(op.attrs, ShuffleAttrs)


def windows(graph: Graph, op: Op) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
    """Returns (extent, stride, padding before) of a sliding operator's rows, and of its columns."""
    if isinstance(op.attrs, BlockAttrs):  # its pixels side by side
        block = op.attrs.block
        return (block, block, 0), (block, block, 0)
    if isinstance(op.attrs, PoolAttrs):
        extent = op.attrs.kernel
    else:
        assert isinstance(op.attrs, ConvAttrs)
        kernel, dilation = graph.tensors[op.inputs[1]].shape[1:3], op.attrs.dilation
        extent = ((kernel[0] - 1) * dilation[0] + 1, (kernel[1] - 1) * dilation[1] + 1)
    stride, pad = op.attrs.stride, op.attrs.pad
    return (extent[0], stride[0], pad.top), (extent[1], stride[1], pad.left)


def kept_rows(graph: Graph, regions: Iterable[Region]) -> dict[int, int]:
    """Returns operator in a group of bands -> how many rows of its output are kept from step to step.

    Two neighbouring steps of the operator's reader both read these rows. Operators without such rows are left
    out.
    """
    kept = {}
    for group in (group for region in regions for group in region.groups if group.in_bands):
        for position, reader in pairwise(group.ops):
            op = graph.ops[reader]
            extent, stride, _ = windows(graph, op)[0] if op.kind in SLIDING_KINDS else (1, 1, 0)
            if extent > stride:
                kept[position] = min(extent - stride, graph.tensors[op.inputs[0]].nhwc[1])
    return kept


def swapping(regions: Iterable[Region]) -> frozenset[int]:
    """Returns the operators in groups that swap the rows that they keep (see `schedule.bands`)."""
    groups = (group for region in regions for group in region.groups if group.scheme is Scheme.SWAPS)
    return frozenset(op for group in groups for op in group.ops)


def alias_groups(graph: Graph) -> dict[int, int]:
    """Returns activation -> the activation that has its bytes, or contains them."""
    joined = {t: op.outputs[0] for op in graph.ops if op.kind is OpKind.JOINED for t in op.inputs}
    group = {t: t for t in (*graph.inputs, *(state.before for state in graph.states))}
    for op in graph.ops:
        for t in op.outputs:
            cut = op.kind in ALIAS_KINDS and op.kind is not OpKind.JOINED
            group[t] = group.get(op.inputs[0], t) if cut else t
            while group[t] in joined:
                group[t] = joined[group[t]]
    return group
