"""Decodes operators that reduce dimensions to extremes or their places, and products of matrices."""

from __future__ import annotations

from buildtool.base.errors import ModelError
from buildtool.graph.tflite.opview import Decoded, OpView
from buildtool.graph.tflite.schema import tflite
from buildtool.graph.types import AxisAttrs, MatmulAttrs, MeanAttrs, OpKind


def reduce_max(view: OpView) -> Decoded:
    """REDUCE_MAX."""
    return _extreme(view, OpKind.REDUCE_MAX)


def reduce_min(view: OpView) -> Decoded:
    """REDUCE_MIN."""
    return _extreme(view, OpKind.REDUCE_MIN)


def _extreme(view: OpView, kind: OpKind) -> Decoded:
    """The axes as MEAN has them: negative ones count from the back, repetitions are dropped."""
    rank = len(view.input(0).shape)
    axes = tuple(sorted({view.axis(a, rank) for a in view.ints(1)}))
    if not axes:
        view.refuse("a reduction over no axis", "remove the operator")
    options = view.optional_options(tflite.ReducerOptions)
    return view.decoded(kind, MeanAttrs(axes, bool(options is not None and options.KeepDims())))


def arg_max(view: OpView) -> Decoded:
    """ARG_MAX."""
    return _arg(view, OpKind.ARG_MAX)


def arg_min(view: OpView) -> Decoded:
    """ARG_MIN."""
    return _arg(view, OpKind.ARG_MIN)


def _arg(view: OpView, kind: OpKind) -> Decoded:
    axes = view.ints(1)
    if len(axes) != 1:
        raise ModelError(f"{len(axes)} axes, expected 1")
    return view.decoded(kind, AxisAttrs(view.axis(axes[0], len(view.input(0).shape))))


def batch_matmul(view: OpView) -> Decoded:
    """BATCH_MATMUL."""
    options = view.optional_options(tflite.BatchMatMulOptions)
    attrs = MatmulAttrs()
    if options is not None:
        attrs = MatmulAttrs(bool(options.AdjX()), bool(options.AdjY()))
    return view.decoded(OpKind.BATCH_MATMUL, attrs, 2)
