"""PADs before poolings: folded where that is exact, in the reference and in firmware, as LiteRT computes."""

from collections import Counter

import pytest
from boardruns import exact, file_of
from graphs import activations, inputs_for, patterns, seeds
from hypothesis import given, settings
from hypothesis import strategies as st
from litert import rewritten
from nativebatch import assert_exact, prepare

from buildtool.graph import types as g
from buildtool.graph.bounds import find_bounds
from buildtool.graph.reference import execute
from buildtool.graph.types import Activation, FilledPoolAttrs, OpKind, PadAttrs
from buildtool.zoo.drawn import NetBuilder, WideNetBuilder

POOLS = (OpKind.MAX_POOL_2D, OpKind.AVERAGE_POOL_2D)
LEAST = {NetBuilder: -128, WideNetBuilder: -32768}


def padded(net, x, sides, value):
    """Adds a PAD of rows and columns with `value`."""
    (top, bottom), (left, right) = sides
    return net.move(
        OpKind.PAD, x, attrs=PadAttrs(((0, 0), (top, bottom), (left, right), (0, 0)), value=value)
    )


@st.composite
def padded_pools(draw):
    """Draws a PAD of any value before one or two poolings, mostly without padding of their own."""
    builder = draw(st.sampled_from((NetBuilder, NetBuilder, WideNetBuilder)))
    net, few = builder(draw(seeds)), st.integers(0, 2)
    x = net.input((1, draw(st.integers(4, 9)), draw(st.integers(4, 9)), draw(st.sampled_from((1, 3, 4, 33)))))
    values = st.sampled_from((net.tensors[x].quant.zero_point, LEAST[builder], -5, 127))
    if draw(st.booleans()):  # less than the type's range
        x = net.pool(OpKind.MAX_POOL_2D, x, (1, 1), (1, 1), activation=Activation.RELU6)
    p = padded(net, x, ((draw(few), draw(few)), (draw(few), draw(few))), draw(values))
    outs = []
    for _ in range(draw(st.integers(1, 2))):
        kernel = draw(st.tuples(st.integers(2, 4), st.integers(2, 4)))
        stride = draw(st.tuples(st.integers(1, 3), st.integers(1, 3)))
        same = draw(st.sampled_from((False, False, False, True)))
        outs.append(net.pool(draw(st.sampled_from(POOLS)), p, kernel, stride, same, draw(activations)))
    return net.graph(outs)


@pytest.mark.slow
@settings(derandomize=True, deadline=None, max_examples=150)
@given(graph=padded_pools(), seed=seeds, pattern=patterns)
def test_folded_pads_equal_litert(graph, seed, pattern):
    inputs = inputs_for(graph, seed, pattern)
    after = rewritten(graph, inputs)
    kinds = Counter(op.kind for op in after.ops)
    assert kinds[OpKind.PAD] <= 1
    bounds, values = find_bounds(after), execute(after, inputs)
    for t in after.outputs:
        assert (values[t] >= bounds[t].low).all() and (values[t] <= bounds[t].high).all()


def one_pool(kind, value, *, sides=((1, 1), (1, 1)), same=False, also=(), shape=(1, 12, 13, 8)):
    net = NetBuilder(7)
    x = net.input(shape)
    p = padded(net, x, sides, value)
    outs = [net.pool(kind, p, (3, 3), (2, 2), same)]
    outs += [net.unary(one, p if one is OpKind.HARD_SWISH else x) for one in also]
    return net.graph(outs)


