"""Reads MaxPool, AveragePool, global pools, reductions and Resize."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from buildtool.base.errors import ModelError, UnsupportedError
from buildtool.graph.onnx.context import Context
from buildtool.graph.onnx.file import Node
from buildtool.graph.onnx.folding import axes_of
from buildtool.graph.onnx.layout import Layout, place_in_memory
from buildtool.graph.onnx.values import ActivationValue, Pending, Value
from buildtool.graph.onnx.windows import NHWC, Window, as_image, pair, window
from buildtool.graph.ops import ONNX
from buildtool.graph.reference.resize import nearest_indices
from buildtool.graph.types import (
    Activation,
    MeanAttrs,
    OpKind,
    Pad,
    PadAttrs,
    PadMode,
    PoolAttrs,
    Quantization,
    ResizeAttrs,
)

_Lying = tuple[Sequence[int], Sequence[int], Layout]  # shape in the file, shape in memory, layout


def _pool(ctx: Context, node: Node, x: ActivationValue) -> tuple[Window, int, _Lying]:
    """Returns (window, number of the channels-last input tensor, the result's shapes and layout).

    The result's shapes are those in the file and in memory. `x`: the pool's input.
    """
    image, count = as_image(x, f"{'an' if node.kind[0] == 'A' else 'a'} {node.kind}")
    if node.integers("kernel_shape") is None:
        raise ModelError("kernel_shape is missing")
    n, c, *sizes = image.shape
    win = window(node, (sizes[0], sizes[1]), pair(node, "kernel_shape", count), count)
    if win.dilation != (1, 1):
        raise UnsupportedError(f"a dilated {node.kind}", hint="pool without dilations")
    result = (n, c, *win.out[2 - count :]), *place_in_memory((n, c, *win.out), NHWC)
    return win, ctx.build.in_file_order(image, NHWC), result


def max_pool(ctx: Context, node: Node) -> list[Value]:
    """Reads MaxPool, which keeps the quantisation and may work on quantised integers."""
    x = ctx.held(node, integers=True)
    if len(node.outputs) > 1 and ctx.readers.get(node.outputs[1]):
        raise UnsupportedError("the indices of a MaxPool", hint="use only its values")
    win, tensor, (shape, memory, layout) = _pool(ctx, node, x)
    attrs = PoolAttrs(win.kernel, win.stride, win.pad)
    result = ctx.build.make(OpKind.MAX_POOL_2D, [tensor], node.outputs[0], memory, x.quant, attrs)
    return [replace(x, tensor=result, shape=tuple(shape), layout=layout)]


def global_max_pool(ctx: Context, node: Node) -> list[Value]:
    """Reads GlobalMaxPool as a MaxPool with one window over the whole input image."""
    x = ctx.held(node, integers=True)
    as_image(x, "a GlobalMaxPool")
    return max_pool(ctx, replace(node, kind="MaxPool", attributes={"kernel_shape": x.shape[2:]}))


def average_pool(ctx: Context, node: Node) -> list[Value]:
    """Reads AveragePool. Padded elements count (as zeros) only with count_include_pad.

    The pool's result has the input's quantisation, as in TFLite. So an output with another quantisation is
    rounded twice. If such a pool has one window over the whole image, it becomes a MEAN, which rounds once.
    """
    x = ctx.held(node)
    win, tensor, result = _pool(ctx, node, x)
    pad, sizes = win.pad, ctx.build.tensors[tensor].shape[1:3]
    is_global = win.kernel == sizes and win.out == (1, 1) and pad == Pad()
    if node.integer("count_include_pad", 0) and pad != Pad():
        if (
            win.pad.bottom > win.pad_in_file.bottom or win.pad.right > win.pad_in_file.right
        ):  # ceil_mode can do this
            text = "an AveragePool with count_include_pad and ceil_mode whose windows extend beyond the pads"
            raise UnsupportedError(text, hint="use a separate Pad operator")
        n, h, w, c = ctx.build.tensors[tensor].shape
        shape = (n, h + pad.top + pad.bottom, w + pad.left + pad.right, c)
        pairs = ((0, 0), (pad.top, pad.bottom), (pad.left, pad.right), (0, 0))
        zeros = PadAttrs(pairs, PadMode.CONSTANT, x.quant.zero_point if x.quant else 0)
        name = f"{node.outputs[0]}/padded"
        tensor, pad = ctx.build.make(OpKind.PAD, [tensor], name, shape, x.quant, zeros), Pad()
    attrs = PoolAttrs(win.kernel, win.stride, pad)
    pool = ctx.pending(OpKind.AVERAGE_POOL_2D, [tensor], *result, attrs, own=x.quant)
    if not is_global:
        return [pool]
    mean = ctx.pending(OpKind.MEAN, [tensor], *result, MeanAttrs((1, 2), True))

    def make(out: Quantization | None, activation: Activation, name: str) -> ActivationValue:
        return (pool if out == x.quant else mean).make(out, activation, name)

    return [replace(pool, make=make)]


def global_average_pool(ctx: Context, node: Node) -> list[Value]:
    """Reads GlobalAveragePool as MEAN over rows and columns."""
    x = ctx.held(node)
    as_image(x, "a GlobalAveragePool")
    return [make_mean(ctx, x, tuple(range(2, len(x.shape))), True)]


def reduce(ctx: Context, node: Node) -> list[Value]:
    """Reads ReduceMean, ReduceSum, ReduceMax and ReduceMin. Their axes are an attribute or an operand."""
    kind = ONNX[node.kind].kind
    x = ctx.held(node, integers=kind not in (OpKind.MEAN, OpKind.SUM))
    axes, keep = read_axes(ctx, node, len(x.shape)), bool(node.integer("keepdims", 1))
    if not axes:
        return [x]
    if kind in (OpKind.MEAN, OpKind.SUM):
        return [make_mean(ctx, x, axes, keep, kind)]
    tensor, order = ctx.build.without_move(x)
    attrs = MeanAttrs(tuple(sorted(order.index(a) for a in axes)), True)
    sizes = [1 if d in axes else n for d, n in enumerate(x.shape)]
    held = ctx.build.move(kind, x, tensor, order, node.outputs[0], sizes, attrs)
    return [replace(held, shape=tuple(n for d, n in enumerate(sizes) if keep or d not in axes))]


def read_axes(ctx: Context, node: Node, rank: int) -> tuple[int, ...]:
    """Returns the axes of a reduction, an attribute or an operand; () if the operator reduces nothing."""
    axes = node.integers("axes")
    if axes is None and node.input(1):
        axes = ctx.ints(node, 1, "the axes")
    if not axes and node.integer("noop_with_empty_axes", 0):
        return ()
    return axes_of(axes or tuple(range(rank)), rank)


def make_mean(
    ctx: Context, x: ActivationValue, axes: tuple[int, ...], keep: bool, kind: OpKind = OpKind.MEAN
) -> Pending:
    """Returns a MEAN or SUM over the file's dimensions `axes`. Dimensions keep their order in memory.

    `keep`: whether the result has the reduced dimensions, with size 1.
    """
    tensor, order = ctx.build.without_move(x)
    places = tuple(sorted(order.index(a) for a in axes))
    shape = tuple(1 if d in axes else n for d, n in enumerate(x.shape) if keep or d not in axes)
    if not keep:
        rest = [d for d in range(len(x.shape)) if d not in axes]
        order = tuple(rest.index(d) for d in order if d not in axes)
    return ctx.pending(kind, [tensor], shape, *place_in_memory(shape, order), MeanAttrs(places, keep))


# ---- Resize ------------------------------------------------------------------------------------------


def resize(ctx: Context, node: Node) -> list[Value]:
    """Reads Resize of rows and columns in mode linear, or nearest if TFLite can pick the same pixels."""
    mode = node.text("mode", "nearest")
    x = ctx.held(node, integers=mode == "nearest")
    sizes, factors = _read_sizes(ctx, node, x)
    if len(x.shape) != 4 or sizes[:2] != x.shape[:2]:
        text = f"a Resize of {list(x.shape)} to {list(sizes)}"
        raise UnsupportedError(text, hint="only rows and columns of an NCHW tensor can be resized")
    kind = {"nearest": OpKind.RESIZE_NEAREST_NEIGHBOR, "linear": OpKind.RESIZE_BILINEAR}.get(mode)
    if kind is None or node.integer("antialias", 0) or node.integer("exclude_outside", 0):
        hint = "use nearest, or linear without antialias"
        raise UnsupportedError(f"a Resize of mode {mode[:20]}", hint=hint)
    if ctx.file.opset < 11:  # it has no attributes for these; onnxruntime places pixels like this
        node = replace(node, attributes={"coordinate_transformation_mode": "asymmetric", "nearest_mode": ""})
    attrs = _choose_attrs(node, mode, x.shape[2:], sizes[2:], factors[2:])
    tensor = ctx.build.in_file_order(x, NHWC)
    if mode == "nearest":
        return [ctx.build.move(kind, x, tensor, NHWC, node.outputs[0], sizes, attrs)]
    return [ctx.pending(kind, [tensor], sizes, *place_in_memory(sizes, NHWC), attrs, own=x.quant)]


def _read_sizes(ctx: Context, node: Node, x: ActivationValue) -> tuple[tuple[int, ...], tuple[float, ...]]:
    """Returns (output sizes, scale factors), each with one number per dimension."""
    if node.integers("axes") is not None or node.text("keep_aspect_ratio_policy", "stretch") != "stretch":
        hint = "export with a size or scale for every dimension"
        raise UnsupportedError("a Resize with axes or keep_aspect_ratio_policy", hint=hint)
    if node.input(3) and ctx.file.opset >= 11:
        sizes = ctx.ints(node, 3, "the sizes")
        if len(sizes) != len(x.shape):
            raise ModelError(f"{len(sizes)} sizes for {len(x.shape)} dimensions")
        return sizes, tuple(m / n for m, n in zip(sizes, x.shape, strict=True))
    scale = ctx.array(node, 2 if ctx.file.opset >= 11 else 1, "the scales").reshape(-1)
    if scale.dtype.kind != "f" or scale.size != len(x.shape) or not np.isfinite(scale).all():
        raise ModelError(f"{scale.size} scales for {len(x.shape)} dimensions")
    factors = tuple(float(s) for s in scale)
    return tuple(math.floor(min(n * f, 2.0**40)) for n, f in zip(x.shape, factors, strict=True)), factors


# coordinate_transformation_mode -> (align_corners, half_pixel_centers) of TFLite's bilinear kernel
_LINEAR = {
    "asymmetric": ResizeAttrs(),
    "half_pixel": ResizeAttrs(half_pixel_centers=True),
    "pytorch_half_pixel": ResizeAttrs(half_pixel_centers=True),
    "align_corners": ResizeAttrs(align_corners=True),
}


def _choose_attrs(
    node: Node, mode: str, sizes: Sequence[int], out: Sequence[int], factors: Sequence[float]
) -> ResizeAttrs:
    coordinates = node.text("coordinate_transformation_mode", "half_pixel")
    if coordinates not in _LINEAR or any(not 1 <= m <= 1 << 20 for m in out):
        hint = "supported: " + ", ".join(sorted(_LINEAR))
        raise UnsupportedError(f"a Resize to {list(out)} with coordinates {coordinates[:40]}", hint=hint)
    if mode == "linear":
        whole = all(abs(n * f - m) < 1e-3 for n, m, f in zip(sizes, out, factors, strict=True))
        if not whole or (coordinates == "pytorch_half_pixel" and 1 in out):
            hint = "give sizes instead of scales"
            raise UnsupportedError("a Resize whose scales do not give whole sizes", hint=hint)
        return _LINEAR[coordinates]
    pick = _PICKS.get(node.text("nearest_mode", "round_prefer_floor"))
    if pick is None:
        raise ModelError("the nearest_mode does not exist")
    rows_of_onnx = [
        _find_rows(coordinates, pick, n, m, f) for n, m, f in zip(sizes, out, factors, strict=True)
    ]
    for attrs in (ResizeAttrs(), ResizeAttrs(half_pixel_centers=True), ResizeAttrs(align_corners=True)):
        rows_of_tflite = [nearest_indices(n, m, attrs) for n, m in zip(sizes, out, strict=True)]
        if all(np.array_equal(a, b) for a, b in zip(rows_of_tflite, rows_of_onnx, strict=True)):
            return attrs
    text = f"a Resize of {list(sizes)} to {list(out)} that takes other pixels than all modes of TFLite"
    raise UnsupportedError(text, hint="use coordinate_transformation_mode asymmetric with nearest_mode floor")


_Floats = npt.NDArray[np.float64]
_Pick = Callable[[_Floats, float], _Floats]  # (places, factor) -> input rows
_PICKS: dict[str, _Pick] = {
    "floor": lambda x, _: np.floor(x),
    "ceil": lambda x, _: np.ceil(x),
    "round_prefer_floor": lambda x, _: np.ceil(x - 0.5),
    "round_prefer_ceil": lambda x, _: np.floor(x + 0.5),
    "": lambda x, factor: np.floor(x) if factor >= 1 else np.ceil(x),  # before opset 11
}


def _find_rows(coordinates: str, pick: _Pick, size: int, out: int, factor: float) -> npt.NDArray[np.int64]:
    """Returns the input row (or column) from which ONNX takes each output row (or column).

    `coordinates`: ONNX's coordinate_transformation_mode. `pick`: the function that rounds positions to rows.
    `size`, `out`: the numbers of input and output rows. `factor`: the scale factor.
    """
    rows = np.arange(out, dtype=np.float64)
    if coordinates == "align_corners":
        x = rows * (size - 1) / (out - 1) if out > 1 else rows * 0
    elif coordinates == "asymmetric":
        x = rows / factor
    elif coordinates == "pytorch_half_pixel" and out == 1:
        x = rows * 0
    else:
        x = (rows + 0.5) / factor - 0.5
    return np.clip(pick(x, factor).astype(np.int64), 0, size - 1)
