"""Turns layer tables into networks: which operator follows which, and what they are called."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from buildtool.graph.geometry import same_pad
from buildtool.graph.types import Activation, Graph, Pad, Quantization
from buildtool.zoo import seeded
from buildtool.zoo.branching import (
    DenseBlocks,
    Fires,
    GatedBottleneck,
    GatedBottlenecks,
    Table,
    gate_channels,
)
from buildtool.zoo.builder import Builder, Window
from buildtool.zoo.calibrate import Int8s, Spread, float32, spread_before_pooling
from buildtool.zoo.tables import (
    Border,
    Bottleneck,
    Feed,
    Head,
    InvertedResiduals,
    Perceptron,
    Separables,
    Stack,
    Stacks,
)

_GATE = Spread((-0.5, 1.0), (0.3, 0.5))  # hard sigmoids are flat beyond 3
NONE, RELU, RELU6 = Activation.NONE, Activation.RELU, Activation.RELU6


def network(table: Table, name: str, seed: str) -> Graph:
    """The network of a layer table; `name` is the graph's, `seed` the name of its weights' streams."""
    feed = table.feed
    quant = Quantization((float32(float(feed.scale)),), (feed.zero_point,))
    builder = Builder(name, seed, feed.shape, quant, calibration_input(feed, f"{seed}/input"))
    match table:
        case InvertedResiduals():
            output = _inverted_residuals(builder, table)
        case Separables():
            output = _separables(builder, table)
        case Stacks():
            output = _stacks(builder, table)
        case Perceptron():
            output = _perceptron(builder, table)
        case Fires():
            output = _fires(builder, table)
        case GatedBottlenecks():
            output = _gated_bottlenecks(builder, table)
        case DenseBlocks():
            output = _dense_blocks(builder, table)
    return builder.graph([output])


def calibration_input(feed: Feed, key: str) -> Int8s:
    """Seeded inputs, (samples, *shape): smooth pictures and plain noise in turn."""
    shape = feed.shape if len(feed.shape) == 3 else (1, feed.shape[0], 1)
    samples = [(seeded.noise if i % 2 else seeded.picture)(f"{key}/{i}", shape) for i in range(feed.samples)]
    return np.stack(samples).reshape(feed.samples, *feed.shape)


def _inverted_residuals(b: Builder, table: InvertedResiduals) -> int:
    window, x = _same(b, b.input, (3, 3), 2), b.input
    if table.border is Border.SYMMETRIC:
        window, x = Window((3, 3), (2, 2)), b.pad(x, Pad(1, 1, 1, 1), "stem/pad")
    x = b.conv(x, table.stem, window, RELU6, "stem")
    for number, block in enumerate(table.blocks, 1):
        pooled = table.last == 0 and number == len(table.blocks)
        x = _bottleneck(b, x, block, table, name=f"block{number}", pooled=pooled)
    if table.last:
        x = b.conv(x, table.last, Window(), RELU6, "last")
    return _head(b, x, table.head, table.classes)


def _bottleneck(
    b: Builder, x: int, block: Bottleneck, table: InvertedResiduals, *, name: str, pooled: bool
) -> int:
    y = x
    if block.expansion > 1:
        y = b.conv(y, block.expansion * b.shape(x)[3], Window(), RELU6, f"{name}/expand")
    window = _same(b, y, (block.kernel, block.kernel), block.stride)
    if block.stride > 1:  # the padding is an operator of its own
        half = block.kernel // 2
        pad = Pad(half, half, half, half) if table.border is Border.SYMMETRIC else window.pad
        window, y = replace(window, pad=Pad()), b.pad(y, pad, f"{name}/pad")
    y = b.depthwise(y, window, RELU6, f"{name}/depthwise")
    y = b.conv(y, block.channels, Window(), NONE, f"{name}/project", spread=_before_pooling(pooled, NONE))
    if not block.residual:
        return y
    operands = (x, y) if table.shortcut_first else (y, x)
    return b.add(*operands, NONE, f"{name}/add")


def _before_pooling(pooled: bool, activation: Activation) -> Spread | None:
    return spread_before_pooling(activation) if pooled else None


def _same(b: Builder, x: int, kernel: tuple[int, int], stride: int) -> Window:
    """A window with SAME padding."""
    strides = (stride, stride)
    return Window(kernel, strides, same_pad(b.shape(x)[1:3], kernel, strides))


def _separables(b: Builder, table: Separables) -> int:
    x = b.conv(b.input, table.stem, _same(b, b.input, table.stem_kernel, 2), RELU, "stem")
    for number, block in enumerate(table.blocks, 1):
        spread = _before_pooling(number == len(table.blocks), RELU)
        x = b.depthwise(x, _same(b, x, (3, 3), block.stride), RELU, f"block{number}/depthwise")
        x = b.conv(x, block.channels, Window(), RELU, f"block{number}/pointwise", spread=spread)
    return _head(b, x, Head.POOL_DENSE_SOFTMAX, table.classes)


def _stacks(b: Builder, table: Stacks) -> int:
    x = b.conv(b.input, table.stem, _same(b, b.input, (3, 3), 1), RELU, "stem")
    for number, stack in enumerate(table.blocks, 1):
        spread = _before_pooling(number == len(table.blocks), NONE)
        x = _stack(b, x, stack, f"stack{number}", spread)
    return _head(b, x, Head.POOL_DENSE_SOFTMAX, table.classes)


def _stack(b: Builder, x: int, stack: Stack, name: str, spread: Spread | None) -> int:
    y = b.conv(x, stack.channels, _same(b, x, (3, 3), stack.stride), RELU, f"{name}/conv1")
    y = b.conv(y, stack.channels, _same(b, y, (3, 3), 1), NONE, f"{name}/conv2", spread=spread)
    if stack.stride > 1:
        window = Window(stride=(stack.stride, stack.stride))
        x = b.conv(x, stack.channels, window, NONE, f"{name}/shortcut", spread=spread)
    return b.add(x, y, RELU, f"{name}/add")


def _perceptron(b: Builder, table: Perceptron) -> int:
    x = b.input
    for number, width in enumerate(table.widths, 1):
        x = b.dense(x, width, RELU if number < len(table.widths) else NONE, f"dense{number}")
    return x


def _fires(b: Builder, table: Fires) -> int:
    x = b.conv(b.input, table.stem, Window((3, 3), (2, 2)), RELU, "stem")
    for number, fire in enumerate(table.blocks, 2):  # the paper's numbers
        name = f"fire{number}"
        if fire.pooled:
            x = b.max_pool(x, Window((3, 3), (2, 2)), f"{name}/pool")
        x = b.conv(x, fire.squeeze, Window(), RELU, f"{name}/squeeze")
        wide = _same(b, x, (3, 3), 1)
        branches = [(Window(), f"{name}/expand1x1"), (wide, f"{name}/expand3x3")]
        x = b.concat(b.convs(x, fire.expand, branches, RELU), f"{name}/concat")
    x = b.conv(x, table.classes, Window(), RELU, "classifier", spread=spread_before_pooling(RELU))
    x = b.average_pool(x, "pool")
    return b.softmax(b.reshape(x, (1, table.classes), "logits"), "probabilities")


def _gated_bottlenecks(b: Builder, table: GatedBottlenecks) -> int:
    x = b.hard_swish(b.conv(b.input, table.stem, _same(b, b.input, (3, 3), 2), NONE, "stem"), "stem/swish")
    for number, block in enumerate(table.blocks, 1):
        x = _gated_bottleneck(b, x, block, f"block{number}")
    x = b.conv(x, table.last, Window(), NONE, "last", spread=spread_before_pooling(NONE))
    x = b.mean(b.hard_swish(x, "last/swish"), (1, 2), "features", keep_dims=True)
    x = b.hard_swish(b.conv(x, table.hidden, Window(), NONE, "hidden"), "hidden/swish")
    x = b.conv(x, table.classes, Window(), NONE, "classifier", spread=_logits(table.classes))
    return b.softmax(b.reshape(x, (1, table.classes), "logits"), "probabilities")


def _gated_bottleneck(b: Builder, x: int, block: GatedBottleneck, name: str) -> int:
    activation, y = NONE if block.swish else RELU, x

    def activated(made: int) -> int:
        return b.hard_swish(made, f"{b.name(made)}/swish") if block.swish else made

    if block.expanded != b.shape(x)[3]:
        y = activated(b.conv(y, block.expanded, Window(), activation, f"{name}/expand"))
    window = _same(b, y, (block.kernel, block.kernel), block.stride)
    y = activated(b.depthwise(y, window, activation, f"{name}/depthwise"))
    if block.gated:
        z = b.mean(y, (1, 2), f"{name}/squeeze", keep_dims=True)
        z = b.conv(z, gate_channels(block.expanded), Window(), RELU, f"{name}/reduce")
        z = b.conv(z, block.expanded, Window(), NONE, f"{name}/gate", spread=_GATE)
        y = b.multiply(y, b.hard_sigmoid(z, f"{name}/sigmoid"), f"{name}/excite")
    y = b.conv(y, block.channels, Window(), NONE, f"{name}/project")
    return b.add(x, y, NONE, f"{name}/add") if b.shape(x) == b.shape(y) else y


def _dense_blocks(b: Builder, table: DenseBlocks) -> int:
    x = b.conv(b.input, 2 * table.growth, _same(b, b.input, (3, 3), 1), RELU, "stem")
    for number, layers in enumerate(table.blocks, 1):
        spread = _before_pooling(number == len(table.blocks), RELU)
        if number > 1:
            name = f"transition{number - 1}"
            x = b.conv(x, b.shape(x)[3] // 2, Window(), RELU, name, spread=spread)
            x = b.average_pool(x, f"{name}/pool", Window((2, 2), (2, 2)))
        for layer in range(1, layers + 1):
            name = f"block{number}/layer{layer}"
            y = b.conv(x, 4 * table.growth, Window(), RELU, f"{name}/bottleneck")
            y = b.conv(y, table.growth, _same(b, y, (3, 3), 1), RELU, name, spread=spread, like=x)
            x = b.concat([x, y], f"{name}/concat")
    return _head(b, x, Head.POOL_DENSE_SOFTMAX, table.classes)


def _head(b: Builder, x: int, head: Head, classes: int) -> int:
    spread = _logits(classes)
    if head is Head.POOL_CONV:
        x = b.average_pool(x, "pool")
        x = b.conv(x, classes, Window(), NONE, "classifier", spread=spread)
        return b.reshape(x, (1, classes), "logits")
    if head is Head.POOL_DENSE_SOFTMAX:
        x = b.average_pool(x, "pool")
        x = b.reshape(x, (1, b.shape(x)[3]), "features")
    elif head is Head.TRANSPOSED_MEANS_DENSE:
        x = b.transpose(x, (0, 3, 1, 2), "channels_first")
        x = b.mean(b.mean(x, (3,), "columns"), (2,), "features")
    else:
        x = b.mean(x, (1, 2), "features")
    x = b.dense(x, classes, NONE, "logits", spread=spread)
    return b.softmax(x, "probabilities") if head.value.endswith("softmax") else x


def _logits(classes: int) -> Spread:
    """Logits whose softmax is neither flat nor a single one.

    The greatest of n normal numbers carries a fair share of the softmax when their deviation is a
    little below sqrt(2 ln n); here 0.8 of that, with log2(n) rounded up to stay exact.
    """
    deviation = math.sqrt(0.887 * max(1, (classes - 1).bit_length()))
    return Spread((-0.2 * deviation, 0.2 * deviation), (deviation, deviation))
