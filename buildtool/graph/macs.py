"""Counts multiply-accumulates: computed outputs x taps x input channels, padded taps included."""

import math

from buildtool.graph.secondpass import repeated_ops
from buildtool.graph.types import ConvAttrs, FullyConnectedAttrs, Graph, LstmInput, MatmulAttrs, Op, OpKind


def op_macs(graph: Graph, op: Op) -> int:
    """Returns an operator's multiply-accumulates for its whole output. They are 0 for kinds without products.

    A grouped convolution counts the input channels of one group, a depthwise one counts 1. A transpose
    convolution counts every tap of every input pixel. An SVDF's filters count once per image, an LSTM's
    matrices once per step and image.
    """
    x, outputs = graph.tensors[op.inputs[0]], graph.tensors[op.outputs[0]].elements
    if op.kind is OpKind.SVDF:
        return x.shape[0] * sum(graph.tensors[t].elements for t in op.inputs[1:3])
    if op.kind is OpKind.UNIDIRECTIONAL_SEQUENCE_LSTM:
        matrices = op.inputs[LstmInput.INPUT_TO_INPUT : LstmInput.CELL_TO_INPUT]
        matrices = (*matrices, op.inputs[LstmInput.PROJECTION])
        return x.shape[0] * x.shape[1] * sum(graph.tensors[t].elements for t in matrices if t >= 0)
    if isinstance(op.attrs, MatmulAttrs):
        return outputs * x.shape[-2 if op.attrs.adj_x else -1]
    if not isinstance(op.attrs, ConvAttrs | FullyConnectedAttrs):
        return 0
    weights = graph.tensors[op.inputs[1]].shape
    if op.kind is OpKind.TRANSPOSE_CONV:  # filter OHWI
        return math.prod(x.nhwc[:3]) * math.prod(weights)
    if op.kind is OpKind.DEPTHWISE_CONV_2D:  # filter (1, H, W, channels)
        return outputs * weights[1] * weights[2]
    return outputs * math.prod(weights[1:])  # filter OHWI, I the channels of one group, or (outputs, inputs)


def pixel_macs(graph: Graph, op: Op, pixels: int) -> int:
    """Returns the multiply-accumulates of `pixels` pixels of an output, with all channels and images.

    It is exact for all kinds but TRANSPOSE_CONV, whose output pixels do not all cost the same; there it
    rounds down the mean. `pixels` may exceed the output's pixels where some are computed again.
    """
    _, rows, columns, _ = graph.tensors[op.outputs[0]].nhwc
    return op_macs(graph, op) * pixels // (rows * columns) if rows * columns else 0


def total_macs(graph: Graph) -> int:
    """Returns the multiply-accumulates of one run of the network, without second passes (recomputation).

    For a network that runs on a sliding window (see `hop`), they are those of a run on the whole window.
    """
    if graph.window is not None:
        return graph.window.macs
    again = repeated_ops(graph) if graph.second_passes else ()
    return sum(op_macs(graph, op) for position, op in enumerate(graph.ops) if position not in again)
