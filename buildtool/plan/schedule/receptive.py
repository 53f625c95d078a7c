"""Which input rows and columns an operator needs, along one axis or through a chain of operators."""

from __future__ import annotations

import numpy as np

from buildtool.graph.liveness import state_of
from buildtool.graph.ops import PIXEL_KINDS, SLIDING_KINDS, UNEVEN_KINDS
from buildtool.graph.reference.resize import bilinear_corners, nearest_indices
from buildtool.graph.types import (
    AxisAttrs,
    BlockAttrs,
    ConvAttrs,
    DType,
    FilledPoolAttrs,
    Graph,
    MeanAttrs,
    Op,
    OpKind,
    PadAttrs,
    PadMode,
    PoolAttrs,
    ResizeAttrs,
    ShuffleAttrs,
    SliceAttrs,
    TransposeAttrs,
)
from buildtool.plan.schedule.axis import Axis, table
from buildtool.target.types import KernelVariant, Windows

MOST_ROWS = 1 << 20

Range = tuple[int, int]  # [first, end) of rows or columns


def axes(graph: Graph, op: Op) -> tuple[Axis, Axis]:
    """Returns the row axis and the column axis of an operator that runs row by row (see `streams`)."""
    attrs = op.attrs
    if op.kind in UNEVEN_KINDS:
        tables: dict[int, tuple[Axis, Axis]] = graph.facts.setdefault("tables of axes", {})
        if op.outputs[0] not in tables:
            tables[op.outputs[0]] = _uneven(graph, op, 0), _uneven(graph, op, 1)
        return tables[op.outputs[0]]
    if isinstance(attrs, BlockAttrs):  # SPACE_TO_DEPTH
        return Axis(attrs.block, attrs.block), Axis(attrs.block, attrs.block)
    if isinstance(attrs, ConvAttrs) and op.kind in SLIDING_KINDS:
        kernel = graph.tensors[op.inputs[1]].shape[1:3]
        height, width = ((k - 1) * d + 1 for k, d in zip(kernel, attrs.dilation, strict=True))
    elif isinstance(attrs, PoolAttrs) and not accumulates(graph, op):
        height, width = attrs.kernel
    else:
        return Axis(), Axis()
    return Axis(height, attrs.stride[0], attrs.pad.top), Axis(width, attrs.stride[1], attrs.pad.left)


