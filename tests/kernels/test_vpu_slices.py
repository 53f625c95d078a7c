"""Slices on the vector unit equal the whole output; a call has only its own constants."""

import itertools

import numpy as np
import pytest
from ckernels import packed
from hostfamily import library, on_host
from kernelcases import CONV, DENSE, Axis, changed
from kernelcases import layer as random_layer
from placement import Margin, run_whole
from slicing import NONE, in_slices

from buildtool.base.modes import Requantise
from buildtool.graph.types import Activation
from buildtool.target.catalogue import channel_bytes, features
from buildtool.target.registry import load_board, make_target

slow = pytest.mark.slow  # they compile the family
BOARD, FAMILY = "xcore", "xcore_vpu"
HEAD, RECORD = 16, 224
SCALAR, ON16 = 4, 8  # bits of a record's mode
# log2 of factors
UNIT = (-12.0, -10.0)  # the unit has constants for them, also in 16 bits
NEAR = (-8.0, -1.0)  # with jumps of many sizes at 0
COARSE = (0.1, 1.9)  # the unit has no constants for them
APART = (-18.0, -1.5)  # too far apart for 16 bits
LARGE = (-5.0, -4.0)  # they shift up in 16 bits, UNIT's do not
ACTIVATIONS = {"linear": (Activation.NONE, 11), "relu": (Activation.RELU, -40)}


def layer(seed, inputs, channels, activation, even=UNIT, odd=UNIT, stride=1, mixed=0.0, kernel=1):
    """A layer of 7 x 5 outputs with these factors in even and odd channels; `mixed`: the share of others.

    `kernel`: its rows and columns; 0 is a dense layer.
    """
    rng = np.random.default_rng(seed)
    function, zero_point = ACTIVATIONS[activation]
    if kernel:
        axes = [Axis(size * stride, kernel, stride, 1, kernel // 2, kernel // 2) for size in (7, 5)]
        case = random_layer(rng, CONV, *axes, inputs, channels, function, points=(5, zero_point))
    else:
        case = random_layer(rng, DENSE, Axis(3), Axis(1), inputs, channels, function, points=(5, zero_point))
    is_odd = np.arange(channels) % 2 > 0
    logs = np.where(is_odd, rng.uniform(*odd, channels), rng.uniform(*even, channels))
    logs = np.where(rng.random(channels) < mixed, rng.uniform(*UNIT, channels), logs)
    # so that outputs are seldom at the limits of their range
    most = np.where(logs > NEAR[0], 1, 127)
    shape = (channels, kernel, kernel, inputs) if kernel else (channels, inputs)
    weights = rng.integers(-most, most + 1, (*shape[1:], channels)).astype(np.int8)
    weights = np.moveaxis(weights, -1, 0)
    bias = rng.integers(-8 * most, 8 * most)
    return changed(case, weights, bias, 2.0**logs, steps=(1.0, 1.0))


def modes(case, variant):
    """Returns the modes of the first pair of groups."""
    block = packed(case.graph, case.op, variant)
    return [int(block[HEAD + i * RECORD]) for i in range(2)]


CASES = {
    "one kind": layer(1, 96, 96, "linear"),
    "jumps": layer(9, 96, 96, "linear", NEAR, NEAR, mixed=0.5),
    "jumps of odd ones": layer(10, 96, 96, "linear", odd=NEAR),
    "a rest of inputs": layer(2, 35, 32, "relu"),
    "by 2": layer(3, 64, 64, "linear", stride=2),
    "even ones scalar": layer(4, 36, 64, "linear", even=COARSE),
    "odd ones scalar": layer(5, 32, 32, "relu", odd=COARSE),
    "all scalar": layer(17, 32, 32, "linear", COARSE, COARSE),
    "a last group alone": layer(18, 64, 42, "relu", NEAR, UNIT),
    "3 x 3": layer(19, 32, 40, "linear", mixed=0.5, kernel=3),
    "3 x 3 of few": layer(20, 5, 64, "relu", even=COARSE, stride=2, kernel=3),
    "dense": layer(21, 200, 70, "linear", kernel=0),
    "dense, ten outputs": layer(22, 67, 10, "linear", kernel=0),
}
SCALARS = {"even ones scalar": [True, False], "odd ones scalar": [False, True], "all scalar": [True, True]}
SCALARS["3 x 3 of few"] = SCALARS["even ones scalar"]


@slow
@pytest.mark.parametrize("name", CASES)
def test_slices_are_what_the_plain_kernel_computes(name):
    case = CASES[name]
    with on_host(BOARD, FAMILY) as family:
        variant = family.select(case.graph, case.op)
        expected = run_whole(case).reshape(case.out_shape)
    assert len(np.unique(expected)) > 10
    kinds = [bool(mode & SCALAR) for mode in modes(case, variant)]
    assert case.out_shape[-1] <= 16 or kinds == SCALARS.get(name, [False, False])
    for width, margin in itertools.product((1, 2, 4, 8, 16, 32), (NONE, Margin(3, 2))):
        np.testing.assert_array_equal(in_slices(case, variant, library(FAMILY), width, margin), expected)


@slow
def test_threads_share_slices():
    case = CASES["one kind"]
    with on_host(BOARD, FAMILY) as family:
        variant = family.select(case.graph, case.op)
    for width in (4, 8):
        np.testing.assert_array_equal(in_slices(case, variant, library(FAMILY, 5), width), run_whole(case))


@slow
@pytest.mark.parametrize(
    ("even", "odd", "on_16"),
    [
        (UNIT, UNIT, [True, True]),
        (UNIT, APART, [True, False]),
        (APART, UNIT, [False, True]),
        (UNIT, LARGE, [True, True]),
        (LARGE, UNIT, [True, True]),
    ],
    ids=["both on 16 bits", "even ones", "odd ones", "odd ones shift up", "even ones shift up"],
)
def test_slices_on_16_bits_are_the_whole(even, odd, on_16):
    """Compared with a call for all channels, which other tests cover, and not with the plain kernel."""
    case = layer(13, 576, 64, "linear", even, odd)
    target = make_target(load_board(BOARD), requantise=Requantise.VPU16)
    with on_host(BOARD, FAMILY, target=target) as family:
        variant = family.select(case.graph, case.op)
        whole = run_whole(case)
    assert variant.name.endswith("vpu16") and family.kernels.total() == 1
    assert [bool(mode & ON16) for mode in modes(case, variant)] == on_16
    for width in (2, 8, 16, 32):
        np.testing.assert_array_equal(in_slices(case, variant, library(FAMILY), width), whole)


def test_where_blocks_are_cut():
    """At every channel, but not within a single group that may be filled up with rows of zeros."""
    steps = {}
    for channels in (32, 96, 16, 48, 72):
        case = layer(8, 32, channels, "linear")
        with on_host(BOARD, FAMILY) as family:
            cut = channel_bytes(family.select(case.graph, case.op), case.graph, case.op)
        assert cut is not None and features(case.graph, case.op)["cout"] == channels
        steps[channels] = cut.step, cut.group
    assert steps == {32: (1, 32), 96: (1, 32), 16: (32, 32), 48: (1, 32), 72: (1, 32)}
