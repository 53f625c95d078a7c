"""Emits operators on two operands that broadcast: sums, products and other functions of two numbers."""

import math
from collections.abc import Sequence
from dataclasses import replace

from buildtool.base.errors import UnsupportedError
from buildtool.graph.onnx.context import Context
from buildtool.graph.onnx.folding import broadcast_of
from buildtool.graph.onnx.layout import place_in_memory
from buildtool.graph.onnx.values import ActivationValue, Operand, Pending
from buildtool.graph.types import ElementwiseAttrs, OpKind, QuotientAttrs


def sum_or_product(ctx: Context, kind: OpKind, a: Operand, b: Operand) -> Pending:
    """Returns an ADD, SUB, MUL or DIV, or another function of two numbers in float32.

    In memory, its result has the larger operand's dimension order. The kernel accepts operands of any scale.
    So if a QUANTIZE only rounded a kernel's result to the file's scale (a LOGISTIC's, for example), the
    operator reads that result before the rounding.
    """
    return combine(
        ctx, kind, *(ctx.build.before_rounding(x) if isinstance(x, ActivationValue) else x for x in (a, b))
    )


def combine(ctx: Context, kind: OpKind, a: Operand, b: Operand) -> Pending:
    """Returns an operator of kind `kind` on two operands, which keep their quantisations."""
    shape = broadcast_of(*(x.shape if isinstance(x, ActivationValue) else x.data.shape for x in (a, b)))
    leader = max(
        (x for x in (a, b) if isinstance(x, ActivationValue)), key=lambda x: math.prod(x.shape), default=None
    )
    if leader is None:
        raise UnsupportedError("a sum or product of constants", hint="fold constants before exporting")
    if all(
        (x.shape, x.layout) == (leader.shape, leader.layout)
        if isinstance(x, ActivationValue)
        else x.data.size == 1 and x.data.ndim <= len(leader.shape)
        for x in (a, b)
    ):  # every operand has the leader's layout or is one number, so none needs another order of dimensions
        memory: Sequence[int] = ctx.build.tensors[leader.tensor].shape
        tensors = [
            ctx.build.view(x.tensor, memory)
            if isinstance(x, ActivationValue)
            else ctx.build.constant("constant", x.data.reshape((1,) * min(1, len(memory))), x.quant)
            for x in (a, b)
        ]
        layout = leader.layout
    else:
        _, order = ctx.build.without_move(_widen(leader, len(shape)))
        tensors = [in_order(ctx, x, order) for x in (a, b)]
        memory, layout = place_in_memory(shape, order)
    fuses = kind in (OpKind.ADD, OpKind.SUB, OpKind.MUL)
    attrs = QuotientAttrs(wraps=ctx.floats) if kind is OpKind.DIV else ElementwiseAttrs() if fuses else None
    return ctx.pending(kind, tensors, shape, memory, layout, attrs)


def in_order(ctx: Context, x: Operand, order: Sequence[int]) -> int:
    """Returns an operand as a tensor with the result's rank and its dimensions in `order`."""
    if not isinstance(x, ActivationValue):
        return ctx.build.spread(x, "constant", order)
    return ctx.build.in_file_order(_widen(x, len(order)), order)


def _widen(x: ActivationValue, rank: int) -> ActivationValue:
    """Returns `x` with leading dimensions of 1, so that it has `rank` dimensions."""
    return replace(x, shape=(1,) * (rank - len(x.shape)) + x.shape)
