"""Hypothesis strategies of graphs, for the executor, the C kernels, plans and emitted firmware.

    @given(graph=one_operator_graphs(OpKind.CONV_2D), pattern=patterns, seed=seeds)
    def test_...(graph, pattern, seed):
        inputs = inputs_for(graph, seed, pattern)
        expected = execute(graph, inputs)          # or litert.run_graph(graph, inputs)

- `one_operator_graphs(kind)`: that operator alone, random geometry (odd sizes, strides, dilation,
  padding, batch), quantisation and weights. Every OpKind.
- `small_networks()`: a whole small network: branches, residuals, gates, odd sizes, most operators, one
  or two outputs; `small_networks(firmware=True)` keeps to batch 1 and int8 inside.
- `inputs_for(graph, seed, pattern)`: input arrays; `patterns` are the names of the ways to fill them.

Graphs are what the reader gives; `write_model(graph)` makes the file. Tensor indices survive the writing.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from hypothesis import strategies as st
from netbuilder import NetBuilder
from networks import small_networks

from buildtool.graph import types as g
from buildtool.graph.types import Activation, DType, Graph, OpKind

__all__ = ["PATTERNS", "inputs_for", "one_operator_graphs", "patterns", "seeds", "small_networks"]

PATTERNS = ("random", "least", "greatest", "extremes", "near zero point")

patterns = st.sampled_from(PATTERNS)
seeds = st.integers(0, 2**31 - 1)
activations = st.sampled_from(list(Activation))
sizes = st.integers(1, 9)
channels = st.integers(1, 9)
batches = st.sampled_from([1, 1, 1, 2, 3])


def inputs_for(graph: Graph, seed: int, pattern: str = "random") -> list[np.ndarray]:
    """An array for each network input."""
    rng = np.random.default_rng(seed)
    return [_fill(rng, graph.tensors[index], pattern) for index in graph.inputs]


def _fill(rng: np.random.Generator, tensor: g.Tensor, pattern: str) -> np.ndarray:
    if tensor.dtype is DType.FLOAT32:
        return (rng.normal(size=tensor.shape) * 4).astype(np.float32)
    info = np.iinfo(tensor.dtype.value)
    if pattern == "random":
        values = rng.integers(info.min, info.max + 1, tensor.shape)
    elif pattern == "extremes":
        values = rng.choice([info.min, info.max], tensor.shape)
    elif pattern == "near zero point":
        middle = tensor.quant.zero_point if tensor.quant else 0
        values = np.clip(middle + rng.integers(-3, 4, tensor.shape), info.min, info.max)
    else:
        values = np.full(tensor.shape, info.min if pattern == "least" else info.max)
    return values.astype(tensor.dtype.value)


# ---- one operator ----------------------------------------------------------------------------------


@st.composite
def _conv(draw: st.DrawFn, kind: OpKind) -> Graph:
    net = NetBuilder(draw(seeds))
    groups = draw(st.sampled_from([1, 1, 1, 2, 3])) if kind is OpKind.CONV_2D else 1
    kernel = draw(st.tuples(st.integers(1, 4), st.integers(1, 4)))
    stride = draw(st.tuples(st.integers(1, 3), st.integers(1, 3)))
    dilation = draw(st.sampled_from([(1, 1), (1, 1), (2, 1), (1, 3), (2, 2)]))
    if kind is OpKind.DEPTHWISE_CONV_2D:
        stride = (stride[0], stride[0]) if draw(st.booleans()) else stride
    extent = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
    padding = draw(st.sampled_from(["same", "valid", "explicit"]))
    pad = None
    if padding == "explicit":
        pad = g.Pad(*(draw(st.integers(0, min(2, e - 1))) for e in extent for _ in range(2)))
    least = [1, 1] if padding == "same" else extent
    height, width = (draw(st.integers(n, n + 7)) for n in least)
    x = net.input((draw(batches), height, width, draw(st.integers(1, 6)) * groups))
    y = net.conv(
        x,
        draw(channels) * groups,
        kernel=kernel,
        stride=stride,
        dilation=dilation,
        same=padding == "same",
        pad=pad,
        groups=groups,
        depth_multiplier=draw(st.integers(1, 3)) if kind is OpKind.DEPTHWISE_CONV_2D else 0,
        activation=draw(activations),
        per_channel=draw(st.booleans()),
        bias=draw(st.booleans()),
    )
    return net.graph([y])


@st.composite
def _transpose_conv(draw: st.DrawFn) -> Graph:
    net = NetBuilder(draw(seeds))
    kernel = draw(st.tuples(st.integers(1, 4), st.integers(1, 4)))
    stride = draw(st.tuples(st.integers(1, 3), st.integers(1, 3)))
    same = draw(st.booleans())
    height, width = draw(sizes), draw(sizes)
    out = None
    if same:  # every output size that has this input size
        out = tuple(n * s - draw(st.integers(0, s - 1)) for n, s in zip((height, width), stride, strict=True))
    x = net.input((draw(batches), height, width, draw(channels)))
    y = net.transpose_conv(
        x,
        draw(channels),
        kernel=kernel,
        stride=stride,
        same=same,
        out=out,
        per_channel=draw(st.booleans()),
        bias=draw(st.booleans()),
    )
    return net.graph([y])


@st.composite
def _dense(draw: st.DrawFn) -> Graph:
    net = NetBuilder(draw(seeds))
    keep = draw(st.booleans())
    shape = (draw(batches), draw(st.integers(1, 3)), draw(st.integers(1, 60)))
    y = net.dense(
        net.input(shape),
        draw(st.integers(1, 12)),
        activation=draw(activations),
        per_channel=draw(st.booleans()),
        bias=draw(st.booleans()),
        keep_num_dims=keep,
    )
    return net.graph([y])


@st.composite
def _elementwise(draw: st.DrawFn, kind: OpKind) -> Graph:
    net = NetBuilder(draw(seeds))
    rank = draw(st.integers(1, 4))
    shape = [draw(st.integers(1, 6)) for _ in range(rank)]
    full = net.input(shape)
    other = [1 if draw(st.integers(0, 3)) == 0 else n for n in shape]
    other = other[draw(st.integers(0, rank - 1)) :] if draw(st.integers(0, 2)) == 0 else other
    form = draw(st.sampled_from(["tensor", "constant", "itself"]))
    operand = {"tensor": net.input, "constant": net.constant}.get(form, lambda _: full)(other)
    pair = (operand, full) if draw(st.booleans()) else (full, operand)
    return net.graph([net.elementwise(kind, *pair, draw(activations))])


@st.composite
def _prelu(draw: st.DrawFn) -> Graph:
    net = NetBuilder(draw(seeds))
    shape = (draw(batches), draw(sizes), draw(sizes), draw(channels))
    alpha = draw(st.sampled_from([(1, 1, shape[3]), (shape[3],), shape[1:], (1, 1, 1), (1, shape[2], 1)]))
    return net.graph([net.prelu(net.input(shape), alpha)])


@st.composite
def _unary(draw: st.DrawFn, kind: OpKind) -> Graph:
    net = NetBuilder(draw(seeds))
    shape = draw(st.sampled_from([(1, 16, 16, 1), (1, 7, 5, 3), (2, 40), (256,)]))
    x = net.input(shape)
    return net.graph([net.unary(kind, x)])


@st.composite
def _quantize(draw: st.DrawFn) -> Graph:
    net = NetBuilder(draw(seeds))
    source, out = draw(
        st.sampled_from(
            [
                (DType.INT8, DType.INT8),
                (DType.UINT8, DType.INT8),
                (DType.INT8, DType.UINT8),
                (DType.FLOAT32, DType.INT8),
                (DType.FLOAT32, DType.UINT8),
            ]
        )
    )
    return net.graph([net.requantize(net.input((1, draw(sizes), 30), source), out)])


@st.composite
def _dequantize(draw: st.DrawFn) -> Graph:
    net = NetBuilder(draw(seeds))
    x = net.input((1, 256), draw(st.sampled_from([DType.INT8, DType.UINT8])))
    return net.graph([net.dequantize(x)])


@st.composite
def _pool(draw: st.DrawFn, kind: OpKind) -> Graph:
    net = NetBuilder(draw(seeds))
    same = draw(st.booleans())
    kernel = draw(st.tuples(st.integers(1, 5), st.integers(1, 5)))
    stride = draw(st.tuples(st.integers(1, 3), st.integers(1, 3)))
    height, width = (draw(st.integers(1 if same else k, k + 7)) for k in kernel)
    x = net.input((draw(batches), height, width, draw(channels)))
    return net.graph([net.pool(kind, x, kernel, stride, same, draw(activations))])


@st.composite
def _mean(draw: st.DrawFn) -> Graph:
    net = NetBuilder(draw(seeds))
    rank = draw(st.integers(1, 4))
    shape = tuple(draw(st.integers(1, 9)) for _ in range(rank))
    axes = draw(st.sets(st.integers(0, rank - 1), min_size=1))
    return net.graph([net.mean(net.input(shape), tuple(sorted(axes)), draw(st.booleans()))])


@st.composite
def _softmax(draw: st.DrawFn) -> Graph:
    net = NetBuilder(draw(seeds))
    shape = (*draw(st.sampled_from([(), (1,), (3,), (1, 2, 3)])), draw(st.integers(1, 130)))
    beta = draw(st.sampled_from([1.0, 1.0, 0.5, 2.0]))
    return net.graph([net.softmax(net.input(shape), beta)])


@st.composite
def _pad(draw: st.DrawFn, kind: OpKind) -> Graph:
    net = NetBuilder(draw(seeds))
    rank = draw(st.integers(1, 4))
    shape = [draw(st.integers(2, 6)) for _ in range(rank)]
    mode = g.PadMode.CONSTANT
    if kind is OpKind.MIRROR_PAD:
        mode = draw(st.sampled_from([g.PadMode.REFLECT, g.PadMode.SYMMETRIC]))
    limit = 3 if mode is g.PadMode.CONSTANT else 1
    paddings = [(draw(st.integers(0, limit)), draw(st.integers(0, limit))) for _ in shape]
    return net.graph([net.pad(net.input(shape), paddings, mode)])


@st.composite
def _reshape(draw: st.DrawFn, kind: OpKind) -> Graph:
    net = NetBuilder(draw(seeds))
    shape = [draw(st.sampled_from([1, 2, 3, 5])) for _ in range(draw(st.integers(1, 4)))]
    x = net.input(shape)
    if kind is OpKind.RESHAPE:
        order = draw(st.permutations(shape))
        out = list(order) if draw(st.booleans()) else [math.prod(shape)]
    elif kind is OpKind.SQUEEZE:
        out = [n for n in shape if n != 1 or draw(st.booleans())] or [1]
    else:
        out = list(shape)
        out.insert(draw(st.integers(0, len(shape))), 1)
    return net.graph([net.move(kind, x, out)])


@st.composite
def _transpose(draw: st.DrawFn) -> Graph:
    net = NetBuilder(draw(seeds))
    shape = [draw(st.integers(1, 5)) for _ in range(draw(st.integers(1, 5)))]
    perm = tuple(draw(st.permutations(range(len(shape)))))
    out = [shape[p] for p in perm]
    return net.graph([net.move(OpKind.TRANSPOSE, net.input(shape), out, g.TransposeAttrs(perm))])


@st.composite
def _concatenation(draw: st.DrawFn) -> Graph:
    net = NetBuilder(draw(seeds))
    shape = [draw(st.integers(1, 5)) for _ in range(draw(st.integers(1, 4)))]
    axis = draw(st.integers(0, len(shape) - 1))
    q = net.random_quant()
    parts = []
    for _ in range(draw(st.integers(1, 4))):
        part = list(shape)
        part[axis] = draw(st.integers(1, 4))
        parts.append(net.input(part, q=q))
    return net.graph([net.concat(parts, axis)])


@st.composite
def _split(draw: st.DrawFn) -> Graph:
    net = NetBuilder(draw(seeds))
    shape = [draw(st.integers(1, 5)) for _ in range(draw(st.integers(1, 4)))]
    axis, count = draw(st.integers(0, len(shape) - 1)), draw(st.integers(1, 4))
    shape[axis] *= count
    return net.graph(net.split(net.input(shape), count, axis))


@st.composite
def _slice(draw: st.DrawFn, kind: OpKind) -> Graph:
    net = NetBuilder(draw(seeds))
    shape = [draw(st.integers(1, 7)) for _ in range(draw(st.integers(1, 4)))]
    begins, strides, extents, out = [], [], [], []
    for n in shape:
        first = draw(st.integers(0, n - 1))
        step = draw(st.sampled_from([1, 1, 2, 3, -1, -2])) if kind is OpKind.STRIDED_SLICE else 1
        most = (n - 1 - first) // step + 1 if step > 0 else first // -step + 1
        extent = draw(st.integers(1, most))
        begins.append(first)
        strides.append(step)
        extents.append(extent)
        if not (kind is OpKind.STRIDED_SLICE and extent == 1 and draw(st.booleans())):
            out.append(extent)
    attrs = g.SliceAttrs(tuple(begins), tuple(strides), tuple(extents))
    return net.graph([net.move(kind, net.input(shape), out, attrs)])


@st.composite
def _resize(draw: st.DrawFn, kind: OpKind) -> Graph:
    net = NetBuilder(draw(seeds))
    shape = (draw(batches), draw(sizes), draw(sizes), draw(channels))
    out = (shape[0], draw(st.integers(1, 20)), draw(st.integers(1, 20)), shape[3])
    attrs = g.ResizeAttrs(*draw(st.sampled_from([(False, False), (True, False), (False, True)])))
    return net.graph([net.move(kind, net.input(shape), out, attrs)])


_WITH_KIND: dict[OpKind, Callable[[OpKind], st.SearchStrategy[Graph]]] = {
    OpKind.CONV_2D: _conv,
    OpKind.DEPTHWISE_CONV_2D: _conv,
    OpKind.ADD: _elementwise,
    OpKind.SUB: _elementwise,
    OpKind.MUL: _elementwise,
    OpKind.PAD: _pad,
    OpKind.MIRROR_PAD: _pad,
    OpKind.AVERAGE_POOL_2D: _pool,
    OpKind.MAX_POOL_2D: _pool,
    OpKind.LOGISTIC: _unary,
    OpKind.TANH: _unary,
    OpKind.HARD_SWISH: _unary,
    OpKind.RELU: _unary,
    OpKind.RELU6: _unary,
    OpKind.LEAKY_RELU: _unary,
    OpKind.RESHAPE: _reshape,
    OpKind.SQUEEZE: _reshape,
    OpKind.EXPAND_DIMS: _reshape,
    OpKind.STRIDED_SLICE: _slice,
    OpKind.SLICE: _slice,
    OpKind.RESIZE_NEAREST_NEIGHBOR: _resize,
    OpKind.RESIZE_BILINEAR: _resize,
}
_ALONE: dict[OpKind, Callable[[], st.SearchStrategy[Graph]]] = {
    OpKind.TRANSPOSE_CONV: _transpose_conv,
    OpKind.FULLY_CONNECTED: _dense,
    OpKind.MEAN: _mean,
    OpKind.SOFTMAX: _softmax,
    OpKind.PRELU: _prelu,
    OpKind.TRANSPOSE: _transpose,
    OpKind.CONCATENATION: _concatenation,
    OpKind.SPLIT: _split,
    OpKind.QUANTIZE: _quantize,
    OpKind.DEQUANTIZE: _dequantize,
}


def one_operator_graphs(kind: OpKind) -> st.SearchStrategy[Graph]:
    """Graphs of one operator of that kind."""
    return _WITH_KIND[kind](kind) if kind in _WITH_KIND else _ALONE[kind]()
