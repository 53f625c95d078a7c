"""Reads ONNX operators without an integer form (powers, norms, normalisations) as operators of float32."""

import math
from collections.abc import Sequence
from dataclasses import replace

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
    """Reads Pow. With exponent 2 it becomes SQUARE, with exponent 1 no operator, otherwise POW."""
    x, exponent = ctx.operand(node, 0), ctx.operand(node, 1)
    if isinstance(x, ActivationValue) and not isinstance(exponent, ActivationValue):
        is_number = exponent.data.size == 1 and exponent.data.ndim <= len(x.shape)
        number = float(exponent.data.reshape(-1)[0]) if is_number else math.nan
        if number == 1:
            return [x]
        if number == 2:
            return [look_up(ctx, OpKind.SQUARE, x)]
    return [sum_or_product(ctx, OpKind.POW, x, exponent)]


def norm(ctx: Context, node: Node) -> list[Value]:
    """Reads ReduceSumSquare, and ReduceL2, which is the root of that sum."""
    x = ctx.held(node)
    axes, keep = read_axes(ctx, node, len(x.shape)), bool(node.integer("keepdims", 1))
    name = node.outputs[0]
    total = look_up(ctx, OpKind.SQUARE, x)
    if axes:
        total = make_mean(ctx, _emit(total, f"{name}/squares"), axes, keep, OpKind.SUM)
    if node.kind == "ReduceSumSquare":
        return [total]
    return [look_up(ctx, OpKind.SQRT, _emit(total, f"{name}/sum"))]


# ---- activations -----------------------------------------------------------------------------------------


def softplus(ctx: Context, node: Node) -> list[Value]:
    """Reads Softplus as max(x, 0) + log(1 + exp(-|x|)), which does not overflow for large x."""
    ctx.demand_floats()
    return [_softplus(ctx, ctx.held(node), node.outputs[0])]


def _softplus(ctx: Context, x: ActivationValue, name: str) -> Pending:
    size = _emit(look_up(ctx, OpKind.ABS, x), f"{name}/size")
    power = _emit(
        look_up(ctx, OpKind.EXP, _emit(look_up(ctx, OpKind.NEG, size), f"{name}/less")), f"{name}/exp"
    )
    total = _emit(sum_or_product(ctx, OpKind.ADD, power, ctx.number(1)), f"{name}/sum")
    rest = _emit(look_up(ctx, OpKind.LOG, total), f"{name}/log")
    return sum_or_product(ctx, OpKind.ADD, _emit(look_up(ctx, OpKind.RELU, x), f"{name}/above"), rest)


def mish(ctx: Context, node: Node) -> list[Value]:
    """Reads Mish: x * tanh(softplus(x))."""
    ctx.demand_floats()
    x, name = ctx.held(node), node.outputs[0]
    plus = _emit(_softplus(ctx, x, name), f"{name}/softplus")
    return [sum_or_product(ctx, OpKind.MUL, x, _emit(look_up(ctx, OpKind.TANH, plus), f"{name}/tanh"))]


def softsign(ctx: Context, node: Node) -> list[Value]:
    """Reads Softsign: x / (1 + |x|)."""
    ctx.demand_floats()
    x, name = ctx.held(node), node.outputs[0]
    size = _emit(look_up(ctx, OpKind.ABS, x), f"{name}/size")
    below = _emit(sum_or_product(ctx, OpKind.ADD, size, ctx.number(1)), f"{name}/sum")
    return [sum_or_product(ctx, OpKind.DIV, x, below)]


def swish(ctx: Context, node: Node) -> list[Value]:
    """Reads Swish: x * sigmoid(alpha * x)."""
    ctx.demand_floats()
    x, name, alpha = ctx.held(node), node.outputs[0], node.number("alpha", 1.0)
    scaled = (
        x if alpha == 1 else _emit(sum_or_product(ctx, OpKind.MUL, x, ctx.number(alpha)), f"{name}/scaled")
    )
    return [sum_or_product(ctx, OpKind.MUL, x, _emit(look_up(ctx, OpKind.LOGISTIC, scaled), f"{name}/gate"))]


# ---- normalisations ------------------------------------------------------------------------------------


