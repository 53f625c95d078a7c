"""The operators that are read: TFLite's builtin code to the function that decodes it."""

from __future__ import annotations

from collections.abc import Callable

from buildtool.graph.tflite import (
    arranging,
    comparing,
    movement,
    pointwise,
    recurrent,
    reducing,
    weighted,
)
from buildtool.graph.tflite.opview import Chain, Decoded, Folded, OpView
from buildtool.graph.tflite.schema import tflite
from buildtool.graph.types import OpKind

_B = tflite.BuiltinOperator


def _plain(kind: OpKind) -> Callable[[OpView], Decoded]:
    """A decoder of an operator of one input without parameters."""

    def decode(view: OpView) -> Decoded:
        return view.decoded(kind)

    return decode


DECODERS: dict[int, Callable[[OpView], Decoded | Chain | Folded]] = {
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
    _B.ABS: _plain(OpKind.ABS),
    _B.EXP: _plain(OpKind.EXP),
    _B.LOG: _plain(OpKind.LOG),
    _B.GELU: pointwise.gelu,
    _B.NEG: _plain(OpKind.NEG),
    _B.SQRT: _plain(OpKind.SQRT),
    _B.RSQRT: _plain(OpKind.RSQRT),
    _B.ELU: _plain(OpKind.ELU),
    _B.RELU_N1_TO_1: _plain(OpKind.RELU_N1_TO_1),
    _B.RELU_0_TO_1: _plain(OpKind.RELU_0_TO_1),
    _B.MAXIMUM: comparing.pair(OpKind.MAXIMUM),
    _B.MINIMUM: comparing.pair(OpKind.MINIMUM),
    _B.SQUARED_DIFFERENCE: comparing.pair(OpKind.SQUARED_DIFFERENCE),
    _B.DIV: comparing.div,
    _B.EQUAL: comparing.pair(OpKind.EQUAL),
    _B.NOT_EQUAL: comparing.pair(OpKind.NOT_EQUAL),
    _B.LESS: comparing.pair(OpKind.LESS),
    _B.LESS_EQUAL: comparing.pair(OpKind.LESS_EQUAL),
    _B.GREATER: comparing.pair(OpKind.GREATER),
    _B.GREATER_EQUAL: comparing.pair(OpKind.GREATER_EQUAL),
    _B.LOGICAL_AND: comparing.pair(OpKind.LOGICAL_AND),
    _B.LOGICAL_OR: comparing.pair(OpKind.LOGICAL_OR),
    _B.LOGICAL_NOT: _plain(OpKind.LOGICAL_NOT),
    _B.SELECT: comparing.select,
    _B.SELECT_V2: comparing.select_v2,
    _B.L2_NORMALIZATION: comparing.l2_normalization,
    _B.LOG_SOFTMAX: _plain(OpKind.LOG_SOFTMAX),
    _B.QUANTIZE: _plain(OpKind.QUANTIZE),
    _B.CAST: _plain(OpKind.CAST),
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
    _B.SVDF: recurrent.svdf,
    _B.UNIDIRECTIONAL_SEQUENCE_LSTM: recurrent.lstm,
    _B.PACK: arranging.pack,
    _B.UNPACK: arranging.unpack,
    _B.SPLIT_V: arranging.split_v,
    _B.REVERSE_V2: arranging.reverse_v2,
    _B.GATHER: arranging.gather,
    _B.GATHER_ND: arranging.gather_nd,
    _B.TILE: arranging.tile,
    _B.BROADCAST_TO: arranging.broadcast_to,
    _B.DEPTH_TO_SPACE: arranging.depth_to_space,
    _B.SPACE_TO_DEPTH: arranging.space_to_depth,
    _B.SPACE_TO_BATCH_ND: arranging.space_to_batch_nd,
    _B.BATCH_TO_SPACE_ND: arranging.batch_to_space_nd,
    _B.FILL: arranging.fill,
    _B.REDUCE_MAX: reducing.reduce_max,
    _B.REDUCE_MIN: reducing.reduce_min,
    _B.ARG_MAX: reducing.arg_max,
    _B.ARG_MIN: reducing.arg_min,
    _B.BATCH_MATMUL: reducing.batch_matmul,
}

