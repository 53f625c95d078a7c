"""Decodes operators that move bytes: paddings, shapes, permutations, joins and cuts, edges."""

from __future__ import annotations

import math

from buildtool.base.errors import ModelError
from buildtool.graph.quantrules import same_quantization
from buildtool.graph.tflite.opview import Decoded, OpView
from buildtool.graph.tflite.schema import tflite
from buildtool.graph.tflite.slicing import slice_spec, strided_spec
from buildtool.graph.types import AxisAttrs, OpKind, PadAttrs, PadMode, TransposeAttrs


def _paddings(view: OpView) -> tuple[tuple[int, int], ...]:
    """The (before, after) pairs of the second input."""
    flat = view.ints(1)
    if len(flat) != 2 * len(view.input(0).shape):
        raise ModelError(f"{len(flat)} paddings for {len(view.input(0).shape)} dimensions")
    return tuple(zip(flat[::2], flat[1::2], strict=True))


def pad(view: OpView) -> Decoded:
    """PAD: TFLite fills with the output's zero point."""
    quant = view.output.quant
    value = quant.zero_point if quant is not None else 0
    return view.decoded(OpKind.PAD, PadAttrs(_paddings(view), PadMode.CONSTANT, value))


def pad_v2(view: OpView) -> Decoded:
    """PADV2: the filling is a constant in the output's quantisation."""
    filling = view.input(2)
    if not filling.is_constant or filling.dtype != view.output.dtype or filling.elements != 1:
        view.refuse(f"the padding value is not one {view.output.dtype} constant")
    if filling.quant is not None and not same_quantization(filling.quant, view.output.quant):
        view.refuse("the padding value is quantised otherwise than the output")
    value = int(filling.array().reshape(-1)[0])
    return view.decoded(OpKind.PAD, PadAttrs(_paddings(view), PadMode.CONSTANT, value))


def mirror_pad(view: OpView) -> Decoded:
    """MIRROR_PAD."""
    code = view.options(tflite.MirrorPadOptions).Mode()
    modes = {
        tflite.MirrorPadMode.REFLECT: PadMode.REFLECT,
        tflite.MirrorPadMode.SYMMETRIC: PadMode.SYMMETRIC,
    }
    if code not in modes:
        raise ModelError(f"mirror mode {code} does not exist")
    return view.decoded(OpKind.MIRROR_PAD, PadAttrs(_paddings(view), modes[code]))


def reshape(view: OpView) -> Decoded:
    """RESHAPE; the new shape stands in the second input or, in old files, in the options."""
    wanted: tuple[int, ...] | None = None
    parameter = view.optional(1)
    if parameter is not None:
        wanted = view.ints(1)
    else:
        options = view.optional_options(tflite.ReshapeOptions)
        if options is not None and 0 < options.NewShapeLength() <= 16:
            wanted = tuple(int(n) for n in options.NewShapeAsNumpy())
    if wanted is not None:
        _check_reshape(view, wanted)
    return view.decoded(OpKind.RESHAPE)


def _check_reshape(view: OpView, wanted: tuple[int, ...]) -> None:
    """ModelError unless `wanted`, its one -1 resolved, is the output's shape."""
    shape, elements = view.output.shape, view.input(0).elements
    if wanted.count(-1) == 1:
        rest = -math.prod(wanted)
        if rest > 0 and elements % rest == 0:
            wanted = tuple(elements // rest if n == -1 else n for n in wanted)
    if wanted != shape and not (wanted == (0,) and shape == ()):
        raise ModelError(f"output shape {list(shape)}, the parameter says {list(wanted)}")


def squeeze(view: OpView) -> Decoded:
    """SQUEEZE; without dimensions in the options, all of size 1 go."""
    shape = view.input(0).shape
    options = view.optional_options(tflite.SqueezeOptions)
    count = options.SqueezeDimsLength() if options is not None else 0
    if count > len(shape):
        raise ModelError(f"{count} dimensions to squeeze of {len(shape)}")
    given = options.SqueezeDimsAsNumpy() if count else ()
    dims = {view.axis(int(d), len(shape)) for d in given} or {i for i, n in enumerate(shape) if n == 1}
    if any(shape[d] != 1 for d in dims):
        raise ModelError(f"dimensions {sorted(dims)} of {list(shape)} are not all 1")
    wanted = tuple(n for i, n in enumerate(shape) if i not in dims)
    if view.output.shape != wanted:
        raise ModelError(f"output shape {list(view.output.shape)}, expected {list(wanted)}")
    return view.decoded(OpKind.SQUEEZE)


def expand_dims(view: OpView) -> Decoded:
    """EXPAND_DIMS."""
    shape, axes = view.input(0).shape, view.ints(1)
    if len(axes) != 1:
        raise ModelError(f"{len(axes)} axes, expected 1")
    axis = view.axis(axes[0], len(shape) + 1)
    wanted = (*shape[:axis], 1, *shape[axis:])
    if view.output.shape != wanted:
        raise ModelError(f"output shape {list(view.output.shape)}, expected {list(wanted)}")
    return view.decoded(OpKind.EXPAND_DIMS)


def transpose(view: OpView) -> Decoded:
    """TRANSPOSE."""
    rank = len(view.input(0).shape)
    perm = tuple(view.axis(p, rank) for p in view.ints(1))
    return view.decoded(OpKind.TRANSPOSE, TransposeAttrs(perm))


def concatenation(view: OpView) -> Decoded:
    """CONCATENATION."""
    options = view.options(tflite.ConcatenationOptions)
    if options.FusedActivationFunction() != tflite.ActivationFunctionType.NONE:
        view.refuse("a fused activation on a concatenation", "use it as an operator of its own")
    axis = view.axis(int(options.Axis()), len(view.input(0).shape))
    return view.decoded(OpKind.CONCATENATION, AxisAttrs(axis), len(view.op.inputs))


def split(view: OpView) -> Decoded:
    """SPLIT (axis, x) as (x)."""
    axes = view.ints(0)
    if len(axes) != 1:
        raise ModelError(f"{len(axes)} axes, expected 1")
    axis = view.axis(axes[0], len(view.input(1).shape))
    parts = view.options(tflite.SplitOptions).NumSplits()
    if parts != len(view.op.outputs):
        raise ModelError(f"{parts} parts, but {len(view.op.outputs)} outputs")
    return Decoded(OpKind.SPLIT, (view.op.inputs[1],), view.op.outputs, AxisAttrs(axis))


def slice_(view: OpView) -> Decoded:
    """SLICE (x, begin, size); a size of -1 takes all that follows."""
    attrs = slice_spec(view.input(0).shape, view.ints(1), view.ints(2))
    return view.decoded(OpKind.SLICE, attrs)


def strided_slice(view: OpView) -> Decoded:
    """STRIDED_SLICE (x, begin, end, strides) with its masks resolved."""
    attrs, shape = strided_spec(view)
    if shape != view.output.shape:
        raise ModelError(f"output shape {list(view.output.shape)}, expected {list(shape)}")
    return view.decoded(OpKind.STRIDED_SLICE, attrs)
