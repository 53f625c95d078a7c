"""The topology is plain data that says all that planning asks of a network, and nothing else."""

from __future__ import annotations

import pytest
from disguise import disguised
from everyop import every_operator
from hypothesis import given, settings
from hypothesis import strategies as st
from plan_nets import fed_graphs, graphs

from buildtool import zoo
from buildtool.graph.liveness import live_ranges
from buildtool.graph.macs import total_macs
from buildtool.graph.numbering import is_numbered, numbered
from buildtool.graph.topology import topology
from buildtool.target.catalogue import features


def assert_said(graph):
    """What is made of a topology has that topology, and what planning asks of it is answered alike."""
    graph = numbered(graph)
    found = topology(graph)
    bare = found.bare_graph()
    assert topology(bare) == found
    assert is_numbered(bare)
    assert total_macs(bare) == total_macs(graph)
    assert [r.tensors for r in live_ranges(bare)] == [r.tensors for r in live_ranges(graph)]
    assert [features(bare, op) for op in bare.ops] == [features(graph, op) for op in graph.ops]


def assert_plain(value):
    if isinstance(value, tuple):
        for part in value:
            assert_plain(part)
    else:
        assert type(value) in (int, str, bool)


@settings(derandomize=True, deadline=None, max_examples=30)
@given(graph=st.one_of(graphs(most_ops=7), fed_graphs()), seed=st.integers(0, 1 << 30))
def test_a_topology_says_all_that_planning_asks(graph, seed):
    assert_said(graph)
    assert_plain(topology(graph))
    assert hash(topology(graph)) == hash(topology(disguised(graph, seed)))
    assert topology(graph) == topology(disguised(graph, seed))


def test_every_operator_is_said():
    assert_said(every_operator())
    assert_plain(topology(every_operator()))


@pytest.mark.parametrize("name", ["ds_cnn", "resnet8", "squeezenet"])
def test_networks_differ_in_their_topologies(name):
    graph = zoo.graph(name)
    assert_said(graph)
    assert topology(graph) == topology(zoo.graph(f"{name}:seed=5"))
    assert topology(graph).digest != topology(zoo.graph("autoencoder")).digest
