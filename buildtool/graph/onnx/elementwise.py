"""Operators of several operands, which broadcast: sums, products, biases added behind, Max and Min."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from buildtool.base.errors import ModelError, UnsupportedError
from buildtool.graph.onnx import scales
from buildtool.graph.onnx.context import Context
from buildtool.graph.onnx.file import Array, Node
from buildtool.graph.onnx.layout import lying
from buildtool.graph.onnx.values import NO_CLAMP, Constant, Held, Pending, Quantized, Value
from buildtool.graph.ops import ONNX
from buildtool.graph.types import Activation, Attrs, ElementwiseAttrs, OpKind, Quantization, QuotientAttrs


def elementwise(ctx: Context, node: Node) -> list[Value]:
    """Add, Sub, Mul or Div; an Add of a constant behind an operator with weights is its bias."""
    kind = ONNX[node.kind].kind
    if kind is OpKind.ADD:
        biased = _as_bias(ctx, node)
        if biased is not None:
            return [biased]
    return [sum_or_product(ctx, kind, ctx.operand(node, 0), ctx.operand(node, 1))]


def divide(ctx: Context, node: Node) -> list[Value]:
    """Div; by a constant number it is a product with its reciprocal."""
    divisor = ctx.value(node.input(1))
    if not isinstance(divisor, (Constant, Quantized)) or divisor.data.size != 1:
        return elementwise(ctx, node)
    value = float((divisor.real if isinstance(divisor, Quantized) else divisor.data).reshape(-1)[0])
    if value == 0 or not math.isfinite(1 / value):
        raise ModelError("a Div by zero")
    sign = np.full((1,), int(math.copysign(1, value)), np.int8)
    factor = Quantized(sign, Quantization((float(np.float32(abs(1 / value))),), (0,)))
    return [sum_or_product(ctx, OpKind.MUL, ctx.operand(node, 0), factor)]


def _as_bias(ctx: Context, node: Node) -> Pending | None:
    """The sum as a biased convolution or dense layer, if it is one: a constant per output channel."""
    if len(node.inputs) != 2:
        return None
    for name, other in (node.inputs, node.inputs[::-1]):
        before, constant = ctx.values.get(name), ctx.value(other)
        if not isinstance(before, Pending) or not isinstance(constant, (Constant, Quantized)):
            continue
        rank, shape = len(before.shape), constant.data.shape
        allowed = [1] * rank
        allowed[before.channel] = before.shape[before.channel]
        full = [1] * (rank - len(shape)) + [*shape]
        fits = len(full) == rank and all(n in (1, m) for n, m in zip(full, allowed, strict=True))
        if before.biased is not None and fits and ctx.alone(name) and before.clamp == NO_CLAMP:
            flat = constant.data.reshape(-1)
            if isinstance(constant, Constant):
                return before.biased(Constant(flat))
            return before.biased(Quantized(flat, replace(constant.quant, axis=0)))
    return None


def sum_or_product(ctx: Context, kind: OpKind, a: Held | Quantized, b: Held | Quantized) -> Pending:
    """ADD, SUB, MUL or DIV in the order in which the larger operand lies.

    Operands may have any scale, so a LOGISTIC's is its kernel's own.
    """
    return pair_of(ctx, kind, *(ctx.build.unrounded(x) if isinstance(x, Held) else x for x in (a, b)))


def _broadcast(shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """The shape of all together; ModelError where there is none."""
    try:
        return tuple(int(n) for n in np.broadcast_shapes(*shapes))
    except ValueError:
        raise ModelError(f"shapes {[list(s) for s in shapes]} do not broadcast") from None


def pair_of(ctx: Context, kind: OpKind, a: Held | Quantized, b: Held | Quantized) -> Pending:
    """An operator of two operands, taken as they are."""
    shape = _broadcast([x.shape if isinstance(x, Held) else x.data.shape for x in (a, b)])
    leader = max((x for x in (a, b) if isinstance(x, Held)), key=lambda x: math.prod(x.shape), default=None)
    if leader is None:
        raise UnsupportedError("a sum or product of constants", hint="fold constants before exporting")
    if all(_same(x, leader) for x in (a, b)):
        memory: Sequence[int] = ctx.build.tensors[leader.tensor].shape
        tensors = [
            ctx.build.viewed(x.tensor, memory)
            if isinstance(x, Held)
            else ctx.build.constant("constant", x.data.reshape(1), x.quant)
            for x in (a, b)
        ]
        layout = leader.layout
    else:
        _, order = ctx.build.natural(replace(leader, shape=_long(leader.shape, len(shape))))
        tensors = [in_order(ctx, x, order) for x in (a, b)]
        memory, layout = lying(shape, order)
    attrs: Attrs | None = None
    if kind is OpKind.DIV:
        attrs = QuotientAttrs(wraps=False)
    elif kind in (OpKind.ADD, OpKind.SUB, OpKind.MUL):
        attrs = ElementwiseAttrs()
    return ctx.pending(kind, tensors, shape, memory, layout, attrs)


def _long(shape: tuple[int, ...], rank: int) -> tuple[int, ...]:
    """The shape with ones in front."""
    return (1,) * (rank - len(shape)) + shape


def _same(x: Held | Quantized, leader: Held) -> bool:
    """Whether `x` needs no order of dimensions: it lies as the leader does, or is one number."""
    if isinstance(x, Quantized):
        return x.data.size == 1 and x.data.ndim <= len(leader.shape)
    return x.shape == leader.shape and x.layout == leader.layout


def in_order(ctx: Context, x: Held | Quantized, order: Sequence[int]) -> int:
    """An operand's tensor, its dimensions (as many as the result's) in that order."""
    if isinstance(x, Quantized):
        return ctx.build.spread(x, "constant", order)
    return ctx.build.ordered(replace(x, shape=_long(x.shape, len(order))), order)


def extreme(ctx: Context, node: Node) -> list[Value]:
    """Max or Min: every operand in the result's quantisation, whose order of bytes is that of the numbers."""
    kind = ONNX[node.kind].kind
    given = [_operand(ctx, node, position) for position in range(len(node.inputs))]
    held = [x for x in given if isinstance(x, Held)]
    if not held:
        raise UnsupportedError(f"a {node.kind} of constants", hint="fold constants before exporting")
    if len(given) == 1:
        return [held[0]]
    rest = [x for x in given if not isinstance(x, Held)]
    shape = _broadcast([x.shape for x in given])

    def make(out: Quantization, _activation: Activation, name: str) -> Held:
        alike = [ctx.build.requantized(x, out, f"{name}/operand{i}") for i, x in enumerate(held)]
        others: list[Held | Quantized] = [*alike[1:], *(_quantised(x, out) for x in rest)]
        whole = alike[0]
        for i, other in enumerate(others):
            last = i == len(others) - 1
            pending = pair_of(ctx, kind, whole, other)
            whole = pending.make(out, Activation.NONE, name if last else f"{name}/part{i}")
        return whole

    return [Pending(shape, make)]


