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
from buildtool.graph.ops import DEFS
from buildtool.graph.ops.types import Case
from buildtool.graph.types import Attrs, OpKind, SoftmaxAttrs

Rule = Callable[[Context, Node], list[Value]]
# What makes rules of operators that are the same function here.
_SAME: dict[Case, Callable[[OpKind], Rule]] = {
    Case.ELEMENTWISE: elementwise.elementwise,
    Case.UNARY: activations.unary,
    Case.PAIR: extremes.extreme,
    Case.EXTREME: arranging.extreme,
    Case.ARG: arranging.arg_extreme,
}
RULES: dict[str, Rule] = {
    **{found.onnx: _SAME[found.case](kind) for kind, found in DEFS.items() if found.onnx and found.case},
    "Conv": weighted.conv,
    "ConvTranspose": weighted.conv_transpose,
    "Gemm": weighted.gemm,
    "MatMul": arranging.matmul,
    "BatchNormalization": affine.batch_normalization,
    "Mul": activations.multiply,
    "Div": elementwise.divide,
    "Relu": activations.clamp,
    "Clip": activations.clamp,
    "LeakyRelu": activations.leaky_relu,
    "Gelu": activations.gelu,
    "Elu": activations.elu,
    "Neg": extremes.negated,
    "Reciprocal": extremes.reciprocal,
    "Sum": extremes.summed,
    "PRelu": activations.prelu,
    "HardSigmoid": activations.hard_sigmoid,
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
}
