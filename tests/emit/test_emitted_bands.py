"""Groups of bands, and with longer steps at the edges, as emitted C: equal to LiteRT in every tensor."""

from dataclasses import replace
from itertools import product

import pytest
from bandnets import bands, chains
from hypothesis import given
from hypothesis import strategies as st
from nativebatch import BATCHES, assert_exact, prepare
from plan_nets import assembled

from buildtool.plan.types import Scheme
from buildtool.zoo.drawn import NetBuilder, WideNetBuilder


@pytest.mark.slow
@BATCHES
@given(st.data(), st.lists(chains((NetBuilder, NetBuilder, WideNetBuilder)), min_size=24, max_size=24))
def test_networks_in_bands_equal_litert(tmp_path_factory, data, graphs):
    """Every byte of every tensor is made, and in bands none is made twice."""

    def planner(image, edges):
        def plan(graph, target):
            group = bands(data.draw, graph)
            if edges and len(group.ops) > 1:
                group = replace(group, scheme=Scheme.EDGES)
            return assembled(graph, target, [group], image=image)[0]

        return plan

    kinds = [*product(("overwritable", "stream"), (False, False, True))] * 4
    pairs = enumerate(zip(graphs, kinds, strict=True))
    jobs = [prepare(graph, f"n{i}", seed=i, planner=planner(*kind)) for i, (graph, kind) in pairs]
    every = zip(assert_exact(jobs, tmp_path_factory.mktemp("bands")), jobs, kinds, strict=True)
    for runs, job, (_, edges) in every:
        for t, count in runs[0].computed.items():
            assert edges or count <= job.graph.tensors[t].size, t
