"""Detectors as Ultralytics' exports to TFLite have them: heads of several scales, and what decodes them.

graph = yolo_v8(32, 8, classes=5)
graph = yolo_v5(32, 8, classes=5)
"""

from collections.abc import Sequence

from namednets import add_swish, conv, requantise_as

import buildtool.graph.types as g
from buildtool.graph.types import Graph, OpKind
from buildtool.zoo.drawn import NetBuilder

BINS = 16  # of a box's side


def _backbone(net: NetBuilder, size: int, width: int) -> list[int]:
    """Maps of strides 4, 8 and 16."""
    x, maps = conv(net, net.input((1, size, size, 3)), width, 2), []
    for level in range(3):
        x = add_swish(net, net.conv(x, width << level, kernel=(3, 3), stride=(2, 2), same=True))
        maps.append(x)
    return maps


def taken_along(net: NetBuilder, x: int, axis: int, first: int, count: int) -> int:
    extent = list(net.shape(x))
    extent[axis] = count
    begin = tuple(first if d == axis else 0 for d in range(len(extent)))
    attrs = g.SliceAttrs(begin, (1,) * len(extent), tuple(extent))
    return net.move(OpKind.STRIDED_SLICE, x, extent, attrs)


def joined_heads(net: NetBuilder, maps: Sequence[int], bins: int, classes: int, *, alike: bool = True) -> int:
    """Boxes and classes of all maps: channels, then anchors. `alike`: the maps have one quantisation."""
    parts, first = [], -1
    for x in maps:
        boxes, scores = net.conv(x, 4 * bins), net.conv(x, classes)
        first = boxes if first < 0 or not alike else first
        y = net.concat([requantise_as(net, t, first) for t in (boxes, scores)])
        _, rows, columns, channels = net.shape(y)
        y = net.move(OpKind.TRANSPOSE, y, (1, channels, rows, columns), g.TransposeAttrs((0, 3, 1, 2)))
        parts.append(net.move(OpKind.RESHAPE, y, (1, channels, rows * columns)))
    return net.concat(parts, 2)


def box_sides(net: NetBuilder, boxes: int, bins: int) -> int:
    """The distribution of each side of each box becomes its mean, by SOFTMAX and a convolution."""
    _, channels, anchors = net.shape(boxes)
    x = net.move(OpKind.RESHAPE, boxes, (1, channels // bins, bins, anchors))
    x = net.move(OpKind.TRANSPOSE, x, (1, channels // bins, anchors, bins), g.TransposeAttrs((0, 1, 3, 2)))
    x = net.conv(net.softmax(x), 1)
    return net.move(OpKind.RESHAPE, x, (1, channels // bins, anchors))


def yolo_v8(size: int, width: int, classes: int, *, alike: bool = True, seed: int = 1) -> Graph:
    """YOLOv8: corners from the sides' distributions, and the scores of all classes."""
    net = NetBuilder(seed, "yolo_v8")
    joined = joined_heads(net, _backbone(net, size, width), BINS, classes, alike=alike)
    sides = box_sides(net, taken_along(net, joined, 1, 0, 4 * BINS), BINS)
    near, far = (taken_along(net, sides, 1, first, 2) for first in (0, 2))
    low = net.elementwise(OpKind.SUB, net.constant(net.shape(near)), near)
    high = net.elementwise(OpKind.ADD, far, net.constant(net.shape(far)))
    middle = net.elementwise(OpKind.ADD, low, high)
    scores = net.unary(OpKind.LOGISTIC, taken_along(net, joined, 1, 4 * BINS, classes))
    return net.graph([net.concat([middle, net.elementwise(OpKind.SUB, high, low), scores], 1)])


def yolo_v5(size: int, width: int, classes: int, *, seed: int = 1) -> Graph:
    """YOLOv5: three boxes for each pixel of each map, decoded map by map and joined as rows."""
    net = NetBuilder(seed, "yolo_v5")
    parts: list[int] = []
    for x in _backbone(net, size, width):
        _, rows, columns, _ = net.shape(x)
        y = net.conv(x, 3 * (5 + classes))
        y = net.unary(OpKind.LOGISTIC, net.move(OpKind.RESHAPE, y, (1, rows * columns, 3, 5 + classes)))
        centre = net.elementwise(
            OpKind.ADD, taken_along(net, y, 3, 0, 2), net.constant((1, rows * columns, 1, 2))
        )
        side = taken_along(net, y, 3, 2, 2)
        side = net.elementwise(OpKind.MUL, side, side)
        y = net.concat([centre, side, taken_along(net, y, 3, 4, 1 + classes)])
        parts.append(net.move(OpKind.RESHAPE, y, (1, rows * columns * 3, 5 + classes)))
    return net.graph([net.concat(parts, 1)])
