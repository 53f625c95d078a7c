"""Which input rows and columns an operator needs, along one axis or through a chain of operators."""

from __future__ import annotations

from dataclasses import dataclass

from buildtool.graph.types import (
    TABLE_KINDS,
    AxisAttrs,
    ConvAttrs,
    Graph,
    MeanAttrs,
    Op,
    OpKind,
    PoolAttrs,
)
from buildtool.target.types import KernelVariant, Windows

ROW_BY_ROW = TABLE_KINDS | {OpKind.ADD, OpKind.SUB, OpKind.MUL, OpKind.PRELU, OpKind.SOFTMAX}
MOST_ROWS = 1 << 14
WINDOWED = frozenset({OpKind.CONV_2D, OpKind.DEPTHWISE_CONV_2D, OpKind.AVERAGE_POOL_2D, OpKind.MAX_POOL_2D})


@dataclass(frozen=True)
class Axis:
    """Output element q reads input elements [q * stride - pad, q * stride - pad + kernel).

    `kernel` counts the gaps of a dilation.
    """

    kernel: int = 1
    stride: int = 1
    pad: int = 0

    def low(self, q: int) -> int:
        """The first input element that output element q reads; may be negative."""
        return q * self.stride - self.pad

    def high(self, q: int) -> int:
        """One past the last input element that output elements below q read; may be too large."""
        return (q - 1) * self.stride - self.pad + self.kernel

    def extent(self, n: int) -> int:
        """Input elements that n neighbouring output elements read, padding included."""
        return (n - 1) * self.stride + self.kernel

    def after(self, earlier: Axis) -> Axis:
        """The axis through `earlier` and then this one."""
        return Axis(
            (self.kernel - 1) * earlier.stride + earlier.kernel,
            self.stride * earlier.stride,
            self.pad * earlier.stride + earlier.pad,
        )


def axes(graph: Graph, op: Op) -> tuple[Axis, Axis]:
    """Rows and columns of an operator that runs row by row (see `streams`)."""
    attrs = op.attrs
    if isinstance(attrs, ConvAttrs) and op.kind in WINDOWED:
        kernel = graph.tensors[op.inputs[1]].shape[1:3]
        spans = [(k - 1) * d + 1 for k, d in zip(kernel, attrs.dilation, strict=True)]
        return (
            Axis(spans[0], attrs.stride[0], attrs.pad.top),
            Axis(spans[1], attrs.stride[1], attrs.pad.left),
        )
    if isinstance(attrs, PoolAttrs) and not accumulates(graph, op):
        return (
            Axis(attrs.kernel[0], attrs.stride[0], attrs.pad.top),
            Axis(attrs.kernel[1], attrs.stride[1], attrs.pad.left),
        )
    return Axis(), Axis()


def accumulates(graph: Graph, op: Op) -> bool:
    """Whether the operator is a global pooling, which can be fed any part of its input in turn."""
    source = graph.tensors[op.inputs[0]]
    if len(source.shape) != 4 or source.shape[0] != 1 or source.shape[1] * source.shape[2] < 2:
        return False
    if op.kind is OpKind.MEAN:
        return isinstance(op.attrs, MeanAttrs) and op.attrs.axes == (1, 2)
    return (
        op.kind is OpKind.AVERAGE_POOL_2D
        and isinstance(op.attrs, PoolAttrs)
        and op.attrs.kernel == source.shape[1:3]
        and graph.tensors[op.outputs[0]].shape[1:3] == (1, 1)
        and (op.attrs.pad.top, op.attrs.pad.left) == (0, 0)
    )


def row_inputs(graph: Graph, op: Op) -> tuple[int, ...]:
    """The activations that an operator reads row by row (see `axes`), each once.

    What else it reads it needs as a whole for every row: operands that are repeated over rows or columns.
    """
    if op.kind in WINDOWED or accumulates(graph, op):
        return op.inputs[:1]
    image = graph.tensors[op.outputs[0]].nhwc[:3]
    found = (t for t in op.inputs if t >= 0 and not graph.tensors[t].is_constant)
    return tuple(dict.fromkeys(t for t in found if graph.tensors[t].nhwc[:3] == image))


def streams(graph: Graph, op: Op) -> bool:
    """Whether the operator can run row by row: images of batch 1, rows of output from rows of input.

    Where it is not windowed, at least one of its activations has the output's rows and columns; global
    poolings count too, concatenations of channels as well.
    """
    if accumulates(graph, op):
        return True
    result = graph.tensors[op.outputs[0]]
    if len(op.outputs) != 1 or len(result.shape) != 4 or result.shape[0] != 1:
        return False
    if op.kind in WINDOWED:
        return True
    if op.kind is OpKind.CONCATENATION:
        return op.attrs == AxisAttrs(3) and len(row_inputs(graph, op)) > 0
    return op.kind in ROW_BY_ROW and len(row_inputs(graph, op)) > 0


def by_rows(graph: Graph, op: Op, kernel: KernelVariant | None) -> bool:
    """Whether the operator can run row by row with this kernel, which may compute whole tensors only.

    Global poolings are fed part by part without their kernel. Images of more than MOST_ROWS rows run in one
    step: a plan lists its steps, and so many would take more memory than they are worth.
    """
    whole_only = kernel is not None and kernel.windows is Windows.WHOLE
    most = max(graph.tensors[op.inputs[0]].nhwc[1], graph.tensors[op.outputs[0]].nhwc[1])
    return most <= MOST_ROWS and streams(graph, op) and (not whole_only or accumulates(graph, op))


def rows(graph: Graph, op: Op) -> int:
    """Rows in which the operator is driven: its output's, or its input's if it accumulates."""
    return graph.tensors[op.inputs[0] if accumulates(graph, op) else op.outputs[0]].nhwc[1]


def columns(graph: Graph, op: Op) -> int:
    """Columns in which the operator is driven, as `rows`."""
    return graph.tensors[op.inputs[0] if accumulates(graph, op) else op.outputs[0]].nhwc[2]


def through(graph: Graph, ops: tuple[int, ...]) -> Axis:
    """The row axis from the input of the first of a chain of operators to the last one's output."""
    axis = Axis()
    for position in ops:
        axis = axes(graph, graph.ops[position])[0].after(axis)
    return axis
