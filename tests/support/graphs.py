"""Hypothesis strategies of graphs, for the executor, the C kernels, plans and emitted firmware.

    @given(graph=one_operator_graphs(OpKind.CONV_2D), pattern=patterns, seed=seeds)
    def test_...(graph, pattern, seed):
        inputs = inputs_for(graph, seed, pattern)
        expected = execute(graph, inputs)          # or litert.run_graph(graph, inputs)

- `one_operator_graphs(kind)`: that operator alone, random geometry (odd sizes, strides, dilation,
  padding, batch), quantisation and weights. Every OpKind.
- `inputs_for(graph, seed, pattern)`: input arrays, filled by one of `PATTERNS`.

The graphs are as the reader returns them. `write_model(graph)` makes the file and keeps tensor indices.
"""

import math
from collections.abc import Sequence

import numpy as np
from hypothesis import strategies as st

from buildtool.api.checking.cases import ADDING, network
from buildtool.graph import types as g
from buildtool.graph.ops import COMPARISONS, DEFS, moving
from buildtool.graph.ops.signal import CUSTOM
from buildtool.graph.types import Activation, DType, Graph, OpKind
from buildtool.zoo.drawn import NetBuilder

PATTERNS = ("random", "least", "greatest", "extremes", "near zero point")

patterns = st.sampled_from(PATTERNS)
seeds = st.integers(0, 2**31 - 1)
activations = st.sampled_from(list(Activation))
sizes = st.integers(1, 9)
channels = st.integers(1, 9)
batches = st.sampled_from([1, 1, 1, 2, 3])


def inputs_for(graph: Graph, seed: int, pattern: str = "random") -> list[np.ndarray]:
    """Returns an array for each network input."""
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
# Functions that add an operator to an empty network, named after the cases of DEFS. They return its outputs.

Made = int | tuple[int, ...]


def _transpose_conv(draw: st.DrawFn, net: NetBuilder, _kind: OpKind) -> Made:
    kernel = draw(st.tuples(st.integers(1, 4), st.integers(1, 4)))
    stride = draw(st.tuples(st.integers(1, 3), st.integers(1, 3)))
    same = draw(st.booleans())
    height, width = draw(sizes), draw(sizes)
    out = None
    if same:  # every output size that has this input size
        out = tuple(n * s - draw(st.integers(0, s - 1)) for n, s in zip((height, width), stride, strict=True))
    x = net.input((draw(batches), height, width, draw(channels)))
    return net.transpose_conv(
        x,
        draw(channels),
        kernel=kernel,
        stride=stride,
        same=same,
        out=out,
        per_channel=draw(st.booleans()),
        bias=draw(st.booleans()),
    )


def _elementwise(draw: st.DrawFn, net: NetBuilder, kind: OpKind) -> Made:
    rank = draw(st.integers(1, 4))
    shape = [draw(st.integers(1, 6)) for _ in range(rank)]
    full = net.input(shape)
    other = [1 if draw(st.integers(0, 3)) == 0 else n for n in shape]
    other = other[draw(st.integers(0, rank - 1)) :] if draw(st.integers(0, 2)) == 0 else other
    form = draw(st.sampled_from(["tensor", "constant", "itself"]))
    operand = {"tensor": net.input, "constant": net.constant}.get(form, lambda _: full)(other)
    pair = (operand, full) if draw(st.booleans()) else (full, operand)
    return net.elementwise(kind, *pair, draw(activations))


def _pair_of(draw: st.DrawFn, net: NetBuilder, kind: OpKind) -> Made:
    """An operator of two operands in either order: a tensor, and a tensor, a constant or one element."""
    full, other = _shapes(draw)
    x = net.input(full, q=_coarse(net))
    y = net.input(other, q=_coarse(net)) if draw(st.booleans()) else net.constant(other)
    if kind in (OpKind.LOGICAL_AND, OpKind.LOGICAL_OR):
        x, y = net.pair(OpKind.LESS, x, net.constant((1,))), net.pair(OpKind.GREATER, x, y)
    operands = (y, x) if draw(st.booleans()) else (x, y)
    return net.pair(kind, *operands)


