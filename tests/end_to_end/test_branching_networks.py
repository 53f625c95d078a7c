"""Networks of branches in streamed regions: every tensor equals the reference, at any point of the front.

Random ones run natively under sanitizers, arenas between the sanitizer's red zones and full of junk.
"""

from __future__ import annotations

import pytest
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
from buildtool.service import handle
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
@settings(_batches, max_examples=6)
@given(drawn=st.lists(_chosen(), min_size=12, max_size=12))
def test_many_branching_networks_are_exact(drawn, tmp_path_factory):
    _check(drawn, tmp_path_factory.mktemp("batch"))


ZOO = ("squeezenet:size=48,classes=10", "mobilenetv3_small:size=32,classes=10", "densenet", "resnet8")


def _validate(name, board, image):
    options = {"strategy": "best", "objective": "ram", "image": image}
    request = {"model": name, "board": board, "reference": "litert", "tensors": True, "seed": 20}
    answer = handle({"kind": "validate", **request, "inputs": 1, "options": options})
    assert answer["exact"], answer["first_difference"]
    assert answer["arena_high_water"] <= answer["arena_bytes"]


def test_fire_modules_are_exact_row_by_row():
    _validate(ZOO[0], "host", "stream")


# Every network in either image and on either board, every image on every board.
EMULATED = [
    (name, board, ("stream", "overwritable")[(number + side) % 2])
    for number, name in enumerate(ZOO)
    for side, board in enumerate(("cortex-m4", "cortex-m55"))
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "board", "image"), EMULATED)
def test_networks_of_branches_are_exact_on_emulated_boards(name, board, image):
    _validate(name, board, image)
