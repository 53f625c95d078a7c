"""How copies (TRANSPOSE, SLICE, SPLIT, CONCATENATION, ...) and reductions walk memory: sizes and strides.

Each operator that only copies has a function here, which describes its work as strided copies (`Copy`) of
elements. `copies` calls the right one, and converts the result to bytes.
"""

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
    """A strided copy over a box of indices i.

    out[out_offset + sum(i*out_stride)] = in[in_offset + sum(i*in_stride)]. Strides and offsets are in bytes;
    in the functions for single operators they are in elements.
    """

    size: tuple[int, ...]
    in_stride: tuple[int, ...]
    out_stride: tuple[int, ...]
    in_offset: int = 0
    out_offset: int = 0


def row_major(shape: Sequence[int]) -> tuple[int, ...]:
    """Returns the strides of a row-major array of `shape`, in elements."""
    strides = [1] * len(shape)
    for i in range(len(shape) - 2, -1, -1):
        strides[i] = strides[i + 1] * shape[i + 1]
    return tuple(strides)


def merge_dims(copy: Copy) -> Copy:
    """Returns an equal copy without dimensions of one element and with contiguous dimensions merged."""
    dims = _join_dims(zip(copy.size, copy.in_stride, copy.out_stride, strict=True)) or [(1, 1, 1)]
    size, in_stride, out_stride = zip(*dims, strict=True)
    return Copy(size, in_stride, out_stride, copy.in_offset, copy.out_offset)


