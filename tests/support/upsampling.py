"""Networks that enlarge: U-Nets, pyramids, decoders, segmentation heads, super-resolution.

graph = u_net(64, 8, 2, "nearest")
"""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

import buildtool.graph.types as g
from buildtool.graph.types import Activation, Graph, OpKind
from buildtool.zoo.drawn import NetBuilder

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
    """The image with so many rows and columns."""
    batch, height, width, depth = net.shape(x)
    if way == "transpose":
        stride = (-(-rows // height), -(-columns // width))
        out = (rows, columns)
        return net.transpose_conv(x, channels or depth, kernel=(3, 3), stride=stride, same=True, out=out)
    kind, attrs = _RESIZES[way]
    return net.move(kind, x, (batch, rows, columns, depth), attrs)


def conv(net: NetBuilder, x: int, channels: int, stride: int = 1, kernel: int = 3) -> int:
    """A convolution with zeros around, and RELU."""
    size = (kernel, kernel)
    return net.conv(x, channels, kernel=size, stride=(stride, stride), same=True, activation=Activation.RELU)


def like(net: NetBuilder, x: int, other: int) -> int:
    """A tensor that nothing has read yet, in the quantisation of another one: converters make parts so."""
    net.tensors[x] = replace(net.tensors[x], quant=net.tensors[other].quant)
    return x


def u_net(size: int, width: int, levels: int, way: str, *, rows: int = 0, seed: int = 1) -> Graph:
    """Two convolutions a level, half the size and twice the channels from level to level, and back."""
    net = NetBuilder(seed)
    x = net.input((1, rows or size, size, 1))
    skips = []
    for level in range(levels):
        x = conv(net, conv(net, x, width << level), width << level)
        skips.append(x)
        x = net.pool(OpKind.MAX_POOL_2D, x, (2, 2), (2, 2), same=True)
    x = conv(net, x, width << levels)
    for level, skip in reversed(list(enumerate(skips))):
        x = enlarged(net, like(net, x, skip), *net.shape(skip)[1:3], way, width << level)
        x = net.concat([like(net, x, skip), skip])
        x = conv(net, conv(net, x, width << level), width << level)
    return net.graph([net.conv(x, 2)])


def pyramid(size: int, width: int, way: str, *, seed: int = 1) -> Graph:
    """A feature pyramid: levels of a backbone, each added to what the one above it is enlarged to."""
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
    """Segmentation: a backbone of stride 8, and scores that are enlarged to the image at once."""
    net = NetBuilder(seed)
    x = net.input((1, size, size, 3))
    for level in range(3):
        x = conv(net, x, width << level, 2)
    return net.graph([enlarged(net, net.conv(x, 3), size, size, way)])


def super_resolution(size: int, width: int, way: str, factor: int = 2, *, seed: int = 1) -> Graph:
    """Convolutions of an image beside which it is enlarged; both are added at the end."""
    net = NetBuilder(seed)
    image = net.input((1, size, size, 3))
    first = conv(net, image, width)
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
        kernel = (4, 4) if level % 2 else (3, 2)
        x = net.transpose_conv(
            x, max(1, (width << level) // 2), kernel=kernel, stride=(2, 2), same=True, out=shape
        )
    return net.graph([x])


@st.composite
def networks(draw, least=9, most=30):
    """One of these networks, its images of so many rows and columns."""
    seed, way, width = draw(st.integers(0, 999)), draw(st.sampled_from(WAYS)), draw(st.integers(1, 5))
    rows, columns = (draw(st.integers(least, most)) for _ in range(2))
    kind = draw(st.sampled_from(["u_net", "u_net", "pyramid", "head", "super_resolution", "decoder"]))
    if kind == "u_net":
        return u_net(columns, width, draw(st.integers(1, 3)), way, rows=rows, seed=seed)
    if kind == "pyramid":
        return pyramid(columns, width, way, seed=seed)
    if kind == "head":
        return head(columns, width, way, seed=seed)
    if kind == "super_resolution":
        return super_resolution(columns, width, way, draw(st.integers(2, 3)), seed=seed)
    return decoder(rows, columns, width, seed=seed)
