"""ONNX operators without an integer form: powers, norms and normalisations, as operators of float32."""

import math
from collections.abc import Sequence

import numpy as np

from buildtool.base.errors import ModelError, UnsupportedError
from buildtool.graph.onnx.context import Context
from buildtool.graph.onnx.elementwise import look_up
from buildtool.graph.onnx.file import Array, Node
from buildtool.graph.onnx.folding import axis_of
from buildtool.graph.onnx.pairs import sum_or_product
from buildtool.graph.onnx.pools import make_mean, read_axes
from buildtool.graph.onnx.values import ActivationValue, Constant, Pending, Value
from buildtool.graph.types import Activation, OpKind


def power(ctx: Context, node: Node) -> list[Value]:
    """Reads Pow. Exponents 2 and 1 become SQUARE and nothing, others POW."""
    x, exponent = ctx.operand(node, 0), ctx.operand(node, 1)
    number = math.nan
    if not isinstance(exponent, ActivationValue) and exponent.data.size == 1:
        number = float(exponent.data.reshape(-1)[0])
    if isinstance(x, ActivationValue) and number == 1:
        return [x]
    if isinstance(x, ActivationValue) and number == 2:
        return [look_up(ctx, OpKind.SQUARE, x)]
    return [sum_or_product(ctx, OpKind.POW, x, exponent)]


def norm(ctx: Context, node: Node) -> list[Value]:
    """Reads ReduceSumSquare, and ReduceL2 as its root."""
    x = ctx.held(node)
    axes, keep = read_axes(ctx, node, len(x.shape)), bool(node.integer("keepdims", 1))
    name = node.outputs[0]
    squares = _emit(look_up(ctx, OpKind.SQUARE, x), f"{name}/squares")
    total = make_mean(ctx, squares, axes, keep, OpKind.SUM)
    if node.kind == "ReduceSumSquare":
        return [total]
    return [look_up(ctx, OpKind.SQRT, _emit(total, f"{name}/sum"))]


def layer_normalization(ctx: Context, node: Node) -> list[Value]:
    """Reads LayerNormalization over the dimensions from `axis` on, with its factors and offsets."""
    x = ctx.held(node)
    if len(node.outputs) > 1 and any(ctx.readers.get(n) or n in ctx.outputs for n in node.outputs[1:]):
        raise UnsupportedError("the mean of a LayerNormalization", hint="use only its result")
    axes = tuple(range(axis_of(node, len(x.shape), -1), len(x.shape)))
    parameters = [_read_floats(ctx, node, i) for i in (1, 2) if node.input(i)]
    return [_normalize(ctx, node, x, axes, parameters)]


def instance_normalization(ctx: Context, node: Node) -> list[Value]:
    """Reads InstanceNormalization, over all dimensions but batch and channels."""
    x = ctx.held(node)
    if len(x.shape) < 3:
        raise ModelError(f"an InstanceNormalization of shape {list(x.shape)}")
    channels = (x.shape[1], *(1,) * (len(x.shape) - 2))
    parameters = [_read_floats(ctx, node, i) for i in (1, 2)]
    if any(p.size != x.shape[1] for p in parameters):
        raise ModelError(f"parameters of other sizes than {x.shape[1]} channels")
    return [
        _normalize(ctx, node, x, tuple(range(2, len(x.shape))), [p.reshape(channels) for p in parameters])
    ]


def _normalize(
    ctx: Context, node: Node, x: ActivationValue, axes: tuple[int, ...], parameters: Sequence[Array]
) -> Pending:
    """Returns (x - mean) / sqrt(variance + epsilon), times the first parameter, plus the second one.

    These are the steps in which ONNX defines LayerNormalization, with a quotient in place of a product with a
    reciprocal.
    """
    name = node.outputs[0]
    mean = _emit(make_mean(ctx, x, axes, True), f"{name}/mean")
    centred = _emit(sum_or_product(ctx, OpKind.SUB, x, mean), f"{name}/centred")
    squares = _emit(look_up(ctx, OpKind.SQUARE, centred), f"{name}/squares")
    variance = _emit(make_mean(ctx, squares, axes, True), f"{name}/variance")
    epsilon = ctx.number(node.number("epsilon", 1e-5))
    shifted = _emit(sum_or_product(ctx, OpKind.ADD, variance, epsilon), f"{name}/shifted")
    result = sum_or_product(
        ctx, OpKind.DIV, centred, _emit(look_up(ctx, OpKind.SQRT, shifted), f"{name}/deviation")
    )
    for kind, numbers, part in zip((OpKind.MUL, OpKind.ADD), parameters, ("normal", "scaled"), strict=False):
        result = sum_or_product(ctx, kind, _emit(result, f"{name}/{part}"), Constant(numbers))
    return result


def _emit(pending: Pending, name: str) -> ActivationValue:
    return pending.make(None, Activation.NONE, name)


def _read_floats(ctx: Context, node: Node, position: int) -> Array:
    """Returns a constant operand as float32."""
    value = ctx.operand(node, position)
    if isinstance(value, ActivationValue):
        raise UnsupportedError("parameters that are not constant", hint="store them in the model")
    return np.asarray(value.data, np.float32)
