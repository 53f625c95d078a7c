"""Networks with every operator kind, one of int8 and one of int16, to cover all in few builds and runs.

Networks of int16 have int16 activations and int8 weights (16x8 quantisation).
"""

import functools

from spread import spread

from buildtool.graph import types as g
from buildtool.graph.types import Activation, DType, Graph, OpKind
from buildtool.zoo.drawn import NetBuilder, WideNetBuilder, quant


@functools.cache
def every_operator(seed: int = 20, batch: int = 1, *, onnx: bool = False) -> Graph:
    """Every OpKind but ELU (LiteRT has no reference kernel of it), most of them in an odd geometry.

    It has a float and an int8 input, and several outputs. `onnx`: only kinds that `onnxexport` writes.

    The trunk is 5 x 4 x 6. No rewrite removes an operator, except the kinds that run no code (aliases, and
    DEQUANTIZE and float QUANTIZE at the network's edges). It is cached: spreading its values is slow.
    """
    net = NetBuilder(seed)
    image = net.requantize(net.input((batch, 9, 7, 3), DType.FLOAT32))
    side = net.input((batch, 5, 4, 6))
    x = net.conv(image, 6, kernel=(3, 3), stride=(2, 2), same=True, activation=Activation.RELU6)
    x = net.elementwise(OpKind.ADD, x, side)
    trunk = _weighted(net, x)
    outputs = [_arithmetic(net, trunk, side), _moved(net, trunk), _small(net, trunk)]
    classified = trunk if onnx else net.cast(net.cast(trunk, DType.INT16), DType.INT8)
    if not onnx:
        outputs += [_decided(net, trunk, side), *_arranged(net, trunk), _multiplied(net, trunk)]
        outputs += _detected(net, trunk) if batch == 1 else []
    return spread(net.graph([*outputs, net.dequantize(_classified(net, classified))]), seed)


def _weighted(net: NetBuilder, x: int) -> int:
    """Convolutions of each sort: 5 x 4 x 6 -> 5 x 4 x 6."""
    y = net.conv(x, 0, kernel=(3, 2), same=True, depth_multiplier=2, activation=Activation.RELU)
    y = net.conv(y, 6, kernel=(2, 3), dilation=(2, 1), same=True, groups=2)
    up = net.transpose_conv(y, 3, kernel=(3, 2), stride=(2, 2), same=True)  # 10 x 8 x 3
    return net.conv(up, 6, kernel=(2, 2), stride=(2, 2))


_NEWER = (OpKind.ABS, OpKind.GELU, OpKind.EXP, OpKind.LOG)


def _arithmetic(net: NetBuilder, x: int, side: int) -> int:
    """Elementwise operators and functions of one byte."""
    y = net.elementwise(OpKind.SUB, x, side, Activation.RELU_N1_TO_1)
    y = net.elementwise(OpKind.MUL, y, net.constant((6,)))
    for kind in (OpKind.HARD_SWISH, OpKind.RELU, OpKind.LEAKY_RELU, OpKind.RELU6, *_NEWER, OpKind.TANH):
        y = net.unary(kind, net.elementwise(OpKind.ADD, y, x))
    y = net.prelu(net.requantize(net.elementwise(OpKind.ADD, y, x)), (1, 1, 6))
    y = net.elementwise(OpKind.MUL, y, net.unary(OpKind.LOGISTIC, y))  # a LOOKUP
    gate = net.unary(OpKind.LOGISTIC, net.conv(net.mean(y, keep_dims=True), 6))
    return net.elementwise(OpKind.MUL, y, gate)


def _decided(net: NetBuilder, x: int, side: int) -> int:
    """Extremes, quotients, comparisons and selections, with broadcast operands and single elements.

    Compared scales stay below 1 and divisors above 0 for all quantisations that `spread` chooses: both come
    from the network's input.
    """
    row = net.constant((1, 1, 6))
    curve = net.unary(OpKind.TANH, x)
    y = net.pair(OpKind.MAXIMUM, curve, net.pair(OpKind.MINIMUM, side, row))
    y = net.pair(OpKind.SQUARED_DIFFERENCE, x, y)
    for kind in (OpKind.NEG, OpKind.RELU_N1_TO_1, OpKind.RELU_0_TO_1):
        y = net.unary(kind, net.elementwise(OpKind.ADD, y, x))
    y = _chosen(net, x, side, curve, _divided(net, y, side))
    small = net.unary(OpKind.TANH, y)  # LOG_SOFTMAX has no factor for the logarithm of a larger scale
    pairs = ((OpKind.L2_NORMALIZATION, y), (OpKind.LOG_SOFTMAX, small))
    parts = [net.normalise(kind, x) for kind, x in pairs]
    return net.elementwise(OpKind.ADD, *parts)


