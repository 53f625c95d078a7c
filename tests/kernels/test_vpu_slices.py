"""Slices of 1x1 convolutions on the vector unit equal the whole output; a call has only its own constants."""

import itertools
from ctypes import byref, c_int32, c_void_p

import ckernels
import numpy as np
import pytest
from ckernels import packed
from hostfamily import before_nothing, library, on_host
from kernelcases import CONV, Axis, changed
from kernelcases import layer as random_layer
from placement import Margin, part_view, run_whole

from buildtool.base.modes import Requantise
from buildtool.graph.types import Activation
from buildtool.target.catalogue import channel_bytes, features
from buildtool.target.registry import load_board, make_target

slow = pytest.mark.slow  # they compile the family
BOARD, FAMILY = "xcore", "xcore_vpu"
HEAD, RECORD, LINE = 16, 224, 16
SCALAR, ON16 = 4, 8  # bits of a record's mode
# log2 of factors
UNIT = (-12.0, -10.0)  # the unit has constants for them, also in 16 bits
NEAR = (-8.0, -1.0)  # with jumps of many sizes at 0
COARSE = (0.1, 1.9)  # the unit has no constants for them
APART = (-18.0, -1.5)  # too far apart for 16 bits
LARGE = (-5.0, -4.0)  # they shift up in 16 bits, UNIT's do not
NONE = Margin(0, 0)  # no other channels beside the output's
ACTIVATIONS = {"linear": (Activation.NONE, 11), "relu": (Activation.RELU, -40)}


def layer(seed, inputs, channels, activation, even=UNIT, odd=UNIT, stride=1, mixed=0.0):
    """A layer of 7 x 5 outputs with these factors in even and odd channels; `mixed`: the share of others."""
    rng = np.random.default_rng(seed)
    function, zero_point = ACTIVATIONS[activation]
    rows, columns = (Axis(size * stride, 1, stride) for size in (7, 5))
    case = random_layer(rng, CONV, rows, columns, inputs, channels, function, points=(5, zero_point))
    is_odd = np.arange(channels) % 2 > 0
    logs = np.where(is_odd, rng.uniform(*odd, channels), rng.uniform(*even, channels))
    logs = np.where(rng.random(channels) < mixed, rng.uniform(*UNIT, channels), logs)
    # so that outputs are seldom at the limits of their range
    most = np.where(logs > NEAR[0], 1, 127)[:, None, None, None]
    weights = rng.integers(-most, most + 1, (channels, 1, 1, inputs)).astype(np.int8)
    bias = rng.integers(-8 * most, 8 * most).ravel()
    return changed(case, weights, bias, 2.0**logs, steps=(1.0, 1.0))


def lines(size):
    return -(-size // LINE) * LINE


def slice_of(block, cut, channels, first, count):
    """Returns the constants of some channels (head, factors, weights) at the end of mapped memory."""
    together = first // cut.group * cut.group
    factors = cut.factors * -(-(first - together + count) // cut.group) * cut.group
    own = np.zeros(lines(HEAD + factors) + lines(cut.weights * count + cut.tail), np.int8)
    own[:HEAD] = block[:HEAD]
    own[HEAD : HEAD + factors] = block[HEAD + cut.factors * together :][:factors]
    start = lines(HEAD + cut.factors * channels) + cut.weights * first
    own[lines(HEAD + factors) :][: cut.weights * count] = block[start : start + cut.weights * count]
    return before_nothing(own)


def in_slices(case, variant, width, threads=1, margin=NONE):
    """Computes the output by calls for `width` channels each."""
    block, cut = (
        packed(case.graph, case.op, variant).view(np.int8),
        channel_bytes(variant, case.graph, case.op),
    )
    rows, columns, channels = case.out_shape[1:]
    pixels = np.full((rows, columns, margin.before + channels + margin.behind), 99, np.int8)
    _, height, wide, _ = case.inputs[0].shape
    source, _ = part_view(case.inputs[0][0], NONE, 0, height, wide)
    function = getattr(library(FAMILY, threads), variant.symbol)
    function.restype = None
    for first in range(0, channels, width):
        count = min(width, channels - first)
        own = slice_of(block, cut, channels, first, count)
        outer = Margin(margin.before + first, margin.behind + channels - first - count)
        out, _ = part_view(pixels, outer, 0, rows, columns)
        views, window = map(byref, (source, out)), byref((c_int32 * 4)(0, rows, 0, columns))
        geometry = byref(ckernels.geometry(case.graph, case.op))
        function(geometry, c_void_p(own.ctypes.data), *views, window, None, first)
    outside = np.delete(pixels, np.s_[margin.before : margin.before + channels], axis=2)
    assert (outside == 99).all()
    return pixels[:, :, margin.before : margin.before + channels]


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
}
SCALARS = {"even ones scalar": [True, False], "odd ones scalar": [False, True], "all scalar": [True, True]}


@slow
@pytest.mark.parametrize("name", CASES)
def test_slices_are_what_the_plain_kernel_computes(name):
    case = CASES[name]
    with on_host(BOARD, FAMILY) as family:
        variant = family.select(case.graph, case.op)
        expected = run_whole(case).reshape(case.out_shape[1:])
    assert len(np.unique(expected)) > 10
    assert [bool(mode & SCALAR) for mode in modes(case, variant)] == SCALARS.get(name, [False, False])
    for width, margin in itertools.product((8, 16, 32), (NONE, Margin(3, 2))):
        np.testing.assert_array_equal(in_slices(case, variant, width, margin=margin), expected)


@slow
def test_threads_share_slices():
    case = CASES["one kind"]
    with on_host(BOARD, FAMILY) as family:
        variant = family.select(case.graph, case.op)
    output = in_slices(case, variant, 8, threads=5)
    np.testing.assert_array_equal(output, run_whole(case).reshape(case.out_shape[1:]))


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
        whole = run_whole(case).reshape(case.out_shape[1:])
    assert variant.name.endswith("vpu16") and family.kernels.total() == 1
    assert [bool(mode & ON16) for mode in modes(case, variant)] == on_16
    for width in (8, 16, 32):
        np.testing.assert_array_equal(in_slices(case, variant, width), whole)


def test_where_blocks_are_cut():
    """Every 8 channels if all groups are in pairs, otherwise every 32."""
    steps = {}
    for channels in (32, 96, 16, 48, 72):
        case = layer(8, 32, channels, "linear")
        with on_host(BOARD, FAMILY) as family:
            cut = channel_bytes(family.select(case.graph, case.op), case.graph, case.op)
        assert cut is not None and features(case.graph, case.op)["cout"] == channels
        steps[channels] = cut.step, cut.group
    assert steps == {32: (8, 32), 96: (8, 32), 16: (32, 16), 48: (32, 16), 72: (32, 16)}
