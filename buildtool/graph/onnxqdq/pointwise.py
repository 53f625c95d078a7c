"""Operators of one element: sums, products, activations, Softmax."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from buildtool.errors import ModelError, UnsupportedError
from buildtool.graph.onnxqdq import scales
from buildtool.graph.onnxqdq.context import Context, meet
from buildtool.graph.onnxqdq.file import Node
from buildtool.graph.onnxqdq.folding import axes_of
from buildtool.graph.onnxqdq.values import NO_CLAMP, Clamp, Constant, Held, Pending, Quantized, Value
from buildtool.graph.types import (
    Activation,
    Attrs,
    ElementwiseAttrs,
    LeakyReluAttrs,
    OpKind,
    Quantization,
    SoftmaxAttrs,
)

_NATURAL = {
    OpKind.SOFTMAX: Quantization((1 / 256,), (-128,)),
    OpKind.LOGISTIC: Quantization((1 / 256,), (-128,)),
    OpKind.TANH: Quantization((1 / 128,), (0,)),
}
_NEAR = 0.001  # relative; so much TFLite lets such an output's scale differ

Rule = Callable[[Context, Node], list[Value]]


def elementwise(kind: OpKind) -> Rule:
    """Add, Sub or Mul; an Add of a constant behind an operator with weights is its bias."""

    def rule(ctx: Context, node: Node) -> list[Value]:
        if kind is OpKind.ADD:
            biased = _as_bias(ctx, node)
            if biased is not None:
                return [biased]
        gated = _hard_swish(ctx, node) if kind is OpKind.MUL else None
        if gated is not None:
            return [gated]
        return [_elementwise(ctx, kind, ctx.operand(node, 0), ctx.operand(node, 1))]

    return rule


def divide(ctx: Context, node: Node) -> list[Value]:
    """Div by a constant: a product with its reciprocal."""
    divisor = ctx.value(node.input(1))
    if not isinstance(divisor, (Constant, Quantized)) or divisor.data.size != 1:
        raise UnsupportedError("a Div by more than one constant", hint="multiply by reciprocals")
    value = float(divisor.data.reshape(-1)[0])
    if isinstance(divisor, Quantized):
        value = (value - divisor.quant.zero_point) * divisor.quant.scale
    if value == 0 or not math.isfinite(1 / value):
        raise ModelError("a Div by zero")
    sign = np.full((1,), int(math.copysign(1, value)), np.int8)
    scale = float(np.float32(abs(1 / value)))
    return [
        _elementwise(ctx, OpKind.MUL, ctx.operand(node, 0), Quantized(sign, Quantization((scale,), (0,))))
    ]


def _as_bias(ctx: Context, node: Node) -> Pending | None:
    """The sum as a biased convolution or dense layer, if it is one: a constant per output channel."""
    if len(node.inputs) != 2:
        return None
    for name, other in (node.inputs, node.inputs[::-1]):
        before, constant = ctx.values.get(name), ctx.value(other)
        if (
            not isinstance(before, Pending)
            or before.biased is None
            or not isinstance(constant, (Constant, Quantized))
        ):
            continue
        alone = len(ctx.readers[name]) == 1 and name not in ctx.outputs and before.clamp == NO_CLAMP
        rank, shape = len(before.shape), constant.data.shape
        full = (1,) * (rank - len(shape)) + shape
        if (
            alone
            and len(full) == rank
            and all(n == 1 for d, n in enumerate(full) if d != before.channel % rank)
        ):
            flat = constant.data.reshape(-1)
            if flat.size in (1, before.shape[before.channel]):
                return before.biased(_flat(constant))
    return None


def _flat(constant: Constant | Quantized) -> Constant | Quantized:
    if isinstance(constant, Constant):
        return Constant(constant.data.reshape(-1))
    return Quantized(constant.data.reshape(-1), replace(constant.quant, axis=0))


def _elementwise(ctx: Context, kind: OpKind, a: Held | Quantized, b: Held | Quantized) -> Pending:
    """ADD, SUB or MUL in the order in which the larger operand lies."""
    shapes = [x.shape if isinstance(x, Held) else x.data.shape for x in (a, b)]
    try:
        shape = tuple(int(n) for n in np.broadcast_shapes(*shapes))
    except ValueError:
        raise ModelError(f"shapes {[list(s) for s in shapes]} do not broadcast") from None
    leader = max((x for x in (a, b) if isinstance(x, Held)), key=lambda x: math.prod(x.shape), default=None)
    if leader is None:
        raise UnsupportedError("a sum or product of constants", hint="fold constants before exporting")
    whole = Held(
        leader.tensor, (1,) * (len(shape) - len(leader.shape)) + leader.shape, leader.layout, leader.quant
    )
    if all(_same(x, leader) for x in (a, b)):
        memory: Sequence[int] = ctx.build.tensors[leader.tensor].shape
        tensors = [_as_it_lies(ctx, x, memory) for x in (a, b)]
        layout = leader.layout
    else:
        _, order = ctx.build.natural(whole)
        tensors = [_in_order(ctx, x, order) for x in (a, b)]
        memory = [shape[d] for d in order]
        layout = None

    def make(out: Quantization, activation: Activation, name: str) -> Held:
        made = ctx.build.make(kind, tensors, name, memory, out, ElementwiseAttrs(activation))
        if layout is not None:
            return Held(made, shape, layout, out)
        return ctx.build.held(made, order)

    return Pending(shape, make, fuses=True)


def _same(x: Held | Quantized, leader: Held) -> bool:
    """Whether `x` needs no order of dimensions: it lies as the leader does, or is one number."""
    if isinstance(x, Quantized):
        return x.data.size == 1 and x.data.ndim <= len(leader.shape)
    return x.shape == leader.shape and x.layout == leader.layout


def _as_it_lies(ctx: Context, x: Held | Quantized, memory: Sequence[int]) -> int:
    if isinstance(x, Held):
        return ctx.build.viewed(x.tensor, memory)
    return ctx.build.constant("constant", x.data.reshape(1), x.quant)


def _in_order(ctx: Context, x: Held | Quantized, order: Sequence[int]) -> int:
    if isinstance(x, Quantized):
        return ctx.build.spread(x, "constant", order)
    shape = (1,) * (len(order) - len(x.shape)) + x.shape
    return ctx.build.ordered(Held(x.tensor, shape, x.layout, x.quant), order)


# ---- activations -------------------------------------------------------------------------------------


def clamp(ctx: Context, node: Node) -> list[Value]:
    """Relu, Clip: part of the operator before it where nothing else reads that."""
    name = node.input(0)
    limits = _limits(ctx, node)
    before = ctx.value(name)
    if isinstance(before, Pending) and len(ctx.readers[name]) == 1 and name not in ctx.outputs:
        return [replace(before, clamp=meet(before.clamp, limits), biased=None)]
    x = ctx.held(node)

    def make(out: Quantization, _activation: Activation, called: str) -> Held:
        return ctx.clamped(x, ctx.activation(limits, out), out, called)

    return [Pending(x.shape, make)]


def _limits(ctx: Context, node: Node) -> Clamp:
    if node.kind == "Relu":
        return (0.0, math.inf)
    found = [-math.inf, math.inf]
    for position in (1, 2):
        if ctx.has(node, position):
            found[position - 1] = ctx.scalar(node, position, "the clip's limit")
    low, high = found
    if math.isnan(low) or math.isnan(high) or low > high:
        raise ModelError(f"a Clip to {low:g}..{high:g}")
    return (low, high)


def unary(kind: OpKind) -> Rule:
    """An operator that keeps the shape: Sigmoid, Tanh, HardSwish."""

    def rule(ctx: Context, node: Node) -> list[Value]:
        x = ctx.held(node)
        return [_table(ctx, kind, x, Attrs())]

    return rule


def hard_sigmoid(ctx: Context, node: Node) -> list[Value]:
    """HardSigmoid: min(max(alpha * x + beta, 0), 1) as alpha * (x + beta / alpha).

    The sum is quantised for 0..1 / alpha exactly, so that it saturates where the function is cut off.
    """
    x, alpha, beta = ctx.held(node), node.number("alpha", 0.2), node.number("beta", 0.5)
    if not (alpha > 0 and math.isfinite(1 / alpha) and math.isfinite(beta / alpha)):
        raise UnsupportedError(f"a HardSigmoid with alpha {alpha:g}", hint="alpha must be positive")
    middle = Quantization((float(np.float32(1 / (255 * alpha))),), (-128,))
    offset, factor = (
        scales.exact_scalar(np.float32(beta / alpha), ""),
        scales.exact_scalar(np.float32(alpha), ""),
    )

    def make(out: Quantization, _activation: Activation, name: str) -> Held:
        total = _elementwise(ctx, OpKind.ADD, x, offset).make(middle, Activation.NONE, f"{name}/sum")
        return _elementwise(ctx, OpKind.MUL, total, factor).make(out, Activation.NONE, name)

    return [Pending(x.shape, make)]


def _hard_swish(ctx: Context, node: Node) -> Pending | None:
    """X * HardSigmoid(x), which is HARD_SWISH, also where the file rounds the second factor in between."""
    if len(node.inputs) != 2:
        return None
    for name, other in (node.inputs, node.inputs[::-1]):
        gate = ctx.makers.get(other)
        while gate is not None and gate.kind in ("QuantizeLinear", "DequantizeLinear"):
            gate = ctx.makers.get(gate.input(0))
        x = ctx.values.get(name)
        if gate is None or gate.kind != "HardSigmoid" or not isinstance(x, Held) or x.integers:
            continue
        source = ctx.values.get(gate.input(0))
        same = isinstance(source, Held) and source.tensor == x.tensor and source.shape == x.shape
        usual = abs(gate.number("alpha", 0.2) * 6 - 1) < 1e-6 and gate.number("beta", 0.5) == 0.5
        if same and usual:
            return _table(ctx, OpKind.HARD_SWISH, x, Attrs())
    return None


def leaky_relu(ctx: Context, node: Node) -> list[Value]:
    """LeakyRelu."""
    alpha = float(np.float32(node.number("alpha", 0.01)))
    return [_table(ctx, OpKind.LEAKY_RELU, ctx.held(node), LeakyReluAttrs(alpha))]


def prelu(ctx: Context, node: Node) -> list[Value]:
    """PRelu: slopes quantised to int8, or one float slope for all."""
    x, slope = ctx.held(node), ctx.value(node.input(1))
    if isinstance(slope, Constant) and slope.data.dtype.kind == "f" and np.unique(slope.data).size == 1:
        alpha = float(np.float32(slope.data.reshape(-1)[0]))
        return [_table(ctx, OpKind.LEAKY_RELU, x, LeakyReluAttrs(alpha))]
    operand = ctx.operand(node, 1)
    if not isinstance(operand, Quantized):
        raise UnsupportedError(
            "a PRelu whose slopes are not constant", hint="only constant slopes have kernels"
        )
    if operand.data.ndim > len(x.shape):
        raise ModelError(f"slopes {list(operand.data.shape)} for an input of {list(x.shape)}")
    tensor, order = ctx.build.natural(x)
    alpha_index = _in_order(ctx, operand, order)

    def make(out: Quantization, _activation: Activation, name: str) -> Held:
        memory = ctx.build.tensors[tensor].shape
        return ctx.build.held(ctx.build.make(OpKind.PRELU, [tensor, alpha_index], name, memory, out), order)

    return [Pending(x.shape, make)]


def _table(ctx: Context, kind: OpKind, x: Held, attrs: Attrs) -> Pending:
    """An operator on each byte, wherever it lies."""

    def make(out: Quantization, _activation: Activation, name: str) -> Held:
        own = _demanded(kind, out)
        made = ctx.build.make(kind, [x.tensor], name, ctx.build.tensors[x.tensor].shape, own, attrs)
        return ctx.build.requantized(Held(made, x.shape, x.layout, own), out, f"{name}/requantised")

    return Pending(x.shape, make, natural=_NATURAL.get(kind))


def _demanded(kind: OpKind, out: Quantization) -> Quantization:
    """The output quantisation of TFLite's kernel: `out` itself where the kernel has no other demand."""
    own = _NATURAL.get(kind, out)
    near = out.zero_point == own.zero_point and abs(out.scale - own.scale) <= _NEAR * own.scale
    return out if near else own


def softmax(ctx: Context, node: Node) -> list[Value]:
    """Softmax over any dimension, which lies last afterwards."""
    x = ctx.held(node)
    (axis,) = axes_of((node.integer("axis", -1),), len(x.shape))
    _, order = ctx.build.natural(x)
    order = (*(d for d in order if d != axis), axis)
    tensor = ctx.build.ordered(x, order)
    memory = [x.shape[d] for d in order]

    def make(out: Quantization, _activation: Activation, name: str) -> Held:
        own = _demanded(OpKind.SOFTMAX, out)
        made = ctx.build.make(OpKind.SOFTMAX, [tensor], name, memory, own, SoftmaxAttrs())
        return ctx.build.requantized(ctx.build.held(made, order), out, f"{name}/requantised")

    return [Pending(x.shape, make, natural=_NATURAL[OpKind.SOFTMAX])]
