"""Networks of well-known architectures in any size, with random weights, and their blocks.

They enlarge (U-Nets, pyramids, decoders), move channels (detectors, shuffles, slices), have gates, or are
wired at random.

    graph = u_net(64, 8, 2, "nearest")
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial, reduce

from hypothesis import strategies as st
from zeronet import watts_strogatz

import buildtool.graph.types as g
from buildtool.graph.rewrite import rewrite
from buildtool.graph.types import Activation, Graph, OpKind
from buildtool.zoo.drawn import NetBuilder

# ---- blocks ----------------------------------------------------------------------------------------


def conv(net: NetBuilder, x: int, channels: int, stride: int = 1, kernel: int = 3) -> int:
    """A convolution with padding SAME, and RELU."""
    size = (kernel, kernel)
    return net.conv(x, channels, kernel=size, stride=(stride, stride), same=True, activation=Activation.RELU)


def depthwise(net: NetBuilder, x: int, kernel: int = 3, stride: int = 1) -> int:
    """A depthwise convolution with padding SAME."""
    return net.conv(x, 0, kernel=(kernel, kernel), stride=(stride, stride), same=True, depth_multiplier=1)


def taken(net: NetBuilder, x: int, first: int, channels: int) -> int:
    *image, _ = net.shape(x)
    begin = (*(0 for _ in image), first)
    attrs = g.SliceAttrs(begin, (1,) * len(begin), (*image, channels))
    return net.move(OpKind.STRIDED_SLICE, x, (*image, channels), attrs)


def shuffled(net: NetBuilder, x: int, groups: int) -> int:
    """A channel shuffle: RESHAPE, TRANSPOSE, RESHAPE."""
    shape = net.shape(x)
    each = shape[3] // groups
    y = net.move(OpKind.RESHAPE, x, (*shape[:3], groups, each))
    y = net.move(OpKind.TRANSPOSE, y, (*shape[:3], each, groups), g.TransposeAttrs((0, 1, 2, 4, 3)))
    return net.move(OpKind.RESHAPE, y, shape)


def add_swish(net: NetBuilder, x: int) -> int:
    return net.elementwise(OpKind.MUL, x, net.unary(OpKind.LOGISTIC, x))


def gated(net: NetBuilder, x: int, kind: OpKind = OpKind.MUL) -> int:
    """Squeeze and excite."""
    channels = net.shape(x)[3]
    pooled = net.mean(x, keep_dims=True)
    gate = net.conv(net.conv(pooled, max(1, channels // 4)), channels)
    return net.elementwise(kind, x, net.unary(OpKind.LOGISTIC, gate))


_RESIZES = {
    "nearest": (OpKind.RESIZE_NEAREST_NEIGHBOR, g.ResizeAttrs()),
    "bilinear": (OpKind.RESIZE_BILINEAR, g.ResizeAttrs()),
    "half": (OpKind.RESIZE_BILINEAR, g.ResizeAttrs(half_pixel_centers=True)),
    "aligned": (OpKind.RESIZE_BILINEAR, g.ResizeAttrs(align_corners=True)),
    "near_aligned": (OpKind.RESIZE_NEAREST_NEIGHBOR, g.ResizeAttrs(align_corners=True)),
    "near_half": (OpKind.RESIZE_NEAREST_NEIGHBOR, g.ResizeAttrs(half_pixel_centers=True)),
}
WAYS = (*_RESIZES, "transpose")


def enlarged(net: NetBuilder, x: int, rows: int, columns: int, way: str, channels: int = 0) -> int:
    """Resizes to this many rows and columns, in one of `WAYS`."""
    batch, height, width, depth = net.shape(x)
    if way == "transpose":
        stride = (-(-rows // height), -(-columns // width))
        out = (rows, columns)
        return net.transpose_conv(x, channels or depth, kernel=(3, 3), stride=stride, same=True, out=out)
    kind, attrs = _RESIZES[way]
    return net.move(kind, x, (batch, rows, columns, depth), attrs)


# ---- networks that enlarge -------------------------------------------------------------------------


def requantise_as(net: NetBuilder, x: int, other: int) -> int:
    """Gives `x`, which no operator reads yet, the quantisation of another tensor. Returns `x`."""
    net.tensors[x] = replace(net.tensors[x], quant=net.tensors[other].quant)
    return x


def u_net(size: int, width: int, levels: int, way: str, *, rows: int = 0, seed: int = 1) -> Graph:
    """Each level has two convolutions, half the size and twice the channels of the one above it."""
    net = NetBuilder(seed)
    x = net.input((1, rows or size, size, 1))
    skips = []
    for level in range(levels):
        x = conv(net, conv(net, x, width << level), width << level)
        skips.append(x)
        x = net.pool(OpKind.MAX_POOL_2D, x, (2, 2), (2, 2), same=True)
    x = conv(net, x, width << levels)
    for level, skip in reversed(list(enumerate(skips))):
        x = enlarged(net, requantise_as(net, x, skip), *net.shape(skip)[1:3], way, width << level)
        x = net.concat([requantise_as(net, x, skip), skip])
        x = conv(net, conv(net, x, width << level), width << level)
    return net.graph([net.conv(x, 2)])


def pyramid(size: int, width: int, way: str, *, seed: int = 1) -> Graph:
    """A feature pyramid: each level of a backbone is added to the enlarged level above it."""
    net = NetBuilder(seed)
    x = net.input((1, size, size, 3))
    levels = []
    for level in range(4):
        x = conv(net, x, width << level, 2 if level else 1)
        levels.append(x)
    top = net.conv(levels[-1], width)
    for level in reversed(levels[:-1]):
        side = net.conv(level, width)
        top = net.elementwise(OpKind.ADD, side, enlarged(net, top, *net.shape(side)[1:3], way))
    return net.graph([net.conv(top, 4)])


def head(size: int, width: int, way: str, *, seed: int = 1) -> Graph:
    """Segmentation: a backbone of stride 8, and scores that are enlarged to the image's size."""
    net = NetBuilder(seed)
    x = net.input((1, size, size, 3))
    for level in range(3):
        x = conv(net, x, width << level, 2)
    return net.graph([enlarged(net, net.conv(x, 3), size, size, way)])


