"""The operators that are read: ONNX's name to the rule that makes int8 operators of it."""

from __future__ import annotations

from collections.abc import Callable

from buildtool.graph.onnxqdq import (
    activations,
    affine,
    arranging,
    elementwise,
    extremes,
    movement,
    pools,
    weighted,
)
from buildtool.graph.onnxqdq.context import Context
from buildtool.graph.onnxqdq.file import Node
from buildtool.graph.onnxqdq.values import Value
from buildtool.graph.types import Attrs, OpKind, SoftmaxAttrs

RULES: dict[str, Callable[[Context, Node], list[Value]]] = {
    "Conv": weighted.conv,
    "ConvTranspose": weighted.conv_transpose,
    "Gemm": weighted.gemm,
    "MatMul": arranging.matmul,
    "BatchNormalization": affine.batch_normalization,
    "Add": elementwise.elementwise(OpKind.ADD),
    "Sub": elementwise.elementwise(OpKind.SUB),
    "Mul": activations.multiply,
    "Div": elementwise.divide,
    "Relu": activations.clamp,
    "Clip": activations.clamp,
    "LeakyRelu": activations.leaky_relu,
    "Abs": activations.unary(OpKind.ABS),
    "Exp": activations.unary(OpKind.EXP),
    "Log": activations.unary(OpKind.LOG),
    "Gelu": activations.gelu,
    "Sqrt": activations.unary(OpKind.SQRT),
    "Elu": activations.elu,
    "Neg": extremes.negated,
    "Reciprocal": extremes.reciprocal,
    "Max": extremes.extreme(OpKind.MAXIMUM),
    "Min": extremes.extreme(OpKind.MINIMUM),
    "Sum": extremes.summed,
    "PRelu": activations.prelu,
    "Sigmoid": activations.unary(OpKind.LOGISTIC),
    "Tanh": activations.unary(OpKind.TANH),
    "HardSigmoid": activations.hard_sigmoid,
    "HardSwish": activations.unary(OpKind.HARD_SWISH),
    "Softmax": activations.softmax(OpKind.SOFTMAX, SoftmaxAttrs()),
    "LogSoftmax": activations.softmax(OpKind.LOG_SOFTMAX, Attrs()),
    "MaxPool": pools.max_pool,
    "GlobalMaxPool": pools.global_max_pool,
    "AveragePool": pools.average_pool,
    "GlobalAveragePool": pools.global_average_pool,
    "ReduceMean": pools.reduce_mean,
    "Resize": pools.resize,
    "Reshape": movement.reshape,
    "Flatten": movement.reshape,
    "Squeeze": movement.reshape,
    "Unsqueeze": movement.reshape,
    "Identity": movement.reshape,
    "Dropout": movement.reshape,
    "Transpose": movement.transpose,
    "DepthToSpace": movement.depth_to_space,
    "SpaceToDepth": movement.depth_to_space,
    "Concat": movement.concat,
    "Split": movement.split,
    "Slice": movement.slice_,
    "Pad": movement.pad,
    "Gather": arranging.gather,
    "Tile": arranging.tile,
    "Expand": arranging.expand,
    "ReduceMax": arranging.extreme(OpKind.REDUCE_MAX),
    "ReduceMin": arranging.extreme(OpKind.REDUCE_MIN),
    "ArgMax": arranging.arg_extreme(OpKind.ARG_MAX),
    "ArgMin": arranging.arg_extreme(OpKind.ARG_MIN),
}
