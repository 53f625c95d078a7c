"""Decodes operators that work element by element or reduce: arithmetic, activations, MEAN, resizing."""

from __future__ import annotations

import math

from buildtool.base.errors import ModelError
from buildtool.graph.tflite.flat import Accessor
from buildtool.graph.tflite.opview import Decoded, OpView
from buildtool.graph.tflite.schema import tflite
from buildtool.graph.types import (
    Activation,
    ElementwiseAttrs,
    GeluAttrs,
    LeakyReluAttrs,
    MeanAttrs,
    OpKind,
    ResizeAttrs,
    SoftmaxAttrs,
)


def add(view: OpView) -> Decoded:
    """ADD."""
    options = view.optional_options(tflite.AddOptions)
    _general_scales(view, options)
    return view.decoded(OpKind.ADD, _elementwise(view, options), 2)


def sub(view: OpView) -> Decoded:
    """SUB."""
    options = view.optional_options(tflite.SubOptions)
    _general_scales(view, options)
    return view.decoded(OpKind.SUB, _elementwise(view, options), 2)


def mul(view: OpView) -> Decoded:
    """MUL."""
    options = view.optional_options(tflite.MulOptions)
    return view.decoded(OpKind.MUL, _elementwise(view, options), 2)


def _general_scales(view: OpView, options: Accessor) -> None:
    """Refuses int16 additions whose scales are powers of two and may be shifted, which LiteRT then does."""
    tensors = (view.input(0), view.input(1), view.output)
    if view.output.dtype != "int16" or (options is not None and not options.PotScaleInt16()):
        return
    scales = [t.quant.scale for t in tensors if t.quant is not None and t.quant.scale > 0]
    powers = [math.log2(scale) for scale in scales]
    if len(powers) == 3 and all(abs(power - round(power)) < 1e-3 for power in powers):
        view.refuse(
            "an addition of int16 whose scales are all powers of two, with pot_scale_int16: LiteRT shifts "
            "in place of scaling",
            "set pot_scale_int16 to false, or give one of the three tensors another scale",
        )


def _elementwise(view: OpView, options: Accessor) -> ElementwiseAttrs:
    code = options.FusedActivationFunction() if options is not None else 0
    return ElementwiseAttrs(view.activation(code) if code else Activation.NONE)


def mean(view: OpView) -> Decoded:
    """MEAN; axes from the second input, negative ones counted from the back, repetitions dropped."""
    rank = len(view.input(0).shape)
    axes = tuple(sorted({view.axis(a, rank) for a in view.ints(1)}))
    if not axes:
        view.refuse("a mean over no axis", "remove the operator")
    options = view.optional_options(tflite.ReducerOptions)
    return view.decoded(OpKind.MEAN, MeanAttrs(axes, bool(options is not None and options.KeepDims())))


def softmax(view: OpView) -> Decoded:
    """SOFTMAX."""
    return view.decoded(OpKind.SOFTMAX, SoftmaxAttrs(float(view.options(tflite.SoftmaxOptions).Beta())))


def leaky_relu(view: OpView) -> Decoded:
    """LEAKY_RELU."""
    alpha = float(view.options(tflite.LeakyReluOptions).Alpha())
    return view.decoded(OpKind.LEAKY_RELU, LeakyReluAttrs(alpha))


def gelu(view: OpView) -> Decoded:
    """GELU."""
    options = view.optional_options(tflite.GeluOptions)
    return view.decoded(OpKind.GELU, GeluAttrs(bool(options is not None and options.Approximate())))


def prelu(view: OpView) -> Decoded:
    """PRELU (x, alpha)."""
    if not view.input(1).is_constant:
        view.refuse("alpha is not constant")
    return view.decoded(OpKind.PRELU, None, 2)


def resize_nearest_neighbor(view: OpView) -> Decoded:
    """RESIZE_NEAREST_NEIGHBOR."""
    options = view.optional_options(tflite.ResizeNearestNeighborOptions)
    return view.decoded(OpKind.RESIZE_NEAREST_NEIGHBOR, _resize(view, options))


def resize_bilinear(view: OpView) -> Decoded:
    """RESIZE_BILINEAR."""
    options = view.optional_options(tflite.ResizeBilinearOptions)
    attrs = _resize(view, options)
    if attrs.align_corners and attrs.half_pixel_centers:
        raise ModelError("align_corners and half_pixel_centers exclude each other")
    return view.decoded(OpKind.RESIZE_BILINEAR, attrs)


def _resize(view: OpView, options: Accessor) -> ResizeAttrs:
    size = view.ints(1)
    if len(size) != 2 or size != view.output.shape[1:3]:
        raise ModelError(f"output shape {list(view.output.shape)}, the parameter says {list(size)}")
    if options is None:
        return ResizeAttrs()
    return ResizeAttrs(
        align_corners=bool(options.AlignCorners()),
        half_pixel_centers=bool(options.HalfPixelCenters()),
    )
