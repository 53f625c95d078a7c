"""Networks of branches in streamed regions: every tensor equals the reference, at any point of the front.

Random ones run natively under sanitizers, arenas between the sanitizer's red zones and full of junk.
"""

from __future__ import annotations

import pytest
from boardruns import exact
from branchnets import branching_networks
from graphs import inputs_for
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from nativebatch import TARGET, Job, differences, run

from buildtool.emit.sources import emit
from buildtool.graph.rewrite import rewrite
from buildtool.graph.tflite.reader import read_model
from buildtool.graph.tflite.writer import write_model
from buildtool.plan.check.check import check
from buildtool.plan.search.front import Settings, front
from buildtool.target.registry import load_target

_batches = settings(
    derandomize=True,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],  # a batch is dear: no shrinking
    suppress_health_check=list(HealthCheck),
)


@st.composite
def _chosen(draw):
    """A network, settings, and a point of the front, as a fraction of its points."""
    chosen = Settings(
        image=draw(st.sampled_from(["overwritable", "resident", "stream"])),
        in_place=draw(st.sampled_from(["rows", "elementwise", "none"])),
    )
    return draw(branching_networks()), chosen, draw(st.sampled_from([0.0, 0.0, 0.5, 1.0]))


def _job(name, graph, chosen, part):
    model = write_model(graph)
    source = read_model(model)
    rewritten = rewrite(source)
    if len(rewritten.consumers().get(rewritten.inputs[0], ())) != 1:
        chosen = Settings(image="resident", in_place=chosen.in_place)
    target = load_target(TARGET)
    found = front(rewritten, target, chosen)
    plan = found.plan(round(part * (len(found.points) - 1)))
    check(plan, rewritten, target)
    inputs = [inputs_for(rewritten, 7 + i, pattern) for i, pattern in enumerate(("random", "extremes"))]
    return Job(model, source, rewritten, plan, emit(rewritten, plan, target, name), inputs)


def _check(drawn, folder):
    jobs = [_job(f"n{i}", *given) for i, given in enumerate(drawn)]
    for job, runs in zip(jobs, run(jobs, folder), strict=True):
        assert differences(job, runs) == [], (job.plan, job.source)


@settings(_batches, max_examples=1)
@given(drawn=st.lists(_chosen(), min_size=10, max_size=10))
def test_branching_networks_are_exact(drawn, tmp_path_factory):
    _check(drawn, tmp_path_factory.mktemp("batch"))


@pytest.mark.slow
@settings(_batches, max_examples=3)
@given(drawn=st.lists(_chosen(), min_size=12, max_size=12))
def test_many_branching_networks_are_exact(drawn, tmp_path_factory):
    _check(drawn, tmp_path_factory.mktemp("batch"))


SQUEEZENET = "squeezenet:size=48,classes=10"
MOBILENET = "mobilenetv3_small:size=32,classes=10"


def _exact(name, board, image):
    run = exact(name, board, {"objective": "ram", "image": image})
    streamed = any(region.is_streamed for region in run.plan.regions)
    assert streamed or name == MOBILENET  # which needs no more memory for its small picture as a whole


@pytest.mark.slow
def test_fire_modules_are_exact_row_by_row():
    _exact(SQUEEZENET, "host", "stream")


# Every image on every board; the small networks on both boards, in either image.
EMULATED = [
    (SQUEEZENET, "cortex-m4", "stream"),
    (SQUEEZENET, "cortex-m55", "overwritable"),
    (MOBILENET, "cortex-m4", "overwritable"),
    (MOBILENET, "cortex-m55", "stream"),
    ("resnet8", "cortex-m4", "overwritable"),
    ("resnet8", "cortex-m55", "stream"),
    ("densenet", "cortex-m4", "stream"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "board", "image"), EMULATED)
def test_networks_of_branches_are_exact_on_emulated_boards(name, board, image):
    _exact(name, board, image)
