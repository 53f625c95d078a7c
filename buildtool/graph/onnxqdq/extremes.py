"""Max and Min of any number of operands, Sum, Neg, Reciprocal, Elu."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from buildtool.base.errors import ModelError, UnsupportedError
from buildtool.graph.onnxqdq import scales
from buildtool.graph.onnxqdq.context import Context
from buildtool.graph.onnxqdq.elementwise import elementwise, pair_of, sum_or_product
from buildtool.graph.onnxqdq.file import Node
from buildtool.graph.onnxqdq.values import Constant, Held, Pending, Quantized, Value
from buildtool.graph.ops import ONNX
from buildtool.graph.types import Activation, OpKind, Quantization

Numbers = npt.NDArray[np.float64]


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
    try:
        shape = np.broadcast_shapes(*(x.shape for x in given))
    except ValueError:
        raise ModelError(f"shapes {[list(x.shape) for x in given]} do not broadcast") from None

    def make(out: Quantization, _activation: Activation, name: str) -> Held:
        alike = [ctx.build.requantized(x, out, f"{name}/operand{i}") for i, x in enumerate(held)]
        others: list[Held | Quantized] = [*alike[1:], *(_quantised(x, out) for x in rest)]
        whole = alike[0]
        for i, other in enumerate(others):
            last = i == len(others) - 1
            pending = pair_of(ctx, kind, whole, other)
            whole = pending.make(out, Activation.NONE, name if last else f"{name}/part{i}")
        return whole

    return [Pending(tuple(int(n) for n in shape), make)]


def _operand(ctx: Context, node: Node, position: int) -> Held | Numbers:
    """An operand: an activation, or a constant's numbers."""
    value = ctx.value(node.input(position))
    if isinstance(value, Constant):
        return np.asarray(value.data, np.float64)
    if isinstance(value, Quantized):
        if len(value.quant.scales) > 1:
            raise UnsupportedError(f"an operand of {node.kind} with a scale a channel")
        return (value.data.astype(np.float64) - value.quant.zero_point) * value.quant.scale
    return ctx.held(node, position)


def _quantised(numbers: Numbers, out: Quantization) -> Quantized:
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
    minus = scales.exact_scalar(np.float32(-1), "")
    return [sum_or_product(ctx, OpKind.MUL, ctx.held(node), minus)]


def reciprocal(ctx: Context, node: Node) -> list[Value]:
    """Reciprocal: 1 over it."""
    one = scales.exact_scalar(np.float32(1), "")
    return [sum_or_product(ctx, OpKind.DIV, replace(one, data=one.data.reshape(1)), ctx.held(node))]