def _divided(net: NetBuilder, y: int, side: int) -> int:
    """Roots of `side`, and quotients by it."""
    roots = []
    for kind in (OpKind.SQRT, OpKind.RSQRT):  # their inputs are read again, so that no rewrite folds them
        roots.append(net.unary(kind, side))
        y = net.elementwise(OpKind.ADD, y, net.ops[-1].inputs[0])
    less = net.elementwise(OpKind.SUB, y, net.elementwise(OpKind.ADD, *roots))
    return net.elementwise(OpKind.DIV, less, side)


def _chosen(net: NetBuilder, x: int, side: int, curve: int, y: int) -> int:
    """Every comparison, and `y`, `x` or a constant, as they say."""
    one, row = net.constant((1,)), net.constant((1, 1, 6))
    less = net.pair(
        OpKind.LOGICAL_AND, net.pair(OpKind.LESS, curve, side), net.pair(OpKind.NOT_EQUAL, side, one)
    )
    more = net.pair(
        OpKind.LOGICAL_OR, net.pair(OpKind.GREATER, side, row), net.pair(OpKind.EQUAL, curve, side)
    )
    rest = net.pair(
        OpKind.LOGICAL_OR, net.pair(OpKind.GREATER_EQUAL, curve, one), net.pair(OpKind.LESS_EQUAL, row, side)
    )
    chosen = net.select(net.unary(OpKind.LOGICAL_NOT, less), y, net.select(rest, one, x))
    return net.select(more, chosen, x)


def _moved(net: NetBuilder, x: int) -> int:
    """Operators that move data: 5 x 4 x 6 -> 6 x 8 x 11."""
    batch = net.shape(x)[0]
    first, second = net.split(x, 2, 3)
    wide = net.concat([first, net.unary(OpKind.TANH, second), second], 2)  # 5 x 12 x 3
    back = g.SliceAttrs((0, 4, 1, 0), (1, -1, 2, 1), (batch, 5, 5, 3))
    y = net.move(OpKind.STRIDED_SLICE, wide, (batch, 5, 5, 3), back)
    y = net.pad(y, ((0, 0), (1, 1), (0, 2), (0, 1)), g.PadMode.REFLECT)  # 7 x 7 x 4
    cut = g.SliceAttrs((0, 1, 0, 1), (1, 1, 1, 1), (batch, 6, 7, 3))
    y = net.move(OpKind.SLICE, y, (batch, 6, 7, 3), cut)
    y = net.move(OpKind.TRANSPOSE, y, (batch, 3, 6, 7), g.TransposeAttrs((0, 3, 1, 2)))
    y = net.move(OpKind.RESIZE_NEAREST_NEIGHBOR, y, (batch, 6, 5, 7), g.ResizeAttrs(False, True))
    y = net.move(OpKind.RESIZE_BILINEAR, y, (batch, 4, 8, 7), g.ResizeAttrs(True, False))
    return net.pad(y, ((0, 0), (2, 0), (0, 0), (1, 3)))


def _arranged(net: NetBuilder, x: int) -> list[int]:
    """Operators that rearrange elements, reductions, and two outputs of indices."""
    batch = net.shape(x)[0]
    y = net.move(OpKind.GATHER, x, (batch, 4, 4, 6), g.GatherAttrs(1, (3, 0, 0, 4)))
    y = net.move(OpKind.SPACE_TO_DEPTH, y, (batch, 2, 2, 24), g.BlockAttrs(2))
    y = net.move(OpKind.DEPTH_TO_SPACE, net.unary(OpKind.TANH, y), (batch, 4, 4, 6), g.BlockAttrs(2))
    value = net.tensors[y].quant.zero_point
    y = net.move(
        OpKind.SPACE_TO_BATCH_ND, y, (batch * 6, 3, 2, 6), g.BatchBlockAttrs((2, 3), ((1, 1), (0, 2)), value)
    )
    y = net.unary(OpKind.ABS, y)
    y = net.move(OpKind.BATCH_TO_SPACE_ND, y, (batch, 5, 4, 6), g.BatchBlockAttrs((2, 3), ((1, 0), (2, 0))))
    places = [net.arg(OpKind.ARG_MAX, y, 3), net.arg(OpKind.ARG_MIN, y, 2, DType.INT64)]
    product = net.op(OpKind.REDUCE_PROD, (y,), g.MeanAttrs((3,)), quant(net.scale(y) ** 6 * 2e7))
    y = net.extreme(OpKind.REDUCE_MAX, y, (3,))  # 5 x 4
    y = net.move(OpKind.TILE, y, (batch, 10, 12), g.TileAttrs((1, 2, 3)))
    return [net.extreme(OpKind.REDUCE_MIN, y, (2,), keep_dims=True), product, *places]


