"""Boxes and strides: how TRANSPOSE, SLICE, SPLIT, CONCATENATION, PAD, TILE and reductions walk memory."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from buildtool.graph import types as g
from buildtool.graph.geometry import attributes
from buildtool.graph.ops import DEFS
from buildtool.graph.ops.types import load
from buildtool.graph.partviews import parts
from buildtool.graph.types import Graph, Op, OpKind

MAX_RANK = 6  # NN_MAX_RANK in nn.h


@dataclass(frozen=True)
class Copy:
    """out[out_offset + sum(i*out_stride)] = in[in_offset + sum(i*in_stride)] over a box, in bytes."""

    size: tuple[int, ...]
    in_stride: tuple[int, ...]
    out_stride: tuple[int, ...]
    in_offset: int = 0
    out_offset: int = 0


def row_major(shape: Sequence[int]) -> tuple[int, ...]:
    """Element strides of a row-major array of `shape`."""
    strides = [1] * len(shape)
    for i in range(len(shape) - 2, -1, -1):
        strides[i] = strides[i + 1] * shape[i + 1]
    return tuple(strides)


def merge_dims(copy: Copy) -> Copy:
    """The same copy with dimensions of one element dropped and contiguous neighbours joined."""
    dims = _join_dims(zip(copy.size, copy.in_stride, copy.out_stride, strict=True)) or [(1, 1, 1)]
    size, in_stride, out_stride = zip(*dims, strict=True)
    return Copy(size, in_stride, out_stride, copy.in_offset, copy.out_offset)


def _join_dims(dims: Iterable[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Dimensions (size, strides), without those of one element, contiguous neighbours as one."""
    joined: list[tuple[int, ...]] = []
    for size, *strides in dims:
        if size == 1:
            continue
        if joined and list(joined[-1][1:]) == [stride * size for stride in strides]:
            joined[-1] = (joined[-1][0] * size, *strides)
        else:
            joined.append((size, *strides))
    return joined


def transpose(graph: Graph, op: Op) -> list[Copy]:
    """TRANSPOSE, a shuffle too."""
    if isinstance(op.attrs, g.ShuffleAttrs):
        shape, groups = graph.tensors[op.inputs[0]].shape, op.attrs.groups
        each = shape[3] // groups
        outer = row_major(shape)[:3]
        return [Copy((*shape[:3], each, groups), (*outer, 1, each), (*outer, groups, 1))]
    shape, perm = graph.tensors[op.inputs[0]].shape, attributes(op, g.TransposeAttrs).perm
    strides = row_major(shape)
    out = tuple(shape[p] for p in perm)
    return [Copy(out, tuple(strides[p] for p in perm), row_major(out))]


def slice_(graph: Graph, op: Op) -> list[Copy]:
    """SLICE, STRIDED_SLICE."""
    attrs = attributes(op, g.SliceAttrs)
    strides = row_major(graph.tensors[op.inputs[0]].shape)
    offset = sum(b * s for b, s in zip(attrs.begin, strides, strict=True))
    steps = tuple(n * s for n, s in zip(attrs.stride, strides, strict=True))
    return [Copy(attrs.extent, steps, row_major(attrs.extent), offset)]


def split(graph: Graph, op: Op) -> list[Copy]:
    """SPLIT: one an output."""
    axis = attributes(op, g.AxisAttrs).axis
    strides = row_major(graph.tensors[op.inputs[0]].shape)
    copies, start = [], 0
    for t in op.outputs:
        shape = graph.tensors[t].shape
        copies.append(Copy(shape, strides, row_major(shape), start * strides[axis]))
        start += shape[axis]
    return copies


def concatenation(graph: Graph, op: Op) -> list[Copy]:
    """CONCATENATION: one an operand."""
    axis = attributes(op, g.AxisAttrs).axis
    strides = row_major(graph.tensors[op.outputs[0]].shape)
    copies, start = [], 0
    for t in op.inputs:
        shape, lies = graph.tensors[t].shape, parts(graph).get(t)
        steps = row_major(shape if lies is None else graph.tensors[lies.whole].shape)
        first = 0 if lies is None else lies.first  # the channels are the last dimension
        copies.append(Copy(shape, steps, strides, first, start * strides[axis]))
        start += shape[axis]
    return copies


def whole(graph: Graph, op: Op) -> list[Copy]:
    """READ_VARIABLE, ASSIGN_VARIABLE: all of it."""
    tensor = graph.tensors[op.outputs[0]]
    return [Copy((tensor.elements,), (1,), (1,))]


def shift(graph: Graph, op: Op) -> list[Copy]:
    """SHIFT: the remaining values move down in the state itself, line by line; then come the new ones."""
    axis = attributes(op, g.AxisAttrs).axis
    state, new = (graph.tensors[t] for t in op.inputs)
    inside = math.prod(state.shape[axis + 1 :])
    line, added, lines = state.shape[axis] * inside, new.shape[axis] * inside, math.prod(state.shape[:axis])
    kept = line - added
    stays = [Copy((lines, kept), (line, 1), (line, 1), added)] if kept else []
    return [*stays, Copy((lines, added), (added, 1), (line, 1), 0, kept)]


def pad(graph: Graph, op: Op) -> list[Copy]:
    """PAD: the elements of the input."""
    shape = graph.tensors[op.inputs[0]].shape
    strides = row_major(graph.tensors[op.outputs[0]].shape)
    paddings = attributes(op, g.PadAttrs).paddings
    offset = sum(before * s for (before, _), s in zip(paddings, strides, strict=True))
    return [Copy(shape, row_major(shape), strides, 0, offset)]


