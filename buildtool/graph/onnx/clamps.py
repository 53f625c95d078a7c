"""Emits clamps to a range, as RELU and similar operators, or as MAXIMUM and MINIMUM with constants."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from buildtool.graph.onnx import scales
from buildtool.graph.onnx.build import Builder
from buildtool.graph.onnx.file import Array
from buildtool.graph.onnx.values import NO_CLAMP, ActivationValue, Clamp
from buildtool.graph.types import Activation, ElementwiseAttrs, OpKind, Quantization

_UNARY = {Activation.RELU: OpKind.RELU, Activation.RELU6: OpKind.RELU6}
_FLOAT_CLAMPS = {
    (0.0, math.inf): OpKind.RELU,
    (0.0, 6.0): OpKind.RELU6,
    (0.0, 1.0): OpKind.RELU_0_TO_1,
    (-1.0, 1.0): OpKind.RELU_N1_TO_1,
}


def emit_clamp(
    build: Builder, x: ActivationValue, clamp: Clamp, quant: Quantization | None, name: str
) -> ActivationValue:
    """Returns `x` clamped to the range `clamp`, in quantisation `quant`.

    Emits RELU, RELU6, an ADD of 0 that clamps to -1..1, or MAXIMUM and MINIMUM.
    """
    if quant is None:
        return _clamp_floats(build, x, clamp, name)
    shape = build.tensors[x.tensor].shape
    scalar_shape = (1,) * min(1, len(shape))  # of a constant that broadcasts
    activation = scales.activation(clamp, quant)
    if activation is Activation.NONE:
        return build.requantize(x, quant, name)
    if activation in _UNARY:
        out = build.make(_UNARY[activation], [x.tensor], name, shape, quant)
    elif activation is not None:
        zero = build.constant(
            f"{name}/zero", np.zeros(scalar_shape, np.int8), replace(quant, zero_points=(0,))
        )
        out = build.make(OpKind.ADD, [x.tensor, zero], name, shape, quant, ElementwiseAttrs(activation))
    else:
        low, high = scales.clamp_limits(clamp, quant)
        bounds = [(OpKind.MAXIMUM, low)] if low > -128 else []
        bounds += [(OpKind.MINIMUM, high)] if high < 127 else []
        out = build.requantize(x, quant, f"{name}/uncut").tensor
        limits = [(kind, np.full(scalar_shape, bound, np.int8)) for kind, bound in bounds]
        out = _bound(build, out, limits, quant, name)
    return ActivationValue(out, x.shape, x.layout, quant)


def _clamp_floats(build: Builder, x: ActivationValue, clamp: Clamp, name: str) -> ActivationValue:
    if clamp == NO_CLAMP:
        return x
    scalar_shape = (1,) * min(1, len(build.tensors[x.tensor].shape))
    if (kind := _FLOAT_CLAMPS.get(clamp)) is not None:
        out = build.make(kind, [x.tensor], name, build.tensors[x.tensor].shape, None)
    else:
        pairs = zip((OpKind.MAXIMUM, OpKind.MINIMUM), clamp, strict=True)
        limits = [
            (kind, np.full(scalar_shape, bound, np.float32)) for kind, bound in pairs if math.isfinite(bound)
        ]
        out = _bound(build, x.tensor, limits, None, name)
    return replace(x, tensor=out)


def _bound(
    build: Builder, tensor: int, limits: Sequence[tuple[OpKind, Array]], quant: Quantization | None, name: str
) -> int:
    """Emits a MAXIMUM or MINIMUM with a constant for each of `limits`. Returns the result."""
    shape = build.tensors[tensor].shape
    for i, (kind, bound) in enumerate(limits):
        inner = name if i == len(limits) - 1 else f"{name}/half"
        limit = build.constant(f"{inner}/limit", bound, quant)
        tensor = build.make(kind, [tensor, limit], inner, shape, quant)
    return tensor


def join_clamps(a: Clamp, b: Clamp) -> Clamp:
    """Returns the range that results from clamping first to `a` and then to `b`."""
    low, high = (min(max(v, b[0]), b[1]) for v in a)
    return (low, high) if math.isfinite(low) or math.isfinite(high) else NO_CLAMP