def _coarse(net: NetBuilder) -> g.Quantization | None:
    """Half the time a quantisation with a scale just below 1, whose values comparisons distinguish."""
    return net.random_quant(float(net.rng.uniform(0.3, 0.99))) if net.rng.integers(2) else None


def _shapes(draw: st.DrawFn) -> tuple[list[int], list[int]]:
    """Returns a shape, and one that broadcasts to it, often a single element."""
    full = [draw(st.integers(1, 6)) for _ in range(draw(st.integers(1, 4)))]
    if draw(st.integers(0, 2)) == 0:
        return full, draw(st.sampled_from([[1], [1] * len(full)]))
    return full, [1 if draw(st.integers(0, 3)) == 0 else n for n in full]


def _prelu(draw: st.DrawFn, net: NetBuilder, _kind: OpKind) -> Made:
    shape = (draw(batches), draw(sizes), draw(sizes), draw(channels))
    alpha = draw(st.sampled_from([(1, 1, shape[3]), (shape[3],), shape[1:], (1, 1, 1), (1, shape[2], 1)]))
    return net.prelu(net.input(shape), alpha)


def _unary(draw: st.DrawFn, net: NetBuilder, kind: OpKind) -> Made:
    return net.unary(kind, net.input(draw(st.sampled_from([(1, 16, 16, 1), (1, 7, 5, 3), (2, 40), (256,)]))))


def _requantize(draw: st.DrawFn, net: NetBuilder, _kind: OpKind) -> Made:
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
    return net.requantize(net.input((1, draw(sizes), 30), source), out)


def _cast(draw: st.DrawFn, net: NetBuilder, _kind: OpKind) -> Made:
    return net.cast(net.input((1, draw(sizes), 7)), draw(st.sampled_from([DType.INT16, DType.INT32])))


def _dequantize(draw: st.DrawFn, net: NetBuilder, _kind: OpKind) -> Made:
    x = net.input((1, 256), draw(st.sampled_from([DType.INT8, DType.UINT8])))
    return net.dequantize(x)


def _mean(draw: st.DrawFn, net: NetBuilder, kind: OpKind) -> Made:
    rank = draw(st.integers(1, 4))
    shape = tuple(draw(st.integers(1, 9)) for _ in range(rank))
    axes = draw(st.sets(st.integers(0, rank - 1), min_size=1))
    return net.mean(net.input(shape), tuple(sorted(axes)), draw(st.booleans()), kind)


def _pad(draw: st.DrawFn, net: NetBuilder, kind: OpKind) -> Made:
    rank = draw(st.integers(1, 4))
    shape = [draw(st.integers(2, 6)) for _ in range(rank)]
    mode = g.PadMode.CONSTANT
    if kind is OpKind.MIRROR_PAD:
        mode = draw(st.sampled_from([g.PadMode.REFLECT, g.PadMode.SYMMETRIC]))
    limit = 3 if mode is g.PadMode.CONSTANT else 1
    paddings = [(draw(st.integers(0, limit)), draw(st.integers(0, limit))) for _ in shape]
    return net.pad(net.input(shape), paddings, mode)


def _reshape(draw: st.DrawFn, net: NetBuilder, kind: OpKind) -> Made:
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
    return net.move(kind, x, out)


def _transpose(draw: st.DrawFn, net: NetBuilder, _kind: OpKind) -> Made:
    shape = [draw(st.integers(1, 5)) for _ in range(draw(st.integers(1, 5)))]
    perm = tuple(draw(st.permutations(range(len(shape)))))
    return net.move(OpKind.TRANSPOSE, net.input(shape), attrs=g.TransposeAttrs(perm))


def _concatenation(draw: st.DrawFn, net: NetBuilder, _kind: OpKind) -> Made:
    shape = [draw(st.integers(1, 5)) for _ in range(draw(st.integers(1, 4)))]
    axis = draw(st.integers(0, len(shape) - 1))
    q = net.random_quant()
    parts = []
    for _ in range(draw(st.integers(1, 4))):
        part = list(shape)
        part[axis] = draw(st.integers(1, 4))
        parts.append(net.input(part, q=q))
    return net.concat(parts, axis)


def _split(draw: st.DrawFn, net: NetBuilder, _kind: OpKind) -> Made:
    shape = [draw(st.integers(1, 5)) for _ in range(draw(st.integers(1, 4)))]
    axis, count = draw(st.integers(0, len(shape) - 1)), draw(st.integers(1, 4))
    shape[axis] *= count
    return net.split(net.input(shape), count, axis)


