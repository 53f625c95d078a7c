"""Hypothesis strategies of whole networks. Each block adds operators and returns its output.

`small_networks` has most operators. `branching_networks` has nested modules that fork and join.
`sliced_networks` reads parts of channels. `gated_networks` has squeeze and excite. `padded_networks` has
PADs.
"""

from functools import partial

from hypothesis import strategies as st
from namednets import add_swish, gated, shuffled, taken

from buildtool.graph import types as g
from buildtool.graph.types import Activation, DType, Graph, OpKind
from buildtool.zoo.drawn import NetBuilder

MAX_SIDE = 17  # rows and columns that no block exceeds
MAX_CHANNELS = 16

Draw = st.DrawFn

_activations = st.sampled_from([Activation.NONE, Activation.RELU, Activation.RELU6])
_kernels = st.sampled_from([(1, 1), (3, 3), (3, 3), (2, 3), (5, 3), (1, 4)])
_odd_kernels = st.sampled_from([(1, 1), (3, 3), (3, 3), (5, 3), (1, 3)])
_channels = st.integers(1, MAX_CHANNELS)
_few = st.integers(1, 6)
_pools = st.sampled_from([OpKind.MAX_POOL_2D, OpKind.AVERAGE_POOL_2D])
_seeds = st.integers(0, 2**31 - 1)


# ---- chains ----------------------------------------------------------------------------------------


def _fit(net: NetBuilder, x: int, kernel: tuple[int, int]) -> tuple[int, int]:
    """Returns the kernel, cut to the size of x."""
    _, height, width, _ = net.shape(x)
    return min(kernel[0], height), min(kernel[1], width)


