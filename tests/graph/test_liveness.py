"""Live ranges: which tensors share bytes, when they live, and where the live sum is largest."""

import pytest
from hypothesis import given, settings
from plan_nets import graphs
from zeronet import Net

from buildtool.base.errors import ModelError
from buildtool.graph.liveness import alias_roots, live_ranges, live_sum_bound, live_sums
from buildtool.graph.ops import ALIAS_KINDS


def _range_of(graph, tensor):
    return next(r for r in live_ranges(graph) if tensor in r.tensors)


def _life(graph, tensor):
    return _range_of(graph, tensor).first, _range_of(graph, tensor).last


def test_a_tensor_lives_from_its_operator_to_its_last_reader():
    net = Net((1, 4, 4, 3))
    x = net.conv(net.inputs[0], 8)
    y = net.relu(x)
    z = net.add(net.relu(y), x)
    graph = net.graph(z)
    assert (_life(graph, x), _life(graph, y)) == ((0, 3), (1, 2))


def test_inputs_live_from_the_start_and_outputs_to_the_end():
    net = Net((1, 4, 4, 3), (1, 2, 2, 2))
    early = net.relu(net.inputs[1])
    late = net.relu(net.relu(net.inputs[0]))
    graph = net.graph(early, late)
    assert _life(graph, net.inputs[0]) == (0, 1)
    assert _range_of(graph, early).last == 2 and _range_of(graph, early).is_output
    assert _range_of(graph, net.inputs[1]).is_input


def test_a_chain_of_aliases_is_one_range_that_ends_with_the_last_reader_of_any():
    net = Net((1, 4, 4, 3))
    x = net.relu(net.inputs[0])
    flat = net.reshape(net.reshape(x, (1, 16, 1, 3)), (1, 1, 16, 3))
    y = net.relu(flat)
    z = net.relu(x)
    graph = net.graph(y, z)
    assert _range_of(graph, x).tensors == (x, flat - 1, flat)
    assert _life(graph, x) == (0, 4)


def test_an_alias_of_an_input_that_is_an_output_makes_the_input_live_throughout():
    net = Net((1, 4, 4, 3))
    flat = net.reshape(net.inputs[0], (1, 48))
    y = net.relu(net.inputs[0])
    graph = net.graph(flat, y)
    shared = _range_of(graph, flat)
    assert shared.is_input and shared.is_output and _life(graph, flat) == (0, 1)


def test_an_unread_output_lives_at_its_operator_and_an_unread_input_at_the_first():
    net = Net((1, 4, 4, 3))
    unused = net.relu(net.inputs[0])
    net.reshape(unused, (1, 48))
    assert _life(net.graph(net.relu(net.inputs[0])), unused) == (0, 0)
    net = Net((1, 4, 4, 3), (1, 2, 2, 2))
    graph = net.graph(net.relu(net.reshape(net.inputs[0], (1, 48))))
    assert _life(graph, net.inputs[1]) == (0, 1)
    assert live_sum_bound(graph).bytes == 48 + 8 + 48


def test_reading_a_tensor_without_a_producer_and_reshaping_a_constant_are_errors():
    net = Net((1, 4, 4, 3))
    graph = net.graph(net.relu(net.tensor((1, 4, 4, 3))))
    with pytest.raises(ModelError) as caught:
        live_ranges(graph)
    assert caught.value.tensor == "t1" and caught.value.operator == "#0 RELU"
    net = Net((1, 4))
    graph = net.graph(net.reshape(net.constant((2, 2)), (4,)))
    with pytest.raises(ModelError, match="constant"):
        alias_roots(graph)


def test_the_bound_is_the_fullest_operator_with_sizes_rounded_up_to_the_alignment():
    net = Net((1, 4, 4, 1))
    x = net.conv(net.inputs[0], 5)
    y = net.conv(x, 10)
    graph = net.graph(net.conv(y, 1))
    assert live_sums(live_ranges(graph), 3) == [16 + 80, 80 + 160, 160 + 16]
    bound = live_sum_bound(graph)
    assert (bound.bytes, bound.position) == (240, 1)
    net = Net((1, 1, 1, 1))
    graph = net.graph(net.conv(net.inputs[0], 17))
    assert live_sum_bound(graph).bytes == 18
    assert live_sum_bound(graph, 16).bytes == 16 + 32


@settings(derandomize=True, deadline=None, max_examples=60)
@given(graphs())
def test_ranges_cover_every_use_of_every_activation(graph):
    ranges = live_ranges(graph)
    range_of = {t: r for r in ranges for t in r.tensors}
    assert sorted(range_of) == sorted(set(graph.activations()))
    assert sum(len(r.tensors) for r in ranges) == len(range_of)
    for position, op in enumerate(graph.ops):
        if op.kind in ALIAS_KINDS:
            assert range_of[op.inputs[0]] is range_of[op.outputs[0]]
            continue
        for t in (*op.inputs, *op.outputs):
            if t in range_of:
                assert range_of[t].first <= position <= range_of[t].last
    sums = [
        sum(r.size for r in ranges if r.first <= position <= r.last) for position in range(len(graph.ops))
    ]
    assert live_sums(ranges, len(graph.ops)) == sums
    assert live_sum_bound(graph).bytes == max(sums)