def _multiplied(net: NetBuilder, x: int) -> int:
    """Matrix products: 5 x 4 x 6 -> 5 x 6 x 4."""
    y = net.matmul(x, x, adj_x=True)  # 5 x 6 x 6
    return net.matmul(net.softmax(y), x, adj_y=True)


def _detected(net: NetBuilder, x: int) -> tuple[int, ...]:
    """Boxes around two anchors for each pixel, in two classes and a background."""
    boxes = net.move(OpKind.RESHAPE, net.conv(x, 8), (1, 40, 4))
    scores = net.unary(OpKind.LOGISTIC, net.conv(x, 6))
    attrs = g.DetectionAttrs(2, 5, 2, 100, False, 0.5, 0.5, (10.0, 10.0, 5.0, 5.0))
    return net.detections(boxes, net.move(OpKind.RESHAPE, scores, (1, 40, 3)), attrs)


def _small(net: NetBuilder, x: int) -> int:
    """Pooling."""
    y = net.pool(OpKind.MAX_POOL_2D, x, (3, 2), (2, 1), same=True)
    return net.pool(OpKind.AVERAGE_POOL_2D, y, (2, 3), (1, 2), same=True, activation=Activation.RELU6)


def _classified(net: NetBuilder, x: int, *, per_channel: bool = False) -> int:
    """Dense layers and softmax, with shape changes that run no code."""
    batch = net.shape(x)[0]
    y = net.move(OpKind.EXPAND_DIMS, net.flatten(x), (batch, 1, 120))
    y = net.move(OpKind.SQUEEZE, net.dense(y, 9, keep_num_dims=True, per_channel=per_channel), (batch, 9))
    return net.softmax(net.dense(y, 5, activation=Activation.RELU))


@functools.cache
def every_wide_operator(batch: int = 1) -> Graph:
    """Every operator that takes int16 activations, from an int8 image and an int16 operand.

    The trunk is 5 x 4 x 6. One output is int8, one int32, the others int16.
    """
    net = WideNetBuilder(3)
    image = net.requantize(net.input((batch, 9, 7, 3), DType.INT8, net.random_quant(0.02, DType.INT8)))
    side = net.input((batch, 5, 4, 6))
    x = net.conv(image, 6, kernel=(3, 3), stride=(2, 2), same=True, activation=Activation.RELU6)
    x = net.elementwise(OpKind.ADD, x, side)
    x = net.conv(x, 0, kernel=(3, 2), same=True, depth_multiplier=2)
    x = net.conv(x, 0, kernel=(2, 3), dilation=(2, 1), same=True, depth_multiplier=1)
    x = net.conv(x, 6, kernel=(2, 3), same=True, groups=2, activation=Activation.RELU_N1_TO_1)
    x = net.conv(x, 6, kernel=(1, 1), bias=False)
    return net.graph(
        [
            *_wide_arithmetic(net, x, side),
            _wide_decided(net, _weighted(net, x), side),
            *_wide_arranged(net, x),
            _multiplied(net, x),
            _moved(net, x),
            _small(net, x),
            _classified(net, x, per_channel=True),
        ]
    )


def _wide_arithmetic(net: WideNetBuilder, x: int, side: int) -> list[int]:
    """Elementwise operators, and each conversion."""
    y = net.elementwise(OpKind.SUB, x, side, Activation.RELU6)
    y = net.elementwise(OpKind.MUL, y, net.constant((6,)))
    for kind in (OpKind.RELU, OpKind.LEAKY_RELU, OpKind.RELU6, OpKind.TANH):
        y = net.unary(kind, net.elementwise(OpKind.ADD, y, x))
    gate = net.unary(OpKind.LOGISTIC, net.conv(net.mean(y, keep_dims=True), 6))
    y = net.elementwise(OpKind.MUL, net.requantize(y), gate)
    byte = net.cast(net.requantize(y, DType.INT8), DType.INT16)
    wide = net.op(OpKind.QUANTIZE, (y,), g.Attrs(), net.random_quant(net.scale(y)), DType.INT32)
    again = net.op(OpKind.QUANTIZE, (wide,), g.Attrs(), net.random_quant(net.scale(y) * 1.5))
    small = net.cast(net.cast(again, DType.INT32), DType.INT8)
    return [net.elementwise(OpKind.ADD, byte, again), small, net.cast(y, DType.INT32)]


