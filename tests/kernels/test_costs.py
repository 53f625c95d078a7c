"""The catalogues' costs predict the instructions and cycles of whole plans, for every family of kernels.

The formulas were fitted to other networks, of single operators (benchmarks/fit_costs.py). Costs in cycles are
compared with the estimate of `profile`, which uses the same model of the core. Costs in instructions are
compared with counted instructions.
"""

import dataclasses

import pytest
from needs import needs_shared
from paths import ROOT

from buildtool.api import handle
from buildtool.base.session import Session
from buildtool.graph.tflite.writer import write_model
from buildtool.graph.types import Activation, OpKind
from buildtool.plan.choose.channels import simplify_as
from buildtool.plan.codec import from_bytes
from buildtool.plan.models import load_network
from buildtool.plan.summary.summary import summarize
from buildtool.target.registry import load_board, make_target
from buildtool.zoo.drawn import NetBuilder

COMPILER = "clang 22."  # the catalogues' counts are for its code
BOARDS = ("cortex-m4", "cortex-m55", "qemu-virt-rv32", "qemu-virt-rv32v", "qemu-virt-rv32v256")
FE310 = str(ROOT / "tests/support/boards/fe310-large.toml")
WITHIN = 0.05  # relative
IN_CYCLES = 0.06  # the mean error per layer of the kernel with the worst formula
LAYERWISE = {"strategy": "layerwise"}
slow = pytest.mark.slow


SESSION = Session()  # for all requests, so that a network is read once


def predicted(board, model, options):
    request = {"kind": "plan", "model": model, "board": board, "options": options}
    return handle(request, SESSION)


def in_instructions(board, plan):
    """Returns a plan's cost by the formulas in instructions."""
    target = make_target(dataclasses.replace(load_board(board), pipeline=None))
    decoded = from_bytes(plan["plan"])
    graph = simplify_as(load_network(plan["model"], SESSION).graph, decoded.removed).graph
    kernels = target.kernels_by_name(decoded.kernels)
    regions = summarize(decoded, graph, kernels, target.costs, SESSION).regions
    return sum(region.work.cost for region in regions)


# Boards with a Cortex-M7, whose convolutions have loops of more instructions in fewer cycles: the
# catalogue has the instructions of a Cortex-M4.
OTHER_LOOPS = ("stm32f746g-disco",)


def check(board, model, options, within=None):
    """Profiles a plan, and compares the count with its cost; `within`: another relative error."""
    request = {"kind": "profile", "model": model, "board": board, "options": options}
    answer, plan = handle(request, SESSION), predicted(board, model, options)
    assert answer["exact"]
    if not answer["compiler"].startswith(COMPILER):
        pytest.skip(f"{board}'s costs are of code of {COMPILER}x, and this is {answer['compiler']}")
    cost = plan["cost"]
    if plan["cost_unit"] == "cycles":
        assert cost == pytest.approx(answer["cycles"], rel=within or IN_CYCLES)
        assert plan["estimated_ms"] == pytest.approx(answer["estimated_ms"], rel=within or IN_CYCLES)
        cost = in_instructions(board, {**plan, "model": model})
    if board not in OTHER_LOOPS:
        assert cost == pytest.approx(answer["instructions"], rel=within or WITHIN)


@slow
@pytest.mark.parametrize(
    ("board", "model"),
    [
        ("qemu-virt-rv32v", "ds_cnn"),
        *(pytest.param(board, "mcunet_vww5", marks=slow) for board in BOARDS[:3]),
        # a core that waits for its flash, and one whose catalogue is also for cores without a model
        pytest.param("stm32f746g-disco", "ds_cnn", marks=slow),
        pytest.param(FE310, "ds_cnn", marks=slow, id="fe310-large-ds_cnn"),
    ],
)
def test_what_a_network_takes_is_predicted(board, model):
    check(board, model, LAYERWISE)


@slow
def test_a_factor_above_one_in_a_trained_network_costs_nothing_that_is_not_predicted():
    check("cortex-m55", str(needs_shared("models/mcunet_320k_imagenet.tflite")), LAYERWISE)


def additions_that_lack_channels():
    net = NetBuilder(1, "widened")
    x = net.input((1, 24, 24, 24))
    for channels, before in ((32, 0), (48, 0), (60, 8), (96, 0)):
        after = channels - net.shape(x)[3] - before
        wide = net.pad(x, ((0, 0), (0, 0), (0, 0), (before, after)))
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
    ("network", "board", "within"),
    [
        (additions_that_lack_channels, "qemu-virt-rv32v", None),
        # one column is computed as one row, unless the output lies over the input: costs do not know which
        (convolutions_over_time, "cortex-m4", 0.15),
    ],
)
def test_what_networks_take_that_are_no_plain_image_classifiers_is_predicted(
    tmp_path, board, network, within
):
    """Shortcuts with fewer channels, as in face detectors; one dimension, as in keyword spotters."""
    path = tmp_path / "network.tflite"
    path.write_bytes(write_model(network()))
    check(board, str(path), {**LAYERWISE, "simplify": "structure"}, within)


@slow
@pytest.mark.parametrize(
    ("board", "hand_off", "max_f"),  # a hand-off of more pixels than a row has is whole rows
    [("cortex-m4", 1, 1.1), ("cortex-m55", 4, 1.0), ("qemu-virt-rv32v", 1 << 16, 1.0)],
)
def test_what_a_streamed_plan_takes_is_predicted(board, hand_off, max_f):
    options = {"image": "stream", "objective": "ram", "hand_off": hand_off, "max_f": max_f}
    check(board, "mobilenetv1_025_96", options)


def test_costs_of_vector_kernels_depend_on_the_registers_length():
    short, long = (predicted(board, "mobilenetv1_025_96", LAYERWISE)["cost"] for board in BOARDS[-2:])
    assert long < 0.8 * short