def _conv(draw: Draw, net: NetBuilder, x: int) -> int:
    same = draw(st.booleans())
    dilated = same and draw(st.integers(0, 4)) == 0
    groups = 2 if net.shape(x)[3] % 2 == 0 and draw(st.integers(0, 5)) == 0 else 1
    return net.conv(
        x,
        draw(st.integers(1, MAX_CHANNELS // groups)) * groups,
        kernel=_fit(net, x, draw(_kernels)),
        stride=(1, 1) if dilated else draw(st.sampled_from([(1, 1), (1, 1), (2, 2), (2, 1), (1, 3)])),
        dilation=(2, 2) if dilated else (1, 1),
        same=same,
        groups=groups,
        activation=draw(_activations),
        per_channel=draw(st.booleans()),
    )


def _depthwise(draw: Draw, net: NetBuilder, x: int) -> int:
    stride = draw(st.integers(1, 2))
    return net.conv(
        x,
        0,
        kernel=_fit(net, x, draw(_kernels)),
        stride=(stride, stride),
        same=draw(st.booleans()),
        depth_multiplier=2 if net.shape(x)[3] <= MAX_CHANNELS // 2 and draw(st.booleans()) else 1,
        activation=draw(_activations),
    )


def _separable(draw: Draw, net: NetBuilder, x: int) -> int:
    return net.conv(_depthwise(draw, net, x), draw(_channels), activation=draw(_activations))


def _pool(draw: Draw, net: NetBuilder, x: int) -> int:
    stride = draw(st.integers(1, 2))
    kernel = _fit(net, x, draw(st.sampled_from([(2, 2), (3, 3), (3, 2)])))
    return net.pool(draw(_pools), x, kernel, (stride, stride), draw(st.booleans()))


def _pad(draw: Draw, net: NetBuilder, x: int) -> int:
    """PAD or MIRROR_PAD, then a convolution without padding."""
    mode = draw(st.sampled_from([g.PadMode.CONSTANT, *g.PadMode]))
    if mode is g.PadMode.REFLECT and min(net.shape(x)[1:3]) < 2:
        mode = g.PadMode.CONSTANT
    rows, columns = (draw(st.tuples(st.integers(0, 1), st.integers(0, 1))) for _ in range(2))
    y = net.pad(x, ((0, 0), rows, columns, (0, 0)), mode)
    stride, depthwise = draw(st.integers(1, 2)), draw(st.integers(0, 1))
    kernel = _fit(net, y, (3, 3))
    return net.conv(y, draw(_channels), kernel=kernel, stride=(stride, stride), depth_multiplier=depthwise)


def _enlarge(draw: Draw, net: NetBuilder, x: int) -> int:
    batch, height, width, channels = net.shape(x)
    if max(height, width) > MAX_SIDE // 2:
        return _pool(draw, net, x)
    if draw(st.integers(0, 2)) == 0:
        return net.transpose_conv(x, draw(_channels), kernel=(3, 3), stride=(2, 2), same=draw(st.booleans()))
    kind = draw(st.sampled_from([OpKind.RESIZE_NEAREST_NEIGHBOR, OpKind.RESIZE_BILINEAR]))
    attrs = g.ResizeAttrs(*draw(st.sampled_from([(False, False), (True, False), (False, True)])))
    return net.move(kind, x, (batch, 2 * height - draw(st.integers(0, 1)), 2 * width, channels), attrs)


_POINTWISE = (
    *(OpKind.LOGISTIC, OpKind.TANH, OpKind.HARD_SWISH, OpKind.RELU, OpKind.RELU6, OpKind.LEAKY_RELU),
    *(OpKind.ABS, OpKind.EXP, OpKind.LOG, OpKind.GELU, OpKind.QUANTIZE, OpKind.PRELU, OpKind.ADD),
)


def _pointwise(draw: Draw, net: NetBuilder, x: int) -> int:
    kind, channels = draw(st.sampled_from(_POINTWISE)), net.shape(x)[3]
    if kind is OpKind.QUANTIZE:
        return net.requantize(x)
    if kind is OpKind.PRELU:
        return net.prelu(x, (1, 1, channels))
    if kind is OpKind.ADD:
        return net.elementwise(kind, x, net.constant((channels,) if draw(st.booleans()) else (1,)))
    return net.unary(kind, x)


def _crop(draw: Draw, net: NetBuilder, x: int) -> int:
    shape, kind = net.shape(x), draw(st.sampled_from([OpKind.SLICE, OpKind.STRIDED_SLICE]))
    begin = [0, *(draw(st.integers(0, (n - 1) // 2)) for n in shape[1:])]
    strides = [1, 2 if kind is OpKind.STRIDED_SLICE else 1, 1, 1]
    extent = [(n - 1 - b) // s + 1 for n, b, s in zip(shape, begin, strides, strict=True)]
    return net.move(kind, x, extent, g.SliceAttrs(tuple(begin), tuple(strides), tuple(extent)))


def _turn(draw: Draw, net: NetBuilder, x: int) -> int:
    """TRANSPOSE of rows and columns, or of channels and columns."""
    perm = draw(st.sampled_from([(0, 2, 1, 3), (0, 1, 3, 2)]))
    return net.move(OpKind.TRANSPOSE, x, attrs=g.TransposeAttrs(perm))


def _link(draw: Draw, net: NetBuilder, x: int, kinds: str = "conv conv depthwise pool table constant") -> int:
    """One operator that keeps rows and columns."""
    kind, channels = draw(st.sampled_from(kinds.split())), net.shape(x)[3]
    if kind == "pool":
        return net.pool(draw(_pools), x, (3, 3), (1, 1), same=True)
    if kind == "table":
        return net.unary(draw(st.sampled_from([OpKind.HARD_SWISH, OpKind.RELU, OpKind.LOGISTIC])), x)
    if kind == "constant":
        return net.elementwise(OpKind.MUL, x, net.constant((channels,)))
    if kind == "sum":
        return net.elementwise(OpKind.ADD, x, net.conv(x, channels), Activation.RELU)
    if kind == "gate":
        return gated(net, x)
    multiplier = draw(st.integers(1, 2)) if kind == "depthwise" else 0
    return net.conv(x, draw(_few), kernel=draw(_odd_kernels), same=True, depth_multiplier=multiplier)


# ---- modules that fork and join --------------------------------------------------------------------


def _residual(draw: Draw, net: NetBuilder, x: int) -> int:
    """An inverted residual block: widen, depthwise, narrow, add."""
    y = net.conv(x, draw(_channels), activation=Activation.RELU6)
    y = net.conv(y, 0, kernel=(3, 3), same=True, depth_multiplier=1, activation=Activation.RELU6)
    y = net.conv(y, net.shape(x)[3])
    kind = OpKind.ADD if draw(st.integers(0, 3)) else OpKind.SUB
    return net.elementwise(kind, *draw(st.permutations([x, y])), draw(_activations))


def _gate(draw: Draw, net: NetBuilder, x: int) -> int:
    """Squeeze and excite: channels scaled by a function of their means; 1x1 or dense layers."""
    y = net.mean(x, keep_dims=net.shape(x)[0] > 1 or draw(st.booleans()))
    layer = net.conv if len(net.shape(y)) == 4 else net.dense
    y = layer(layer(y, max(net.shape(x)[3] // 2, 1), activation=Activation.RELU), net.shape(x)[3])
    y = net.unary(draw(st.sampled_from([OpKind.LOGISTIC, OpKind.HARD_SWISH])), y)
    return net.elementwise(OpKind.MUL, *draw(st.permutations([x, y])))


def _path(draw: Draw, net: NetBuilder, x: int, depth: int) -> int:
    """A chain of operators and modules that keep rows and columns."""
    for _ in range(draw(st.integers(1, 3))):
        if depth and draw(st.integers(0, 2)) == 0:
            block = draw(st.sampled_from([_concatenate, _add_paths]))
            x = block(draw, net, x, depth - 1)
        else:
            x = _link(draw, net, x)
    return x


def _concatenate(draw: Draw, net: NetBuilder, x: int, depth: int = 1) -> int:
    """Parallel paths, as in Inception. Sometimes the input is a part too, as in DenseNet."""
    parts = [_path(draw, net, x, depth) for _ in range(draw(st.integers(2, 3)))]
    if draw(st.booleans()):
        parts.insert(draw(st.integers(0, len(parts))), x)
    return net.concat(parts)


def _fire(draw: Draw, net: NetBuilder, x: int) -> int:
    """Parallel operators on one tensor, joined in one or two steps: SqueezeNet, Inception."""
    widths = draw(st.sampled_from([(4, 4), (3, 5, 1), (8, 4), (5, 7), (2, 2, 4), (1, 1, 1, 1)]))
    ends = [net.conv(x, n, kernel=draw(_odd_kernels), same=True) for n in widths]
    ends[0] = net.unary(OpKind.HARD_SWISH, ends[0]) if draw(st.booleans()) else ends[0]
    if draw(st.booleans()):
        ends[-1] = net.pool(OpKind.MAX_POOL_2D, ends[-1], (3, 3), (1, 1), same=True)
    return net.concat([net.concat(ends[:2]), *ends[2:]] if draw(st.booleans()) else ends)


def _add_paths(draw: Draw, net: NetBuilder, x: int, depth: int = 1) -> int:
    """Paths that are added, each after a projection."""
    channels, kind = draw(_few), draw(st.sampled_from([OpKind.ADD, OpKind.MUL, OpKind.SUB]))
    paths = [net.conv(_path(draw, net, x, depth), channels) for _ in range(2)]
    return net.elementwise(kind, *draw(st.permutations(paths)))


def _shrink(draw: Draw, net: NetBuilder, x: int) -> int:
    """Two strided convolutions and a strided pool in parallel, with or without padding."""
    kernel, same = min(draw(st.sampled_from([1, 2, 3])), *net.shape(x)[1:3]), draw(st.booleans())
    strided = partial(net.conv, kernel=(kernel, kernel), stride=(2, 2), same=same)
    z = net.pool(OpKind.MAX_POOL_2D, x, (kernel, kernel), (2, 2), same=same)
    parts = [_path(draw, net, strided(x, draw(_few)), 0), net.conv(z, net.shape(z)[3])]
    return net.concat(draw(st.permutations([*parts, strided(_link(draw, net, x), 2)])))


def _deep(draw: Draw, net: NetBuilder, x: int) -> int:
    """Two paths of convolutions without padding that have the same receptive field."""
    if min(net.shape(x)[1:3]) < 6:
        return _link(draw, net, x)
    long = net.conv(net.conv(x, 3, kernel=(3, 3)), draw(_few), kernel=(3, 3))
    return net.concat([long, net.conv(x, draw(_few), kernel=(5, 5))])


def _widen(draw: Draw, net: NetBuilder, x: int) -> int:
    """BlazeFace: a shortcut with fewer channels is padded before the sum, strided or not."""
    before, behind = draw(st.sampled_from([(0, 1), (0, 3), (2, 0), (1, 2)]))
    stride = draw(st.sampled_from([1, 1, 2])) if min(net.shape(x)[1:3]) >= 4 else 1
    y = net.conv(x, 0, kernel=(3, 3), stride=(stride, stride), same=True, depth_multiplier=1)
    y = net.conv(y, net.shape(x)[3] + before + behind)
    short = x if stride == 1 else net.pool(OpKind.MAX_POOL_2D, x, (2, 2), (2, 2), same=True)
    short = net.pad(short, ((0, 0), (0, 0), (0, 0), (before, behind)))
    kind = draw(st.sampled_from([OpKind.ADD, OpKind.ADD, OpKind.MUL]))  # MUL needs the PAD
    return net.elementwise(kind, *draw(st.permutations([short, y])), draw(st.sampled_from(list(Activation))))


def _pick(draw: Draw, net: NetBuilder, x: int) -> int:
    """Joins every second channel, or the channels in reverse, with all channels."""
    *image, channels = net.shape(x)
    begin, step = draw(st.sampled_from([(0, 2), (channels - 1, -1)]))
    attrs = g.SliceAttrs((0, 0, 0, begin), (1, 1, 1, step), (*image, -(-channels // abs(step))))
    return net.concat([net.move(OpKind.STRIDED_SLICE, x, attrs.extent, attrs), x])


def _halve(draw: Draw, net: NetBuilder, x: int, shuffles: bool = True) -> int:
    """Splits channels and joins the halves again: ShuffleNet, CSP, gated linear units."""
    half = draw(st.integers(1, 5))
    first, second = net.split(net.conv(x, 2 * half, kernel=draw(_odd_kernels), same=True), 2)
    if draw(st.integers(0, 2)) == 0:
        kind = draw(st.sampled_from([OpKind.ADD, OpKind.MUL, OpKind.MAXIMUM, OpKind.SUB]))
        second = net.unary(OpKind.LOGISTIC, second) if kind is OpKind.MUL else second
        return (net.pair if kind is OpKind.MAXIMUM else net.elementwise)(kind, first, second)
    joined = net.concat(draw(st.permutations([first, _path(draw, net, second, 1)])))
    groups = [n for n in (2, 3) if shuffles and net.shape(joined)[3] % n == 0]
    return shuffled(net, joined, draw(st.sampled_from(groups))) if groups and draw(st.booleans()) else joined


# ---- parts of channels -----------------------------------------------------------------------------


def _some(draw: Draw, net: NetBuilder, x: int) -> int:
    """A part of the channels, or a part of a part."""
    wide = net.shape(x)[3]
    channels = draw(st.integers(1, wide))
    part = taken(net, x, draw(st.integers(0, wide - channels)), channels) if channels < wide else x
    return _some(draw, net, part) if channels > 2 and draw(st.integers(0, 3)) == 0 else part


def _read(draw: Draw, net: NetBuilder, x: int, channels: int) -> int:
    """An operator that can read a part of channels, and a convolution to this many channels."""
    x = _link(draw, net, x, "conv conv depthwise pool table sum constant gate")
    return x if net.shape(x)[3] == channels else net.conv(x, channels, kernel=draw(_odd_kernels), same=True)


def _branch(draw: Draw, net: NetBuilder, x: int) -> int:
    """Parts of odd widths, each read by its own operators, and joined."""
    parts = [_some(draw, net, x) for _ in range(draw(st.integers(2, 3)))]
    ends = [_read(draw, net, part, draw(st.integers(1, 7))) for part in parts]
    if draw(st.booleans()):
        ends.append(draw(st.sampled_from([x, *parts])))
    joined = net.concat(draw(st.permutations(ends)))
    return net.concat([joined, _read(draw, net, x, 3)]) if draw(st.booleans()) else joined


def _chain(draw: Draw, net: NetBuilder, x: int) -> int:
    """Branches that are joined one after the other, as in split networks."""
    joined = _read(draw, net, _some(draw, net, x), draw(_few))
    for _ in range(draw(st.integers(1, 3))):
        joined = net.concat([joined, _read(draw, net, _some(draw, net, x), draw(_few))])
    return net.conv(joined, draw(st.integers(1, 8)))


# ---- networks --------------------------------------------------------------------------------------

_SMALL = (
    *(_conv, _depthwise, _separable, _residual, _fire, _gate, _pool, _pad, _enlarge, _pointwise),
    *(partial(_halve, shuffles=False), _crop, _turn),  # ONNX has no shuffle
)
_BRANCHING = (
    *(_concatenate, _concatenate, _add_paths, _shrink, _deep, _gate, _halve, _widen, _widen, _pick),
)
_SLICING = (_branch, _fire, _halve, _chain)


def _classifier(draw: Draw, net: NetBuilder, x: int) -> int:
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
def small_networks(draw: Draw, *, firmware: bool = False, max_blocks: int = 6) -> Graph:
    """A network of one input, up to `max_blocks` blocks, and one or two outputs.

    `firmware`: batch 1, int8 inputs and outputs. Otherwise also batch 2, and uint8 or float.
    """
    net = NetBuilder(draw(_seeds))
    batch, dtype = 1, DType.INT8
    if not firmware:
        batch = draw(st.sampled_from([1, 1, 2]))
        dtype = draw(st.sampled_from([DType.INT8, DType.INT8, DType.UINT8, DType.FLOAT32]))
    side = st.integers(3, MAX_SIDE)
    x = net.input((batch, draw(side), draw(side), draw(st.integers(1, 4))), dtype)
    if dtype is not DType.INT8:
        x = net.requantize(x)
    outputs = []
    for block in draw(st.lists(st.sampled_from(_SMALL), min_size=1, max_size=max_blocks)):
        x = block(draw, net, x)
        if not outputs and draw(st.integers(0, 11)) == 0:
            outputs.append(net.conv(x, draw(st.integers(1, 4))))
    outputs.append(_classifier(draw, net, x) if draw(st.integers(0, 3)) else x)
    if not firmware and draw(st.integers(0, 3)) == 0:
        outputs[-1] = net.dequantize(outputs[-1])
    return net.graph(outputs)


def _image(draw: Draw, low: int, high: int, batch: int = 1) -> tuple[NetBuilder, int]:
    """Returns a network, and its input image of up to four channels."""
    net, side = NetBuilder(draw(_seeds)), st.integers(low, high)
    return net, net.input((batch, draw(side), draw(side), draw(st.integers(1, 4))))


@st.composite
def branching_networks(draw: Draw, modules: int = 3) -> Graph:
    """A network of modules with operators between them. It may end with a classifier or planes."""
    net, x = _image(draw, 5, 15)
    x = net.conv(x, draw(_few), kernel=(3, 3), same=True)
    for block in draw(st.lists(st.sampled_from(_BRANCHING), min_size=1, max_size=modules)):
        x = block(draw, net, x)
        x = _link(draw, net, x) if draw(st.booleans()) else x
    end = draw(st.sampled_from(["tensor", "dense", "planes"]))
    if end == "planes":
        batch, rows, columns, channels = net.shape(x)
        planes = (batch, channels, rows, columns)
        x = net.move(OpKind.TRANSPOSE, x, planes, g.TransposeAttrs((0, 3, 1, 2)))
    return net.graph([net.dense(net.mean(x), 4) if end == "dense" else x])


@st.composite
def sliced_networks(draw: Draw, batch: int = 1) -> Graph:
    """A network of modules that read parts of channels. Outputs: a classifier or tensor, and some parts."""
    net, x = _image(draw, 4, 11, batch)
    if draw(st.integers(0, 3)) < 3:  # otherwise the modules read parts of the input image
        x = net.conv(x, draw(st.integers(4, 11)), kernel=(3, 3), same=True)
    outputs = []
    for block in draw(st.lists(st.sampled_from(_SLICING), min_size=1, max_size=3)):
        x = block(draw, net, x)
        if net.shape(x)[3] > 1 and draw(st.integers(0, 4)) == 0:
            outputs.append(taken(net, x, 1, net.shape(x)[3] - 1))
    return net.graph([net.dense(net.mean(x), 4) if draw(st.booleans()) else x, *outputs])


@st.composite
def gated_networks(draw: Draw) -> Graph:
    """One to three gates, each after operators that widen or shrink. Some have a residual around them."""
    net, x = _image(draw, 5, 14)
    if draw(st.booleans()):
        x = net.conv(x, draw(st.integers(1, 4)), kernel=(3, 3), same=True)
    for _ in range(draw(st.integers(1, 3))):
        before = x
        x = net.conv(x, draw(st.integers(6, 12)), kernel=draw(st.sampled_from([(1, 1), (3, 3)])), same=True)
        for kind in draw(st.lists(st.sampled_from(["depthwise", "strided", "swish", "pool"]), max_size=3)):
            if kind == "swish":
                x = add_swish(net, x)
            elif kind == "pool":
                x = net.pool(OpKind.MAX_POOL_2D, x, (3, 3), (1, 1), same=True)
            else:
                stride = (2, 2) if kind == "strided" and min(net.shape(x)[1:3]) > 4 else (1, 1)
                x = net.conv(x, 0, kernel=(3, 3), stride=stride, same=True, depth_multiplier=1)
        x = gated(net, x, draw(st.sampled_from([OpKind.MUL, OpKind.MUL, OpKind.ADD])))
        if draw(st.booleans()):
            x = net.conv(x, net.shape(before)[3])
        if net.shape(x) == net.shape(before):
            x = net.elementwise(OpKind.ADD, x, before)
    return net.graph([x])


@st.composite
def padded_networks(draw: Draw) -> Graph:
    """One to three PADs of rows and columns, of any value, between a convolution and one or a pooling.

    Windows may read nothing but padding, and strides may leave out rows and columns.
    """
    (net, x), few = _image(draw, 4, 11), st.integers(1, 3)
    for _ in range(draw(few)):
        x = net.conv(x, draw(_few), activation=draw(_activations))
        quant, sides = net.tensors[x].quant, st.tuples(st.integers(0, 4), st.integers(0, 4))
        assert quant is not None
        value = draw(st.sampled_from([quant.zero_point, quant.zero_point, -128, -5, 127]))
        paddings = ((0, 0), draw(sides), draw(sides), (0, 0))
        x = net.move(OpKind.PAD, x, attrs=g.PadAttrs(paddings, value=value))
        kernel, stride = _fit(net, x, draw(st.tuples(few, few))), draw(st.tuples(few, few))
        if draw(st.integers(0, 3)) == 0:
            x = net.pool(draw(_pools), x, kernel, stride, draw(st.booleans()), draw(_activations))
        else:
            x = net.conv(
                x, draw(_few), kernel=kernel, stride=stride, depth_multiplier=draw(st.integers(0, 1))
            )
    return net.graph([x])
