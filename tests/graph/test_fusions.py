"""Fusions by slices: which networks have them, and that all remaining tensors keep their bytes."""

from dataclasses import replace

import numpy as np
import pytest
from graphs import inputs_for
from hypothesis import given, settings
from hypothesis import strategies as st
from namednets import split_network

from buildtool.graph.consistency import check_graph
from buildtool.graph.fusions import fusions, with_sliced_fusions
from buildtool.graph.macs import total_macs
from buildtool.graph.numbering import is_numbered
from buildtool.graph.reference import execute
from buildtool.graph.rewrite import rewrite
from buildtool.graph.types import OpKind, Quantization
from buildtool.zoo.drawn import NetBuilder


@settings(derandomize=True, deadline=None, max_examples=12)
@given(
    branches=st.sampled_from([2, 3, 4]),
    is_chain=st.booleans(),
    residual=st.booleans(),
    seed=st.integers(0, 99),
    pattern=st.sampled_from(["random", "extremes"]),
)
def test_every_remaining_tensor_has_the_same_bytes(branches, is_chain, residual, seed, pattern):
    graph = split_network(branches, side=6, channels=12, is_chain=is_chain, residual=residual, seed=seed)
    sliced = with_sliced_fusions(graph)
    check_graph(sliced)
    assert is_numbered(sliced)
    assert [len(one.parts) for one in fusions(sliced)] == [branches, branches]
    assert total_macs(sliced) == total_macs(graph)
    inputs = inputs_for(graph, seed, pattern)
    before, after = execute(graph, inputs), execute(sliced, inputs)
    values = {graph.tensors[t].name: value for t, value in before.items()}
    remaining = [t for t in after if not sliced.tensors[t].is_constant]
    assert len(remaining) > 8 * branches
    for t in remaining:
        np.testing.assert_array_equal(after[t], values[sliced.tensors[t].name])


def _fused(kernel=(1, 1), parts=2, count=2, read_whole=False, named=False):
    """Branches that are joined and read in slices. Each option makes this no fusion by slices."""
    net = NetBuilder(4)
    image = net.input((1, 8, 8, 3))
    ends = [net.conv(image, 24 // parts, kernel=(3, 3), same=True) for _ in range(parts)]
    wide = net.conv(net.concat(ends), 24, kernel=kernel, same=True)
    slices = net.split(wide, count)
    outputs = [net.conv(x, 2) for x in slices]
    outputs += [net.conv(wide, 2)] if read_whole else []
    outputs += [ends[0]] if named else []
    return rewrite(net.graph(outputs))


@pytest.mark.parametrize(
    "different",
    [
        {"kernel": (3, 3)},  # its rows need neighbours
        {"parts": 2, "count": 3},  # no slice has the shape of a branch's output
        {"parts": 3, "count": 2},
        {"read_whole": True},  # the whole map is needed
        {"named": True},  # a branch's output is an output of the network
    ],
)
def test_other_networks_stay_as_they_are(different):
    assert fusions(with_sliced_fusions(_fused()))
    graph = _fused(**different)
    assert with_sliced_fusions(graph) is graph


def test_concatenations_that_requantise_stay_apart():
    """A part whose quantisation differs from that of the joined tensor is rounded when it is joined."""
    graph = split_network(4, blocks=1)
    inner = next(i for i, op in enumerate(graph.ops) if op.kind is OpKind.CONCATENATION)
    t = graph.ops[inner].outputs[0]
    quant = graph.tensors[t].quant
    other = replace(graph.tensors[t], quant=Quantization((quant.scale * 2,), quant.zero_points))
    tensors = (*graph.tensors[:t], other, *graph.tensors[t + 1 :])
    changed = replace(graph, tensors=tensors)
    assert with_sliced_fusions(changed) is changed
