"""Groups of bands as emitted C: compiled under sanitizers, run, and equal to LiteRT in every tensor."""

import pytest
from bandnets import bands, chains
from hypothesis import given
from hypothesis import strategies as st
from nativebatch import BATCHES, assert_exact, prepare
from plan_nets import assembled

from buildtool.zoo.drawn import NetBuilder, WideNetBuilder


@pytest.mark.slow
@BATCHES
@given(st.data(), st.lists(chains((NetBuilder, NetBuilder, WideNetBuilder)), min_size=24, max_size=24))
def test_networks_in_bands_equal_litert(tmp_path_factory, data, graphs):
    """Every byte of every tensor is made, and none is made twice."""

    def planner(image):
        return lambda graph, target: assembled(graph, target, [bands(data.draw, graph)], image=image)[0]

    images = ("overwritable", "stream")
    jobs = [prepare(graph, f"n{i}", seed=i, planner=planner(images[i % 2])) for i, graph in enumerate(graphs)]
    for runs, job in zip(assert_exact(jobs, tmp_path_factory.mktemp("bands")), jobs, strict=True):
        for t, count in runs[0].computed.items():
            assert count <= job.graph.tensors[t].size, t