def _uneven(graph: Graph, op: Op, along: int) -> Axis:
    """Returns the axis of an operator in UNEVEN_KINDS, as a table computed as the reference kernels do it.

    `along`: 0 for the row axis, 1 for the column axis.
    """
    attrs = op.attrs
    size, out = (graph.tensors[t].nhwc[1 + along] for t in (op.inputs[0], op.outputs[0]))
    at = np.arange(out, dtype=np.int64)
    if op.kind is OpKind.TRANSPOSE_CONV:
        assert isinstance(attrs, ConvAttrs)
        kernel, stride = graph.tensors[op.inputs[1]].shape[1 + along], attrs.stride[along]
        at += (attrs.pad.top, attrs.pad.left)[along]
        # input i adds to the outputs [i * stride - pad, i * stride - pad + kernel)
        first, end = -((kernel - 1 - at) // stride), at // stride + 1
        return table(np.clip(first, 0, size), np.clip(end, 0, size))
    if isinstance(attrs, BlockAttrs):  # each input makes a block of outputs
        return table(at // attrs.block, at // attrs.block + 1)
    assert isinstance(attrs, ResizeAttrs)
    if op.kind is OpKind.RESIZE_NEAREST_NEIGHBOR:
        index = nearest_indices(size, out, attrs)
        return table(index, index + 1)
    lower, upper = bilinear_corners(graph, op, 1 + along)
    return table(lower, upper + 1)


def accumulates(graph: Graph, op: Op) -> bool:
    """Returns whether the operator is a global pooling that can read its input part by part."""
    source = graph.tensors[op.inputs[0]]
    if len(source.shape) != 4 or source.shape[0] != 1 or source.shape[1] * source.shape[2] < 2:
        return False
    if source.dtype is DType.FLOAT32:  # floats have to be added in the order of the whole tensor
        return False
    if op.kind is OpKind.MEAN:
        return isinstance(op.attrs, MeanAttrs) and op.attrs.axes == (1, 2)
    return (
        op.kind is OpKind.AVERAGE_POOL_2D
        and isinstance(op.attrs, PoolAttrs)
        and not isinstance(op.attrs, FilledPoolAttrs)
        and op.attrs.kernel == source.shape[1:3]
        and graph.tensors[op.outputs[0]].shape[1:3] == (1, 1)
        and (op.attrs.pad.top, op.attrs.pad.left) == (0, 0)
    )


def scatters(graph: Graph, op: Op) -> bool:
    """Returns whether the operator makes planes of an image's channels, and can read its input part by part.

    It is a TRANSPOSE whose output holds the first channel of all pixels, then the second channel of all
    pixels, and so on.
    """
    shape = graph.tensors[op.inputs[0]].shape
    return op.attrs == TransposeAttrs((0, 3, 1, 2)) and shape[0] == 1 < shape[1] * shape[2]


def fed_in_parts(graph: Graph, op: Op) -> bool:
    """Returns whether the operator reads its input row by row, but its output is whole: it ends a region."""
    return accumulates(graph, op) or scatters(graph, op)


def row_inputs(graph: Graph, op: Op) -> tuple[int, ...]:
    """Returns the activations that an operator reads row by row (see `axes`), each once.

    Its other operands repeat over rows or columns. It needs all of them for every row.
    """
    if op.kind in SLIDING_KINDS or op.kind in UNEVEN_KINDS or fed_in_parts(graph, op):
        return op.inputs[:1]
    image = graph.tensors[op.outputs[0]].nhwc[:3]
    activations = (t for t in op.inputs if t >= 0 and not graph.tensors[t].is_constant)
    return tuple(dict.fromkeys(t for t in activations if graph.tensors[t].nhwc[:3] == image))


def streams(graph: Graph, op: Op) -> bool:
    """Returns whether the operator can run row by row.

    Its batch has to be 1, and it has to make rows of output from rows of input. An operator without windows
    needs at least one activation that has the output's rows and columns. Global poolings, TRANSPOSEs into
    planes, concatenations and other moves of channels stream as well. An operator that writes a state does
    not: it runs alone, after all readers of the old state.
    """
    if op.outputs[0] in state_of(graph):
        return False
    if fed_in_parts(graph, op):
        return True
    result = graph.tensors[op.outputs[0]]
    if len(op.outputs) != 1 or len(result.shape) != 4 or result.shape[0] != 1:
        return False
    if op.kind in UNEVEN_KINDS:
        return True
    if op.kind in SLIDING_KINDS:
        return _meets_input(graph, op) and op.outputs[0] not in _made_of_padding(graph)
    if op.kind is OpKind.CONCATENATION:
        by_pixel = op.attrs == AxisAttrs(3)
    else:
        by_pixel = op.kind in PIXEL_KINDS or moves_channels(graph, op)
    return by_pixel and len(row_inputs(graph, op)) > 0


def _meets_input(graph: Graph, op: Op) -> bool:
    """Returns whether any window of the operator has a tap in the input, and not only in the padding."""
    source, result = (graph.tensors[t].nhwc[1:3] for t in (op.inputs[0], op.outputs[0]))
    for axis, n, outputs in zip(axes(graph, op), source, result, strict=True):
        candidates = range(1 if axis.pad < axis.kernel else outputs)  # mostly the first one meets element 0
        if not any(axis.low(q) < n and axis.low(q) + axis.kernel > 0 for q in candidates):
            return False
    return True


def _made_of_padding(graph: Graph) -> frozenset[int]:
    """Returns the outputs of windows of which operators read no pixel but those that are padding alone.

    Other windows of the same operator may meet its input, but later operators leave their pixels out. If it
    ran row by row, nothing would ask for a row of its input.
    """
    found: frozenset[int] | None = graph.facts.get("made of padding")
    if found is None:
        found = graph.facts["made of padding"] = _find_made_of_padding(graph)
    return found


def _find_made_of_padding(graph: Graph) -> frozenset[int]:
    found, needed = set[int](), dict[int, list[Range]]()  # tensor -> the rows and columns that are read

    def whole(t: int) -> list[Range]:
        return [(0, size) for size in graph.tensors[t].nhwc[1:3]]

    def add(t: int, ranges: list[Range]) -> None:
        old = needed.get(t, ranges)
        needed[t] = [(min(a[0], b[0]), max(a[1], b[1])) for a, b in zip(old, ranges, strict=True)]

    for t in graph.outputs:
        add(t, whole(t))
    for op in reversed(graph.ops):
        out = op.outputs[0]
        read = needed.get(out, whole(out))
        by_window = op.kind in SLIDING_KINDS and len(graph.tensors[out].shape) == 4
        by_pixel = not by_window and op.kind in PIXEL_KINDS and len(op.outputs) == 1
        own = row_inputs(graph, op) if by_window or by_pixel else ()
        for t in (t for t in op.inputs if t >= 0 and not graph.tensors[t].is_constant):
            if t not in own:
                add(t, whole(t))
            elif by_pixel:
                add(t, read)
            else:
                ranges = _read_by(axes(graph, op), read, graph.tensors[t].nhwc[1:3])
                if any(low >= high for low, high in ranges):
                    found.add(out)
                    ranges = whole(t)
                add(t, ranges)
    return frozenset(found)


def _read_by(along: tuple[Axis, Axis], read: list[Range], sizes: tuple[int, ...]) -> list[Range]:
    """Returns the rows and the columns of an input that ranges of an output's rows and columns read."""
    ranges = []
    for axis, (low, high), size in zip(along, read, sizes, strict=True):
        first, end = axis.read(np.array([low]), np.array([high]), size)
        ranges.append((int(first[0]), int(end[0])))
    return ranges


def by_rows(graph: Graph, op: Op, kernel: KernelVariant | None) -> bool:
    """Returns whether the operator can run row by row with this kernel.

    An operator cannot if its kernel computes whole tensors only. A global pooling can nevertheless: other
    code adds up its sums. Tensors of more than MOST_ROWS rows run in one step, because the list of a plan's
    steps would need too much memory.
    """
    whole_only = kernel is not None and kernel.windows is Windows.WHOLE
    most = max(graph.tensors[op.inputs[0]].nhwc[1], graph.tensors[op.outputs[0]].nhwc[1])
    return most <= MOST_ROWS and streams(graph, op) and (not whole_only or accumulates(graph, op))


def moves_channels(graph: Graph, op: Op) -> bool:
    """Returns whether the operator only moves channels within each pixel: it takes, adds or shuffles some."""
    attrs, source = op.attrs, graph.tensors[op.inputs[0]]
    if len(source.shape) != 4 or source.is_constant:
        return False
    if isinstance(attrs, SliceAttrs):
        same_pixels = len(graph.tensors[op.outputs[0]].shape) == 4 and attrs.extent[:3] == source.shape[:3]
        return same_pixels and attrs.stride[:3] == (1, 1, 1)
    if isinstance(attrs, PadAttrs):
        return attrs.mode is PadMode.CONSTANT and not any(map(any, attrs.paddings[:3]))
    return isinstance(attrs, ShuffleAttrs)


def rows(graph: Graph, op: Op) -> int:
    """Returns the rows that the operator loops over: of its output, or of its input if it is fed in parts."""
    return graph.tensors[op.inputs[0] if fed_in_parts(graph, op) else op.outputs[0]].nhwc[1]


def columns(graph: Graph, op: Op) -> int:
    """Returns the columns that the operator loops over: of its output, or of its input if fed in parts."""
    return graph.tensors[op.inputs[0] if fed_in_parts(graph, op) else op.outputs[0]].nhwc[2]


def through(graph: Graph, ops: tuple[int, ...]) -> Axis:
    """Returns the row axis of a chain of operators, from the first one's input to the last one's output."""
    axis = Axis()
    for position in ops:
        axis = axes(graph, graph.ops[position])[0].after(axis)
    return axis
