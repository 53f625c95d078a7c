"""Networks of which an image may come row by row: several readers, reshapes before them, other inputs."""

from buildtool.graph.types import Graph, OpKind
from buildtool.zoo.drawn import NetBuilder

SAME = {"kernel": (3, 3), "same": True}


def fork(net: NetBuilder) -> list[int]:
    """A strided residual block at the image: two convolutions read it, and an ADD joins them."""
    x = net.input((1, 16, 12, 3))
    y = net.conv(net.conv(x, 4, stride=(2, 2), **SAME), 4, **SAME)
    return [net.mean(net.elementwise(OpKind.ADD, y, net.conv(x, 4, stride=(2, 2))))]


def residual(net: NetBuilder) -> list[int]:
    """The image itself is added after two convolutions."""
    x = net.input((1, 16, 12, 4))
    y = net.conv(net.conv(x, 4, **SAME), 4, **SAME)
    return [net.conv(net.elementwise(OpKind.ADD, y, x), 2)]


def late(net: NetBuilder) -> list[int]:
    """A second branch reads the image after the first one has ended."""
    x = net.input((1, 16, 12, 4))
    return [net.mean(net.conv(x, 4, **SAME)), net.conv(x, 4)]


def reshaped(net: NetBuilder) -> list[int]:
    """Rows of 6 x 6 numbers are rows of 12 pixels."""
    x = net.move(OpKind.RESHAPE, net.input((1, 16, 6, 6)), (1, 16, 12, 3))
    return [net.mean(net.conv(x, 4, kernel=(3, 3)))]


def temporal(net: NetBuilder) -> list[int]:
    """A residual block of one-dimensional convolutions, behind an EXPAND_DIMS: one row of 24 steps."""
    x = net.move(OpKind.EXPAND_DIMS, net.input((1, 24, 4)), (1, 1, 24, 4))
    y = net.conv(net.conv(x, 4, kernel=(1, 3), same=True), 4, kernel=(1, 3), same=True)
    return [net.mean(net.elementwise(OpKind.ADD, y, x))]


def beside(net: NetBuilder) -> list[int]:
    """A small tensor and an image. The image's branch comes last in the file."""
    small, x = net.input((1, 8, 8, 2)), net.input((1, 16, 12, 3))
    y = net.conv(small, 3, **SAME)
    return [net.mean(net.conv(x, 4, kernel=(3, 3))), net.mean(y)]


def added(net: NetBuilder) -> list[int]:
    """Numbers that a dense layer makes are added to each pixel of the image."""
    numbers, x = net.input((1, 7)), net.input((1, 16, 12, 3))
    shift = net.move(OpKind.RESHAPE, net.dense(numbers, 3), (1, 1, 1, 3))
    return [net.conv(net.elementwise(OpKind.ADD, shift, x), 2, kernel=(3, 3))]


def joined(net: NetBuilder) -> list[int]:
    """A large image is added to what convolutions make of a small one, and later the small one itself."""
    small, x = net.input((1, 16, 12, 2)), net.input((1, 16, 12, 3))
    y = net.elementwise(OpKind.ADD, net.conv(small, 3, **SAME), x)
    return [net.mean(net.elementwise(OpKind.ADD, net.conv(y, 2), small))]


def paired(net: NetBuilder) -> list[int]:
    """The first operator adds two images."""
    a, b = net.input((1, 9, 8, 3)), net.input((1, 9, 8, 3))
    return [net.mean(net.conv(net.elementwise(OpKind.ADD, a, b), 4, **SAME))]


NETWORKS = {f.__name__: f for f in (fork, residual, late, reshaped, temporal, beside, added, joined, paired)}


def network(name: str) -> Graph:
    """Returns one of NETWORKS."""
    net = NetBuilder(3, name)
    return net.graph(NETWORKS[name](net))
