"""Board xcore: planned for the chip, run on the host, and never said to be more than that."""

from __future__ import annotations

import json
from functools import cache

import pytest
from needs import needs_shared

from buildtool.api import handle
from buildtool.base.errors import PlanError
from buildtool.base.session import Session
from buildtool.fronts.cli import main as cli
from buildtool.graph.tflite.writer import write_model
from buildtool.target.registry import load_board
from buildtool.zoo.drawn import NetBuilder

NETWORK = "mobilenetv2:size=32,alpha=0.35,classes=10"
SHORT = "mobilenetv1_025_96"  # half as many operators
MODEL = "models/mobilenetv2_160.tflite"  # in ../shared
# xcore-opt 1.4.2 on MobileNetV2-160, weights loaded from flash into the arena.
slow = pytest.mark.slow
SESSION = Session()  # of all requests: plans share what was computed for others
XCORE_OPT = {"0-14x10": 286928, "0-6x8,7-14x4,15-26x2": 255144, "0-6x20,7-14x10,15-22x4": 234728}


def ask(kind, **fields):
    options = fields.pop("options", {})
    request = {"kind": kind, "model": NETWORK, "board": "xcore", "options": options, **fields}
    return handle(request, SESSION)


@cache
def least(strategy="layerwise", segments=""):
    """The least arena with constants in it."""
    options = {"strategy": strategy, "objective": "ram"} | ({"segments": segments} if segments else {})
    return ask("plan", options=options)["arena_bytes"]


def test_the_board_is_one_tile_with_its_weights_in_slow_flash():
    board = load_board("xcore")
    assert board.memory(board.arena).size == 512 * 1024
    assert (board.weights, board.memory(board.weights).bandwidth) == ("flash", 50_000_000)
    assert board.estimate is not None and board.estimate.macs_per_second == 2_150_000_000


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "options"),
    [
        (NETWORK, {"strategy": "layerwise"}),
        pytest.param(NETWORK, {"strategy": "xcore-strips", "segments": "0-6x8,7-14x4"}, marks=slow),
        pytest.param(SHORT, {"strategy": "layerwise", "objective": "ram"}, marks=slow),
        pytest.param(SHORT, {"strategy": "xcore-strips", "image": "stream"}, marks=slow),
        pytest.param(SHORT, {"strategy": "msf-cnn", "max_f": 1.3, "objective": "ram"}, marks=slow),
    ],
)
def test_constants_that_come_early_or_late_give_the_same_bytes(model, options):
    """The harness copies when asked in one set and when waited for in the next."""
    answer = ask("validate", model=model, inputs=2, tensors=True, options=options)
    assert answer["exact"], answer["first_difference"]
    assert (answer["level"], answer["level_text"]) == ("model", "model on the host")
    assert answer["arena_high_water"] <= answer["arena_bytes"]


@slow
@pytest.mark.parametrize("slack", [0, 20000])
def test_slices_give_the_same_bytes_in_any_arena(slack):
    options = {"strategy": "layerwise", "ram": least() + slack}
    assert ask("plan", options=options)["loading"]["in_slices"] > 1
    answer = ask("validate", inputs=2, tensors=True, options=options)
    assert answer["exact"], answer["first_difference"]
    assert answer["arena_bytes"] <= least() + slack


def test_a_limit_below_the_least_says_what_is_needed():
    options = {"strategy": "layerwise", "objective": "ram"}
    with pytest.raises(PlanError, match="the arena requires"):
        ask("plan", options=options | {"ram": least() - 16})
    with pytest.raises(PlanError, match="10000 are allowed"):
        ask("plan", options=options | {"ram": 10000})


def test_the_answer_says_what_was_estimated_and_what_runs_here(capsys):
    assert cli.run(["plan", NETWORK, "--board", "xcore", "--strategy", "layerwise"]) == 0
    text = capsys.readouterr().out
    assert "estimated time:" in text and "fitted to one published profile" in text
    assert "What runs here is the same C, with a model of its vector unit" in " ".join(text.split())
    assert "weights are loaded:" in text
    answer = ask("plan", options={"strategy": "layerwise"})
    estimate = answer["estimate"]
    assert estimate["compute_seconds"] == answer["macs"] / 2_150_000_000
    both = estimate["compute_seconds"] + estimate["load_seconds"]
    longer = max(estimate["compute_seconds"], estimate["load_seconds"])
    assert longer <= estimate["total_seconds"] <= both * 1.0001


