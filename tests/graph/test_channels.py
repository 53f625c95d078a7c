"""Channels that are removed: the rest is equal for every input, and bounds hold for every input."""

from dataclasses import replace

import numpy as np
import pytest
from drawnnets import branching_networks, gated_networks, sliced_networks, small_networks
from hypothesis import given
from hypothesis import strategies as st
from thinnets import thinned

from buildtool.base.errors import PlanError
from buildtool.graph.bounds import find_bounds
from buildtool.graph.consistency import check_graph
from buildtool.graph.reference import execute
from buildtool.graph.rewrite import rewrite
from buildtool.graph.rewrite.channels import find_kept, without_channels
from buildtool.graph.topology import topology_digest
from buildtool.graph.types import Activation, OpKind, PadAttrs, SliceAttrs
from buildtool.plan.choose.channels import simplify_as
from buildtool.plan.types import Removed
from buildtool.zoo.drawn import NetBuilder, WideNetBuilder, quant


def assert_equal(graph, narrow, kept, inputs):
    """Every tensor of the narrow network has the bytes of the kept channels; bounds hold."""
    check_graph(narrow)
    whole, left, bounds = execute(graph, inputs), execute(narrow, inputs), find_bounds(graph)
    for t, u in zip(graph.activations(), narrow.activations(), strict=True):
        np.testing.assert_array_equal(whole[t][..., kept[t]], left[u], err_msg=graph.tensors[t].name)
        if t in bounds:
            by_channel = whole[t].reshape(-1, whole[t].shape[-1])
            assert (by_channel >= bounds[t].low).all() and (by_channel <= bounds[t].high).all()


networks = st.one_of(small_networks(), branching_networks(), gated_networks(), sliced_networks())


def check_what_remains(graph, seed, multiple):
    rng = np.random.default_rng(seed)
    graph = rewrite(thinned(graph, rng))
    kept = find_kept(graph, multiple=multiple)
    narrow = without_channels(graph, kept)
    for draw in (lambda shape: rng.integers(-128, 128, shape), lambda shape: rng.choice([-128, 127], shape)):
        inputs = [draw(graph.tensors[t].shape).astype(graph.tensors[t].dtype.value) for t in graph.inputs]
        assert_equal(graph, narrow, kept, inputs)


@pytest.mark.slow
@given(graph=networks, seed=st.integers(0, 1 << 30), multiple=st.sampled_from([1, 1, 2, 4]))
def test_what_remains_is_equal_and_within_its_bounds(graph, seed, multiple):
    check_what_remains(graph, seed, multiple)


def every_pair(seed):
    """A network of two pixels, in a batch that has every input."""
    net, rng = NetBuilder(seed), np.random.default_rng(seed)
    x = net.conv(net.input((1 << 16, 1, 2, 1)), 4, kernel=(1, 2), same=True, activation=Activation.RELU)
    y = net.conv(x, 0, kernel=(1, 3), same=True, depth_multiplier=1, activation=Activation.RELU6)
    z = net.elementwise([OpKind.ADD, OpKind.SUB, OpKind.MUL][seed % 3], y, x)
    z = net.concat([z, net.pool(OpKind.MAX_POOL_2D, x, (1, 2), (1, 1), True)])
    z = net.conv(net.unary(OpKind.LOGISTIC, z), 3)
    graph = thinned(net.graph([net.conv(z, 2, kernel=(1, 2), same=True)]), rng)
    pairs = np.arange(1 << 16).astype(np.uint16).view(np.int8).reshape(-1, 1, 2, 1)
    return graph, pairs


@pytest.mark.parametrize("seed", range(6))
def test_every_input_of_small_networks(seed):
    graph, pairs = every_pair(seed)
    kept = find_kept(graph)
    assert not all(mask.all() for mask in kept.values())
    assert_equal(graph, without_channels(graph, kept), kept, [pairs])


def with_zeros(net, position, *where):
    """Sets filters of an operator of a network to 0."""
    weights = net.tensors[net.ops[position].inputs[1]]
    data = weights.data.copy()
    data[where] = 0
    net.tensors[net.ops[position].inputs[1]] = replace(weights, data=data)


def check_every_byte(net, outputs):
    """Checks a network for one byte, in a batch that has every byte; returns the channels that remain."""
    graph = rewrite(net.graph(outputs))
    kept = find_kept(graph)
    every = np.arange(-128, 128).astype(np.int8).reshape(graph.tensors[graph.inputs[0]].shape)
    assert_equal(graph, without_channels(graph, kept), kept, [every])
    return kept


