"""Random small networks of operators that the rewrites change: pads, transposes, means, no-ops, constants."""

import numpy as np
from hypothesis import strategies as st

from buildtool.graph import types as g
from buildtool.graph.builder import NO_ATTRS
from buildtool.graph.types import Graph, OpKind
from buildtool.zoo.drawn import NetBuilder


def _pad(draw, net: NetBuilder, x: int) -> int:
    """Pads mostly rows and columns. It sometimes requantises, too."""
    sides = [(0, 0)] * len(net.shape(x))
    for d in range(len(sides)):
        if draw(st.booleans()) and (len(sides) != 4 or d in (1, 2) or draw(st.integers(0, 4)) == 0):
            sides[d] = (draw(st.integers(0, 2)), draw(st.integers(0, 2)))
    quant = net.tensors[x].quant
    attrs = g.PadAttrs(tuple(sides), value=quant.zero_point)
    return net.op(OpKind.PAD, (x,), attrs, draw(st.sampled_from([quant, quant, quant, net.random_quant()])))


def _conv(draw, net: NetBuilder, x: int) -> int:
    size, stride = draw(st.integers(1, min(3, *net.shape(x)[1:3]))), draw(st.integers(1, 2))
    window = {"kernel": (size, size), "stride": (stride, stride), "same": draw(st.booleans())}
    return net.conv(x, 3, depth_multiplier=draw(st.integers(0, 1)), **window)


def _transpose(draw, net: NetBuilder, x: int) -> int:
    perm = tuple(draw(st.permutations(range(len(net.shape(x))))))
    return net.move(OpKind.TRANSPOSE, x, attrs=g.TransposeAttrs(perm))


def _mean(draw, net: NetBuilder, x: int) -> int:
    rank = len(net.shape(x))
    axes = draw(st.sets(st.integers(0, rank - 1), min_size=1, max_size=max(rank - 1, 1)))
    return net.mean(x, tuple(sorted(axes)), keep_dims=rank == 1 or draw(st.booleans()))


def _unit_dimension(draw, net: NetBuilder, x: int) -> int:
    """Adds or removes a dimension of size 1, as around one-dimensional convolutions."""
    shape = net.shape(x)
    ones = [d for d, n in enumerate(shape) if n == 1]
    if ones and len(shape) > 1 and (draw(st.booleans()) or len(shape) > 3):
        d = draw(st.sampled_from(ones))
        return net.move(OpKind.SQUEEZE, x, (*shape[:d], *shape[d + 1 :]))
    axis = draw(st.integers(0, len(shape)))
    return net.move(OpKind.EXPAND_DIMS, x, (*shape[:axis], 1, *shape[axis:])) if len(shape) < 5 else x


def _slice(draw, net: NetBuilder, x: int) -> int:
    shape = net.shape(x)
    begin = tuple(draw(st.integers(0, min(1, n - 1))) if draw(st.booleans()) else 0 for n in shape)
    extent = tuple(n - b for n, b in zip(shape, begin, strict=True))
    return net.move(OpKind.SLICE, x, attrs=g.SliceAttrs(begin, (1,) * len(shape), extent))


def _table(draw, net: NetBuilder, x: int) -> int:
    kind = draw(st.sampled_from([OpKind.RELU, OpKind.RELU6, OpKind.QUANTIZE, OpKind.HARD_SWISH]))
    quant = net.tensors[x].quant
    return net.op(kind, (x,), NO_ATTRS, draw(st.sampled_from([quant, quant, net.random_quant()])))


def _constant_branch(draw, net: NetBuilder, x: int) -> int:
    """MUL by an operand that is computed from constants alone."""
    width = net.shape(x)[-1]
    kind = draw(st.sampled_from([OpKind.ADD, OpKind.SUB, OpKind.MUL]))
    result = net.elementwise(kind, net.constant((1, width)), net.constant((width,)))
    return net.elementwise(OpKind.MUL, x, net.move(OpKind.RESHAPE, result, (width,)))


ANY = (
    *(_pad, _unit_dimension, _unit_dimension, _transpose, _mean, _slice, _table, _constant_branch),
    lambda draw, net, x: net.move(OpKind.RESHAPE, x, draw(st.permutations(net.shape(x)))),
    lambda draw, net, x: net.concat([x] * draw(st.integers(1, 2)), draw(_axes(net, x))),
    lambda draw, net, x: net.split(x, 1, draw(_axes(net, x)))[0],
)


def _axes(net: NetBuilder, x: int) -> st.SearchStrategy[int]:
    return st.integers(0, len(net.shape(x)) - 1)


@st.composite
def networks(draw) -> Graph:
    """A network of up to eight operators. Outputs: its last tensor, sometimes others."""
    net = NetBuilder(draw(st.integers(0, 1 << 30)))
    tensors = [net.input((1, draw(st.integers(1, 5)), draw(st.integers(1, 5)), draw(st.integers(1, 3))))]
    for _ in range(draw(st.integers(1, 8))):
        x = tensors[-1] if draw(st.integers(0, 4)) else draw(st.sampled_from(tensors))
        add = draw(st.sampled_from(ANY))
        if len(net.shape(x)) == 4 and draw(st.integers(0, 2)) == 0:
            x, add = _pad(draw, net, x) if draw(st.integers(0, 4)) else x, _conv
        if np.prod(net.shape(x)) < 3000:
            tensors.append(add(draw, net, x))
    others = draw(st.sets(st.sampled_from(tensors), max_size=2)) - {tensors[-1]}
    return net.graph([tensors[-1], *sorted(others)])
