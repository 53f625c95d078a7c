"""A network that is requantised on 16 bits: its differences are within the proven bounds, or it fails."""

from argparse import Namespace
from types import SimpleNamespace

import pytest

from buildtool.api import handle
from buildtool.api.requests import parse
from buildtool.base.errors import PlanError, UsageError
from buildtool.base.modes import Requantise
from buildtool.firmware.datasets.arrays import draw_inputs
from buildtool.firmware.run import validation
from buildtool.firmware.run.validation import operator_bounds
from buildtool.fronts.cli.commands import running
from buildtool.fronts.texts import sarif
from buildtool.fronts.texts import validation as report
from buildtool.graph.reference import execute_op
from buildtool.graph.types import OpKind
from buildtool.plan.models import load_model, read_graph
from buildtool.target.catalogue import select_all
from buildtool.target.registry import load_board, make_target

POOL, CONV = OpKind.AVERAGE_POOL_2D, OpKind.CONV_2D
ASKED = {"model": "ds_cnn", "board": "xcore", "requantise": "vpu16"}


@pytest.fixture(scope="module")
def validated():
    return handle({"kind": "validate", **ASKED, "inputs": 2})


@pytest.mark.slow
def test_a_network_is_within_its_bounds_and_says_so(validated):
    rows = validated["bounds"]
    assert validated["within_bounds"] and not validated["exact"] and validated["requantise"] == "vpu16"
    assert len(rows) > 5 and {row["bound"] for row in rows} == {1}
    assert all(0 < row["bound_before_rounding"] <= 0.125 for row in rows)
    assert max(row["max_abs_diff"] for row in rows) == 1
    assert any(row["elements_different"] for row in rows)
    text = report.text(validated)
    assert "within 1 step in every operator" in text and "EQUAL" not in text
    assert all(row["operator"] in text for row in rows)


@pytest.mark.slow
def test_an_operator_beyond_its_bound_fails_and_is_named(validated, monkeypatch):
    """The second operator gets a bound that is too small."""
    second = validated["bounds"][1]
    tight = [{**row, "bound": 0} if row is second else row for row in validated["bounds"]]
    assert validation.keeps_bounds(validated["bounds"]) and not validation.keeps_bounds(tight)
    answer = {**validated, "bounds": tight, "within_bounds": False}
    monkeypatch.setattr(running, "ask", lambda args: answer)
    _, text, status = running.validate.run(Namespace(fail_if=None, data=None))
    words = f"BEYOND ITS BOUND: {second['operator']}, tensor '{second['tensor']}', differs by 1 step"
    assert words in text and "EQUAL" not in text and status == 1
    assert words in report.bounds_verdict(answer) and second["operator"] in sarif.log([], "1", 1, answer)


def test_every_operator_is_checked_on_its_own_inputs():
    """A wrong byte counts for the operator that computed it, and for no other."""
    _, graph = read_graph(load_model("ds_cnn"))
    target = make_target(load_board("xcore"), requantise=Requantise.VPU16)
    (inputs,) = draw_inputs(graph, 1, 0)
    pool, conv = (next(i for i, op in enumerate(graph.ops) if op.kind is kind) for kind in (POOL, CONV))
    values = dict(zip(graph.inputs, inputs, strict=True))
    for position, op in enumerate(graph.ops):
        (planned,) = execute_op(graph, op, values)
        values[op.outputs[0]] = changed = planned.copy()
        by = {pool: 1, conv: 2}.get(position, 0)
        changed.flat[0] += by if changed.flat[0] < 100 else -by
    kernels = [kernel.name if kernel else "" for kernel in select_all(target, graph)]
    session = SimpleNamespace(tell=lambda text: None)
    planned = SimpleNamespace(
        graph=graph, target=target, plan=SimpleNamespace(kernels=kernels), session=session
    )
    run = SimpleNamespace(traces=[{t: value.tobytes() for t, value in values.items()}], partial={})
    rows = {row["operator"]: row for row in operator_bounds(planned, run, [inputs])}
    off = {name: (row["bound"], row["max_abs_diff"]) for name, row in rows.items() if row["max_abs_diff"]}
    expected = {graph.ops[conv].place: (1, 2), graph.ops[pool].place: (0, 1)}
    assert off == expected  # an operator that reads a wrong byte computes correctly from it
    assert not validation.keeps_bounds(list(rows.values()))


@pytest.mark.parametrize("kind", ["describe", "front", "analyze", "plan"])
def test_boards_without_the_unit_refuse(kind):
    boards = {"boards": ["host"]} if kind == "analyze" else {"board": "host"}
    request = {"kind": kind, "model": "ds_cnn", **boards}
    with pytest.raises(UsageError, match="board 'host' cannot requantise by 'vpu16'") as caught:
        handle({**request, "requantise": "vpu16"})
    assert caught.value.option == "requantise"
    with pytest.raises(UsageError, match="'vpu8' is not one of exact, vpu16"):
        handle({**request, "requantise": "vpu8"})
    assert parse({**request, "requantise": "exact"}) == parse(request)


@pytest.mark.slow
def test_plans_and_commands_are_of_one_way():
    exact, other = (
        handle({"kind": "plan", "model": "ds_cnn", "board": "xcore", "requantise": name})
        for name in ("exact", "vpu16")
    )
    assert exact["plan"] != other["plan"]
    plan = {"name": "other.plan", "data": other["plan"]}
    with pytest.raises(PlanError, match="the target has no kernel"):
        handle({"kind": "emit", "model": "ds_cnn", "board": "xcore", "plan": plan})
    commands = handle({"kind": "describe", **ASKED})["commands"]
    assert all("vpu16" in commands[name] for name in ("validate", "profile", "debug"))
