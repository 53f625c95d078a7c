"""Layers as msf-CNN sees them: a chain of convolutions, nothing else; from a table or from a graph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from buildtool.base.errors import UnsupportedError
from buildtool.graph.types import ConvAttrs, DepthwiseAttrs, Graph, Op, OpKind
from buildtool.plan.schedule.receptive import streams


@dataclass(frozen=True)
class Layer:
    """A convolution of int8: `rows` x `columns` x `channels` in, `filters` channels out.

    `kernel` and `stride` are of both axes, `pad` is added on each of the four sides.
    """

    kernel: int
    stride: int
    pad: int
    channels: int
    filters: int
    rows: int
    columns: int
    depthwise: bool = False

    @property
    def rows_out(self) -> int:
        """Rows of the output."""
        return (self.rows + 2 * self.pad - self.kernel) // self.stride + 1

    @property
    def columns_out(self) -> int:
        """Columns of the output."""
        return (self.columns + 2 * self.pad - self.kernel) // self.stride + 1

    @property
    def input_bytes(self) -> int:
        """Bytes of the whole input."""
        return self.rows * self.columns * self.channels

    @property
    def output_bytes(self) -> int:
        """Bytes of the whole output."""
        return self.rows_out * self.columns_out * self.filters

    @property
    def pixel_macs(self) -> int:
        """Multiply-accumulates of one output pixel, all channels."""
        return self.filters * self.kernel**2 * (1 if self.depthwise else self.channels)

    @property
    def macs(self) -> int:
        """Multiply-accumulates of the layer run once."""
        return self.rows_out * self.columns_out * self.pixel_macs


def is_layer(graph: Graph, op: Op) -> bool:
    """Whether the model has a layer for `op`: a convolution of images of batch 1, run row by row."""
    if op.kind not in (OpKind.CONV_2D, OpKind.DEPTHWISE_CONV_2D):
        return False
    assert isinstance(op.attrs, ConvAttrs)
    kernel = graph.tensors[op.inputs[1]].shape[1:3]
    square = kernel[0] == kernel[1] and op.attrs.stride[0] == op.attrs.stride[1]
    return streams(graph, op) and square and op.attrs.dilation == (1, 1)


def layer(graph: Graph, op: Op) -> Layer:
    """The layer of `op`; the model pads both sides alike, so the larger side's padding counts.

    Raises UnsupportedError where `is_layer` is false.
    """
    if not is_layer(graph, op):
        raise UnsupportedError("is not a layer of the msf-CNN model", operator=op.place)
    assert isinstance(op.attrs, ConvAttrs)
    _, rows, columns, channels = graph.tensors[op.inputs[0]].nhwc
    kernel = graph.tensors[op.inputs[1]].shape[1]
    pad, stride = op.attrs.pad, op.attrs.stride[0]
    return Layer(
        kernel,
        stride,
        max(pad.top, pad.bottom, pad.left, pad.right),
        channels,
        graph.tensors[op.outputs[0]].shape[3],
        rows,
        columns,
        isinstance(op.attrs, DepthwiseAttrs),
    )


def chain(graph: Graph, first: int = 0) -> tuple[int, ...]:
    """Positions of the convolutions of the chain that starts at or after operator `first`.

    Element by element operators (additions of residuals, activations) in between belong to the
    convolution before them; the chain ends before anything else, and before a convolution that
    does not read what the last one made.
    """
    found: list[int] = []
    tip = -1
    for position in range(first, len(graph.ops)):
        op = graph.ops[position]
        if is_layer(graph, op):
            if found and op.inputs[0] != tip:
                break
            found.append(position)
        elif found and not (tip in op.inputs and follows(graph, op)):
            break
        if found:
            tip = op.outputs[0]
    return tuple(found)


def follows(graph: Graph, op: Op) -> bool:
    """Whether an operator works element by element on images of one shape, so that it may join a block."""
    windowed = (OpKind.CONV_2D, OpKind.DEPTHWISE_CONV_2D, OpKind.AVERAGE_POOL_2D, OpKind.MAX_POOL_2D)
    same = graph.tensors[op.inputs[0]].shape == graph.tensors[op.outputs[0]].shape
    return op.kind not in windowed and op.kind is not OpKind.MEAN and streams(graph, op) and same


def total_macs(layers: Sequence[Layer]) -> int:
    """Multiply-accumulates of the chain run layer by layer."""
    return sum(each.macs for each in layers)
