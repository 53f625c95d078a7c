"""Option order: what it saves, that it never costs memory, and that results stay bit-exact."""

from functools import partial

import pytest
from namednets import wide_branches
from zeronet import wired_net

from buildtool import api
from buildtool.base.modes import Objective
from buildtool.base.session import Session
from buildtool.firmware.planned import plan_model, prepare
from buildtool.graph import order
from buildtool.graph.rewrite import rewrite
from buildtool.graph.tflite.writer import write_model
from buildtool.options.values import PlanOptions
from buildtool.plan.choose import choose
from buildtool.plan.models import Model, Network, load_network
from buildtool.target.registry import load_target

handle = partial(api.handle, session=Session())  # makes a network's tables once


@pytest.fixture(scope="module")
def branches(tmp_path_factory):
    """A file whose operators need less memory in a different order."""
    path = tmp_path_factory.mktemp("branches") / "branches.tflite"
    path.write_bytes(write_model(wide_branches()))
    return path


def arena(model, order, **options):
    result = plan_model(str(model), "host", PlanOptions(order=order, **options))
    return result.plan.arena_bytes


@pytest.mark.slow
def test_a_network_in_the_best_order_computes_the_same(branches):
    options = {"strategy": "layerwise", "in_place": "none", "order": "best"}
    request = {"kind": "validate", "model": str(branches), "board": "host", "options": options}
    answer = handle({**request, "tensors": True, "reference": "litert", "seed": 3})
    assert answer["exact"]


@pytest.mark.slow
def test_an_image_of_the_best_order_is_run_by_its_plan(branches, tmp_path):
    options = {"strategy": "layerwise", "in_place": "none", "order": "best"}
    request = {"model": str(branches), "board": "host"}
    for name, data in handle({"kind": "build", **request, "options": options})["files"].items():
        (tmp_path / name).write_bytes(data)
    elf = tmp_path / "branches.elf"
    elf.chmod(0o755)
    answer = handle({"kind": "profile", **request, "elf": str(elf), "plan": str(elf.with_suffix(".plan"))})
    assert answer["exact"]
    assert answer["arena_bytes"] == arena(branches, **options)


@pytest.mark.parametrize("in_place", ["rows", "none"])
def test_the_better_order_is_taken_by_default_and_needs_less(branches, in_place):
    options = {"strategy": "layerwise", "in_place": in_place}
    assert arena(branches, "better", **options) == arena(branches, "best", **options)
    assert arena(branches, "best", **options) < arena(branches, "given", **options)
    request = {"model": str(branches), "board": "host"}
    given, best = {"in_place": in_place, "order": "given"}, {"in_place": in_place, "order": "best"}
    plans = [
        handle({"kind": "plan", **request, "options": {"objective": "ram", **options}})
        for options in ({"in_place": in_place}, best, given)
    ]
    assert plans[0]["arena_bytes"] == plans[1]["arena_bytes"] < plans[2]["arena_bytes"]
    assert plans[0]["order_status"] is None
    first, last = (
        handle({"kind": "front", **request, "options": options})["points"][0] for options in (best, given)
    )
    assert first["arena_bytes"] == plans[1]["arena_bytes"] <= last["arena_bytes"]


@pytest.mark.parametrize(
    "name",
    [
        "ds_cnn",
        "resnet8",
        "mobilenetv2:size=32,alpha=0.35,classes=10",
        "densenet",
        "squeezenet:size=48,classes=10",
    ],
)
def test_where_no_order_can_have_less_alive_nothing_is_tried(name, monkeypatch):
    """Any search would be an error here."""

    def searched(*_):
        raise AssertionError("an order is searched for")

    monkeypatch.setattr(order, "beam", searched)
    monkeypatch.setattr(order, "search", searched)
    session = Session()
    prepared = prepare(load_network(name, session), load_target("cortex-m4"), PlanOptions(), session)
    assert len(prepared.unsliced) == 1


@pytest.mark.slow
def test_an_order_that_is_hard_to_place_leaves_work_for_the_others(monkeypatch):
    """The given order alone spends this budget; the other order needs less memory."""
    graph = wired_net(2)
    monkeypatch.setattr(choose, "PLANNING", 12_000_000)
    plans = {}
    for named in ("given", "better"):
        session = Session()
        network = Network(Model("wired", "wired", b""), graph, rewrite(graph))
        options = PlanOptions(order=named, objective=Objective.RAM)
        plans[named] = choose.choose(prepare(network, load_target("cortex-m4"), options, session))
    assert plans["given"].ended
    assert plans["better"].index == 1
    assert plans["better"].plan.arena_bytes < plans["given"].plan.arena_bytes
