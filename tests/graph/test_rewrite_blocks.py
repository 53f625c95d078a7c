"""Rewrites of blocks, products and repetitions: fewer operators, and the same bytes as LiteRT."""

import litert
import numpy as np
import pytest
from graphs import inputs_for
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from buildtool.graph import types as g
from buildtool.graph.ops import ALIAS_KINDS
from buildtool.graph.tflite.reader import read_model
from buildtool.graph.types import OpKind
from buildtool.zoo.drawn import NetBuilder

SETTINGS = settings(derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))


def rewritten(model: g.Graph | bytes, seed: int = 0) -> g.Graph:
    source = model if isinstance(model, g.Graph) else read_model(model)
    return litert.rewritten(model, inputs_for(source, seed))


def kinds(graph: g.Graph) -> list[OpKind]:
    return [op.kind for op in graph.ops if op.kind not in ALIAS_KINDS]


def add_dilated(draw, net: NetBuilder) -> tuple[int, int]:
    """Adds SPACE_TO_BATCH_ND, a convolution and BATCH_TO_SPACE_ND; returns (input, output)."""
    block = tuple(draw(st.integers(1, 3)) for _ in "hw")
    kernel = tuple(draw(st.integers(1, 3)) for _ in "hw")
    depthwise, side_pad = draw(st.booleans()), draw(st.integers(0, 1))
    edges, sides, crops = [], [], []
    for b, k in zip(block, kernel, strict=True):
        before = draw(st.integers(0, 3))
        side = b * (k + draw(st.integers(0, 3))) - before
        after = draw(st.integers(0, 2)) * b + max(b - side, 0) // b * b
        edges.append((before, after))
        sides.append(max(side, 1))
        edges[-1] = (before, -(sides[-1] + before) % b + after)
        crops.append((draw(st.integers(0, 1)), draw(st.integers(0, 1))))
    x = net.input((draw(st.integers(1, 2)), *sides, 3))
    batch, depth = net.shape(x)[0], net.shape(x)[3]
    divided = [(n + sum(e)) // b for n, e, b in zip(sides, edges, block, strict=True)]
    count = block[0] * block[1]
    attrs = g.BatchBlockAttrs(block, tuple(edges), net.tensors[x].quant.zero_point)
    y = net.move(OpKind.SPACE_TO_BATCH_ND, x, (batch * count, *divided, depth), attrs)
    pad = g.Pad(side_pad, 0, 0, side_pad)
    y = net.conv(y, 4, kernel=kernel, pad=pad, depth_multiplier=int(depthwise))
    rows, columns = (n * b for n, b in zip(net.shape(y)[1:3], block, strict=True))
    crops = [c if sum(c) < n else (0, 0) for c, n in zip(crops, (rows, columns), strict=True)]
    shape = (batch, rows - sum(crops[0]), columns - sum(crops[1]), net.shape(y)[3])
    return x, net.move(OpKind.BATCH_TO_SPACE_ND, y, shape, g.BatchBlockAttrs(block, tuple(crops)))


@settings(SETTINGS, max_examples=30)
@given(data=st.data(), seed=st.integers(0, 999))
def test_a_convolution_of_blocks_is_a_dilated_one(data, seed):
    net = NetBuilder(seed)
    _, y = add_dilated(data.draw, net)
    after = rewritten(net.graph([y]), seed)
    assert len(kinds(after)) <= 2
    assert kinds(after)[0] in (OpKind.CONV_2D, OpKind.DEPTHWISE_CONV_2D)
    assert set(kinds(after)[1:]) <= {OpKind.SLICE}  # if more is cropped than was padded


@pytest.mark.parametrize("axis", [1, 2])
def test_a_dilated_convolution_of_one_dimension(axis):
    """As in causal ones by Keras: between EXPAND_DIMS and SQUEEZE the image has one row or one column."""
    net = NetBuilder(6)
    x = net.input((1, 11, 4))
    attrs = g.BatchBlockAttrs((2,), ((4, 1),), net.tensors[x].quant.zero_point)
    y = net.move(OpKind.SPACE_TO_BATCH_ND, x, (2, 8, 4), attrs)
    y = net.move(OpKind.EXPAND_DIMS, y, (2, 1, 8, 4) if axis == 1 else (2, 8, 1, 4))
    y = net.conv(y, 5, kernel=(1, 3) if axis == 1 else (3, 1))
    y = net.move(OpKind.SQUEEZE, y, (2, 6, 5))
    y = net.move(OpKind.BATCH_TO_SPACE_ND, y, (1, 11, 5), g.BatchBlockAttrs((2,), ((0, 1),)))
    after = rewritten(net.graph([y]))
    assert kinds(after) == [OpKind.CONV_2D]
    (conv,) = (op.attrs for op in after.ops if op.kind is OpKind.CONV_2D)
    assert isinstance(conv, g.ConvAttrs) and max(conv.dilation) == 2


def test_blocks_without_a_convolution_become_copies():
    net = NetBuilder(4)
    x = net.input((1, 4, 6, 3))
    edges = ((1, 1), (0, 3))
    attrs = g.BatchBlockAttrs((2, 3), edges, net.tensors[x].quant.zero_point)
    y = net.move(OpKind.SPACE_TO_BATCH_ND, x, (6, 3, 3, 3), attrs)
    y = net.unary(OpKind.TANH, y)
    z = net.move(OpKind.BATCH_TO_SPACE_ND, y, (1, 5, 8, 3), g.BatchBlockAttrs((2, 3), ((1, 0), (0, 1))))
    after = rewritten(net.graph([z, net.unary(OpKind.RELU, y)]))
    assert not {OpKind.SPACE_TO_BATCH_ND, OpKind.BATCH_TO_SPACE_ND} & set(kinds(after))


@settings(SETTINGS, max_examples=20)
@given(seed=st.integers(0, 999), adj=st.booleans(), rank=st.integers(2, 4), swapped=st.booleans())
def test_a_product_with_weights_is_a_convolution(seed, adj, rank, swapped):
    net = NetBuilder(seed)
    shape = [*[2, 3][: rank - 2], 5, 7]
    x = net.input(shape)
    data = net.rng.integers(-127, 128, (6, 7) if adj else (7, 6)).astype(np.int8)
    y = net.tensor(
        data.shape, net.random_quant(0.01) if swapped else g.Quantization((0.0078125,), (0,)), data=data
    )
    after = rewritten(net.graph([net.matmul(x, y, adj_y=adj)]), seed)
    zero = net.tensors[y].quant.zero_point == 0
    assert kinds(after) == [OpKind.CONV_2D if zero else OpKind.BATCH_MATMUL]


def test_products_absorb_transpositions():
    """As in attention: the keys are transposed, the values are not."""
    net = NetBuilder(8)
    q, k, v = (net.input((1, 2, 5, 4)) for _ in range(3))
    transposed = net.move(OpKind.TRANSPOSE, k, (1, 2, 4, 5), g.TransposeAttrs((0, 1, 3, 2)))
    scores = net.softmax(net.matmul(q, transposed))
    after = rewritten(net.graph([net.matmul(scores, v)]))
    assert kinds(after) == [OpKind.BATCH_MATMUL, OpKind.SOFTMAX, OpKind.BATCH_MATMUL]


def test_arithmetic_repeats_its_operands_itself():
    net = NetBuilder(9)
    x, one = net.input((1, 5, 4, 3)), net.input((1, 1, 1, 3))
    tiled = net.move(OpKind.TILE, one, (1, 5, 4, 3), g.TileAttrs((1, 5, 4, 1)))
    after = rewritten(net.graph([net.elementwise(OpKind.MUL, tiled, x)]))
    assert kinds(after) == [OpKind.MUL]


@pytest.mark.parametrize("keep", [True, False])
def test_the_maximum_over_an_image_is_a_pool(keep):
    net = NetBuilder(10)
    x = net.input((2, 5, 4, 3))
    after = rewritten(net.graph([net.extreme(OpKind.REDUCE_MAX, x, (1, 2), keep)]))
    assert kinds(after) == [OpKind.MAX_POOL_2D]
