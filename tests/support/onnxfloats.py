"""ONNX operators that the reader takes in float32, each on operands that nothing quantised.

CASES[name](net, x): adds the operator to a Qdq, on the float tensor `x`, and returns its result's name.
`run(model, evaluate)` returns the largest distance of our results from those of another evaluator.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from onnxnets import Qdq

from buildtool.graph import reference
from buildtool.graph.onnx.reader import read_qdq
from buildtool.graph.rewrite import rewrite
from buildtool.graph.types import Graph

SHAPE = (1, 4, 6, 5)
OPSET = 20  # the first one with Gelu


def _on(kind: str, *more, **attributes) -> Callable[[Qdq, str], str]:
    return lambda net, x: net.node(kind, [x, *more], **attributes)


def _positive(kind: str, *more) -> Callable[[Qdq, str], str]:
    return lambda net, x: net.node(kind, [net.node("Abs", [x]), *more])


def _normal(net: Qdq, *shape: int) -> str:
    return net.const(net.rng.normal(size=shape), np.float32)


def _normed(kind: str, *shape: int, **attributes) -> Callable[[Qdq, str], str]:
    return lambda net, x: net.node(kind, [x, _normal(net, *shape), _normal(net, *shape)], **attributes)


def _batch_norm(net: Qdq, x: str) -> str:
    variance = net.const(np.abs(net.rng.normal(size=4)) + 0.1, np.float32)
    return net.node("BatchNormalization", [x, *(_normal(net, 4) for _ in range(3)), variance])


def _decomposed(net: Qdq, x: str) -> str:
    """A layer normalisation as exporters below opset 17 write it."""
    centred = net.node("Sub", [x, net.node("ReduceMean", [x, [-1]])])
    variance = net.node("ReduceMean", [net.node("Pow", [centred, 2.0]), [-1]])
    y = net.node("Div", [centred, net.node("Sqrt", [net.node("Add", [variance, 1e-5])])])
    return net.node("Add", [net.node("Mul", [y, _normal(net, 5)]), _normal(net, 5)])


def _halves(net: Qdq, x: str) -> str:
    a, b = net.node("Split", [x], 2, axis=1, num_outputs=2)
    return net.node("Concat", [net.node("Sub", [b, a]), _normal(net, 1, 1, 6, 5), a], axis=1)


def _attention(net: Qdq, x: str) -> str:
    scores = net.node("MatMul", [x, net.node("Transpose", [x], perm=[0, 1, 3, 2])])
    return net.node("MatMul", [net.node("Softmax", [scores]), x])


def _numbers(net: Qdq, x: str) -> str:
    """Operators on one number, without dimensions, and on constants of as many or more dimensions."""
    y = net.node("Softplus", [net.node("Mul", [net.node("ReduceSum", [x], keepdims=0), 0.5])])
    y = net.node("Clip", [net.node("Min", [net.node("Add", [y, 1.5]), 90.0]), 0.25, 70.0])
    return net.node("Sub", [net.const([[0.5, -2.0]], np.float32), y])


def _convolved(net: Qdq, x: str) -> str:
    return net.node("Conv", [x, _normal(net, 6, 2, 3, 3), _normal(net, 6)], group=2, pads=[1, 0, 1, 1])


def _depthwise(net: Qdq, x: str) -> str:
    return net.node("Conv", [x, _normal(net, 8, 1, 3, 3)], group=4, strides=[2, 1])


def _dense(net: Qdq, x: str) -> str:
    flat = net.node("Flatten", [x])
    return net.node("Gemm", [flat, _normal(net, 7, 120), _normal(net, 7)], transB=1)


FLOAT_UNITS = 8  # upper limit for the distance between two evaluators, see docs/reference/onnx.md
# Operators of one rounding, or whose sums are short: every evaluator has the same bits.
EXACT = frozenset(
    """Abs Neg LeakyRelu Relu Flatten Sqrt Div Add Sub Mul Max Min ReduceMax Transpose Slice Pad Gather Tile
    DepthToSpace MaxPool GlobalMaxPool PRelu Clip Reciprocal""".split()
)
_DOUBLED = [1.0, 1.0, 2.0, 2.0]
_FLOOR = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
CASES: dict[str, Callable[[Qdq, str], str]] = {
    **{
        kind: _on(kind)
        for kind in ("Abs", "Neg", "Exp", "Sigmoid", "Tanh", "Erf", "HardSigmoid", "HardSwish")
    },
    **{kind: _on(kind) for kind in ("Elu", "LeakyRelu", "Relu", "Gelu", "Softmax", "LogSoftmax", "Flatten")},
    **{kind: _positive(kind) for kind in ("Sqrt", "Log")},
    **{kind: _positive(kind, 0.7) for kind in ("Div", "Pow")},
    **{kind: _on(kind, 0.3) for kind in ("Add", "Sub", "Mul", "Max", "Min")},
    **{
        kind: _on(kind, [-1])
        for kind in ("ReduceMean", "ReduceSum", "ReduceMax", "ReduceL2", "ReduceSumSquare")
    },
    **{kind: _on(kind) for kind in ("GlobalAveragePool", "GlobalMaxPool")},
    **{kind: _on(kind) for kind in ("Softplus", "Softsign", "Mish", "Swish")},
    "Swish of another slope": _on("Swish", alpha=1.7),
    "Gelu with tanh": _on("Gelu", approximate="tanh"),
    "Pow 2": _on("Pow", 2.0),
    "Pow 3": _on("Pow", 3.0),
    "Pow that adds a dimension": _on("Pow", [[[[[2.0]]]]]),
    "ReduceSumSquare over nothing": _on("ReduceSumSquare", noop_with_empty_axes=1),
    "numbers without dimensions": _numbers,
    "a number as the result": lambda net, x: net.node("Exp", [net.node("ReduceMax", [x], keepdims=0)]),
    "Reciprocal": lambda net, x: net.node("Reciprocal", [net.node("Add", [net.node("Abs", [x]), 0.1])]),
    "Div of tensors": lambda net, x: net.node("Div", [x, net.node("Add", [net.node("Abs", [x]), 0.1])]),
    "Div of a number": lambda net, x: net.node("Div", [net.const(3.0, np.float32), net.node("Exp", [x])]),
    "Add of a row": lambda net, x: net.node("Add", [_normal(net, 4, 1, 1), x]),
    "PRelu": lambda net, x: net.node("PRelu", [x, _normal(net, 4, 1, 1)]),
    "Softmax over channels": _on("Softmax", axis=1),
    "Clip": _on("Clip", -0.5, 1.5),
    "Clip to 6": _on("Clip", 0.0, 6.0),
    "ReduceMean over rows": _on("ReduceMean", [2, 3], keepdims=0),
    "LayerNormalization": _normed("LayerNormalization", 5),
    "LayerNormalization of images": _normed("LayerNormalization", 4, 6, 5, axis=1),
    "layer normalisation in parts": _decomposed,
    "InstanceNormalization": _normed("InstanceNormalization", 4),
    "RMSNormalization": lambda net, x: net.node("RMSNormalization", [x, _normal(net, 5)]),
    "GroupNormalization": _normed("GroupNormalization", 4, num_groups=2),
    "GroupNormalization before opset 21": _normed("GroupNormalization", 2, num_groups=2),
    "BatchNormalization": _batch_norm,
    "Sum": lambda net, x: net.node("Sum", [x, _normal(net, 5), x]),
    "Cast": _on("Cast", to=1),
    "Split and Concat": _halves,
    "Transpose": _on("Transpose", perm=[0, 3, 1, 2]),
    "Slice": _on("Slice", [1], [5], [2], [2]),
    "Pad": _on("Pad", [0, 0, 1, 0, 0, 0, 0, 2], -2.5),
    "Gather": _on("Gather", [2, 0, 3], axis=1),
    "Tile": _on("Tile", [1, 1, 2, 1]),
    "DepthToSpace": _on("DepthToSpace", blocksize=2),
    "MaxPool": _on("MaxPool", kernel_shape=[3, 2], strides=[2, 1], pads=[1, 0, 1, 0]),
    "AveragePool": _on("AveragePool", kernel_shape=[2, 2]),
    "Resize": _on("Resize", "", _DOUBLED, mode="linear"),
    "Resize to the nearest": _on("Resize", "", _DOUBLED, mode="nearest", **_FLOOR),
    "attention": _attention,
    "Conv": _convolved,
    "Conv of each channel": _depthwise,
    "Gemm": _dense,
}


def network(name: str, seed: int = 1):
    """Returns a whole float network: the operator on the network input's negative."""
    opset = {"RMSNormalization": 23, "GroupNormalization": 21}.get(
        name, 24 if name.startswith("Swish") else OPSET
    )
    net = Qdq(SHAPE, seed=seed, opset=opset)
    net.nodes.clear()
    net.constants.clear()
    return net.model([CASES[name](net, net.node("Neg", ["image"]))])


def read_floats(model) -> Graph:
    """Returns the graph as it is planned."""
    return rewrite(read_qdq(model.SerializeToString(), path="net.onnx"))


def distance(model, evaluate, seed: int = 2) -> float:
    """Returns how far our results are from those that `evaluate(model, {input: floats})` returns.

    In units in the last place of the largest magnitude of the result.
    """
    image = (np.random.default_rng(seed).normal(size=SHAPE) * 2).astype(np.float32)
    (theirs,) = evaluate(model, {"image": image})
    graph = read_floats(model)
    (ours,) = (reference.execute(graph, [image.transpose(0, 2, 3, 1)])[t] for t in graph.outputs)
    ours = ours.transpose(0, 3, 1, 2) if ours.ndim == 4 else ours
    assert ours.shape == theirs.shape
    return units(ours, theirs)


def units(ours, theirs) -> float:
    """Returns the largest distance, in units in the last place of the largest magnitude."""
    apart = np.abs(ours.astype(np.float64) - theirs).max(initial=0)
    return float(apart / np.spacing(np.abs(theirs).max(initial=0).astype(np.float32)))
