"""Networks made in code for questions about planning: topologies that the zoo does not have, of any size.

Their weights are zeros and all quantisations are alike, because only their plans matter.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from pathlib import Path

from buildtool.graph.types import (
    AxisAttrs,
    ElementwiseAttrs,
    Graph,
    MeanAttrs,
    OpKind,
    Quantization,
    ResizeAttrs,
)

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests/support"))

from zeronet import SAME_3X3, Net, joined

GATE = Quantization((1 / 256,), (-128,))


def chain(operators: int) -> Graph:
    """Returns a network of pairs of a 1x1 and a depthwise convolution, with `operators` operators.

    Four of the convolutions have a stride of 2; the channels grow from the input to the output.
    """
    net = Net((1, 64, 64, 4), name="chain")
    x = net.inputs[0]
    strides = {operators * (i + 1) // 5 for i in range(4)}
    for i in range(operators // 2):
        stride = 2 if any(2 * i <= s < 2 * i + 2 for s in strides) else 1
        x = net.depthwise(net.conv(x, 8 + 8 * (2 * i * 5 // operators)), stride=(stride, stride))
    return net.graph(x)


def blocks(count: int) -> Graph:
    """Returns a network of inverted bottlenecks; all but four of them have a residual connection."""
    net = Net((1, 64, 64, 3), name="blocks")
    x = net.conv(net.inputs[0], 8)
    strides = {count * (i + 1) // 5 for i in range(4)}
    for i in range(count):
        x = _bottleneck(net, x, 6, 8 + 8 * (i * 5 // count), 2 if i in strides else 1)
    return net.graph(x)


def _bottleneck(net: Net, x: int, expand: int, channels: int, stride: int, gate: bool = False) -> int:
    wide = net.depthwise(net.conv(x, expand * net.shape(x)[3]), stride=(stride, stride))
    y = net.conv(_gated(net, wide) if gate else wide, channels)
    return net.add(y, x) if net.shape(y) == net.shape(x) else y


def _gated(net: Net, x: int) -> int:
    """Adds a gate (squeeze and excite): a factor per channel that a small network computes from all means."""
    channels = net.shape(x)[3]
    mean = net.add_op(OpKind.MEAN, (x,), MeanAttrs((1, 2), keep_dims=True))
    y = net.conv(net.relu(net.conv(mean, max(4, channels // 16))), channels)
    y = net.op(OpKind.LOGISTIC, (y,), ElementwiseAttrs(), GATE)
    return net.add_op(OpKind.MUL, (x, y), ElementwiseAttrs())


def gates(count: int) -> Graph:
    """Returns a network like EfficientNet: a first convolution, and bottlenecks with a gate in each.

    A gate (squeeze and excite) multiplies each channel by a factor that is computed from the means of all
    channels.
    """
    net = Net((1, 128, 128, 3), name="gates")
    x = net.conv(net.inputs[0], 16, (3, 3), (2, 2), SAME_3X3)
    strides = {count * (i + 1) // 5 for i in range(3)}
    for i in range(count):
        x = _bottleneck(net, x, 4, 16 + 16 * (i * 5 // count), 2 if i in strides else 1, gate=True)
    return net.graph(net.dense(net.mean(x), 10))


def unet(levels: int) -> Graph:
    """Returns a U-Net: each level's tensor is concatenated with the upsampled one of the same size."""
    net = Net((1, 96, 96, 3), name="unet")
    x, kept = net.inputs[0], []
    for level in range(levels):
        for _ in range(2):
            x = net.conv(x, 8 << level, (3, 3), pad=SAME_3X3)
        kept.append(x)
        x = net.max_pool(x)
    for level in reversed(range(levels)):
        _, rows, columns, channels = net.shape(x)
        shape = (1, 2 * rows, 2 * columns, channels)
        x = net.add_op(OpKind.RESIZE_NEAREST_NEIGHBOR, (x,), ResizeAttrs(), shape)
        x = net.concat([x, kept.pop()])
        for _ in range(2):
            x = net.conv(x, 8 << level, (3, 3), pad=SAME_3X3)
    return net.graph(net.conv(x, 2))