def _wide_decided(net: WideNetBuilder, x: int, side: int) -> int:
    """Functions, extremes, quotients, comparisons and selections (LiteRT lacks SQUARED_DIFFERENCE)."""
    y = net.pair(OpKind.MAXIMUM, x, net.pair(OpKind.MINIMUM, side, net.constant((1, 1, 6))))
    for kind in (*_NEWER, OpKind.NEG):
        y = net.unary(kind, net.elementwise(OpKind.ADD, y, x))
    y = net.prelu(net.elementwise(OpKind.ADD, y, x), (1, 1, 6))
    return _chosen(net, x, side, net.unary(OpKind.TANH, x), _divided(net, y, side))


def _wide_arranged(net: WideNetBuilder, x: int) -> list[int]:
    """Operators that rearrange elements, and reductions."""
    batch = net.shape(x)[0]
    y = net.move(OpKind.GATHER, x, (batch, 4, 4, 6), g.GatherAttrs(1, (3, 0, 0, 4)))
    blocks = g.BatchBlockAttrs((2, 3), ((1, 1), (0, 2)))
    y = net.move(OpKind.SPACE_TO_BATCH_ND, y, (batch * 6, 3, 2, 6), blocks)
    y = net.unary(OpKind.ABS, y)
    y = net.move(OpKind.BATCH_TO_SPACE_ND, y, (batch, 5, 4, 6), g.BatchBlockAttrs((2, 3), ((1, 0), (2, 0))))
    product = net.op(OpKind.REDUCE_PROD, (y,), g.MeanAttrs((3,)), quant((net.scale(y) * 15000) ** 6 / 9000))
    y = net.extreme(OpKind.REDUCE_MAX, y, (3,))  # 5 x 4
    y = net.move(OpKind.TILE, y, (batch, 10, 12), g.TileAttrs((1, 2, 3)))
    return [net.extreme(OpKind.REDUCE_MIN, y, (2,), keep_dims=True), product]


def wide_audio() -> Graph:
    """A keyword network: 49 frames of 10 features, convolutions over time, a global mean, 12 classes.

    The sums of the second layer and of the second output's dense layer may exceed int32.
    """
    net = WideNetBuilder(5, "audio16")
    x = net.input((1, 49, 1, 10))
    x = net.conv(x, 64, kernel=(10, 1), stride=(2, 1), same=True, activation=Activation.RELU)
    second = net.dense(net.flatten(x), 3)
    x = net.conv(x, 24, kernel=(19, 1), same=True, activation=Activation.RELU)
    for _ in range(2):
        x = net.conv(x, 0, kernel=(9, 1), same=True, depth_multiplier=1, activation=Activation.RELU)
        x = net.conv(x, 24, activation=Activation.RELU)
    x = net.mean(x)
    return net.graph([net.softmax(net.dense(x, 12)), second])


def wide_image() -> Graph:
    """An image network with a residual: 24 x 20 x 3 to 10 classes, from int8 pixels."""
    net = WideNetBuilder(6, "image16")
    x = net.requantize(net.input((1, 24, 20, 3), DType.INT8, net.random_quant(0.02, DType.INT8)))
    x = net.conv(x, 8, kernel=(3, 3), stride=(2, 2), same=True, activation=Activation.RELU6)
    wide = net.conv(x, 24, activation=Activation.RELU6)
    wide = net.conv(wide, 0, kernel=(3, 3), same=True, depth_multiplier=1, activation=Activation.RELU6)
    x = net.elementwise(OpKind.ADD, x, net.conv(wide, 8))
    x = net.conv(x, 0, kernel=(5, 5), stride=(2, 2), same=True, depth_multiplier=1)
    x = net.unary(OpKind.TANH, net.conv(x, 19, kernel=(1, 1)))
    x = net.pool(OpKind.AVERAGE_POOL_2D, x, net.shape(x)[1:3], (1, 1))
    return net.graph([net.softmax(net.dense(net.flatten(x), 10))])