@pytest.mark.parametrize(
    ("kind", "value", "options", "folded"),
    [
        (OpKind.MAX_POOL_2D, -128, {}, g.PoolAttrs),
        (OpKind.MAX_POOL_2D, -128, {"same": True}, g.PoolAttrs),
        (OpKind.MAX_POOL_2D, -3, {}, FilledPoolAttrs),
        (OpKind.AVERAGE_POOL_2D, -3, {}, FilledPoolAttrs),
        (OpKind.AVERAGE_POOL_2D, -3, {"sides": ((0, 1), (0, 0)), "shape": (1, 13, 13, 8)}, g.PoolAttrs),
        (OpKind.AVERAGE_POOL_2D, -3, {"same": True, "shape": (1, 12, 12, 8)}, None),
        (OpKind.MAX_POOL_2D, -3, {"same": True, "sides": ((1, 0), (0, 0)), "shape": (1, 12, 12, 8)}, None),
        (OpKind.MAX_POOL_2D, -128, {"sides": ((3, 1), (1, 1))}, None),  # a window in the padding alone
        (OpKind.MAX_POOL_2D, -128, {"also": (OpKind.HARD_SWISH,)}, None),  # x would be in memory for longer
        (OpKind.MAX_POOL_2D, -128, {"also": (OpKind.HARD_SWISH, OpKind.RELU)}, g.PoolAttrs),
    ],
)
def test_a_pad_is_folded_where_that_is_exact(kind, value, options, folded):
    graph = one_pool(kind, value, **options)
    after = rewritten(graph, inputs_for(graph, 1, "random"))
    pool = next(op for op in after.ops if op.kind is kind)
    stays = folded is None or "also" in options
    assert (OpKind.PAD in {op.kind for op in after.ops}) == stays
    assert type(pool.attrs) is (folded or g.PoolAttrs)
    assert (after.tensors[pool.inputs[0]].shape == after.tensors[after.inputs[0]].shape) == (
        folded is not None
    )


def stem(builder, value):
    """A convolution without activation, then poolings that read its PADs: a maximum and an average."""
    net = builder(11)
    x = net.conv(net.input((1, 17, 15, 3)), 32, kernel=(3, 3), same=True)
    outs = []
    for kind, stride in ((OpKind.MAX_POOL_2D, 2), (OpKind.AVERAGE_POOL_2D, 1)):
        p = padded(net, x, ((1, 1), (1, 2)), value)
        outs.append(net.conv(net.pool(kind, p, (3, 3), (stride, stride)), 4))
    return net.graph(outs)


@pytest.mark.slow
@pytest.mark.parametrize("options", [{"strategy": "layerwise"}, {"objective": "ram", "image": "stream"}])
@pytest.mark.parametrize("builder", [NetBuilder, WideNetBuilder])
def test_firmware_equals_litert(tmp_path, builder, options):
    run = exact(file_of(stem(builder, 40), tmp_path), "host", options, inputs=2)
    assert Counter(type(op.attrs) for op in run.made.graph.ops)[FilledPoolAttrs] == 2


def test_borders_are_computed_in_the_order_of_rows(tmp_path):
    """The output lies over rows of the input that are dead: each row must be complete before the next one."""
    net = NetBuilder(5)
    x = net.input((1, 15, 17, 8))
    graph = net.graph([net.pool(OpKind.MAX_POOL_2D, padded(net, x, ((1, 1), (1, 1)), 40), (3, 3), (1, 1))])
    run = exact(file_of(graph, tmp_path), "host", {"objective": "ram", "strategy": "layerwise"}, inputs=2)
    assert run.plan.arena_bytes < 1.3 * 15 * 17 * 8


def test_code_of_a_pooling_all_of_whose_windows_meet_the_pad_has_no_warnings(tmp_path):
    graph = one_pool(OpKind.MAX_POOL_2D, 40, shape=(1, 2, 13, 8))
    assert_exact([prepare(graph, "net")], tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(
    "board", ["cortex-m4", "cortex-m55", "cortex-m0plus", "hifive1", "qemu-virt-rv32v", "xcore"]
)
def test_emulated_firmware_equals_litert(tmp_path, board):
    run = exact(file_of(stem(NetBuilder, 40), tmp_path), board, {"objective": "ram", "image": "stream"})
    assert Counter(type(op.attrs) for op in run.made.graph.ops)[FilledPoolAttrs] == 2
    kernels = [name for name in run.plan.kernels if name.startswith("avg_pool_filled_")]
    assert len(kernels) == 1 and not kernels[0].endswith("reference")
