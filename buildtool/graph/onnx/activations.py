"""Activations: clamps, functions of one byte, HardSwish in parts, Softmax."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from buildtool.base.errors import ModelError, UnsupportedError
from buildtool.graph.onnx import scales
from buildtool.graph.onnx.context import Context, meet
from buildtool.graph.onnx.elementwise import elementwise, in_order, sum_or_product
from buildtool.graph.onnx.file import Node
from buildtool.graph.onnx.folding import axis_of
from buildtool.graph.onnx.layout import lying
from buildtool.graph.onnx.values import Clamp, Constant, Held, Pending, Quantized, Value
from buildtool.graph.ops import ONNX
from buildtool.graph.types import (
    Activation,
    Attrs,
    GeluAttrs,
    LeakyReluAttrs,
    OpKind,
    Quantization,
    SoftmaxAttrs,
)


def clamp(ctx: Context, node: Node) -> list[Value]:
    """Relu, Clip: part of the operator before it where nothing else reads that."""
    name = node.input(0)
    limits = _limits(ctx, node)
    before = ctx.value(name)
    if isinstance(before, Pending) and ctx.alone(name):
        return [replace(before, clamp=meet(before.clamp, limits), biased=None, scaled=None)]
    x = ctx.held(node, integers=True)
    if x.integers:
        return [_clamped_integers(ctx, node, x)]

    def make(out: Quantization, _activation: Activation, called: str) -> Held:
        return ctx.cut(x, limits, out, called)

    return [Pending(x.shape, make)]


def _clamped_integers(ctx: Context, node: Node, x: Held) -> Held:
    """A Clip of quantised integers that cuts nothing off."""
    types = {ctx.array(node, i, "the clip's limit").dtype for i in (1, 2) if node.input(i)}
    low, high = _limits(ctx, node)
    if node.kind == "Clip" and len(types) == 1:
        limits = np.iinfo(types.pop())
        if low <= limits.min and high >= limits.max:
            return x
    text = f"a {node.kind} of quantised integers"
    raise UnsupportedError(text, hint="clip before QuantizeLinear (Brevitas: no narrow_range)")


def _limits(ctx: Context, node: Node) -> Clamp:
    if node.kind == "Relu":
        return (0.0, math.inf)
    found = [-math.inf, math.inf]
    for position in (1, 2):
        if node.input(position):
            found[position - 1] = ctx.scalar(node, position, "the clip's limit")
    low, high = found
    if math.isnan(low) or math.isnan(high) or low > high:
        raise ModelError(f"a Clip to {low:g}..{high:g}")
    return (low, high)


def unary(ctx: Context, node: Node) -> list[Value]:
    """An operator that keeps the shape: Sigmoid, Tanh, HardSwish, LeakyRelu, Gelu, Elu."""
    attrs: Attrs | None = None
    if node.kind == "LeakyRelu":
        attrs = LeakyReluAttrs(float(np.float32(node.number("alpha", 0.01))))
    elif node.kind == "Gelu":
        way = node.text("approximate", "none")
        if way not in ("none", "tanh"):
            raise ModelError(f"a Gelu approximated by '{way}'")
        attrs = GeluAttrs(way == "tanh")
    elif node.kind == "Elu" and (alpha := node.number("alpha", 1.0)) != 1:  # LiteRT's has no factor
        raise UnsupportedError(f"an Elu with alpha {alpha:g}", hint="alpha must be 1")
    return [_table(ctx, ONNX[node.kind].kind, ctx.held(node), attrs)]


def hard_sigmoid(ctx: Context, node: Node) -> list[Value]:
    """HardSigmoid: min(max(alpha * x + beta, 0), 1) as alpha * (x + beta / alpha).

    The sum is quantised for 0..1 / alpha exactly, so that it saturates where the function is cut off.
    """
    x, alpha, beta = ctx.held(node), node.number("alpha", 0.2), node.number("beta", 0.5)
    if not (alpha > 0 and math.isfinite(1 / alpha) and math.isfinite(beta / alpha)):
        raise UnsupportedError(f"a HardSigmoid with alpha {alpha:g}", hint="alpha must be positive")
    middle = Quantization((float(np.float32(1 / (255 * alpha))),), (-128,))
    offset, factor = (scales.exact_scalar(np.float32(v)) for v in (beta / alpha, alpha))

    def make(out: Quantization, _activation: Activation, name: str) -> Held:
        total = sum_or_product(ctx, OpKind.ADD, x, offset).make(middle, Activation.NONE, f"{name}/sum")
        return sum_or_product(ctx, OpKind.MUL, total, factor).make(out, Activation.NONE, name)

    return [Pending(x.shape, make)]


def multiply(ctx: Context, node: Node) -> list[Value]:
    """Mul; x * HardSigmoid(x) is one operator."""
    gated = _hard_swish(ctx, node)
    return [gated] if gated is not None else elementwise(ctx, node)


def _hard_swish(ctx: Context, node: Node) -> Pending | None:
    """X * HardSigmoid(x), which is HARD_SWISH, also where the file rounds the second factor in between."""
    if len(node.inputs) != 2:
        return None
    for name, other in (node.inputs, node.inputs[::-1]):
        gate = ctx.origin(other, ("QuantizeLinear", "DequantizeLinear"))
        x = ctx.values.get(name)
        if gate is None or gate.kind != "HardSigmoid" or not isinstance(x, Held) or x.integers:
            continue
        source = ctx.values.get(gate.input(0))
        same = isinstance(source, Held) and source.tensor == x.tensor and source.shape == x.shape
        usual = abs(gate.number("alpha", 0.2) * 6 - 1) < 1e-6 and gate.number("beta", 0.5) == 0.5
        if same and usual:
            return _table(ctx, OpKind.HARD_SWISH, x)
    return None


def prelu(ctx: Context, node: Node) -> list[Value]:
    """PRelu: slopes in int8, as they are or rounded to it; one float slope for all is LEAKY_RELU."""
    x, slope = ctx.held(node), ctx.value(node.input(1))
    if isinstance(slope, Constant) and slope.data.dtype.kind == "f" and slope.data.size:
        if np.unique(slope.data).size == 1:
            alpha = float(np.float32(slope.data.reshape(-1)[0]))
            return [_table(ctx, OpKind.LEAKY_RELU, x, LeakyReluAttrs(alpha))]
        operand: Held | Quantized = scales.rounded(slope.data, node.input(1))
    else:
        operand = ctx.operand(node, 1)
    if not isinstance(operand, Quantized):
        text, hint = "a PRelu whose slopes are not constant", "only constant slopes have kernels"
        raise UnsupportedError(text, hint=hint)
    if operand.data.ndim > len(x.shape):
        raise ModelError(f"slopes {list(operand.data.shape)} for an input of {list(x.shape)}")
    tensor, order = ctx.build.natural(x)
    alpha_index = in_order(ctx, operand, order)
    return [ctx.pending(OpKind.PRELU, [tensor, alpha_index], x.shape, *lying(x.shape, order))]


def _table(ctx: Context, kind: OpKind, x: Held, attrs: Attrs | None = None) -> Pending:
    """An operator on each byte, wherever it lies."""
    return ctx.pending(kind, [x.tensor], x.shape, ctx.build.tensors[x.tensor].shape, x.layout, attrs)


def softmax(ctx: Context, node: Node) -> list[Value]:
    """Softmax or LogSoftmax over any dimension, which lies last afterwards."""
    kind = ONNX[node.kind].kind
    attrs = SoftmaxAttrs() if kind is OpKind.SOFTMAX else Attrs()
    x = ctx.held(node)
    old = node.integer("opset", ctx.file.opset) < 13
    axis = axis_of(node, len(x.shape), 1 if old else -1)
    if old and math.prod(x.shape[axis + 1 :]) != 1:  # it ran over all of these together
        text = f"a {node.kind} of an opset before 13 over several dimensions"
        hint = "convert the model: onnx.version_converter.convert_version(model, 17)"
        raise UnsupportedError(text, hint=hint)
    _, order = ctx.build.natural(x)
    order = (*(d for d in order if d != axis), axis)
    tensor = ctx.build.ordered(x, order)
    return [ctx.pending(kind, [tensor], x.shape, *lying(x.shape, order), attrs)]
