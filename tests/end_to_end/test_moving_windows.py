"""Networks on a moving window as firmware: the rows of a hop equal LiteRT's on the whole window."""

from __future__ import annotations

import json

import numpy as np
import pytest
from listeningnets import listening_source

from buildtool.api import handle
from buildtool.base.errors import BuildtoolError, PlanError, UsageError
from buildtool.fronts.cli.main import run as command
from buildtool.graph.tflite.writer import write_model
from buildtool.zoo.drawn_series import SERIES


def ask(kind, model, hop, board="host", plan=None, **more):
    options = {"hop": hop, "simplify": "structure", **(plan or {})}
    return handle({"kind": kind, "model": model, "board": board, "options": options, **more})


def as_file(graph):
    return {"name": "series.tflite", "data": write_model(graph)}


def exact(answer, tensors):
    return (
        answer["exact"] and answer["reference"]["name"] == "litert" and answer["tensors_compared"] >= tensors
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "seed", [3, pytest.param(5, marks=pytest.mark.slow), pytest.param(14, marks=pytest.mark.slow)]
)
def test_random_networks_are_exact_with_any_choice_of_what_is_kept(seed):
    model = as_file(listening_source(seed))
    for objective in ("cost", "ram"):
        answer = ask(
            "validate", model, 2, plan={"objective": objective}, tensors=True, inputs=30, sanitize=True
        )
        assert exact(answer, 3)


def test_rows_of_a_hop_are_not_asked_for_one_by_one():
    with pytest.raises(UsageError, match="written at once"):
        ask("plan", "ds_cnn", 2, plan={"image": "stream"})


@pytest.mark.slow
@pytest.mark.parametrize("board", ["cortex-m55", "xcore"])
def test_a_keyword_spotter_is_exact_on_boards_over_three_windows_and_a_reset(board):
    answer = ask("validate", "ds_cnn", 2, board, tensors=True)
    assert exact(answer, 30) and (answer["inputs"], answer["resets"]) == (100, 1)


@pytest.mark.slow
def test_the_limit_on_memory_includes_what_is_kept():
    model = as_file(SERIES["causal"]().graph)
    plan = ask("plan", model, 2, "cortex-m4", {"ram": 1200})
    assert plan["arena_bytes"] + plan["state_bytes"] <= 1200 < 1216  # the least that keeps all
    assert plan["f"] > 0.015  # rows of the first layer are computed anew
    with pytest.raises(PlanError) as error:
        ask("plan", model, 2, "cortex-m4", {"ram": 600})
    ((name, least),) = error.value.hints[0].settings
    plan = ask("plan", model, 2, "cortex-m4", {name: least})
    assert plan["arena_bytes"] + plan["state_bytes"] == least


@pytest.mark.slow
def test_the_limit_on_work_is_that_of_a_hop():
    model = as_file(SERIES["causal"]().graph)
    plan = ask("plan", model, 1, "cortex-m4", {"max_f": 0.02, "objective": "ram"})
    assert plan["f"] <= 0.02
    with pytest.raises(BuildtoolError):
        ask("plan", model, 1, "cortex-m4", {"max_f": 0.007})
    whole = {"kind": "plan", "model": "ds_cnn", "board": "cortex-m4"}
    with pytest.raises(UsageError, match="below 1"):
        handle({**whole, "options": {"max_f": 0.5}})
    with pytest.raises(UsageError, match="no effect without hop"):
        handle({**whole, "period": "20ms"})


def test_the_front_has_choices_of_what_is_kept():
    points = ask("front", as_file(SERIES["causal"]().graph), 2, "cortex-m4")["points"]
    sizes = [one["arena_bytes"] + one["state_bytes"] for one in points]
    assert sizes == sorted(sizes) and len({one["state_bytes"] for one in points}) > 1
    assert [one["f"] for one in points] == sorted((one["f"] for one in points), reverse=True)


@pytest.mark.slow
def test_a_signal_has_plans_with_moments_as_columns_for_speed_and_as_rows_for_memory():
    model = as_file(SERIES["samples"]().graph)
    points = ask("front", model, 320, "cortex-m55")["points"]
    # The front has the least work; a plan within as much memory has the least time.
    fast, small = min(points, key=lambda one: one["cost"]), points[0]
    assert fast["cost"] < 0.5 * small["cost"]
    sizes = [one["arena_bytes"] + one["state_bytes"] for one in (fast, small)]
    plans = [ask("plan", model, 320, "cortex-m55", {"ram": size}) for size in sizes]
    assert plans[0]["cost"] < 0.3 * fast["cost"] and plans[1]["cost"] == small["cost"]
    found = [one["arena_bytes"] + one["state_bytes"] for one in plans]
    assert found[0] <= sizes[0] and found[1] == sizes[1]
    assert ask("plan", model, 320, "cortex-m55")["cost"] < 0.1 * small["cost"]


@pytest.mark.slow
@pytest.mark.parametrize("board", ["cortex-m4", "qemu-virt-rv32v"])
def test_moments_as_columns_are_exact_on_boards(board):
    answer = ask("validate", as_file(SERIES["ecg"]().graph), 40, board, tensors=True)
    assert exact(answer, 20) and (answer["inputs"], answer["resets"]) == (100, 1)


@pytest.mark.slow
def test_recordings_are_cut_into_hops_and_the_last_one_counts(tmp_path, capsys):
    draw = np.random.default_rng(4)
    data = tmp_path / "heard.npz"
    np.savez(data, x=draw.integers(-128, 128, (2, 60, 10)).astype(np.int8), labels=np.array([11, 3]))
    asked = ["--board", "host", "--hop", "4", "--data", str(data), "--reference", "litert", "--json"]
    assert command(["validate", "ds_cnn", *asked]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["exact"] and answer["inputs"] == 30  # 15 hops of each recording
    assert answer["accuracy"]["reference"]["inputs"] == 2


@pytest.mark.slow
def test_a_locked_plan_keeps_what_it_kept(tmp_path, capsys):
    plan = tmp_path / "ds_cnn.plan.json"
    asked = ["--board", "host", "--hop", "2", "--ram", "9500", "--out", str(plan), "--json"]
    assert command(["plan", "ds_cnn", *asked]) == 0
    planned = json.loads(capsys.readouterr().out)
    assert (
        command(["validate", "ds_cnn", "--board", "host", "--plan", str(plan), "--inputs", "30", "--json"])
        == 0
    )
    answer = json.loads(capsys.readouterr().out)
    assert answer["exact"] and 0 < answer["state_bytes"] == planned["state_bytes"] < 9500
    wrong = json.loads(plan.read_text())
    wrong["plan"]["hop"]["kept"][1]["first"] += 1
    plan.write_text(json.dumps(wrong))
    assert command(["plan", "ds_cnn", "--board", "host", "--plan", str(plan)]) != 0
    assert "the plan is for another network" in capsys.readouterr().err


@pytest.mark.slow
def test_weights_are_stored_once_though_operators_run_twice():
    alone = handle({"kind": "plan", "model": "ds_cnn", "board": "cortex-m4"})
    assert ask("plan", "ds_cnn", 2, "cortex-m4")["flash_bytes"] <= alone["flash_bytes"] + 256
