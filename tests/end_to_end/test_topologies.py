"""The topologies that users bring, drawn at random: the whole road, every tensor as LiteRT has it.

`python benchmarks/topologies.py` prints their arenas beside their bounds.
"""

from __future__ import annotations

import pytest
from boardruns import exact
from graphs import inputs_for
from nativebatch import TARGET, Job, differences, run
from topologies import TOPOLOGIES, drawn

from buildtool.emit.sources import emit
from buildtool.graph.rewrite import rewrite
from buildtool.graph.tflite.reader import read_model
from buildtool.graph.tflite.writer import write_model
from buildtool.plan.check.check import check
from buildtool.plan.search.front import Settings, front
from buildtool.target.registry import load_target

IMAGES = ("overwritable", "resident", "stream")
# The first, the least and a middle point of a front, and an image mode: one of nine for each network.
CHOICES = [(image, part) for image in IMAGES for part in (0.0, 1.0, 0.5)]


def _job(name: str, seed: int, image: str, part: float) -> Job:
    model = write_model(drawn(name, seed))
    source, target = read_model(model), load_target(TARGET)
    graph = rewrite(source)
    if image == "stream" and len(graph.consumers().get(graph.inputs[0], ())) != 1:
        image = "resident"
    found = front(graph, target, Settings(image=image))
    plan = found.plan(round(part * (len(found.points) - 1)))
    check(plan, graph, target)
    inputs = [inputs_for(graph, seed + i, pattern) for i, pattern in enumerate(("random", "extremes"))]
    return Job(model, source, graph, plan, emit(graph, plan, target, f"{name}{seed}"), inputs)


@pytest.mark.slow
def test_plans_of_every_topology_are_exact(tmp_path) -> None:
    """Natively, under sanitizers."""
    jobs = [_job(name, i, *CHOICES[(4 * i) % 9]) for i, name in enumerate(TOPOLOGIES)]
    for job, runs in zip(jobs, run(jobs, tmp_path), strict=True):
        assert differences(job, runs) == [], job.plan


@pytest.mark.slow
@pytest.mark.parametrize("name", TOPOLOGIES)
def test_the_least_plan_of_every_topology_is_exact_on_a_board(name, tmp_path) -> None:
    place = sorted(TOPOLOGIES).index(name)
    model = tmp_path / f"{name}.tflite"
    model.write_bytes(write_model(drawn(name, 40 + place)))
    board = ("cortex-m4", "cortex-m55")[place % 2]
    found = exact(str(model), board, {"objective": "ram", "image": IMAGES[place % 2]})
    assert found.plan.regions
