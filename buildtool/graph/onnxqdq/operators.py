"""The operators that are read: ONNX's name to the rule that makes int8 operators of it."""

from __future__ import annotations

from collections.abc import Callable

from buildtool.graph.onnxqdq import activations, affine, elementwise, movement, pools, weighted
from buildtool.graph.onnxqdq.context import Context
from buildtool.graph.onnxqdq.file import Node
from buildtool.graph.onnxqdq.values import Value
from buildtool.graph.types import OpKind

RULES: dict[str, Callable[[Context, Node], list[Value]]] = {
    "Conv": weighted.conv,
    "ConvTranspose": weighted.conv_transpose,
    "Gemm": weighted.gemm,
    "MatMul": weighted.matmul,
    "BatchNormalization": affine.batch_normalization,
    "Add": elementwise.elementwise(OpKind.ADD),
    "Sub": elementwise.elementwise(OpKind.SUB),
    "Mul": activations.multiply,
    "Div": elementwise.divide,
    "Relu": activations.clamp,
    "Clip": activations.clamp,
    "LeakyRelu": activations.leaky_relu,
    "PRelu": activations.prelu,
    "Sigmoid": activations.unary(OpKind.LOGISTIC),
    "Tanh": activations.unary(OpKind.TANH),
    "HardSigmoid": activations.hard_sigmoid,
    "HardSwish": activations.unary(OpKind.HARD_SWISH),
    "Softmax": activations.softmax,
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