def _slice(draw: st.DrawFn, net: NetBuilder, kind: OpKind) -> Made:
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
    return net.move(kind, net.input(shape), out, attrs)


def _tile(draw: st.DrawFn, net: NetBuilder, _kind: OpKind) -> Made:
    shape = [draw(st.integers(1, 4)) for _ in range(draw(st.integers(1, 5)))]
    multiples = tuple(draw(st.sampled_from([1, 1, 2, 3])) for _ in shape)
    return net.move(OpKind.TILE, net.input(shape), attrs=g.TileAttrs(multiples))


def _gather(draw: st.DrawFn, net: NetBuilder, _kind: OpKind) -> Made:
    shape = [draw(st.integers(1, 5)) for _ in range(draw(st.integers(1, 5)))]
    axis = draw(st.integers(0, len(shape) - 1))
    indices = tuple(draw(st.lists(st.integers(0, shape[axis] - 1), min_size=1, max_size=7)))
    return net.move(OpKind.GATHER, net.input(shape), attrs=g.GatherAttrs(axis, indices))


def _squares(draw: st.DrawFn, net: NetBuilder, kind: OpKind) -> Made:
    block, (n, h, w, c) = draw(st.integers(1, 4)), (draw(batches), *(draw(st.integers(1, 4)) for _ in "hwc"))
    small, large = (n, h, w, c * block**2), (n, h * block, w * block, c)
    shape = small if kind is OpKind.DEPTH_TO_SPACE else large
    return net.move(kind, net.input(shape), attrs=g.BlockAttrs(block))


