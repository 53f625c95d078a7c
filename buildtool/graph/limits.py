"""Checks the limits of int32. Operators beyond them are refused, whichever kernel would run them.

Kernels count bytes and sum products in int32, as LiteRT's do. Where a zero point is not 0, a sum of products
may overflow even within these limits: it wraps around, here as in LiteRT. Limits of one kernel family are
conditions (`when`) in its catalogue.
"""

import math

from buildtool.base.errors import UnsupportedError
from buildtool.graph import types as g
from buildtool.graph.geometry import attributes
from buildtool.graph.types import DType, Graph, Op, OpKind

MAX_ACTIVATION = (1 << 31) - 1  # bytes; the kernels count in int32
MAX_TAPS = (1 << 17) - 1  # products of two int8 that an int32 sum holds
MAX_INNER = ((1 << 31) - 1) // 255**2  # products of two int8 less their zero points
MAX_MEAN = MAX_TAPS << 6  # int8 values that an int32 sum holds, their zero points and rounding included
MAX_WIDENED_ROW = 511  # elements in a row of SOFTMAX from int8 to int16: the exponentials add up to below 512
MAX_WIDE_MEAN = (1 << 16) - 1  # int16 values that the sum of a pooling holds; also elements in a SOFTMAX row
MAX_SQUARES = MAX_INNER  # squares of an int8 less its zero point, for L2_NORMALIZATION
MAX_EXPONENTIALS = (1 << 12) - 1  # elements in a row of LOG_SOFTMAX: each exponential is at most 1 in Q12.19
MAX_RESIZED = 1 << 20  # rows or columns whose positions fit int32 with 10 fractional bits
_WEIGHTED = {OpKind.CONV_2D, OpKind.DEPTHWISE_CONV_2D, OpKind.TRANSPOSE_CONV, OpKind.FULLY_CONNECTED}
_ROWS = {OpKind.L2_NORMALIZATION: MAX_SQUARES, OpKind.LOG_SOFTMAX: MAX_EXPONENTIALS}


def check_limits(graph: Graph, op: Op) -> None:
    """Raises UnsupportedError if one of `op`'s sums or offsets may not fit int32. Expects valid geometry."""
    if isinstance(op.attrs, g.ConvAttrs | g.PoolAttrs):
        _check_extent(graph, op, op.attrs)
    source = graph.tensors[op.inputs[0]]
    if source.dtype is DType.FLOAT32:
        return  # its sums are no integers
    wide = source.dtype is DType.INT16
    if op.kind is OpKind.BATCH_MATMUL:
        inner, most = source.shape[-2 if attributes(op, g.MatmulAttrs).adj_x else -1], MAX_INNER
        most = MAX_TAPS if wide else most  # LiteRT's multiplication demands sums below 2^47
        if inner > most:
            raise UnsupportedError(f"{inner} products in a sum, more than {most}")
    terms = _count_terms(graph, op, wide)
    mean = MAX_WIDE_MEAN if wide else MAX_MEAN
    limit, what = (MAX_TAPS, "products in a sum") if op.kind in _WEIGHTED else (mean, "values in a mean")
    if op.kind in _WEIGHTED and isinstance(op.attrs, g.AsUint8):
        limit //= 4  # 255 * 255 in place of 128 * 128
    if terms > limit:
        raise UnsupportedError(f"{terms} {what}, more than {limit}")
    widens = graph.tensors[op.outputs[0]].dtype is DType.INT16 and not wide
    if op.kind is OpKind.SOFTMAX and widens and source.shape[-1] > MAX_WIDENED_ROW:
        raise UnsupportedError(f"rows of more than {MAX_WIDENED_ROW} elements, from int8 to int16")
    if op.kind is OpKind.SOFTMAX and wide and source.shape[-1] > MAX_WIDE_MEAN:
        raise UnsupportedError(f"rows of more than {MAX_WIDE_MEAN} elements of int16")
    if op.kind in _ROWS and source.shape[-1] > _ROWS[op.kind]:
        raise UnsupportedError(f"rows of more than {_ROWS[op.kind]} elements")
    if op.kind is OpKind.RESIZE_BILINEAR:
        sides = [n for t in (op.inputs[0], op.outputs[0]) for n in graph.tensors[t].nhwc[1:3]]
        if max(sides) > MAX_RESIZED:
            raise UnsupportedError(f"{max(sides)} rows or columns, more than {MAX_RESIZED}")


def _count_terms(graph: Graph, op: Op, wide: bool) -> int:
    """Returns the largest number of terms in one of the operator's sums, or 0 if no limit applies.

    `wide`: the activations are int16. MEAN and other reductions of int16 have no limit: their sums wrap
    around, as in LiteRT.
    """
    if op.kind in _WEIGHTED:
        weights = graph.tensors[op.inputs[1]]
        return weights.elements // weights.shape[3 if op.kind is OpKind.DEPTHWISE_CONV_2D else 0]
    if op.kind is OpKind.AVERAGE_POOL_2D:
        attrs, (_, rows, columns, _) = attributes(op, g.PoolAttrs), graph.tensors[op.inputs[0]].nhwc
        if isinstance(attrs, g.FilledPoolAttrs):
            return math.prod(attrs.kernel)
        return min(attrs.kernel[0], rows) * min(attrs.kernel[1], columns)
    if isinstance(op.attrs, g.MeanAttrs) and not wide:
        return math.prod(graph.tensors[op.inputs[0]].shape[axis] for axis in op.attrs.axes)
    return 0


def _check_extent(graph: Graph, op: Op, attrs: g.ConvAttrs | g.PoolAttrs) -> None:
    """Refuses a windowed operator whose padded input is too large for int32 offsets.

    The padded input must also fit int32 when it is longer by one stride or one dilation step.
    """
    pad, stride = attrs.pad, attrs.stride
    n, h, w, c = graph.tensors[op.inputs[0]].nhwc
    rows, columns = h + pad.top + pad.bottom, w + pad.left + pad.right
    padded = n * rows * columns * c
    if padded > MAX_ACTIVATION:
        raise UnsupportedError(f"the padded input has {padded} bytes, more than {MAX_ACTIVATION}")
    dilation = attrs.dilation if isinstance(attrs, g.ConvAttrs) else (1, 1)
    down, across = (max(steps) for steps in zip(stride, dilation, strict=True))
    reach = max(n * (rows + down) * columns * c, n * rows * (columns + across) * c)
    if reach > MAX_ACTIVATION:
        raise UnsupportedError(
            f"a stride of {stride[0]} x {stride[1]} and a dilation of {dilation[0]} x {dilation[1]} reach "
            f"{reach} bytes far, more than {MAX_ACTIVATION}"
        )