@pytest.mark.parametrize("kind", [OpKind.ADD, OpKind.SUB, OpKind.MUL])
def test_a_constant_that_is_the_first_operand_loses_the_same_channels(kind):
    net = NetBuilder(3)
    x = net.elementwise(kind, net.constant((4,)), net.conv(net.input((256, 1, 1, 1)), 4))
    y = net.conv(x, 2)
    with_zeros(net, 2, ..., [1, 3])
    assert any(not mask[1] for mask in check_every_byte(net, [y]).values() if len(mask) == 4)


def test_a_constant_beside_padding_of_another_value():
    net = NetBuilder(4)
    x = net.conv(net.input((256, 1, 1, 1)), 4)
    with_zeros(net, 0, [0, 2])
    value = -100 if net.tensors[x].quant.zero_point > 0 else 100
    x = net.move(OpKind.PAD, x, attrs=PadAttrs(((0, 0), (1, 0), (0, 1), (0, 0)), value=value))
    check_every_byte(net, [net.conv(x, 3, kernel=(2, 2))])


def test_sums_whose_shift_leaves_32_bits_have_any_value():
    """The least and the greatest sum give one output. A sum between them wraps, and gives another one."""
    net = NetBuilder(1)
    x = net.conv(net.input((256, 1, 1, 1), q=quant(1.0, -128)), 2, per_channel=False, bias=False)
    filters = net.ops[0].inputs[1]
    ones = np.full((2, 1, 1, 1), -1, np.int8)
    net.tensors[filters] = replace(net.tensors[filters], data=ones, quant=quant(1.0))
    net.tensors[x] = replace(net.tensors[x], quant=quant(2.0**-25, 127))
    kept = check_every_byte(net, [net.conv(x, 2)])
    assert all(mask.all() for mask in kept.values())


def test_a_slice_that_loses_the_dimension_of_channels():
    net = NetBuilder(5)
    x = net.conv(net.input((256, 1, 1, 1)), 8)
    with_zeros(net, 0, [1, 3, 5, 7])
    x = net.move(OpKind.RESHAPE, x, (256, 2, 4))
    x = net.move(OpKind.STRIDED_SLICE, x, (256, 2), SliceAttrs((0, 0, 0), (1, 1, 1), (256, 2, 1)))
    check_every_byte(net, [net.dense(x, 2)])


@pytest.mark.parametrize("wide", [False, True])
def test_a_plan_leaves_out_the_same_channels_of_other_weights(wide):
    """A layer without biases gets some where its inputs may be constants, also if these add nothing."""

    def trained(seed, bias):
        net = (WideNetBuilder if wide else NetBuilder)(seed)
        x = net.conv(net.input((1, 2, 2, 1), q=quant(0.5)), 4, activation=Activation.RELU)
        y = net.conv(x, 2, bias=False)
        with_zeros(net, 0, [1, 3])
        biases = net.tensors[net.ops[0].inputs[2]]
        net.tensors[net.ops[0].inputs[2]] = replace(biases, data=np.full_like(biases.data, bias))
        return rewrite(net.graph([y]))

    first, second = trained(1, 1 << 14), trained(2, 0)
    kept = find_kept(first)
    removed = tuple(Removed(t, tuple(np.flatnonzero(~m))) for t, m in kept.items() if not m.all())
    assert removed
    narrow = simplify_as(second, removed).graph
    assert topology_digest(narrow) == topology_digest(without_channels(first, kept))
    values = np.arange(4).reshape(1, 2, 2, 1).astype(second.tensors[second.inputs[0]].dtype.value)
    assert_equal(second, narrow, kept, [values])


@pytest.mark.parametrize(
    ("removed", "words"),
    [
        (Removed(3, (1,)), "removes channel 1, which cannot be removed with these weights"),
        (Removed(3, (4,)), "for another network: it removes channels that tensor 3 does not have here"),
        (Removed(99, (0,)), "for another network: it removes channels that tensor 99 does not have here"),
    ],
)
def test_a_plan_that_removes_other_channels_is_refused(removed, words):
    net = NetBuilder(1)
    graph = net.graph([net.conv(net.conv(net.input((1, 2, 2, 1)), 4), 2)])
    with pytest.raises(PlanError, match=words):
        simplify_as(graph, (removed,))
