"""U-Nets, pyramids, decoders and others that enlarge, in streamed regions: every tensor equals the reference.

They run natively under sanitizers, at any point of the front, with odd sizes and every way of resizing.
"""

from __future__ import annotations

import pytest
import upsampling as nets
from boardruns import exact
from graphs import inputs_for
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from nativebatch import TARGET, Job, differences, run

from buildtool.emit.sources import emit
from buildtool.graph.macs import total_macs
from buildtool.graph.rewrite import rewrite
from buildtool.graph.tflite.reader import read_model
from buildtool.graph.tflite.writer import write_model
from buildtool.graph.types import OpKind
from buildtool.plan.assemble.layerwise import plan as layerwise
from buildtool.plan.check.check import check
from buildtool.plan.search.front import Settings, front
from buildtool.target.registry import load_target

ENLARGING = {OpKind.RESIZE_BILINEAR, OpKind.RESIZE_NEAREST_NEIGHBOR, OpKind.TRANSPOSE_CONV}
_batches = settings(
    derandomize=True,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],  # a batch is dear: no shrinking
    suppress_health_check=list(HealthCheck),
)


@st.composite
def _chosen(draw):
    """A network, settings, and a point of the front, as a fraction of its points."""
    image = draw(st.sampled_from(["overwritable", "resident", "stream"]))
    chosen = Settings(image=image, in_place=draw(st.sampled_from(["rows", "elementwise", "none"])))
    return draw(nets.networks()), chosen, draw(st.sampled_from([0.0, 0.0, 0.5, 1.0]))


def _job(name, graph, chosen, part):
    model = write_model(graph)
    source = read_model(model)
    rewritten = rewrite(source)
    target = load_target(TARGET)
    found = front(rewritten, target, chosen)
    plan = found.plan(round(part * (len(found.points) - 1)))
    check(plan, rewritten, target)
    inputs = [inputs_for(rewritten, 7 + i, pattern) for i, pattern in enumerate(("random", "extremes"))]
    return Job(model, source, rewritten, plan, emit(rewritten, plan, target, name), inputs)


def _check(drawn, folder):
    jobs = [_job(f"n{i}", *given) for i, given in enumerate(drawn)]
    inside = [
        job.graph.ops[p].kind
        for job in jobs
        for region in job.plan.regions
        if region.is_streamed
        for p in region.ops
    ]
    assert ENLARGING & set(inside)  # they stream
    for job, runs in zip(jobs, run(jobs, folder), strict=True):
        assert differences(job, runs) == [], (job.plan, job.source)


@pytest.mark.slow
@settings(_batches, max_examples=1)
@given(drawn=st.lists(_chosen(), min_size=10, max_size=10))
def test_networks_that_enlarge_are_exact(drawn, tmp_path_factory):
    _check(drawn, tmp_path_factory.mktemp("batch"))


# On emulated boards: U-Nets that enlarge in different ways, one of odd sizes, and a pyramid.
EMULATED = [
    ("cortex-m4", "overwritable", nets.u_net(24, 4, 2, "nearest")),
    ("cortex-m55", "stream", nets.u_net(17, 4, 2, "half", rows=30)),
    ("cortex-m4", "stream", nets.u_net(16, 6, 1, "transpose", rows=32)),
    ("cortex-m55", "overwritable", nets.pyramid(32, 4, "bilinear")),
]


@pytest.mark.slow
@pytest.mark.parametrize(("board", "image", "graph"), EMULATED)
def test_networks_that_enlarge_are_exact_on_emulated_boards(board, image, graph, tmp_path):
    path = tmp_path / "net.tflite"
    path.write_bytes(write_model(graph))
    done = exact(str(path), board, {"objective": "ram", "image": image})
    regions = [region for region in done.plan.regions if region.is_streamed]
    assert ENLARGING & {done.made.graph.ops[p].kind for region in regions for p in region.ops}


@pytest.mark.parametrize("way", ["nearest", "half", "transpose"])
def test_a_u_net_streams_with_nothing_computed_twice(way):
    """Its tensors of 64x64 are rings, the skips of both levels too: layer by layer it needs 131,072 bytes
    (98,304 with transpose convolutions, whose outputs have fewer channels)."""
    graph = rewrite(read_model(write_model(nets.u_net(64, 8, 2, way))))
    target = load_target("cortex-m4")
    found = front(graph, target, Settings())
    index = next(i for i, point in enumerate(found.points) if point.f <= 1.0)
    plan = found.plan(index)
    check(plan, graph, target)
    assert plan.f == 1.0 and plan.macs == total_macs(graph)
    assert len(plan.regions) == 1
    assert plan.arena_bytes < 41_000 < layerwise(graph, target).arena_bytes / 2