def tile(graph: Graph, op: Op) -> list[Copy]:
    """Each dimension twice: the repetitions, which read the same again, and the input's elements."""
    multiples = attributes(op, g.TileAttrs).multiples
    shape = graph.tensors[op.inputs[0]].shape
    steps = row_major(graph.tensors[op.outputs[0]].shape)
    copy = Copy((), (), ())
    for n, times, read, written in zip(shape, multiples, row_major(shape), steps, strict=True):
        size, ins = (*copy.size, times, n), (*copy.in_stride, 0, read)
        copy = Copy(size, ins, (*copy.out_stride, n * written, written))
    return [copy]


def _elements(graph: Graph, op: Op) -> list[Copy]:
    """The copies of an operator's definition, in elements; none for one that copies nothing."""
    name = DEFS[op.kind].copies
    copies: list[Copy] = load("graph", name)(graph, op) if name else []
    return copies


def copies(graph: Graph, op: Op) -> list[Copy]:
    """The copies of a data movement operator: one per output (SPLIT) or per input (others).

    They move bytes: the bytes of larger elements are a dimension of their own.
    """
    size = graph.tensors[op.outputs[0]].dtype.size
    whole = [merge_dims(_of_bytes(copy, size)) for copy in _elements(graph, op)]
    return [part for copy in whole for part in _unroll(copy)] if op.kind is OpKind.TILE else whole


def lines(graph: Graph, op: Op) -> tuple[int, int]:
    """How many lines, rows of the innermost dimension, an operator copies; bytes of those with gaps."""
    counts = gaps = 0
    for copy in copies(graph, op):
        counts += math.prod(copy.size[:-1])
        gaps += 0 if copy.in_stride[-1] == copy.out_stride[-1] == 1 else math.prod(copy.size)
    return counts, gaps


def _unroll(copy: Copy) -> list[Copy]:
    """The same in copies of at most MAX_RANK dimensions: the smallest ones are unrolled."""
    if len(copy.size) <= MAX_RANK:
        return [copy]
    d = copy.size.index(min(copy.size))
    size, a, b = (values[:d] + values[d + 1 :] for values in (copy.size, copy.in_stride, copy.out_stride))
    parts = []
    for i in range(copy.size[d]):
        read, written = copy.in_offset + i * copy.in_stride[d], copy.out_offset + i * copy.out_stride[d]
        parts += _unroll(Copy(size, a, b, read, written))
    return parts


def _of_bytes(copy: Copy, size: int) -> Copy:
    """A copy of elements of `size` bytes as one of bytes."""
    if size == 1:
        return copy
    return Copy(
        (*copy.size, size),
        (*(size * stride for stride in copy.in_stride), 1),
        (*(size * stride for stride in copy.out_stride), 1),
        size * copy.in_offset,
        size * copy.out_offset,
    )


def copy_inside(graph: Graph, op: Op, outer: int) -> Copy:
    """The one copy of an operator that moves channels: of a row (2 `outer` dimensions) or of a pixel (3)."""
    (elements,) = _elements(graph, op)
    whole = _of_bytes(elements, graph.tensors[op.outputs[0]].dtype.size)
    size, in_stride, out_stride = (side[outer:] for side in (whole.size, whole.in_stride, whole.out_stride))
    return merge_dims(Copy(size, in_stride, out_stride, whole.in_offset, whole.out_offset))


@dataclass(frozen=True)
class Reduction:
    """Kept dimensions (in the output's order) and reduced ones, each (size, input stride)."""

    outer: tuple[tuple[int, ...], ...]
    inner: tuple[tuple[int, ...], ...]


def reduction(graph: Graph, op: Op) -> Reduction:
    """How a MEAN, a REDUCE_MAX or REDUCE_MIN walks its input."""
    axes = attributes(op, g.MeanAttrs).axes
    shape = graph.tensors[op.inputs[0]].shape
    dims = list(zip(shape, row_major(shape), strict=True))
    kept = _join_dims(d for i, d in enumerate(dims) if i not in axes) or [(1, 1)]
    reduced = _join_dims(d for i, d in enumerate(dims) if i in axes) or [(1, 1)]
    return Reduction(tuple(kept), tuple(reduced))


@dataclass(frozen=True)
class Matmul:
    """How a BATCH_MATMUL walks its operands: a box of matrices, and one matrix (see nn_matmul_geometry).

    `matrix`: rows, inner, columns, then strides of a row and a step of the first operand, of a step and
    a column of the second; all in elements.
    """

    size: tuple[int, ...]
    x_stride: tuple[int, ...]
    y_stride: tuple[int, ...]
    matrix: tuple[int, ...]


def matmul(graph: Graph, op: Op) -> Matmul:
    """How a BATCH_MATMUL walks its operands; a dimension over which one repeats itself has stride 0."""
    attrs = attributes(op, g.MatmulAttrs)
    lead = graph.tensors[op.outputs[0]].shape[:-2]
    strides = []
    for t in op.inputs:
        shape = (1,) * (len(lead) + 2 - len(graph.tensors[t].shape)) + graph.tensors[t].shape
        strides.append(tuple(0 if n == 1 else s for n, s in zip(shape[:-2], row_major(shape), strict=False)))
    (a, b), (c, d) = (graph.tensors[t].shape[-2:] for t in op.inputs)
    rows, inner, x_row, x_step = (b, a, 1, b) if attrs.adj_x else (a, b, b, 1)
    columns, y_step, y_column = (c, 1, d) if attrs.adj_y else (d, d, 1)
    return Matmul(lead, strides[0], strides[1], (rows, inner, columns, x_row, x_step, y_step, y_column))
