"""The catalogues' costs predict what whole plans execute, and how many cycles, on every family of kernels.

Not the networks that formulas are fitted to: those are single operators (benchmarks/fit_costs.py). Formulas
in cycles are held against what `profile` estimates by the same model of the core; the same plan's cost by
formulas in instructions against what was counted.
"""

import dataclasses
import itertools

import pytest
from needs import needs_shared
from paths import ROOT

from buildtool.api import handle
from buildtool.base.session import Session
from buildtool.graph.tflite.writer import write_model
from buildtool.graph.types import Activation, OpKind
from buildtool.plan.codec import from_bytes
from buildtool.plan.models import load_network
from buildtool.plan.summary.summary import summarize
from buildtool.target.registry import load_board, make_target
from buildtool.zoo.drawn import NetBuilder

COMPILER = "clang 22."  # the catalogues' counts are of its code
BOARDS = ("cortex-m4", "cortex-m55", "qemu-virt-rv32", "qemu-virt-rv32v", "qemu-virt-rv32v256")
FE310 = str(ROOT / "tests/support/boards/fe310-large.toml")
FAST = {("qemu-virt-rv32v", "ds_cnn")}
WITHIN = 0.05  # relative
IN_CYCLES = 0.06  # what the formula of the worst predicted kernel is off by on average, by layer
LAYERWISE = {"strategy": "layerwise"}
slow = pytest.mark.slow


SESSION = Session()  # of all requests: a network is read once


def predicted(board, model, options):
    request = {"kind": "plan", "model": model, "board": board, "options": options}
    return handle(request, SESSION)


def in_instructions(board, plan):
    """A plan's cost by the formulas for cores without cycles."""
    target = make_target(dataclasses.replace(load_board(board), pipeline=None))
    made = from_bytes(plan["plan"])
    graph = load_network(plan["model"], SESSION).graph
    kernels = target.named(made.kernels)
    regions = summarize(made, graph, kernels, target.costs, SESSION).regions
    return sum(region.work.cost for region in regions)


def check(board, model, options):
    """Profiles a plan, and compares the count with its cost."""
    request = {"kind": "profile", "model": model, "board": board, "options": options}
    answer, plan = handle(request, SESSION), predicted(board, model, options)
    assert answer["exact"]
    if not answer["compiler"].startswith(COMPILER):
        pytest.skip(f"{board}'s costs are of code of {COMPILER}x, and this is {answer['compiler']}")
    cost = plan["cost"]
    if plan["cost_unit"] == "cycles":
        assert cost == pytest.approx(answer["cycles"], rel=IN_CYCLES)
        assert plan["estimated_ms"] == pytest.approx(answer["estimated_ms"], rel=IN_CYCLES)
        cost = in_instructions(board, {**plan, "model": model})
    assert cost == pytest.approx(answer["instructions"], rel=WITHIN)


@pytest.mark.parametrize(
    ("board", "model"),
    [
        *(
            pytest.param(board, model, marks=[] if (board, model) in FAST else [slow])
            for board in BOARDS
            for model in ("ds_cnn", "mcunet_vww5")
        ),
        # a core that waits for its flash, and one whose catalogue serves cores without a model as well
        pytest.param("stm32f746g-disco", "ds_cnn", marks=slow),
        pytest.param(FE310, "ds_cnn", marks=slow, id="fe310-large-ds_cnn"),
    ],
)
def test_what_a_network_takes_is_predicted(board, model):
    check(board, model, LAYERWISE)


@slow
@pytest.mark.parametrize("board", ["cortex-m55", "qemu-virt-rv32v"])
def test_a_factor_above_one_in_a_trained_network_costs_nothing_that_is_not_predicted(board):
    check(board, str(needs_shared("models/mcunet_320k_imagenet.tflite")), LAYERWISE)


def additions_that_lack_channels():
    net = NetBuilder(1, "widened")
    x = net.input((1, 24, 24, 24))
    for channels, before in ((32, 0), (48, 0), (60, 8), (96, 0)):
        behind = channels - net.shape(x)[3] - before
        wide = net.pad(x, ((0, 0), (0, 0), (0, 0), (before, behind)))
        x = net.elementwise(OpKind.ADD, net.input(net.shape(wide)), wide)
    return net.graph([x])


def convolutions_over_time():
    net = NetBuilder(2, "over_time")
    x = net.input((1, 40, 1, 24))
    for taps, channels in ((3, 48), (10, 64), (15, 32)):
        x = net.conv(x, 0, kernel=(taps, 1), same=False, depth_multiplier=1, activation=Activation.RELU)
        x = net.conv(x, channels, activation=Activation.RELU)
    return net.graph([net.concat([net.input((1, 3, 1, channels)), x], axis=1)])


@slow
@pytest.mark.parametrize(
    ("network", "board"),
    [
        *((additions_that_lack_channels, board) for board in BOARDS[:4]),
        *((convolutions_over_time, board) for board in BOARDS[:2]),
    ],
)
def test_what_networks_take_that_are_no_plain_image_classifiers_is_predicted(tmp_path, board, network):
    """Shortcuts with fewer channels, as face detectors have; one dimension, as keyword spotters have."""
    path = tmp_path / "network.tflite"
    path.write_bytes(write_model(network()))
    check(board, str(path), LAYERWISE)


# (pixels of a hand-off, F at most): whole rows where there are more pixels than in any row
PLANS = ((1, 1.1), (4, 1.0), (8, 1.1), (1 << 16, 1.0), (1, 1.0), (4, 1.1), (8, 1.0), (1 << 16, 1.1))


@slow
@pytest.mark.parametrize(
    ("board", "plan"), list(zip(itertools.chain(BOARDS, BOARDS[:3]), PLANS, strict=True)), ids=str
)
def test_what_a_streamed_plan_takes_is_predicted(board, plan):
    hand_off, max_f = plan
    options = {"image": "stream", "objective": "ram", "hand_off": hand_off, "max_f": max_f}
    check(board, "mobilenetv1_025_96", options)


def test_costs_of_vector_kernels_depend_on_the_registers_length():
    short, long = (predicted(board, "mobilenetv1_025_96", LAYERWISE)["cost"] for board in BOARDS[-2:])
    assert long < 0.8 * short
