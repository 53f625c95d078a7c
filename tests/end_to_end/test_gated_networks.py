"""Networks whose gated tensors are made twice: every tensor equals the reference, in both passes."""

from __future__ import annotations

import pytest
from boardruns import exact
from gatednets import efficient_net, gated_networks
from graphs import inputs_for
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from nativebatch import TARGET, Job, differences, run

from buildtool.api.requests import parse
from buildtool.base.errors import UsageError
from buildtool.emit.image import weight_image
from buildtool.emit.sources import emit
from buildtool.firmware.planned import planned
from buildtool.graph.rewrite import rewrite
from buildtool.graph.secondpass import with_second_passes
from buildtool.graph.tflite.reader import read_model
from buildtool.graph.tflite.writer import write_model
from buildtool.plan.check.check import check
from buildtool.plan.schedule.gates import gates
from buildtool.plan.search.front import Settings, front
from buildtool.target import catalogue
from buildtool.target.registry import load_target


def _job(name, graph, drawn):
    """A network with a second pass at each of its gates, planned as one point of its front."""
    image, in_place, part = drawn
    model = write_model(graph)
    source = read_model(model)
    rewritten = rewrite(source)
    target = load_target(TARGET)
    streamed = rewritten.inputs if image == "stream" else ()
    starts = gates(rewritten, catalogue.select_all(target, rewritten), streamed)
    twice = with_second_passes(rewritten, [among[-1] for among in starts])
    try:
        found = front(twice, target, Settings(in_place, image))
    except UsageError:  # several operators read the image
        found = front(twice, target, Settings(in_place))
    plan = found.plan(round(part * (len(found.points) - 1)))
    check(plan, twice, target)
    inputs = [inputs_for(twice, 7 + i, pattern) for i, pattern in enumerate(("random", "extremes"))]
    return Job(model, source, twice, plan, emit(twice, plan, target, name), inputs)


_drawn = st.tuples(
    gated_networks(),
    st.tuples(
        st.sampled_from(["overwritable", "resident", "stream"]),
        st.sampled_from(["rows", "rows", "none"]),
        st.sampled_from([0.0, 0.0, 0.5, 1.0]),
    ),
)


@settings(
    derandomize=True,
    deadline=None,
    max_examples=1,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
@given(drawn=st.lists(_drawn, min_size=6, max_size=6))
@pytest.mark.slow
def test_networks_with_second_passes_are_exact(drawn, tmp_path_factory):
    jobs = [_job(f"n{i}", *given) for i, given in enumerate(drawn)]
    assert sum(len(job.plan.second_passes) for job in jobs) > 3
    for job, runs in zip(jobs, run(jobs, tmp_path_factory.mktemp("batch")), strict=True):
        assert differences(job, runs) == [], (job.plan, job.source)


@pytest.mark.slow
@pytest.mark.parametrize("board", ["cortex-m4", "cortex-m55"])
def test_a_gated_network_is_exact_in_both_passes(board, tmp_path):
    file = tmp_path / "gated.tflite"
    file.write_bytes(write_model(efficient_net(32, blocks=3, swish=True)))
    asked = {"model": str(file), "board": board, "options": {"objective": "ram", "max_f": 1.0}}
    request = parse({"kind": "build", **asked})
    once = planned(request.model, request.target, request.options)
    twice = exact(str(file), board, {"objective": "ram", "max_f": 1.6})
    assert not once.plan.second_passes and len(twice.plan.second_passes) > 1
    assert twice.plan.arena_bytes <= once.plan.arena_bytes * 0.8
    assert 1 < twice.plan.f <= 1.6
    # The weights are there once, and an image of them serves either plan.
    image = weight_image(once.graph, once.target.named(once.plan.kernels))
    assert twice.sources.image.data == image.data