@slow
def test_vx4_is_scalar_risc_v_code_in_an_emulator():
    answer = ask("validate", model="ds_cnn", board="vx4", options={"strategy": "layerwise"})
    assert answer["exact"] and answer["level"] == "emulator"
    assert "xm.* instructions are not used" in answer["note"] and "nominal" in answer["note"]


@slow
def test_more_memory_is_faster():
    times = [
        ask("plan", options={"strategy": "layerwise", "ram": least() + slack})["estimate"]["total_seconds"]
        for slack in (0, 100000)
    ]
    assert times[0] > times[1]


def test_other_boards_say_nothing_of_the_kind():
    answer = handle(
        {"kind": "plan", "model": NETWORK, "board": "cortex-m4", "options": {"strategy": "layerwise"}}
    )
    assert (answer["estimate"], answer["loading"], answer["note"], answer["loads"]) == (None, None, "", [])


@slow
def test_a_plan_says_when_weight_buffers_bind():
    free = ask("plan", options={"strategy": "layerwise", "objective": "ram"})["loading"]
    assert not free["bind"] or free["fullest_without"] < least()
    bound = ask("plan", options={"strategy": "xcore-strips", "segments": "0-6x8,7-14x4,15-26x2"})
    assert bound["loading"]["bind"]
    assert bound["loading"]["fullest_without"] < bound["arena_bytes"]


@pytest.mark.parametrize(
    "segments", [pytest.param(s, marks=[] if s.startswith("0-14") else [slow]) for s in XCORE_OPT]
)
def test_no_more_memory_than_xcore_opt_with_the_weights_in_it(segments):
    options = {"strategy": "xcore-strips", "segments": segments, "objective": "ram"}
    answer = ask("plan", model=str(needs_shared(MODEL)), options=options)
    assert answer["arena_bytes"] <= XCORE_OPT[segments]


@slow
@pytest.mark.parametrize(("image", "most"), [("resident", 160_000), ("overwritable", 112_000)])
def test_the_trained_network_fits_with_its_weights_and_without_repeated_work(image, most, capsys):
    limits = ["--objective", "ram", "--max-f", "1.0", "--image", image, "--json"]
    assert cli.run(["plan", str(needs_shared(MODEL)), "--board", "xcore", *limits]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["arena_bytes"] <= most and answer["f"] == 1.0


@slow
@pytest.mark.parametrize("requantise", ["exact", "vpu16"])
def test_narrow_slices_give_the_same_bytes(requantise, tmp_path):
    """Of layers that bind, slices of fewer channels than a pair of the unit's groups has."""
    net = NetBuilder(3)
    x = net.conv(net.input((1, 9, 7, 24)), 64)
    path = tmp_path / "narrow.tflite"
    path.write_bytes(write_model(net.graph([net.conv(net.conv(x, 96), 32)])))
    asked = {"model": str(path), "requantise": requantise}
    asked["options"] = {"strategy": "layerwise", "objective": "ram"}
    answer = ask("plan", **asked)
    assert {load["channels"] for load in answer["loads"]} & {8, 16}
    answer = ask("validate", inputs=2, tensors=True, **asked)
    assert answer["exact"] or (requantise == "vpu16" and answer["within_bounds"])


@slow
def test_the_trained_network_in_the_least_memory_equals_the_reference():
    model = str(needs_shared(MODEL))
    options = {"strategy": "xcore-strips", "segments": "0-6x20,7-14x10,15-22x4", "ram": 150000}
    answer = ask("validate", model=model, inputs=2, reference="litert", options=options)
    assert answer["exact"], answer["first_difference"]
    assert answer["arena_bytes"] <= 150000


@pytest.mark.slow
def test_an_arena_smaller_than_the_image_s_header_is_enough(tmp_path):
    """The header is read to be checked, and needs no room in the arena."""
    net = NetBuilder(1)
    path = tmp_path / "tiny.tflite"
    path.write_bytes(write_model(net.graph([net.mean(net.input((1, 2, 2, 3)))])))
    answer = handle({"kind": "validate", "model": str(path), "board": "xcore", "options": {}})
    assert answer["exact"] and answer["arena_bytes"] < 64 and answer["loading"]


@pytest.mark.slow
@pytest.mark.parametrize("model", ["ds_cnn", "resnet8"])
def test_a_network_equals_litert(model):
    request = {"kind": "validate", "model": model, "board": "xcore", "inputs": 2, "reference": "litert"}
    answer = handle({**request, "options": {}})
    assert answer["exact"], answer["first_difference"]
