"""Decodes operators of several operands element by element: extremes, quotients, comparisons, choices."""

from __future__ import annotations

from buildtool.graph.tflite.opview import Decoded, OpView
from buildtool.graph.tflite.schema import tflite
from buildtool.graph.types import Activation, OpKind, QuotientAttrs


def pair(view: OpView) -> Decoded:
    """An operator of two operands without parameters, whose kind has its name."""
    return view.decoded(OpKind(view.op.name), None, 2)


def div(view: OpView) -> Decoded:
    """DIV."""
    options = view.optional_options(tflite.DivOptions)
    code = options.FusedActivationFunction() if options is not None else 0
    clamp = view.activation(code) if code else Activation.NONE
    return view.decoded(OpKind.DIV, QuotientAttrs(clamp), 2)


def select(view: OpView) -> Decoded:
    """SELECT: a condition of one dimension chooses whole slices of operands of several."""
    condition, first = view.input(0), view.input(1)
    if len(condition.shape) == 1 and len(first.shape) > 1 and condition.elements > 1:
        view.refuse("a condition that chooses whole slices", "give the condition the shape of the operands")
    return select_v2(view)


def select_v2(view: OpView) -> Decoded:
    """SELECT_V2: condition and both operands broadcast."""
    return view.decoded(OpKind.SELECT_V2, None, 3)


def l2_normalization(view: OpView) -> Decoded:
    """L2_NORMALIZATION over the last dimension."""
    options = view.optional_options(tflite.L2NormOptions)
    if options is not None and options.FusedActivationFunction():
        view.refuse("a fused activation, which LiteRT's int8 kernel has not")
    return view.decoded(OpKind.L2_NORMALIZATION)
