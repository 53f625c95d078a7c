"""The operators that are read: ONNX's name to the rule that makes int8 operators of it."""

from __future__ import annotations

from collections.abc import Callable

from buildtool.graph.onnxqdq import movement, pointwise, pools, weighted
from buildtool.graph.onnxqdq.context import Context
from buildtool.graph.onnxqdq.file import Node
from buildtool.graph.onnxqdq.values import Value
from buildtool.graph.types import OpKind

RULES: dict[str, Callable[[Context, Node], list[Value]]] = {
    "Conv": weighted.conv,
    "ConvTranspose": weighted.conv_transpose,
    "Gemm": weighted.gemm,
    "MatMul": weighted.matmul,
    "Add": pointwise.elementwise(OpKind.ADD),
    "Sub": pointwise.elementwise(OpKind.SUB),
    "Mul": pointwise.elementwise(OpKind.MUL),
    "Div": pointwise.divide,
    "Relu": pointwise.clamp,
    "Clip": pointwise.clamp,
    "LeakyRelu": pointwise.leaky_relu,
    "PRelu": pointwise.prelu,
    "Sigmoid": pointwise.unary(OpKind.LOGISTIC),
    "Tanh": pointwise.unary(OpKind.TANH),
    "HardSigmoid": pointwise.hard_sigmoid,
    "HardSwish": pointwise.unary(OpKind.HARD_SWISH),
    "Softmax": pointwise.softmax,
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
}
