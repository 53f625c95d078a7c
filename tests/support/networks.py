"""Hypothesis strategy of whole small networks; `graphs.small_networks` is the way in."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import strategies as st

from buildtool.graph import types as g
from buildtool.graph.types import Activation, DType, Graph, OpKind
from buildtool.zoo.drawn import NetBuilder

MAX_SIDE = 17  # rows and columns that no block exceeds
MAX_CHANNELS = 16

_activations = st.sampled_from([Activation.NONE, Activation.RELU, Activation.RELU6])
_kernels = st.sampled_from([(1, 1), (3, 3), (3, 3), (2, 3), (5, 3), (1, 4)])
_channels = st.integers(1, MAX_CHANNELS)

Block = Callable[[st.DrawFn, NetBuilder, int], int]


def _fit(net: NetBuilder, x: int, kernel: tuple[int, int]) -> tuple[int, int]:
    """The kernel cut to the size of x."""
    _, height, width, _ = net.shape(x)
    return min(kernel[0], height), min(kernel[1], width)


def _conv(draw: st.DrawFn, net: NetBuilder, x: int) -> int:
    kernel = _fit(net, x, draw(_kernels))
    same = draw(st.booleans())
    dilated = same and draw(st.integers(0, 4)) == 0
    stride = (1, 1) if dilated else draw(st.sampled_from([(1, 1), (1, 1), (2, 2), (2, 1), (1, 3)]))
    groups = 2 if net.shape(x)[3] % 2 == 0 and draw(st.integers(0, 5)) == 0 else 1
    return net.conv(
        x,
        draw(st.integers(1, MAX_CHANNELS // groups)) * groups,
        kernel=kernel,
        stride=stride,
        dilation=(2, 2) if dilated else (1, 1),
        same=same,
        groups=groups,
        activation=draw(_activations),
        per_channel=draw(st.booleans()),
    )


def _depthwise(draw: st.DrawFn, net: NetBuilder, x: int) -> int:
    multiplier = 2 if net.shape(x)[3] <= MAX_CHANNELS // 2 and draw(st.booleans()) else 1
    stride = draw(st.integers(1, 2))
    return net.conv(
        x,
        0,
        kernel=_fit(net, x, draw(_kernels)),
        stride=(stride, stride),
        same=draw(st.booleans()),
        depth_multiplier=multiplier,
        activation=draw(_activations),
    )


def _separable(draw: st.DrawFn, net: NetBuilder, x: int) -> int:
    return net.conv(_depthwise(draw, net, x), draw(_channels), activation=draw(_activations))


def _residual(draw: st.DrawFn, net: NetBuilder, x: int) -> int:
    """An inverted residual block: widen, depthwise, narrow, add."""
    y = net.conv(x, draw(_channels), activation=Activation.RELU6)
    y = net.conv(y, 0, kernel=(3, 3), same=True, depth_multiplier=1, activation=Activation.RELU6)
    y = net.conv(y, net.shape(x)[3])
    kind = OpKind.ADD if draw(st.integers(0, 3)) else OpKind.SUB
    pair = (x, y) if draw(st.booleans()) else (y, x)
    return net.elementwise(kind, *pair, draw(_activations))


def _branches(draw: st.DrawFn, net: NetBuilder, x: int) -> int:
    """Two or three branches and their concatenation."""
    parts = [net.conv(x, draw(st.integers(1, 5)), kernel=(k, k), same=True) for k in (1, 3)]
    if draw(st.booleans()):
        parts.append(net.pool(OpKind.MAX_POOL_2D, x, (3, 3), (1, 1), same=True))
    return net.concat(parts)


def _gate(draw: st.DrawFn, net: NetBuilder, x: int) -> int:
    """Squeeze and excite: channels scaled by a function of their means."""
    y = net.mean(x, keep_dims=True)
    y = net.conv(y, max(net.shape(x)[3] // 2, 1), activation=Activation.RELU)
    y = net.unary(draw(st.sampled_from([OpKind.LOGISTIC, OpKind.HARD_SWISH])), net.conv(y, net.shape(x)[3]))
    return net.elementwise(OpKind.MUL, x, y)


def _pool(draw: st.DrawFn, net: NetBuilder, x: int) -> int:
    kind = draw(st.sampled_from([OpKind.MAX_POOL_2D, OpKind.AVERAGE_POOL_2D]))
    stride = draw(st.integers(1, 2))
    kernel = _fit(net, x, draw(st.sampled_from([(2, 2), (3, 3), (3, 2)])))
    return net.pool(kind, x, kernel, (stride, stride), draw(st.booleans()))


def _padded(draw: st.DrawFn, net: NetBuilder, x: int) -> int:
    """An explicit PAD (or MIRROR_PAD) and a convolution without padding."""
    mode = draw(
        st.sampled_from([g.PadMode.CONSTANT, g.PadMode.CONSTANT, g.PadMode.REFLECT, g.PadMode.SYMMETRIC])
    )
    least = min(net.shape(x)[1:3])
    if mode is g.PadMode.REFLECT and least < 2:
        mode = g.PadMode.CONSTANT
    rows, columns = (draw(st.tuples(st.integers(0, 1), st.integers(0, 1))) for _ in range(2))
    y = net.pad(x, ((0, 0), rows, columns, (0, 0)), mode)
    stride = draw(st.integers(1, 2))
    depthwise = draw(st.integers(0, 1))
    kernel = _fit(net, y, (3, 3))
    return net.conv(y, draw(_channels), kernel=kernel, stride=(stride, stride), depth_multiplier=depthwise)


def _enlarge(draw: st.DrawFn, net: NetBuilder, x: int) -> int:
    batch, height, width, channels = net.shape(x)
    if max(height, width) > MAX_SIDE // 2:
        return _pool(draw, net, x)
    if draw(st.integers(0, 2)) == 0:
        return net.transpose_conv(x, draw(_channels), kernel=(3, 3), stride=(2, 2), same=draw(st.booleans()))
    kind = draw(st.sampled_from([OpKind.RESIZE_NEAREST_NEIGHBOR, OpKind.RESIZE_BILINEAR]))
    attrs = g.ResizeAttrs(*draw(st.sampled_from([(False, False), (True, False), (False, True)])))
    shape = (batch, 2 * height - draw(st.integers(0, 1)), 2 * width, channels)
    return net.move(kind, x, shape, attrs)


def _pointwise(draw: st.DrawFn, net: NetBuilder, x: int) -> int:
    kinds = [
        OpKind.LOGISTIC,
        OpKind.TANH,
        OpKind.HARD_SWISH,
        OpKind.RELU,
        OpKind.RELU6,
        OpKind.LEAKY_RELU,
        OpKind.ABS,
        OpKind.EXP,
        OpKind.LOG,
        OpKind.GELU,
        OpKind.QUANTIZE,
        OpKind.PRELU,
        OpKind.ADD,
    ]
    kind = draw(st.sampled_from(kinds))
    channels = net.shape(x)[3]
    if kind is OpKind.QUANTIZE:
        return net.requantize(x)
    if kind is OpKind.PRELU:
        return net.prelu(x, (1, 1, channels))
    if kind is OpKind.ADD:
        return net.elementwise(kind, x, net.constant((channels,) if draw(st.booleans()) else (1,)))
    return net.unary(kind, x)


def _parts(draw: st.DrawFn, net: NetBuilder, x: int) -> int:
    """SPLIT, one part convolved, CONCATENATION; or a slice where channels are odd."""
    shape = net.shape(x)
    if shape[3] % 2:
        return _crop(draw, net, x)
    first, second = net.split(x, 2)
    return net.concat([first, net.conv(second, draw(st.integers(1, 6)))])


def _crop(draw: st.DrawFn, net: NetBuilder, x: int) -> int:
    shape = net.shape(x)
    kind = draw(st.sampled_from([OpKind.SLICE, OpKind.STRIDED_SLICE]))
    begin = [0, *(draw(st.integers(0, (n - 1) // 2)) for n in shape[1:])]
    step = 2 if kind is OpKind.STRIDED_SLICE else 1
    strides = [1, step, 1, 1]
    extent = [(n - 1 - b) // s + 1 for n, b, s in zip(shape, begin, strides, strict=True)]
    attrs = g.SliceAttrs(tuple(begin), tuple(strides), tuple(extent))
    return net.move(kind, x, extent, attrs)


def _turn(draw: st.DrawFn, net: NetBuilder, x: int) -> int:
    """TRANSPOSE of rows and columns, or of channels and columns."""
    perm = draw(st.sampled_from([(0, 2, 1, 3), (0, 1, 3, 2)]))
    shape = net.shape(x)
    return net.move(OpKind.TRANSPOSE, x, [shape[p] for p in perm], g.TransposeAttrs(perm))


BLOCKS: dict[str, Block] = {
    "conv": _conv,
    "depthwise": _depthwise,
    "separable": _separable,
    "residual": _residual,
    "branches": _branches,
    "gate": _gate,
    "pool": _pool,
    "padded": _padded,
    "enlarge": _enlarge,
    "pointwise": _pointwise,
    "parts": _parts,
    "turn": _turn,
}


def _classifier(draw: st.DrawFn, net: NetBuilder, x: int) -> int:
    form = draw(st.sampled_from(["mean", "pool", "flatten"]))
    if form == "mean":
        x = net.mean(x, keep_dims=draw(st.booleans()))
        if len(net.shape(x)) == 4:
            batch, _, _, depth = net.shape(x)
            x = net.move(OpKind.SQUEEZE, x, (batch, depth)) if batch > 1 and depth > 1 else net.flatten(x)
    else:
        if form == "pool":
            size = net.shape(x)[1:3]
            x = net.pool(OpKind.AVERAGE_POOL_2D, x, size, size)
        x = net.flatten(x)
    x = net.dense(x, draw(st.integers(1, 12)), per_channel=draw(st.booleans()), activation=draw(_activations))
    if draw(st.booleans()):
        x = net.dense(x, draw(st.integers(1, 10)))
    return net.softmax(x) if draw(st.booleans()) else x


@st.composite
def small_networks(draw: st.DrawFn, *, firmware: bool = False, max_blocks: int = 6) -> Graph:
    """A network of one input, up to `max_blocks` blocks, and one or two outputs.

    `firmware`: batch 1, int8 at the edges. Otherwise also batch 2, and uint8 or float edges.
    """
    net = NetBuilder(draw(st.integers(0, 2**31 - 1)))
    batch = 1 if firmware else draw(st.sampled_from([1, 1, 2]))
    side = st.integers(3, MAX_SIDE)
    dtype = (
        DType.INT8
        if firmware
        else draw(st.sampled_from([DType.INT8, DType.INT8, DType.UINT8, DType.FLOAT32]))
    )
    x = net.input((batch, draw(side), draw(side), draw(st.integers(1, 4))), dtype)
    if dtype is not DType.INT8:
        x = net.requantize(x)
    names = st.lists(st.sampled_from(list(BLOCKS)), min_size=1, max_size=max_blocks)
    outputs = []
    for name in draw(names):
        x = BLOCKS[name](draw, net, x)
        if not outputs and draw(st.integers(0, 11)) == 0:
            outputs.append(net.conv(x, draw(st.integers(1, 4))))
    outputs.append(_classifier(draw, net, x) if draw(st.integers(0, 3)) else x)
    if not firmware and draw(st.integers(0, 3)) == 0:
        outputs[-1] = net.dequantize(outputs[-1])
    return net.graph(outputs)