# Operators that are read with int16 activations (16x8 quantisation), too.
INT16 = frozenset(
    {
        *(_B.CONV_2D, _B.DEPTHWISE_CONV_2D, _B.FULLY_CONNECTED),
        *(_B.ADD, _B.SUB, _B.MUL, _B.MEAN, _B.AVERAGE_POOL_2D, _B.MAX_POOL_2D),
        *(_B.SOFTMAX, _B.LOGISTIC, _B.TANH, _B.RELU, _B.RELU6, _B.LEAKY_RELU),
        *(_B.PAD, _B.PADV2, _B.MIRROR_PAD, _B.RESHAPE, _B.SQUEEZE, _B.EXPAND_DIMS, _B.TRANSPOSE),
        *(_B.CONCATENATION, _B.SPLIT, _B.SLICE, _B.STRIDED_SLICE),
        *(_B.RESIZE_NEAREST_NEIGHBOR, _B.RESIZE_BILINEAR),
        *(_B.QUANTIZE, _B.DEQUANTIZE, _B.CAST),
    }
)
# Element-wise operators whose int8 form LiteRT's reference kernels lack, or compute otherwise than they say.
NO_INT8: dict[int, str] = {
    _B.SQUARE: "LiteRT's kernel takes no int8; use MUL of a tensor by itself",
    _B.ADD_N: "LiteRT's kernel takes no int8; use ADD of two tensors at a time",
    _B.POW: "LiteRT's kernel takes no int8; use MUL for a square, SQRT for a root",
    _B.FLOOR: "LiteRT's kernel takes no int8",
    _B.CEIL: "LiteRT's kernel takes no int8",
    _B.ROUND: "LiteRT's kernel takes no int8",
    _B.SIN: "LiteRT's kernel takes no int8",
    _B.COS: "LiteRT's kernel takes no int8",
    _B.SIGN: "LiteRT's kernel takes no int8",
    _B.ZEROS_LIKE: "LiteRT's kernel takes no int8",
    _B.CUMSUM: "LiteRT's kernel takes no int8",
    _B.SUM: "LiteRT's reference kernel takes the bytes for uint8; use MEAN, the scale divided by the count",
    _B.SHAPE: "it gives integers, which are folded where a parameter reads them",
    _B.RANK: "it gives integers, which are folded where a parameter reads them",
    _B.RANGE: "it takes integers, and is folded where a parameter reads it",
    _B.BROADCAST_ARGS: "it takes integers, and is folded where a parameter reads it",
}
# Operators whose int16 form LiteRT lacks.
NO_INT16: dict[int, str] = dict.fromkeys(
    (
        *(_B.ELU, _B.RELU_N1_TO_1, _B.RELU_0_TO_1, _B.HARD_SWISH),
        *(_B.SQUARED_DIFFERENCE, _B.L2_NORMALIZATION, _B.LOG_SOFTMAX),
        *(_B.LOGICAL_AND, _B.LOGICAL_OR, _B.LOGICAL_NOT),
        *(_B.ARG_MAX, _B.ARG_MIN, _B.DEPTH_TO_SPACE, _B.SPACE_TO_DEPTH),
        *(_B.SVDF, _B.UNIDIRECTIONAL_SEQUENCE_LSTM),
    ),
    "LiteRT's kernel takes no int16",
)
# Operators that run another subgraph.
CONTROL_FLOW = frozenset(
    {_B.CALL, _B.IF, _B.WHILE, _B.STABLEHLO_WHILE, _B.STABLEHLO_REDUCE, _B.STABLEHLO_SORT}
)
# Operators that name, initialise, read and assign variables, which become states (see `variables`).
VARIABLES = frozenset({_B.VAR_HANDLE, _B.READ_VARIABLE, _B.ASSIGN_VARIABLE, _B.CALL_ONCE})
# Operators that keep state between two runs, and are not read.
STATEFUL = frozenset(
    {
        _B.LSTM,
        _B.RNN,
        _B.UNIDIRECTIONAL_SEQUENCE_RNN,
        _B.BIDIRECTIONAL_SEQUENCE_RNN,
        _B.BIDIRECTIONAL_SEQUENCE_LSTM,
    }
)