def _operand(ctx: Context, node: Node, position: int) -> Held | Array:
    """An operand: an activation, or a constant's numbers."""
    value = ctx.value(node.input(position))
    if isinstance(value, Constant):
        return np.asarray(value.data, np.float64)
    if isinstance(value, Quantized):
        if len(value.quant.scales) > 1:
            raise UnsupportedError(f"an operand of {node.kind} with a scale a channel")
        return value.real
    return ctx.held(node, position)


def _quantised(numbers: Array, out: Quantization) -> Quantized:
    """Numbers in a quantisation, as QuantizeLinear rounds and saturates; infinite ones are its ends."""
    steps = np.clip(np.nan_to_num(numbers / out.scale, posinf=512, neginf=-512), -512, 512)
    data = np.clip(np.round(steps) + out.zero_point, -128, 127).astype(np.int8)
    return Quantized(data.reshape(data.shape or (1,)), out)


def summed(ctx: Context, node: Node) -> list[Value]:
    """Sum of one operand or two."""
    if len(node.inputs) == 1:
        return [ctx.held(node)]
    if len(node.inputs) > 2:
        hint = "use Add of two tensors at a time, each result quantised"
        raise UnsupportedError("a Sum of more than two tensors", hint=hint)
    return elementwise(ctx, node)


def negated(ctx: Context, node: Node) -> list[Value]:
    """Neg: the product with -1."""
    return [sum_or_product(ctx, OpKind.MUL, ctx.held(node), scales.exact_scalar(np.float32(-1)))]


def reciprocal(ctx: Context, node: Node) -> list[Value]:
    """Reciprocal: 1 over it."""
    return [sum_or_product(ctx, OpKind.DIV, scales.exact_scalar(np.ones(1, np.float32)), ctx.held(node))]