def dense(operators: int) -> Graph:
    """Returns three dense blocks of growth 12.

    Each layer is a 1x1 convolution, a 3x3 convolution and a concatenation.
    """
    net = Net((1, 32, 32, 3), name="dense")
    x = net.conv(net.inputs[0], 24, (3, 3), pad=SAME_3X3)
    layers = (operators - 7) // 9
    for block in range(3):
        for _ in range(layers):
            y = net.conv(net.conv(x, 48), 12, (3, 3), pad=SAME_3X3)
            x = net.concat([x, y])
        if block < 2:
            x = net.max_pool(net.conv(x, net.shape(x)[3] // 2))
    return net.graph(net.dense(net.mean(x), 10))


def detection(size: int) -> Graph:
    """Returns a detector: a separable backbone, and heads for boxes and classes on three of its tensors."""
    net = Net((1, size, size, 3), name="detection")
    x, heads = net.conv(net.inputs[0], 16, (3, 3), (2, 2), SAME_3X3), []
    for i, channels in enumerate((24, 32, 32, 64, 64, 96, 96, 128, 128)):
        x = net.conv(net.depthwise(x, stride=(2, 2) if i % 2 else (1, 1)), channels)
        heads += [x] if i in (4, 6, 8) else []
    boxes, classes = [], []
    for head in heads:
        _, rows, columns, _ = net.shape(head)
        box, kind = net.conv(net.depthwise(head), 12), net.conv(net.depthwise(head), 9)
        boxes.append(net.reshape(box, (1, 1, rows * columns * 3, 4)))
        classes.append(net.reshape(kind, (1, 1, rows * columns * 3, 3)))
    return net.graph(*(net.add_op(OpKind.CONCATENATION, parts, AxisAttrs(2)) for parts in (boxes, classes)))


def tree(branches: int) -> Graph:
    """Returns parallel branches whose outputs are added by a tree of additions."""
    return joined(branches, as_a_tree=True)


def woven(count: int) -> Graph:
    """Returns branches whose outputs are added one by one to a running sum."""
    net = Net((1, 16, 16, 4), name="woven")
    x = y = net.conv(net.inputs[0], 8)
    for i in range(count):
        y = net.add(y, net.conv(net.depthwise(net.conv(x, 8 + 4 * (i % 3))), 8))
    return net.graph(y)


def wired(nodes: int) -> Graph:
    """Returns separable convolutions with random inputs.

    Each reads one of the last five tensors, or the sum of two of them. All unread outputs are added at the
    end.
    """
    rng, net = random.Random(nodes), Net((1, 32, 32, 3), name="wired")
    made = [net.conv(net.inputs[0], 16, (3, 3), (2, 2), SAME_3X3)]
    unread = set[int]()
    for _ in range(nodes):
        a, b = rng.choice(made[-5:]), rng.choice(made[-5:])
        unread -= {a, b}
        x = a if a == b else net.add(a, b)
        made.append(net.conv(net.depthwise(x), 16))
        unread.add(made[-1])
    left = sorted(unread)
    x = left[0]
    for other in left[1:]:
        x = net.add(x, other)
    return net.graph(net.dense(net.mean(x), 10))


KINDS: dict[str, Callable[[int], Graph]] = {
    "chain": chain,
    "blocks": blocks,
    "gates": gates,
    "unet": unet,
    "dense": dense,
    "detection": detection,
    "wired": wired,
    "joined": joined,
    "tree": tree,
    "woven": woven,
}


def made(name: str) -> Graph | None:
    """Returns the network named KIND:SIZE, or None if there is no such kind."""
    kind, _, size = name.partition(":")
    return KINDS[kind](int(size)) if kind in KINDS and size.isdecimal() else None
