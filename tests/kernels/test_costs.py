"""The catalogues' costs predict what whole networks execute, on every family of kernels."""

import pytest

from buildtool.service import handle

COMPILER = "clang 22."  # the catalogues' counts are of its code
BOARDS = ("cortex-m4", "cortex-m55", "qemu-virt-rv32", "qemu-virt-rv32v", "qemu-virt-rv32v256")
FAST = {("qemu-virt-rv32", "ds_cnn"), ("qemu-virt-rv32v", "ds_cnn")}


def predicted(board, model):
    request = {"kind": "plan", "model": model, "board": board, "options": {"strategy": "layerwise"}}
    return handle(request)["cost"]


@pytest.mark.parametrize(
    ("board", "model"),
    [
        pytest.param(board, model, marks=[] if (board, model) in FAST else [pytest.mark.slow])
        for board in BOARDS
        for model in ("ds_cnn", "mobilenetv1_025_96", "mcunet_vww5")
    ],
)
def test_a_network_s_instructions_are_predicted_within_five_percent(board, model):
    request = {"kind": "profile", "model": model, "board": board, "options": {"strategy": "layerwise"}}
    answer = handle(request)
    assert answer["exact"]
    if not answer["compiler"].startswith(COMPILER):
        pytest.skip(f"{board}'s costs are of code of {COMPILER}x, and this is {answer['compiler']}")
    assert predicted(board, model) == pytest.approx(answer["instructions"], rel=0.05)


def test_costs_of_vector_kernels_depend_on_the_registers_length():
    short, long = (predicted(board, "mobilenetv1_025_96") for board in BOARDS[-2:])
    assert long < 0.8 * short


@pytest.mark.slow
@pytest.mark.parametrize("hand_off", [1, 4])
@pytest.mark.parametrize("max_f", [1.0, 1.1])
def test_a_streamed_plan_s_instructions_are_predicted_within_five_percent(hand_off, max_f):
    options = {"image": "stream", "objective": "ram", "hand_off": hand_off, "max_f": max_f}
    request = {"model": "mobilenetv1_025_96", "board": "cortex-m4", "options": options}
    answer = handle({"kind": "profile", **request})
    assert answer["exact"]
    if not answer["compiler"].startswith(COMPILER):
        pytest.skip(f"costs are of code of {COMPILER}x, and this is {answer['compiler']}")
    assert handle({"kind": "plan", **request})["cost"] == pytest.approx(answer["instructions"], rel=0.05)
