"""The catalogues' costs predict what whole plans execute, on every family of kernels.

Not the networks that formulas are fitted to: those are single operators (benchmarks/fit_costs.py).
"""

import itertools

import pytest
from needs import needs_shared

from buildtool.service import handle
from buildtool.session import Session

COMPILER = "clang 22."  # the catalogues' counts are of its code
BOARDS = ("cortex-m4", "cortex-m55", "qemu-virt-rv32", "qemu-virt-rv32v", "qemu-virt-rv32v256")
FAST = {("qemu-virt-rv32v", "ds_cnn")}
WITHIN = 0.05  # relative
LAYERWISE = {"strategy": "layerwise"}
slow = pytest.mark.slow


SESSION = Session()  # of all requests: a network is read once


def predicted(board, model, options):
    request = {"kind": "plan", "model": model, "board": board, "options": options}
    return handle(request, SESSION)["cost"]


def check(board, model, options):
    """Profiles a plan, and compares the count with its cost."""
    answer = handle({"kind": "profile", "model": model, "board": board, "options": options}, SESSION)
    assert answer["exact"]
    if not answer["compiler"].startswith(COMPILER):
        pytest.skip(f"{board}'s costs are of code of {COMPILER}x, and this is {answer['compiler']}")
    assert predicted(board, model, options) == pytest.approx(answer["instructions"], rel=WITHIN)


@pytest.mark.parametrize(
    ("board", "model"),
    [
        pytest.param(board, model, marks=[] if (board, model) in FAST else [slow])
        for board in BOARDS
        for model in ("ds_cnn", "mcunet_vww5")
    ],
)
def test_a_network_s_instructions_are_predicted_within_five_percent(board, model):
    check(board, model, LAYERWISE)


@slow
@pytest.mark.parametrize("board", ["cortex-m55", "qemu-virt-rv32v"])
def test_a_factor_above_one_in_a_trained_network_costs_nothing_that_is_not_predicted(board):
    check(board, str(needs_shared("models/mcunet_320k_imagenet.tflite")), LAYERWISE)


# (pixels of a hand-off, F at most): whole rows where there are more pixels than in any row
PLANS = ((1, 1.1), (4, 1.0), (8, 1.1), (1 << 16, 1.0), (1, 1.0), (4, 1.1), (8, 1.0), (1 << 16, 1.1))


@slow
@pytest.mark.parametrize(
    ("board", "plan"), list(zip(itertools.chain(BOARDS, BOARDS[:3]), PLANS, strict=True)), ids=str
)
def test_a_streamed_plan_s_instructions_are_predicted_within_five_percent(board, plan):
    hand_off, max_f = plan
    options = {"image": "stream", "objective": "ram", "hand_off": hand_off, "max_f": max_f}
    check(board, "mobilenetv1_025_96", options)


def test_costs_of_vector_kernels_depend_on_the_registers_length():
    short, long = (predicted(board, "mobilenetv1_025_96", LAYERWISE) for board in BOARDS[-2:])
    assert long < 0.8 * short