def _batch_blocks(draw: st.DrawFn, net: NetBuilder, kind: OpKind) -> Made:
    count = draw(st.integers(1, 2))
    block = tuple(draw(st.integers(1, 3)) for _ in range(count))
    whole = tuple(b * draw(st.integers(2, 4)) for b in block)
    edges = tuple((draw(st.integers(0, 1)), draw(st.integers(0, 2))) for _ in block)
    inner = [n - sum(e) for n, e in zip(whole, edges, strict=True)]
    inner, edges = ([*whole], ((0, 0),) * count) if min(inner) < 1 else (inner, edges)
    batch, depth = draw(batches), draw(st.integers(1, 4))
    space = (batch, *inner, depth)
    cut = (n // b for n, b in zip(whole, block, strict=True))
    blocks = (batch * math.prod(block), *cut, depth)
    if kind is OpKind.BATCH_TO_SPACE_ND:
        x = net.input(blocks)
        return net.move(kind, x, space, g.BatchBlockAttrs(block, edges))
    x = net.input(space)
    attrs = g.BatchBlockAttrs(block, edges, net.tensors[x].quant.zero_point)
    return net.move(kind, x, blocks, attrs)


def _extreme(draw: st.DrawFn, net: NetBuilder, kind: OpKind) -> Made:
    shape = [draw(st.integers(1, 6)) for _ in range(draw(st.integers(1, 5)))]
    axes = tuple(sorted(draw(st.sets(st.integers(0, len(shape) - 1), min_size=1))))
    return net.extreme(kind, net.input(shape), axes, draw(st.booleans()))


def _arg(draw: st.DrawFn, net: NetBuilder, kind: OpKind) -> Made:
    shape = [draw(st.integers(1, 6)) for _ in range(draw(st.integers(1, 5)))]
    dtype = draw(st.sampled_from([DType.INT32, DType.INT64]))
    return net.arg(kind, net.input(shape), draw(st.integers(0, len(shape) - 1)), dtype)


def _matmul(draw: st.DrawFn, net: NetBuilder, _kind: OpKind) -> Made:
    rows, inner, columns = (draw(st.integers(1, 9)) for _ in range(3))
    rank = draw(st.integers(0, 3))
    lead = [draw(st.integers(1, 3)) for _ in range(rank)]
    leads = [[1 if draw(st.integers(0, 3)) == 0 else n for n in lead] for _ in range(2)]
    leads[draw(st.integers(0, 1))][: draw(st.integers(0, rank))] = []
    adj_x, adj_y = draw(st.booleans()), draw(st.booleans())
    x = net.input([*leads[0], *((inner, rows) if adj_x else (rows, inner))])
    shape = [*leads[1], *((columns, inner) if adj_y else (inner, columns))]
    y = net.constant(shape) if draw(st.integers(0, 3)) == 0 else net.input(shape)
    return net.matmul(x, y, adj_x, adj_y)


# Kinds that only reading states, rewriting or planning makes. `statenets` has networks with states.
STATE_KINDS = frozenset(
    {
        OpKind.LOOKUP,  # see test_rewrite_lookups.py
        *(OpKind.VIEW, OpKind.JOINED),  # see drawnnets.py
        *(OpKind.READ_VARIABLE, OpKind.ASSIGN_VARIABLE, OpKind.SHIFT),
        *(OpKind.SVDF, OpKind.UNIDIRECTIONAL_SEQUENCE_LSTM),  # see recurrentnets.py
        *(definition.kind for definition in moving.DEFS),  # see listeningnets.py
    }
)
# LiteRT's reference kernel of SUM misreads its input: test_wide_values has it. Others: see test_signal.
OF_TFLM = {OpKind.SUM, *CUSTOM}
ALONE = tuple(kind for kind in OpKind if kind not in STATE_KINDS | OF_TFLM and DEFS[kind].reference)
# Similar operators share the examples of a test.
_ALIKE = {
    "lookups": (
        *(OpKind.NEG, OpKind.SQRT, OpKind.RSQRT, OpKind.ELU),
        *(OpKind.RELU_N1_TO_1, OpKind.RELU_0_TO_1, OpKind.LOGICAL_NOT),
    ),
    "comparisons": tuple(sorted(COMPARISONS)),
    "pairs": (
        *(OpKind.MAXIMUM, OpKind.MINIMUM, OpKind.SQUARED_DIFFERENCE, OpKind.DIV),
        *(OpKind.LOGICAL_AND, OpKind.LOGICAL_OR, OpKind.SELECT_V2),
    ),
    "normalisations": (OpKind.L2_NORMALIZATION, OpKind.LOG_SOFTMAX),
}
_SHARING = {kind for kinds in _ALIKE.values() for kind in kinds}
KIND_GROUPS: dict[str, tuple[OpKind, ...]] = {
    **{str(kind): (kind,) for kind in ALONE if kind not in _SHARING},
    **_ALIKE,
}


def graphs_of_one_of(kinds: Sequence[OpKind]) -> st.SearchStrategy[Graph]:
    """Graphs of one operator of one of the kinds."""
    return st.one_of([one_operator_graphs(kind) for kind in kinds])


# The functions above for kinds without a case in DEFS.
_WITHOUT_CASE = {
    OpKind.CAST: "cast",
    OpKind.DEQUANTIZE: "dequantize",
    **dict.fromkeys((OpKind.RESHAPE, OpKind.SQUEEZE, OpKind.EXPAND_DIMS), "reshape"),
    **dict.fromkeys((OpKind.BATCH_TO_SPACE_ND, OpKind.SPACE_TO_BATCH_ND), "batch_blocks"),
}


# Cases that `target check` adds to an image in the same way.
_OF_IMAGES = {"conv", "dense", "denied", "normalised", "pool", "quotient", "resize", "select", "softmax"}


def _of_an_image(draw: st.DrawFn, net: NetBuilder, kind: OpKind) -> Made:
    x = net.input((draw(batches), draw(sizes), draw(sizes), draw(channels)))
    return ADDING[kind](net, net.rng, x, kind)


def one_operator_graphs(kind: OpKind) -> st.SearchStrategy[Graph]:
    """Graphs of one operator of a kind. `target check` draws those that no function above adds."""
    case = DEFS[kind].case or _WITHOUT_CASE[kind]
    add = _of_an_image if case in _OF_IMAGES else globals().get(f"_{case}")
    if add is None:
        return st.builds(lambda seed: network(kind, seed, among=False), seeds)

    @st.composite
    def graphs(draw: st.DrawFn) -> Graph:
        net = NetBuilder(draw(seeds))
        outputs = add(draw, net, kind)
        return net.graph(outputs if isinstance(outputs, tuple) else [outputs])

    return graphs()
