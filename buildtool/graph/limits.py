"""The limits of int32: operators beyond them are refused, whatever kernel would serve them.

Kernels count bytes and sum products in int32, as LiteRT's do. With a zero point sums of products may leave an
int32 within these limits: they wrap around there and here alike. The limits of one family of kernels stand in
its catalogue, as `when`.
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
MAX_WIDENED_ROW = 511  # of a row of SOFTMAX of int8 to int16, whose exponentials' sum is below 512
MAX_WIDE_MEAN = (1 << 16) - 1  # int16 values likewise, of a pooling; also the elements of a row of SOFTMAX
MAX_SQUARES = MAX_INNER  # squares of an int8 less its zero point, of L2_NORMALIZATION
MAX_EXPONENTIALS = (1 << 12) - 1  # of a row of LOG_SOFTMAX, each 1 at most, as a Q12.19 number
MAX_RESIZED = 1 << 20  # rows or columns whose positions fit int32 with 10 fractional bits
_WEIGHTED = {OpKind.CONV_2D, OpKind.DEPTHWISE_CONV_2D, OpKind.TRANSPOSE_CONV, OpKind.FULLY_CONNECTED}
_ROWS = {OpKind.L2_NORMALIZATION: MAX_SQUARES, OpKind.LOG_SOFTMAX: MAX_EXPONENTIALS}


def check_limits(graph: Graph, op: Op) -> None:
    """Raises UnsupportedError if one of `op`'s sums or offsets may not fit int32; geometry was checked."""
    if isinstance(op.attrs, g.ConvAttrs | g.PoolAttrs):
        _check_extent(graph, op, op.attrs)
    source = graph.tensors[op.inputs[0]]
    if op.kind is OpKind.BATCH_MATMUL:
        inner = source.shape[-2 if attributes(op, g.MatmulAttrs).adj_x else -1]
        if inner > MAX_INNER:
            raise UnsupportedError(f"{inner} products in a sum, more than {MAX_INNER}")
    wide = source.dtype is DType.INT16
    summed = _terms_in_sum(graph, op, wide)
    most = MAX_WIDE_MEAN if wide else MAX_MEAN
    limit, what = (MAX_TAPS, "products in a sum") if op.kind in _WEIGHTED else (most, "values in a mean")
    if op.kind in _WEIGHTED and isinstance(op.attrs, g.AsUint8):
        limit //= 4  # 255 * 255 in place of 128 * 128
    if summed > limit:
        raise UnsupportedError(f"{summed} {what}, more than {limit}")
    widens = graph.tensors[op.outputs[0]].dtype is DType.INT16 and not wide
    if op.kind is OpKind.SOFTMAX and widens and source.shape[-1] > MAX_WIDENED_ROW:
        raise UnsupportedError(f"rows of more than {MAX_WIDENED_ROW} elements, of int8 to int16")
    if op.kind is OpKind.SOFTMAX and wide and source.shape[-1] > MAX_WIDE_MEAN:
        raise UnsupportedError(f"rows of more than {MAX_WIDE_MEAN} elements of int16")
    if op.kind in _ROWS and source.shape[-1] > _ROWS[op.kind]:
        raise UnsupportedError(f"rows of more than {_ROWS[op.kind]} elements")
    if op.kind is OpKind.RESIZE_BILINEAR:
        sides = [n for t in (op.inputs[0], op.outputs[0]) for n in graph.tensors[t].nhwc[1:3]]
        if max(sides) > MAX_RESIZED:
            raise UnsupportedError(f"{max(sides)} rows or columns, more than {MAX_RESIZED}")


def _terms_in_sum(graph: Graph, op: Op, wide: bool) -> int:
    """Products or values in one of the operator's sums at most; 0 if it has none that is bounded.

    Sums of a MEAN of int16 wrap around here as they do in LiteRT, so that any number of values is exact.
    """
    if op.kind in _WEIGHTED:
        weights = graph.tensors[op.inputs[1]]
        return weights.elements // weights.shape[3 if op.kind is OpKind.DEPTHWISE_CONV_2D else 0]
    if op.kind is OpKind.AVERAGE_POOL_2D:
        kernel, (_, rows, columns, _) = attributes(op, g.PoolAttrs).kernel, graph.tensors[op.inputs[0]].nhwc
        return min(kernel[0], rows) * min(kernel[1], columns)
    if isinstance(op.attrs, g.MeanAttrs) and not (op.kind is OpKind.MEAN and wide):
        return math.prod(graph.tensors[op.inputs[0]].shape[axis] for axis in op.attrs.axes)
    return 0


def _check_extent(graph: Graph, op: Op, attrs: g.ConvAttrs | g.PoolAttrs) -> None:
    """Keeps a windowed operator's offsets countable: the padded input, and a step or a tap beyond it."""
    pad, stride = attrs.pad, attrs.stride
    n, h, w, c = graph.tensors[op.inputs[0]].nhwc
    rows, columns = h + pad.top + pad.bottom, w + pad.left + pad.right
    padded = n * rows * columns * c
    if padded > MAX_ACTIVATION:
        raise UnsupportedError(f"the padded input has {padded} bytes, more than {MAX_ACTIVATION}")
    dilation = attrs.dilation if isinstance(attrs, g.ConvAttrs) else (1, 1)
    down, across = (max(steps) for steps in zip(stride, dilation, strict=True))
    reached = max(n * (rows + down) * columns * c, n * rows * (columns + across) * c)
    if reached > MAX_ACTIVATION:
        raise UnsupportedError(
            f"a stride of {stride[0]} x {stride[1]} and a dilation of {dilation[0]} x {dilation[1]} reach "
            f"{reached} bytes far, more than {MAX_ACTIVATION}"
        )
