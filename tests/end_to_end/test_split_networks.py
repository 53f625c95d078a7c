"""Split networks with their fusions in slices: every tensor equals the reference, plans can be kept."""

from __future__ import annotations

import pytest
from fusednets import split_network

from buildtool.api import handle
from buildtool.firmware.planned import planned
from buildtool.graph.fusions import fusions
from buildtool.graph.tflite.writer import write_model
from buildtool.plan.options import PlanOptions

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def network(tmp_path_factory):
    path = tmp_path_factory.mktemp("split") / "split.tflite"
    path.write_bytes(write_model(split_network(3, residual=True, channels=18, seed=6)))
    return path


@pytest.mark.parametrize("board", ["host", "cortex-m4", "hifive1"])
def test_a_network_whose_slices_take_the_places_of_ends_is_exact(network, board):
    request = {"kind": "validate", "model": str(network), "board": board, "options": {"objective": "ram"}}
    answer = handle({**request, "tensors": True, "reference": "litert", "seed": 3})
    made = planned(str(network), board, PlanOptions(objective="ram"))
    assert len(fusions(made.graph)) == 2
    assert answer["exact"]
    assert answer["arena_bytes"] == made.plan.arena_bytes


def test_an_image_is_run_by_its_plan(network, tmp_path):
    request = {"model": str(network), "board": "host"}
    options = {"objective": "ram"}
    for name, data in handle({"kind": "build", **request, "options": options})["files"].items():
        (tmp_path / name).write_bytes(data)
    elf = tmp_path / "split.elf"
    elf.chmod(0o755)
    answer = handle({"kind": "profile", **request, "elf": str(elf), "plan": str(elf.with_suffix(".plan"))})
    assert answer["exact"]
    made = planned(str(network), "host", PlanOptions(objective="ram"))
    assert answer["arena_bytes"] == made.plan.arena_bytes
