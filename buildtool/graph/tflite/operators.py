"""The operators that are read: TFLite's builtin code to the function that decodes it."""

from __future__ import annotations

from collections.abc import Callable

from buildtool.graph.tflite import movement, pointwise, weighted
from buildtool.graph.tflite.opview import Decoded, OpView
from buildtool.graph.tflite.schema import tflite
from buildtool.graph.types import OpKind

_B = tflite.BuiltinOperator


def _plain(kind: OpKind) -> Callable[[OpView], Decoded]:
    """A decoder of an operator of one input without parameters."""

    def decode(view: OpView) -> Decoded:
        return view.decoded(kind)

    return decode


DECODERS: dict[int, Callable[[OpView], Decoded]] = {
    _B.CONV_2D: weighted.conv_2d,
    _B.DEPTHWISE_CONV_2D: weighted.depthwise_conv_2d,
    _B.TRANSPOSE_CONV: weighted.transpose_conv,
    _B.FULLY_CONNECTED: weighted.fully_connected,
    _B.AVERAGE_POOL_2D: weighted.average_pool_2d,
    _B.MAX_POOL_2D: weighted.max_pool_2d,
    _B.ADD: pointwise.add,
    _B.SUB: pointwise.sub,
    _B.MUL: pointwise.mul,
    _B.MEAN: pointwise.mean,
    _B.SOFTMAX: pointwise.softmax,
    _B.LEAKY_RELU: pointwise.leaky_relu,
    _B.PRELU: pointwise.prelu,
    _B.RESIZE_NEAREST_NEIGHBOR: pointwise.resize_nearest_neighbor,
    _B.RESIZE_BILINEAR: pointwise.resize_bilinear,
    _B.LOGISTIC: _plain(OpKind.LOGISTIC),
    _B.TANH: _plain(OpKind.TANH),
    _B.HARD_SWISH: _plain(OpKind.HARD_SWISH),
    _B.RELU: _plain(OpKind.RELU),
    _B.RELU6: _plain(OpKind.RELU6),
    _B.QUANTIZE: _plain(OpKind.QUANTIZE),
    _B.DEQUANTIZE: _plain(OpKind.DEQUANTIZE),
    _B.PAD: movement.pad,
    _B.PADV2: movement.pad_v2,
    _B.MIRROR_PAD: movement.mirror_pad,
    _B.RESHAPE: movement.reshape,
    _B.SQUEEZE: movement.squeeze,
    _B.EXPAND_DIMS: movement.expand_dims,
    _B.TRANSPOSE: movement.transpose,
    _B.CONCATENATION: movement.concatenation,
    _B.SPLIT: movement.split,
    _B.SLICE: movement.slice_,
    _B.STRIDED_SLICE: movement.strided_slice,
}

# Operators that run another subgraph.
CONTROL_FLOW = frozenset(
    {_B.CALL, _B.IF, _B.WHILE, _B.CALL_ONCE, _B.STABLEHLO_WHILE, _B.STABLEHLO_REDUCE, _B.STABLEHLO_SORT}
)
# Operators that keep state between two runs.
STATEFUL = frozenset(
    {
        _B.LSTM,
        _B.RNN,
        _B.SVDF,
        _B.UNIDIRECTIONAL_SEQUENCE_RNN,
        _B.UNIDIRECTIONAL_SEQUENCE_LSTM,
        _B.BIDIRECTIONAL_SEQUENCE_RNN,
        _B.BIDIRECTIONAL_SEQUENCE_LSTM,
        _B.VAR_HANDLE,
        _B.READ_VARIABLE,
        _B.ASSIGN_VARIABLE,
    }
)
