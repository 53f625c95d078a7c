"""Networks whose slices of channels are views: every tensor equals the reference, streamed or not.

Random ones run natively under sanitizers, arenas between the sanitizer's red zones and full of junk.
"""

from __future__ import annotations

import pytest
from boardruns import exact
from graphs import inputs_for
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from nativebatch import TARGET, Job, differences, run
from viewnets import every_view, gated_halves, sliced_networks

from buildtool.emit.sources import emit
from buildtool.graph.partviews import with_views
from buildtool.graph.rewrite import rewrite
from buildtool.graph.tflite.reader import read_model
from buildtool.graph.tflite.writer import write_model
from buildtool.graph.types import OpKind
from buildtool.plan.assemble.layerwise import plan as plan_layerwise
from buildtool.plan.check.check import check
from buildtool.plan.schedule.viewing import possible_views
from buildtool.plan.search.front import Settings, front
from buildtool.target import catalogue
from buildtool.target.registry import load_target

_batches = settings(
    max_examples=4,
    derandomize=True,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],  # a batch is dear: no shrinking
    suppress_health_check=list(HealthCheck),
)


@st.composite
def _chosen(draw, batch=1):
    """A network, settings, and a point of the front as a fraction of its points (None: layer by layer)."""
    chosen = Settings(
        image=draw(st.sampled_from(["overwritable", "resident", "stream"])),
        in_place=draw(st.sampled_from(["rows", "rows", "elementwise", "none"])),
    )
    part = draw(st.sampled_from([None, None, 0.0, 0.0, 0.5, 1.0]))
    return draw(sliced_networks(batch=batch)), chosen, part, part is None and draw(st.booleans())


def _job(name, graph, chosen, part, joined):
    model = write_model(graph)
    source = read_model(model)
    rewritten = rewrite(source)
    target = load_target(TARGET)
    kernels = catalogue.select_all(target, rewritten)
    viewed = with_views(rewritten, possible_views(rewritten, kernels, joined=joined))
    if part is None or len(viewed.consumers().get(viewed.inputs[0], ())) != 1:
        chosen = Settings(image="resident", in_place=chosen.in_place)
    if part is None:
        plan = plan_layerwise(viewed, target, in_place=chosen.in_place, image=chosen.image, enough=0)
    else:
        found = front(viewed, target, chosen)
        plan = found.plan(round(part * (len(found.points) - 1)))
    check(plan, viewed, target)
    inputs = [inputs_for(viewed, 7 + i, pattern) for i, pattern in enumerate(("random", "extremes"))]
    return Job(model, source, viewed, plan, emit(viewed, plan, target, name), inputs)


def _check(drawn, folder):
    jobs = [_job(f"n{i}", *given) for i, given in enumerate(drawn)]
    assert sum(len(job.plan.views) for job in jobs) > 3
    for job, runs in zip(jobs, run(jobs, folder), strict=True):
        assert differences(job, runs) == [], (job.plan, job.source)


@_batches
@given(drawn=st.lists(_chosen(), min_size=12, max_size=12))
@pytest.mark.slow
def test_networks_with_views_are_exact(drawn, tmp_path_factory):
    _check(drawn, tmp_path_factory.mktemp("batch"))


@_batches
@given(drawn=st.lists(_chosen(batch=2), min_size=6, max_size=6))
@pytest.mark.slow
def test_views_of_several_images_are_exact(drawn, tmp_path_factory):
    _check(
        [(graph, chosen, None, joined) for graph, chosen, _, joined in drawn],
        tmp_path_factory.mktemp("batch"),
    )


@pytest.mark.slow
@pytest.mark.parametrize("board", ["cortex-m4", "cortex-m55", "qemu-virt-rv32v", "xcore"])
def test_views_are_exact_on_emulated_boards(board, tmp_path):
    file = tmp_path / "views.tflite"
    file.write_bytes(write_model(every_view()))
    whole = exact(str(file), board, {"strategy": "layerwise", "objective": "cost"})
    assert {whole.made.graph.ops[p].kind for p in whole.plan.views} == {OpKind.VIEW, OpKind.JOINED}
    halves = tmp_path / "halves.tflite"
    halves.write_bytes(write_model(gated_halves()))
    by_rows = exact(str(halves), board, {"objective": "ram"}).plan
    assert by_rows.views and any(region.is_streamed for region in by_rows.regions)
