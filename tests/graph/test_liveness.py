"""Live ranges: which tensors share bytes, when they live, and where the live sum is largest."""

import pytest
from hypothesis import given, settings
from plan_nets import graphs
from zeronet import Net

from buildtool.base.errors import ModelError
from buildtool.graph.liveness import alias_roots, live_ranges, live_sum_bound, live_sums
from buildtool.graph.ops import ALIAS_KINDS


def _lives(graph):
    """Tensors that share bytes -> first and last operator, from the definition."""
    roots = {t: t for t in graph.activations()}
    for op in graph.ops:
        if op.kind in ALIAS_KINDS:
            roots[op.outputs[0]] = roots[op.inputs[0]]
    lives, runs = {}, [p for p, op in enumerate(graph.ops) if op.kind not in ALIAS_KINDS]
    for root in set(roots.values()):
        tensors = tuple(t for t in roots if roots[t] == root)
        makes = [p for p, op in enumerate(graph.ops) if root in op.outputs]
        reads = [p for p, op in enumerate(graph.ops) if set(tensors) & set(op.inputs)]
        reads = [p for p in reads if graph.ops[p].kind not in ALIAS_KINDS]
        first = 0 if root in graph.inputs else makes[0]
        reads += runs[:1] if root in graph.inputs else []  # also an input that nothing reads
        ends = [len(graph.ops) - 1] if set(tensors) & set(graph.outputs) else []
        lives[frozenset(tensors)] = first, max([first, *reads, *ends])
    return lives


@pytest.mark.slow
@settings(derandomize=True, deadline=None, max_examples=60)
@given(graphs())
def test_ranges_are_those_of_the_definition(graph):
    ranges = live_ranges(graph)
    assert {frozenset(r.tensors): (r.first, r.last) for r in ranges} == _lives(graph)
    for one in ranges:
        assert one.is_input == bool(set(one.tensors) & set(graph.inputs))
        assert one.is_output == bool(set(one.tensors) & set(graph.outputs))
    sums = [sum(r.size for r in ranges if r.first <= p <= r.last) for p in range(len(graph.ops))]
    assert live_sums(ranges, len(graph.ops)) == sums
    assert live_sum_bound(graph).bytes == max(sums)
    assert live_sum_bound(graph).position == sums.index(max(sums))


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
