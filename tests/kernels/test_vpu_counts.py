"""Issues of convolutions and dense layers, counted in the model of the vector unit."""

import numpy as np
import pytest
from hostfamily import on_host
from kernelcases import weighted_case
from vpucounts import BOARD, FAMILY, counts

from buildtool.base.expression import evaluate
from buildtool.graph.types import Activation, ConvAttrs, DepthwiseAttrs, FullyConnectedAttrs, OpKind, Pad
from buildtool.target.catalogue import features

pytestmark = pytest.mark.slow  # of all: they compile the kernels once more
LANES, CHUNK = 16, 32  # accumulators; inputs of an issue
LIMIT = 32  # multiply-accumulates an issue
READY = 13 + 11  # issues before the pixels of a call: constants of sums with lower bits, without signs


def _layer(kind, attrs, shape, filter_shape, points, seed):
    rng = np.random.default_rng(seed)
    return weighted_case(rng, kind, attrs, shape, filter_shape, points=points, per_channel=False)


def convolution(size, inputs, outputs, kernel, stride=1, zero_point=-128, activation=Activation.RELU):
    pad = (kernel - 1) // 2
    attrs = ConvAttrs((stride, stride), (1, 1), Pad(pad, pad, pad, pad), activation)
    shapes = (1, size, size, inputs), (outputs, kernel, kernel, inputs)
    return _layer(OpKind.CONV_2D, attrs, *shapes, (-128, zero_point), inputs + outputs)


def depthwise(size, channels, kernel):
    pad = (kernel - 1) // 2
    attrs = DepthwiseAttrs((1, 1), (1, 1), Pad(pad, pad, pad, pad), Activation.RELU, 1)
    shapes = (1, size, size, channels), (1, kernel, kernel, channels)
    return _layer(OpKind.DEPTHWISE_CONV_2D, attrs, *shapes, (-128, -128), channels)


def dense(inputs, outputs):
    shapes = (1, inputs), (outputs, inputs)
    attrs = FullyConnectedAttrs(Activation.NONE)
    return _layer(OpKind.FULLY_CONNECTED, attrs, *shapes, (3, 3), inputs)


def macs(case):
    return features(case.graph, case.op)["macs"]


@pytest.mark.parametrize(
    "case",
    [
        convolution(8, 32, 64, 1),
        convolution(6, 64, 32, 3),
        convolution(9, 96, 16, 3, 2),
        convolution(5, 320, 48, 1),
    ],
    ids=["1x1", "3x3", "3x3 by 2", "1x1 deep"],
)
def test_multiplying_takes_at_most_1_3_times_what_the_unit_could(case):
    """One issue a 32 products is the unit's limit: for whole chunks of inputs and groups of outputs."""
    found = counts(case)
    assert 10 * LIMIT * found.mac <= 13 * macs(case)
    assert found.mac * LIMIT >= macs(case)
    # exactly: of each 32 inputs one load, and 16 products with a row
    assert found.mac == macs(case) // (CHUNK * LANES) * (1 + LANES)


def test_requantisation_takes_no_more_than_was_said():
    """Of 16 outputs, VPU issues beside the multiplying: biases and type 3, requantisation, stores."""
    case = convolution(8, 64, 64, 1)
    found, groups = counts(case), 4
    assert found.vpu - found.mac - 1 <= 8 * 8 * groups * (3 + 13 + 2) + groups * READY
    case = depthwise(8, 64, 3)
    found = counts(case)
    assert found.mac == 8 * 8 * groups * 2 * 9
    assert found.vpu - found.mac <= 8 * 8 * groups * (3 + 13 + 9) + groups * READY


@pytest.mark.parametrize(
    "case",
    [
        convolution(6, 160, 64, 1),
        convolution(10, 192, 32, 1, zero_point=3, activation=Activation.NONE),
        convolution(6, 320, 64, 1, zero_point=3, activation=Activation.NONE),
        convolution(8, 64, 32, 3),
    ],
    ids=["1x1 of 160", "signed, of 192", "signed, of 320", "3x3 of 64"],
)
def test_a_convolution_takes_at_most_1_3_times_what_the_unit_could(case):
    """With all that the unit does, and padding counted as products."""
    found, pixels = counts(case), features(case.graph, case.op)
    products = pixels["oh"] * pixels["ow"] * pixels["cout"] * pixels["kh"] * pixels["kw"] * pixels["cin"]
    assert 10 * LIMIT * found.vpu <= 13 * products


@pytest.mark.parametrize(
    ("case", "within"),
    [
        (convolution(8, 64, 64, 1), 0.05),
        (convolution(8, 24, 96, 1), 0.1),
        (convolution(9, 64, 48, 3), 0.1),
        (convolution(17, 3, 32, 3, 2), 0.15),
        (depthwise(12, 96, 3), 0.1),
        (depthwise(10, 48, 5), 0.1),
        (dense(1280, 250), 0.05),
    ],
    ids=["1x1", "1x1 with a rest", "3x3", "first layer", "depthwise 3x3", "depthwise 5x5", "dense"],
)
def test_costs_are_the_issues_that_are_counted(case, within):
    """The formulas are for sums that need more than 16 bits; those of fewer take 4 issues less a group."""
    with on_host(BOARD, FAMILY) as family:
        variant = family.select(case.graph, case.op)
    own = family.target.board.core.threads
    formula = variant.cost
    assert f"({own} > 1)" in formula
    alone = evaluate(
        formula.replace(f" {own})", " 1)").replace(f"({own} > 1)", "0"), features(case.graph, case.op)
    )
    assert abs(alone / counts(case).all - 1) <= within