def _join_dims(dims: Iterable[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Drops dimensions of one element and merges contiguous ones. A dimension is (size, *strides)."""
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
    """Describes a TRANSPOSE, or a shuffle of channels, as one strided copy."""
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
    """Describes a SLICE or STRIDED_SLICE as one strided copy."""
    attrs = attributes(op, g.SliceAttrs)
    strides = row_major(graph.tensors[op.inputs[0]].shape)
    offset = sum(b * s for b, s in zip(attrs.begin, strides, strict=True))
    steps = tuple(n * s for n, s in zip(attrs.stride, strides, strict=True))
    return [Copy(attrs.extent, steps, row_major(attrs.extent), offset)]


def split(graph: Graph, op: Op) -> list[Copy]:
    """Describes a SPLIT as strided copies, one for each output."""
    axis = attributes(op, g.AxisAttrs).axis
    strides = row_major(graph.tensors[op.inputs[0]].shape)
    copies, start = [], 0
    for t in op.outputs:
        shape = graph.tensors[t].shape
        copies.append(Copy(shape, strides, row_major(shape), start * strides[axis]))
        start += shape[axis]
    return copies


def concatenation(graph: Graph, op: Op) -> list[Copy]:
    """Describes a CONCATENATION as strided copies, one for each operand."""
    axis = attributes(op, g.AxisAttrs).axis
    strides = row_major(graph.tensors[op.outputs[0]].shape)
    copies, start = [], 0
    for t in op.inputs:
        shape, part = graph.tensors[t].shape, parts(graph).get(t)
        steps = row_major(shape if part is None else graph.tensors[part.whole].shape)
        first = 0 if part is None else part.first  # the channels are the last dimension
        copies.append(Copy(shape, steps, strides, first, start * strides[axis]))
        start += shape[axis]
    return copies


def whole(graph: Graph, op: Op) -> list[Copy]:
    """Describes a READ_VARIABLE or ASSIGN_VARIABLE as one copy of all elements, in order."""
    tensor = graph.tensors[op.outputs[0]]
    return [Copy((tensor.elements,), (1,), (1,))]


def shift(graph: Graph, op: Op) -> list[Copy]:
    """Describes a SHIFT as strided copies. Its state is lines: the axis with the dimensions after it.

    The first copy moves the remaining values to the start of each line; it is absent if no values remain. The
    last copy writes the new values after them.
    """
    axis = attributes(op, g.AxisAttrs).axis
    state, new = (graph.tensors[t] for t in op.inputs)
    inside = math.prod(state.shape[axis + 1 :])
    line, added, lines = state.shape[axis] * inside, new.shape[axis] * inside, math.prod(state.shape[:axis])
    rest = line - added
    moves = [Copy((lines, rest), (line, 1), (line, 1), added)] if rest else []
    return [*moves, Copy((lines, added), (added, 1), (line, 1), 0, rest)]


def pad(graph: Graph, op: Op) -> list[Copy]:
    """Describes a PAD as one strided copy of the input's elements. It does not include the filling."""
    shape = graph.tensors[op.inputs[0]].shape
    strides = row_major(graph.tensors[op.outputs[0]].shape)
    paddings = attributes(op, g.PadAttrs).paddings
    offset = sum(before * s for (before, _), s in zip(paddings, strides, strict=True))
    return [Copy(shape, row_major(shape), strides, 0, offset)]


def tile(graph: Graph, op: Op) -> list[Copy]:
    """Describes a TILE as one strided copy with two dimensions for each dimension of the input.

    The first one counts the repetitions (input stride 0), and the second one the input's elements.
    """
    multiples = attributes(op, g.TileAttrs).multiples
    shape = graph.tensors[op.inputs[0]].shape
    steps = row_major(graph.tensors[op.outputs[0]].shape)
    copy = Copy((), (), ())
    for n, times, read, written in zip(shape, multiples, row_major(shape), steps, strict=True):
        size, ins = (*copy.size, times, n), (*copy.in_stride, 0, read)
        copy = Copy(size, ins, (*copy.out_stride, n * written, written))
    return [copy]


def _element_copies(graph: Graph, op: Op) -> list[Copy]:
    """Returns an operator's copies in elements, or [] if it copies nothing."""
    name = DEFS[op.kind].copies
    copies: list[Copy] = load("graph", name)(graph, op) if name else []
    return copies


def copies(graph: Graph, op: Op) -> list[Copy]:
    """Returns the strided copies that an operator makes: one per output of a SPLIT, else one per input.

    Sizes and strides are in bytes. If elements have several bytes, these are a dimension of their own. A TILE
    of many dimensions is divided into several copies.
    """
    size = graph.tensors[op.outputs[0]].dtype.size
    whole = [merge_dims(_in_bytes(copy, size)) for copy in _element_copies(graph, op)]
    return [part for copy in whole for part in _unroll(copy)] if op.kind is OpKind.TILE else whole


def lines(graph: Graph, op: Op) -> tuple[int, int]:
    """Returns (the number of innermost rows that an operator copies, the bytes that it copies one by one).

    A row is the innermost dimension of a copy. Its bytes are copied one by one unless they are adjacent in
    both tensors.
    """
    counts = gaps = 0
    for copy in copies(graph, op):
        counts += math.prod(copy.size[:-1])
        gaps += 0 if copy.in_stride[-1] == copy.out_stride[-1] == 1 else math.prod(copy.size)
    return counts, gaps


def _unroll(copy: Copy) -> list[Copy]:
    """Splits a copy along its smallest dimensions into copies of at most MAX_RANK dimensions."""
    if len(copy.size) <= MAX_RANK:
        return [copy]
    d = copy.size.index(min(copy.size))
    size, a, b = (values[:d] + values[d + 1 :] for values in (copy.size, copy.in_stride, copy.out_stride))
    parts = []
    for i in range(copy.size[d]):
        read, written = copy.in_offset + i * copy.in_stride[d], copy.out_offset + i * copy.out_stride[d]
        parts += _unroll(Copy(size, a, b, read, written))
    return parts


def _in_bytes(copy: Copy, size: int) -> Copy:
    """Returns `copy`, which counts in elements of `size` bytes, as a copy that counts in bytes."""
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
    """Returns the strided copy, in bytes, that an operator on channels makes within one row or one pixel.

    `outer`: the number of outer dimensions that are left out, 2 for a row and 3 for a pixel.
    """
    (elements,) = _element_copies(graph, op)
    whole = _in_bytes(elements, graph.tensors[op.outputs[0]].dtype.size)
    size, in_stride, out_stride = (side[outer:] for side in (whole.size, whole.in_stride, whole.out_stride))
    return merge_dims(Copy(size, in_stride, out_stride, whole.in_offset, whole.out_offset))


def planes_inside(graph: Graph, op: Op, columns: int) -> Copy:
    """Returns the strided copy, in bytes, of `columns` pixels of one row to the planes of the channels.

    A plane has one channel of all pixels of the image.
    """
    channels = graph.tensors[op.inputs[0]].nhwc[3]
    plane = graph.tensors[op.inputs[0]].elements // channels
    copy = Copy((channels, columns), (1, channels), (plane, 1))
    return merge_dims(_in_bytes(copy, graph.tensors[op.outputs[0]].dtype.size))


@dataclass(frozen=True)
class Reduction:
    """How a reduction walks its input, in dimensions of (size, input stride).

    `outer` are the kept dimensions, in the output's order. `inner` are the reduced ones.
    """

    outer: tuple[tuple[int, ...], ...]
    inner: tuple[tuple[int, ...], ...]


def reduction(graph: Graph, op: Op) -> Reduction:
    """Returns how a MEAN, REDUCE_MAX or REDUCE_MIN walks its input."""
    axes = attributes(op, g.MeanAttrs).axes
    shape = graph.tensors[op.inputs[0]].shape
    dims = list(zip(shape, row_major(shape), strict=True))
    kept = _join_dims(d for i, d in enumerate(dims) if i not in axes) or [(1, 1)]
    reduced = _join_dims(d for i, d in enumerate(dims) if i in axes) or [(1, 1)]
    return Reduction(tuple(kept), tuple(reduced))


@dataclass(frozen=True)
class Matmul:
    """How a BATCH_MATMUL walks its operands (see nn_matmul_geometry). All strides are in elements.

    `size`: the leading dimensions, which count the products of two matrices.
    `x_stride`, `y_stride`: the strides of the first and the second operand in these dimensions.
    `matrix`: one product. It has the numbers of rows, inner elements and columns, then the strides of a row
    and of an inner element in the first operand, and of an inner element and of a column in the second one.
    """

    size: tuple[int, ...]
    x_stride: tuple[int, ...]
    y_stride: tuple[int, ...]
    matrix: tuple[int, ...]


def matmul(graph: Graph, op: Op) -> Matmul:
    """Returns how a BATCH_MATMUL walks its operands. A broadcast dimension has stride 0."""
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
