"""Random small networks for the kernels of a catalogue, each around one operator of a kind.

The sizes are those at which kernels often fail: odd sizes, 1, and sizes next to the multiples of vector units
and unrolled loops. Weights and inputs use the whole range of int8.

The functions `_add_...` add an operator to `net` that reads the tensor `x`, and return its output. What is
random comes from `draw`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

from buildtool.graph import types as g
from buildtool.graph.ops import DEFS
from buildtool.graph.ops.signal import CUSTOM
from buildtool.graph.types import Activation, DType, Graph, OpKind
from buildtool.zoo.drawn import NetBuilder, WideNetBuilder, quant
from buildtool.zoo.drawn_signal import add_signal
from buildtool.zoo.drawn_state import lstm, svdf

CHANNELS = (1, 2, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17, 20, 31, 32, 33, 48, 64)
SIDES = (1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 13, 16, 17)
KERNELS = ((1, 1), (1, 1), (3, 3), (3, 3), (3, 3), (5, 5), (7, 7), (1, 3), (3, 1), (2, 2), (4, 4), (2, 5))
Draw = np.random.Generator
T = TypeVar("T")


def pick(draw: Draw, choices: Sequence[T]) -> T:
    """Returns one of `choices`, at random."""
    return choices[int(draw.integers(len(choices)))]


def chance(draw: Draw, one_in: int) -> bool:
    """Returns True once in `one_in` draws, on average."""
    return int(draw.integers(one_in)) == 0


def _pick_activation(draw: Draw) -> Activation:
    return pick(draw, list(Activation))


def _swap(draw: Draw, x: int, other: int) -> tuple[int, int]:
    """Returns two operands in random order."""
    return (x, other) if chance(draw, 2) else (other, x)


def _add_conv(net: NetBuilder, draw: Draw, x: int, kind: OpKind) -> int:
    """Adds a convolution. Without padding, its window fits into `x`."""
    _, height, width, depth = net.shape(x)
    kernel, dilation = pick(draw, KERNELS), (1, 1)
    if chance(draw, 6):
        dilation = (pick(draw, (1, 2)), pick(draw, (1, 2, 3)))
    stride = pick(draw, ((1, 1), (1, 1), (2, 2), (2, 1), (1, 2), (3, 3)))
    depthwise = kind is OpKind.DEPTHWISE_CONV_2D
    if depthwise:
        stride = (stride[0], stride[0])
    extent = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
    valid = extent[0] <= height and extent[1] <= width and chance(draw, 2)
    groups = pick(draw, [n for n in (2, 3, 4) if depth % n == 0] or [1]) if chance(draw, 8) else 1
    return net.conv(
        x,
        pick(draw, CHANNELS) * groups,
        kernel=kernel,
        stride=stride,
        dilation=dilation,
        same=not valid,
        groups=1 if depthwise else groups,
        depth_multiplier=(pick(draw, (2, 3)) if chance(draw, 5) else 1) if depthwise else 0,
        activation=_pick_activation(draw),
        per_channel=not chance(draw, 3),
        bias=not chance(draw, 4),
    )


def _add_transpose_conv(net: NetBuilder, draw: Draw, x: int, _kind: OpKind) -> int:
    kernel = pick(draw, ((2, 2), (3, 3), (4, 4), (1, 3)))
    stride = pick(draw, ((1, 1), (2, 2), (2, 2), (3, 3)))
    return net.transpose_conv(x, pick(draw, CHANNELS), kernel=kernel, stride=stride, same=chance(draw, 2))


def _add_dense(net: NetBuilder, draw: Draw, x: int, _kind: OpKind) -> int:
    return net.dense(
        x,
        pick(draw, CHANNELS),
        activation=_pick_activation(draw),
        per_channel=chance(draw, 2),
        bias=not chance(draw, 4),
        keep_num_dims=chance(draw, 4),
    )


def _add_elementwise(net: NetBuilder, draw: Draw, x: int, kind: OpKind) -> int:
    """Adds an elementwise operator. Its second operand is `x`, another tensor, a constant, or is
    broadcast.
    """
    shape = list(net.shape(x))
    how = int(draw.integers(6))
    if how == 0:
        return net.elementwise(kind, x, x, _pick_activation(draw))
    if how == 1:
        other = net.constant(shape)
    elif how == 2:
        other = net.constant((1, 1, 1, shape[3]))
    elif how == 3:
        other = net.input((1, 1, 1, shape[3]))
    else:
        other = net.input(shape)
    return net.elementwise(kind, *_swap(draw, x, other), _pick_activation(draw))


def _add_operand(net: NetBuilder, draw: Draw, x: int) -> int:
    """Adds an input or a constant, as the second operand beside `x`.

    It has the shape of `x`, or has only one pixel, one channel or one element.
    """
    shape = list(net.shape(x))
    shapes: list[Sequence[int]] = [(1,), (1, 1, 1, shape[3]), (*shape[:3], 1), shape, shape]
    other = pick(draw, shapes)
    return net.constant(other) if chance(draw, 2) else net.input(other)


def _add_pair(net: NetBuilder, draw: Draw, x: int, kind: OpKind) -> int:
    """Adds an operator of two operands, such as a maximum or a comparison. Logical operators get booleans."""
    other = _add_operand(net, draw, x)
    if kind in (OpKind.LOGICAL_AND, OpKind.LOGICAL_OR):
        truth = net.tensor((1,), None, DType.BOOL, np.array([chance(draw, 2)]))
        other = truth if chance(draw, 4) else net.pair(OpKind.GREATER_EQUAL, x, other)
        x = net.pair(OpKind.LESS, x, net.constant((1,)))
    return net.pair(kind, *_swap(draw, x, other))


def _add_select(net: NetBuilder, draw: Draw, x: int, _kind: OpKind) -> int:
    if chance(draw, 4):  # between two constants
        return net.select(net.pair(OpKind.LESS, x, net.constant((1,))), *(net.constant((1,)) for _ in "ab"))
    condition = net.pair(OpKind.GREATER, x, _add_operand(net, draw, x))
    other = _add_operand(net, draw, x)
    return net.select(condition, *_swap(draw, x, other))


def _add_pool(net: NetBuilder, draw: Draw, x: int, kind: OpKind) -> int:
    _, height, width, _ = net.shape(x)
    kernel = pick(draw, ((2, 2), (2, 2), (3, 3), (1, 1), (5, 5), (3, 2), (height, width)))
    stride = pick(draw, ((1, 1), (2, 2), (2, 2), (3, 3), (2, 1)))
    valid = kernel[0] <= height and kernel[1] <= width and chance(draw, 2)
    return net.pool(kind, x, kernel, stride, not valid, _pick_activation(draw))


def _add_pad(net: NetBuilder, draw: Draw, x: int, kind: OpKind) -> int:
    mirror = kind is OpKind.MIRROR_PAD
    most = 1 if mirror else 3
    sides = [(int(draw.integers(most + 1)), int(draw.integers(most + 1))) for _ in range(2)]
    mode = g.PadMode.CONSTANT
    if mirror:
        sides = [(a, b) if n > 1 else (0, 0) for (a, b), n in zip(sides, net.shape(x)[1:3], strict=True)]
        mode = g.PadMode.REFLECT if chance(draw, 2) else g.PadMode.SYMMETRIC
    return net.pad(x, [(0, 0), *sides, (0, 0)], mode)


def _add_concatenation(net: NetBuilder, draw: Draw, x: int, _kind: OpKind) -> int:
    shape, axis = list(net.shape(x)), pick(draw, (3, 3, 3, 1, 2))
    parts = [x]
    for _ in range(int(draw.integers(1, 4))):
        shape[axis] = pick(draw, CHANNELS[:10])
        parts.append(net.input(shape, q=net.tensors[x].quant))
    return net.concat(parts, axis)


def _add_split(net: NetBuilder, draw: Draw, x: int, _kind: OpKind) -> int:
    """Adds a split and returns its last output. The other outputs are not used."""
    shape = net.shape(x)
    ways = [(count, axis) for axis in (3, 1, 2) for count in (2, 3, 4) if shape[axis] % count == 0]
    count, axis = pick(draw, ways) if ways else (1, 3)
    return net.split(x, count, axis)[-1]


def _add_slice(net: NetBuilder, draw: Draw, x: int, kind: OpKind) -> int:
    shape = net.shape(x)
    begins = [int(draw.integers(n)) for n in shape]
    strides = [pick(draw, (1, 1, 2)) if kind is OpKind.STRIDED_SLICE else 1 for _ in shape]
    most = [(n - 1 - b) // s + 1 for n, b, s in zip(shape, begins, strides, strict=True)]
    extents = [int(draw.integers(1, n + 1)) for n in most]
    return net.move(kind, x, attrs=g.SliceAttrs(tuple(begins), tuple(strides), tuple(extents)))


def _add_resize(net: NetBuilder, draw: Draw, x: int, kind: OpKind) -> int:
    batch, height, width, depth = net.shape(x)
    attrs = g.ResizeAttrs(*pick(draw, ((False, False), (True, False), (False, True))))
    scale = pick(draw, (1, 2, 2, 3))
    shape = (batch, height * scale + int(draw.integers(2)), width * scale, depth)
    return net.move(kind, x, shape, attrs)


def _add_conversion(net: NetBuilder, draw: Draw, kind: OpKind, shape: Sequence[int]) -> int:
    """Adds a QUANTIZE or CAST from one integer type to another, with a new input."""
    source, result = (DType(f"int{bits}") for bits in pick(draw, DEFS[kind].conversions))
    if source is DType.INT32:
        half = net.input(shape, DType.INT16)
        x = net.op(OpKind.QUANTIZE, (half,), g.Attrs(), quant(net.scale(half) / 3e4), source)
    else:
        x = net.input(shape, source)
    if kind is OpKind.CAST:
        return net.cast(x, result)
    steps = {DType.INT8: 8, DType.INT16: 16, DType.INT32: 31}
    scale = net.scale(x) * 2.0 ** (steps[source] - steps[result]) * float(np.exp(draw.uniform(-0.7, 0.7)))
    return net.op(kind, (x,), g.Attrs(), net.random_quant(scale, result), result)


def _add_gather(net: NetBuilder, draw: Draw, x: int, kind: OpKind) -> int:
    axis = pick(draw, (1, 2, 3))
    indices = tuple(int(n) for n in draw.integers(0, net.shape(x)[axis], pick(draw, (1, 2, 5, 8))))
    return net.move(kind, x, attrs=g.GatherAttrs(axis, indices))


def _add_block_move(net: NetBuilder, draw: Draw, x: int, kind: OpKind) -> int:
    """Adds SPACE_TO_DEPTH or DEPTH_TO_SPACE, after an operator that makes the input consist of whole
    blocks.
    """
    batch, rows, columns, depth = net.shape(x)
    block = pick(draw, (2, 2, 3, 4))
    if kind is OpKind.DEPTH_TO_SPACE:
        y = net.conv(x, pick(draw, CHANNELS[:8]) * block**2)
    else:
        block = min(block, rows, columns)
        cut = (batch, rows // block * block, columns // block * block, depth)
        y = net.move(OpKind.SLICE, x, attrs=g.SliceAttrs((0,) * 4, (1,) * 4, cut))
    return net.move(kind, y, attrs=g.BlockAttrs(block))


def _add_product(net: NetBuilder, draw: Draw, x: int, kind: OpKind) -> int:
    """Adds a product along axes. Its scale is chosen so that its results are neither all 0 nor all at the
    limits.
    """
    axes = pick(draw, ((3,), (1,), (2,), (2, 3), (1, 3), (1, 2, 3)))
    count = math.prod(net.shape(x)[a] for a in axes)
    finer = net.typical / NetBuilder.typical  # steps of int16 for one of int8
    logarithm = count * math.log(net.scale(x) * draw.uniform(20, 60) * finer) - math.log(40 * finer)
    q = net.random_quant(math.exp(min(max(logarithm, -70), 70)))
    return net.op(kind, (x,), g.MeanAttrs(axes, True), q)


def _add_matmul(net: NetBuilder, draw: Draw, x: int, _kind: OpKind) -> int:
    batch, rows, columns, depth = net.shape(x)
    adj_x, adj_y = chance(draw, 3), chance(draw, 2)
    inner, outer = columns if adj_x else depth, pick(draw, CHANNELS[:10])
    shape = (batch, rows, *((outer, inner) if adj_y else (inner, outer)))
    return net.matmul(x, net.input(shape), adj_x, adj_y)


def _add_svdf(net: NetBuilder, draw: Draw, x: int, _kind: OpKind) -> int:
    """Adds an SVDF whose input is the mean of each channel."""
    memory = pick(draw, (1, 2, 5, 8, 9, 16))
    return svdf(net, net.mean(x), pick(draw, CHANNELS), rank=pick(draw, (1, 1, 2, 3)), memory=memory)


def _add_detections(net: NetBuilder, draw: Draw, x: int, _kind: OpKind) -> tuple[int, ...]:
    """Adds convolutions that make boxes and scores, and the operator that decodes the boxes and drops
    overlaps.
    """
    _, rows, columns, _ = net.shape(x)
    anchors, classes, background = pick(draw, (1, 2, 3)), pick(draw, (1, 2, 3, 7, 20)), int(draw.integers(2))
    size = pick(draw, (4, 4, 4, 5, 8))
    boxes = net.conv(x, anchors * size)
    scores = net.unary(OpKind.LOGISTIC, net.conv(x, anchors * (classes + background)))
    count, spread = anchors * rows * columns, net.scale(boxes) * 60
    attrs = g.DetectionAttrs(
        classes,
        detections=pick(draw, (1, 2, 5, 10, 40)),
        classes_each=pick(draw, (1, 1, 2, 3, 8)),
        per_class=pick(draw, (1, 3, 100)),
        regular=chance(draw, 2),
        least_score=float(np.float32(pick(draw, (0.0, 0.1, 0.5, 0.9, 1.0)))),
        most_overlap=float(np.float32(pick(draw, (0.1, 0.45, 0.6, 1.0)))),
        scales=tuple(float(np.float32(spread * factor)) for factor in draw.uniform(0.3, 2.0, 4)),
    )
    encoded = net.move(OpKind.RESHAPE, boxes, (1, count, size))
    of_classes = net.move(OpKind.RESHAPE, scores, (1, count, classes + background))
    return net.detections(encoded, of_classes, attrs)


def _add_lstm(net: NetBuilder, draw: Draw, x: int, _kind: OpKind) -> int:
    """Adds an LSTM that reads the columns of the mean row. Each of its optional parts (int8 only) may be
    present.
    """
    cells, rows = pick(draw, CHANNELS[:12]), net.mean(x, (1,))
    if isinstance(net, WideNetBuilder):
        return lstm(net, rows, cells, cell_bits=int(draw.integers(9, 16)), clipped=chance(draw, 3))
    return lstm(
        net,
        rows,
        cells,
        outputs=pick(draw, [n for n in CHANNELS if n <= cells]) if chance(draw, 3) else 0,
        input_gate=not chance(draw, 4),
        peepholes=chance(draw, 3),
        normed=chance(draw, 3),
        cell_bits=int(draw.integers(9, 16)),
        clipped=chance(draw, 3),
    )


Adding = Callable[[NetBuilder, Draw, int, OpKind], int | tuple[int, ...]]
_ADDING: dict[str, Adding] = {
    "arg": lambda net, draw, x, kind: net.arg(
        kind, x, pick(draw, (3, 3, 1, 2)), DType.INT64 if chance(draw, 3) else DType.INT32
    ),
    "concatenation": _add_concatenation,
    "conv": _add_conv,
    "denied": lambda net, draw, x, kind: net.unary(
        kind, net.pair(OpKind.LESS, x, _add_operand(net, draw, x))
    ),
    "dense": _add_dense,
    "elementwise": _add_elementwise,
    "extreme": lambda net, draw, x, kind: net.extreme(
        kind, x, pick(draw, ((3,), (1,), (2,), (2, 3), (1, 3))), chance(draw, 2)
    ),
    "gather": _add_gather,
    "looked_up": lambda net, draw, x, _: net.elementwise(  # swish or the like: the rewrite makes one lookup
        OpKind.MUL, x, net.unary(OpKind.LOGISTIC if chance(draw, 2) else OpKind.ABS, x)
    ),
    "detections": _add_detections,
    "lstm": _add_lstm,
    "matmul": _add_matmul,
    "mean": lambda net, draw, x, kind: net.mean(
        x, pick(draw, ((1, 2), (1, 2), (1, 2), (1,), (2,), (3,), (1, 2, 3))), chance(draw, 2), kind
    ),
    "normalised": lambda net, _, x, kind: net.normalise(kind, x),
    "pad": _add_pad,
    "pair_of": _add_pair,
    "pool": _add_pool,
    "prelu": lambda net, draw, x, _: net.prelu(
        x, (1, 1, net.shape(x)[3]) if chance(draw, 2) else net.shape(x)[1:]
    ),
    "product": _add_product,
    "quotient": lambda net, draw, x, kind: net.elementwise(
        kind, *_swap(draw, x, _add_operand(net, draw, x)), _pick_activation(draw)
    ),
    "requantize": lambda net, _draw, x, _kind: net.requantize(x),
    "resize": _add_resize,
    "select": _add_select,
    "signal": lambda net, _draw, _x, kind: add_signal(net, kind),
    "slice": _add_slice,
    "softmax": lambda net, draw, x, _: net.softmax(x, pick(draw, (1.0, 1.0, 0.5))),
    "split": _add_split,
    "squares": _add_block_move,
    "svdf": _add_svdf,
    "tile": lambda net, draw, x, kind: net.move(
        kind, x, attrs=g.TileAttrs((1, *(pick(draw, (1, 2, 3)) for _ in range(3))))
    ),
    "transpose": lambda net, draw, x, kind: net.move(
        kind, x, attrs=g.TransposeAttrs(tuple(int(n) for n in draw.permutation(4)))
    ),
    "transpose_conv": _add_transpose_conv,
    "unary": lambda net, _, x, kind: net.unary(kind, x),
}
# kind -> the function that adds an operator of the kind to a network
ADDING = {kind: _ADDING[definition.case] for kind, definition in DEFS.items() if definition.case}
# Kinds with kernels that int16 activations may go through.
WIDE = tuple(
    kind
    for kind, definition in DEFS.items()
    if (definition.case or definition.conversions) and definition.read and not definition.no_int16
    if kind not in CUSTOM
)


def numbers(kind: OpKind, seed: int) -> Graph:
    """Returns a network with one operator of `kind` on int32 numbers without scales: an input and a
    constant.
    """
    draw, net = np.random.default_rng(seed), NetBuilder(seed, f"{kind.lower()}_{seed}")
    shape = (pick(draw, SIDES), pick(draw, CHANNELS))
    values = (draw.integers(1, 1 << 31, shape[pick(draw, (0, 1)) :]) >> draw.integers(0, 31)) + 1
    signs = np.where(draw.integers(2, size=values.shape), 1, -1)
    constant = net.tensor(
        values.shape, None, DType.INT32, np.clip(values * signs, -(1 << 31), 2**31 - 1).astype(np.int32)
    )
    attrs = {OpKind.DIV: g.QuotientAttrs()}.get(
        kind, g.ElementwiseAttrs() if DEFS[kind].decode else g.Attrs()
    )
    return net.graph([net.op(kind, (net.feed(shape, None, DType.INT32), constant), attrs, None, DType.INT32)])


def network(kind: OpKind, seed: int, among: bool, wide: bool = False) -> Graph:
    """Returns a network with an operator of `kind`; equal arguments give equal networks.

    If `among` is true, the operator is between others, so that it can run row by row. If `wide` is true, the
    network is in int16, or its operator converts between integer types. Rewriting may remove operators of
    some kinds. An operator of the signal library is alone in its network, and draws its own types.
    """
    if kind in CUSTOM:
        net = NetBuilder(seed, f"{kind.lower()}_{seed}")
        return net.graph(add_signal(net, kind))
    builder = WideNetBuilder if wide else NetBuilder
    draw, net = np.random.default_rng(seed), builder(seed, f"{kind.lower()}_{seed}")
    sides = (pick(draw, SIDES), pick(draw, SIDES))
    if among:
        sides = (pick(draw, SIDES[4:]), pick(draw, SIDES[4:]))
    shape = (1, *sides, pick(draw, CHANNELS))
    if wide and DEFS[kind].conversions:
        return net.graph([_add_conversion(net, draw, kind, shape)])
    x = net.input(shape)
    if among:
        x = net.pool(OpKind.MAX_POOL_2D, x, (2, 2), (1, 1), same=True)
    before = x
    added = ADDING[kind](net, draw, x, kind)
    x, *others = added if isinstance(added, tuple) else (added,)
    if net.tensors[x].dtype is DType.BOOL:
        x = net.select(x, before, net.constant((1,)))
    if among and len(net.shape(x)) == 4:
        x = net.pool(OpKind.MAX_POOL_2D, x, (3, 3), (1, 1), same=True)
    return net.graph([x, *others])