def layer_normalization(ctx: Context, node: Node) -> list[Value]:
    """Reads LayerNormalization and RMSNormalization over the dimensions from `axis` on.

    RMSNormalization subtracts no mean.
    """
    x = ctx.held(node)
    if len(node.outputs) > 1 and any(ctx.readers.get(n) or n in ctx.outputs for n in node.outputs[1:]):
        raise UnsupportedError("the mean of a LayerNormalization", hint="use only its result")
    axes = tuple(range(axis_of(node, len(x.shape), -1), len(x.shape)))
    parameters = [_read_floats(ctx, node, i) for i in (1, 2) if node.input(i)]
    if node.kind != "RMSNormalization":
        x = _subtract_mean(ctx, node, x, axes)
    return [_scale(ctx, node, _divide_by_root(ctx, node, x, axes), parameters)]


def group_normalization(ctx: Context, node: Node) -> list[Value]:
    """Reads GroupNormalization, and InstanceNormalization, in which each channel is a group.

    There is a factor and an offset for each channel, before opset 21 for each group.
    """
    x = ctx.held(node)
    n, channels, *sides = x.shape if len(x.shape) > 2 else (0, 0)
    groups = node.integer("num_groups", 0) if node.kind == "GroupNormalization" else channels
    if not sides or groups < 1 or channels % groups:
        raise ModelError(f"{groups} groups in an input of shape {list(x.shape)}")
    parameters = [_read_floats(ctx, node, i).reshape(-1) for i in (1, 2)]
    if not {p.size for p in parameters} <= {groups, channels}:
        raise ModelError(f"parameters of other sizes than {channels} channels")
    spread = [np.repeat(p, channels // p.size).reshape(channels, *(1 for _ in sides)) for p in parameters]
    split = replace(x, shape=(n, groups, channels // groups, *sides))
    axes = tuple(range(2, len(split.shape)))
    normal = _divide_by_root(ctx, node, _subtract_mean(ctx, node, split, axes), axes)
    return [_scale(ctx, node, replace(normal, shape=x.shape), spread)]


def _subtract_mean(ctx: Context, node: Node, x: ActivationValue, axes: tuple[int, ...]) -> ActivationValue:
    name = node.outputs[0]
    mean = _emit(make_mean(ctx, x, axes, True), f"{name}/mean")
    return _emit(sum_or_product(ctx, OpKind.SUB, x, mean), f"{name}/centred")


def _divide_by_root(ctx: Context, node: Node, x: ActivationValue, axes: tuple[int, ...]) -> ActivationValue:
    """Returns x / sqrt(mean of squares + epsilon). ONNX multiplies by the reciprocal of the root instead."""
    name = node.outputs[0]
    squares = _emit(look_up(ctx, OpKind.SQUARE, x), f"{name}/squares")
    variance = _emit(make_mean(ctx, squares, axes, True), f"{name}/variance")
    epsilon = ctx.number(node.number("epsilon", 1e-5))
    shifted = _emit(sum_or_product(ctx, OpKind.ADD, variance, epsilon), f"{name}/shifted")
    root = _emit(look_up(ctx, OpKind.SQRT, shifted), f"{name}/deviation")
    return _emit(sum_or_product(ctx, OpKind.DIV, x, root), f"{name}/normal")


def _scale(ctx: Context, node: Node, x: ActivationValue, parameters: Sequence[Array]) -> Value:
    """Returns `x` times the first of `parameters`, plus the second one if there is one."""
    if not parameters:
        return x
    product = sum_or_product(ctx, OpKind.MUL, x, Constant(parameters[0]))
    if len(parameters) == 1:
        return product
    scaled = _emit(product, f"{node.outputs[0]}/scaled")
    return sum_or_product(ctx, OpKind.ADD, scaled, Constant(parameters[1]))


def _emit(pending: Pending, name: str) -> ActivationValue:
    return pending.make(None, Activation.NONE, name)


def _read_floats(ctx: Context, node: Node, position: int) -> Array:
    """Returns a constant operand as float32."""
    value = ctx.operand(node, position)
    if isinstance(value, ActivationValue):
        raise UnsupportedError("parameters that are not constant", hint="store them in the model")
    return np.asarray(value.data, np.float32)