def super_resolution(size: int, width: int, way: str, factor: int = 2, *, seed: int = 1) -> Graph:
    """Super resolution: convolutions with a residual, then an enlargement."""
    net = NetBuilder(seed)
    first = conv(net, net.input((1, size, size, 3)), width)
    x = conv(net, conv(net, first, width), width)
    x = net.conv(net.elementwise(OpKind.ADD, x, first), 3)
    x = enlarged(net, x, factor * size, factor * size, way)
    return net.graph([net.conv(x, 3, kernel=(3, 3), same=True)])


def decoder(rows: int, columns: int, width: int, *, seed: int = 1) -> Graph:
    """An autoencoder: convolutions of stride 2 down, transpose convolutions of stride 2 up."""
    net = NetBuilder(seed)
    x = net.input((1, rows, columns, 1))
    shapes = []
    for level in range(3):
        shapes.append(net.shape(x)[1:3])
        x = conv(net, x, width << level, 2)
    for level, shape in reversed(list(enumerate(shapes))):
        kernel, channels = (4, 4) if level % 2 else (3, 2), max(1, (width << level) // 2)
        x = net.transpose_conv(x, channels, kernel=kernel, stride=(2, 2), same=True, out=shape)
    return net.graph([x])


@st.composite
def enlarging_networks(draw):
    """One of these networks, with images of 9 to 30 rows and columns."""
    seed, way, width = draw(st.integers(0, 999)), draw(st.sampled_from(WAYS)), draw(st.integers(1, 5))
    rows, columns = (draw(st.integers(9, 30)) for _ in range(2))
    kinds: list[Callable[[], Graph]] = [
        lambda: u_net(columns, width, draw(st.integers(1, 3)), way, rows=rows, seed=seed),
        lambda: u_net(columns, width, draw(st.integers(1, 3)), way, rows=rows, seed=seed),
        lambda: pyramid(columns, width, way, seed=seed),
        lambda: head(columns, width, way, seed=seed),
        lambda: super_resolution(columns, width, way, draw(st.integers(2, 3)), seed=seed),
        lambda: decoder(rows, columns, width, seed=seed),
    ]
    return draw(st.sampled_from(kinds))()


# ---- networks that move channels -------------------------------------------------------------------

_WIDTHS = ((24, 1), (28, 1), (32, 2), (36, 1), (42, 1), (48, 2), (56, 1), (64, 1), (72, 1), (80, 1), (88, 1))


def _blaze_block(
    net: NetBuilder, x: int, channels: int, stride: int = 1, kernel: int = 5, before: int = 0
) -> int:
    """Depthwise and 1x1 convolutions and a shortcut, which is pooled if strided and padded if narrower."""
    y = net.conv(depthwise(net, x, kernel, stride), channels)
    if stride > 1:
        x = net.pool(OpKind.MAX_POOL_2D, x, (stride, stride), (stride, stride), same=True)
    behind = channels - net.shape(x)[3] - before
    if before or behind:
        x = net.pad(x, ((0, 0), (0, 0), (0, 0), (before, behind)))
    return net.elementwise(OpKind.ADD, y, x, Activation.RELU)


def blazeface(size: int = 128) -> Graph:
    """The face detector of Bazarevsky et al. (2019): boxes and scores at two resolutions."""
    net = NetBuilder(1, "blazeface")
    x = conv(net, net.input((1, size, size, 3)), 24, 2, 5)
    for channels, stride in _WIDTHS:
        x = _blaze_block(net, x, channels, stride)
    heads = [(x, 2)]
    for stride in (2, 1, 1, 1, 1):
        x = _blaze_block(net, x, 96, stride)
    return net.graph([net.conv(t, count * n) for t, n in (*heads, (x, 6)) for count in (1, 16)])


def channel_moves() -> Graph:
    """A transposed input, and every kind of channel move."""
    net = NetBuilder(3, "moves")
    x = net.move(OpKind.TRANSPOSE, net.input((1, 3, 19, 17)), attrs=g.TransposeAttrs((0, 2, 3, 1)))
    x = net.conv(x, 6, kernel=(3, 3), same=True)
    x = _blaze_block(net, x, 11, kernel=3, before=2)
    x = _blaze_block(net, x, 12, stride=2, kernel=3)
    for _ in range(2):
        first, second = net.split(x, 2)
        x = shuffled(net, net.concat([first, net.conv(depthwise(net, second), 6)]), 3)
    wide = net.pad(x, ((0, 0), (0, 0), (0, 0), (1, 2)))
    x = net.elementwise(OpKind.MUL, net.conv(x, 15), wide)
    *image, _ = net.shape(x)
    picked = g.SliceAttrs((0, 0, 0, 13), (1, 1, 1, -3), (*image, 5))
    x = net.move(OpKind.STRIDED_SLICE, x, (*image, 5), picked)
    x = net.conv(x, 4, kernel=(3, 3), same=True)
    return net.graph([net.dense(net.mean(x), 5)])


def audio() -> Graph:
    """A spectrogram as a vector, separable layers along time, and outputs at two places."""
    net = NetBuilder(5, "audio")
    x = net.move(OpKind.RESHAPE, net.input((1, 31 * 10)), (1, 31, 10, 1))
    x = net.conv(x, 8, kernel=(8, 5), stride=(2, 2), same=True, activation=Activation.RELU)
    for _ in range(2):
        x = net.conv(depthwise(net, x), 8, activation=Activation.RELU)
    size = net.shape(x)[1:3]
    flat = net.flatten(net.pool(OpKind.AVERAGE_POOL_2D, x, size, size))
    return net.graph([net.softmax(net.dense(flat, 6)), net.dense(flat, 2), x])


def wired() -> Graph:
    """RandWire: each node of a small world adds its inputs, then ReLU, depthwise and 1x1."""
    nodes = 6
    net, edges = NetBuilder(6, "wired"), watts_strogatz(nodes, 6)
    add, outs = partial(net.elementwise, OpKind.ADD), dict[int, int]()
    first = conv(net, net.input((1, 32, 32, 3)), 8, 2)
    for node in range(nodes):
        total = reduce(add, [outs[a] for a, b in edges if b == node] or [first])
        outs[node] = net.conv(depthwise(net, net.unary(OpKind.RELU, total)), 8)
    ends = [outs[node] for node in range(nodes) if all(a != node for a, _ in edges)]
    return net.graph([net.dense(net.mean(reduce(add, ends)), 4)])


def every_view() -> Graph:
    """All kinds of channel parts: halves, odd widths, a part of a part, parts that are joined again."""
    net = NetBuilder(5, "views")
    x = conv(net, net.input((1, 24, 22, 3)), 24)  # the largest tensor: views are free
    x = net.conv(net.pool(OpKind.MAX_POOL_2D, x, (2, 2), (2, 2)), 16)
    first, second = net.split(x, 2)
    ends = [
        net.conv(first, 8, kernel=(3, 3), same=True),
        depthwise(net, second),
        net.elementwise(OpKind.ADD, first, second),
        net.conv(first, 8),
    ]
    x = net.concat(ends)
    odd = [taken(net, x, *of) for of in ((0, 5), (5, 7), (12, 3), (15, 17))]
    ends = [
        net.pool(OpKind.AVERAGE_POOL_2D, net.conv(odd[0], 4), (2, 2), (2, 2)),
        net.conv(odd[1], 6, kernel=(3, 3), stride=(2, 2), same=True),
        net.pool(OpKind.MAX_POOL_2D, odd[2], (3, 3), (2, 2), same=True),
        depthwise(net, taken(net, odd[3], 1, 12), stride=2),
    ]
    ends[0] = net.pad(ends[0], ((0, 0), (0, 0), (0, 1), (0, 0)))
    x = net.concat(ends)
    gate = net.unary(OpKind.HARD_SWISH, taken(net, x, 4, 16))
    x = net.conv(net.elementwise(OpKind.MUL, taken(net, x, 0, 16), gate), 10)
    one = net.elementwise(OpKind.ADD, x, taken(net, x, 3, 1))  # one channel, as far apart as all of them
    one = net.elementwise(OpKind.MUL, one, taken(net, one, 7, 1))
    return net.graph([net.dense(net.mean(one), 5), taken(net, x, 2, 3)])


def gated_halves() -> Graph:
    """A chain of gated linear units. Streamed, each reads both halves of a ring's rows."""
    net = NetBuilder(3, "halves")
    x = net.conv(net.input((1, 20, 20, 3)), 8, kernel=(3, 3), same=True)
    for _ in range(3):
        first, second = net.split(net.conv(x, 16, kernel=(3, 3), same=True), 2)
        x = net.elementwise(OpKind.MUL, first, net.unary(OpKind.LOGISTIC, second))
    return net.graph([net.dense(net.mean(x), 10)])


def wide_branches() -> Graph:
    """Three wide branches, and reshapes that share their bytes. Another operator order needs less memory."""
    net = NetBuilder(5)
    x = net.input((1, 12, 12, 8))
    wide = [net.conv(x, 48, kernel=(3, 3), same=True) for _ in range(3)]
    moved = [net.flatten(w) for w in wide]
    joined = net.concat([net.conv(w, 4) for w in wide])
    return net.graph([net.conv(joined, 8), moved[0]])


# ---- gates, and split networks ---------------------------------------------------------------------

# EfficientNet-B0: kernel, expansion, channels, stride of the first, number of blocks
_STAGES = ((3, 1, 16, 1, 1), (3, 6, 24, 2, 2), (5, 6, 40, 2, 2), (3, 6, 80, 2, 3), (5, 6, 112, 1, 3))
_STAGES += ((5, 6, 192, 2, 4), (3, 6, 320, 1, 1))
_BLOCKS = [(*one[:3], one[3] if i == 0 else 1) for one in _STAGES for i in range(one[4])]


def efficient_net(size: int, blocks: int = len(_BLOCKS), *, swish: bool = False) -> Graph:
    """The first blocks of EfficientNet-B0, with hard swish or swish."""
    net = NetBuilder(5, "gated")

    def curve(x: int) -> int:
        return add_swish(net, x) if swish else net.unary(OpKind.HARD_SWISH, x)

    x = net.conv(net.input((1, size, size, 3)), 32, kernel=(3, 3), stride=(2, 2), same=True)
    x = curve(x)
    for kernel, expansion, channels, stride in _BLOCKS[:blocks]:
        before, wide = x, net.shape(x)[3] * expansion
        if expansion > 1:
            x = curve(net.conv(x, wide))
        x = net.conv(gated(net, curve(depthwise(net, x, kernel, stride))), channels)
        if net.shape(x) == net.shape(before):
            x = net.elementwise(OpKind.ADD, x, before)
    return net.graph([net.dense(net.mean(x), 10)])


def split_network(
    branches: int = 4,
    *,
    blocks: int = 2,
    side: int = 16,
    channels: int = 16,
    is_chain: bool = True,
    residual: bool = False,
    seed: int = 0,
) -> Graph:
    """Blocks of slim branches. A 1x1 convolution mixes their ends before the next block.

    `is_chain`: each branch's end is joined to those before it immediately. Otherwise all are joined at once.
    """
    net = NetBuilder(seed)
    sources: tuple[int, ...] = (net.input((1, side, side, 3)),) * branches
    slim = channels // branches
    for _ in range(blocks):
        ends: list[int] = []
        for x in sources:
            y = net.conv(x, slim, kernel=(3, 3), same=True)
            z = net.conv(y, slim, kernel=(3, 3), same=True)
            end = net.elementwise(OpKind.ADD, z, y) if residual else z
            ends = [net.concat([*ends, end])] if ends and is_chain else [*ends, end]
        joined = ends[0] if is_chain else net.concat(ends)
        sources = net.split(net.conv(joined, channels), branches)
    last = net.concat([net.conv(x, slim, kernel=(3, 3), same=True) for x in sources])
    return rewrite(net.graph([net.dense(net.mean(last), 4)]))
