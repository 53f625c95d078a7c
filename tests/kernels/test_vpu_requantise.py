"""Requantisation on the vector unit: exact at every sum where an output steps, and seldom by scalar code."""

import numpy as np
import pytest
from ckernels import packed
from hostfamily import on_host
from kernelcases import BYTES, CONV, DENSE, Axis, changed
from kernelcases import layer as random_layer
from placement import run_whole
from requantisers import channel_numbers

from buildtool.graph.fixedpoint import multiply_by_quantized_multiplier
from buildtool.graph.types import Activation
from buildtool.target.catalogue import select

BOARD, FAMILY = "xcore", "xcore_vpu"
TAPS, CHANNELS = 25, 40  # inputs of a sum, one with weight 1, others with 127; a pair of groups and a half
WIDE, SIGNED, SCALAR = 1, 2, 4  # bits of a record's mode
HEAD, RECORD = 16, 224
MOST = 400_000  # the largest sum
FORMS = {
    "relu": (CONV, Activation.RELU, -128),
    "linear": (CONV, Activation.NONE, 11),
    "bounded": (CONV, Activation.RELU6, -40),
    "dense": (DENSE, Activation.NONE, -7),
}
# log2 of factors: relevant sums fit in 16 bits; do not fit; and steps are at most one sum apart
FACTORS = {"narrow": (-7.0, -4.0), "wide": (-11.0, -8.0), "mixed": (-12.0, -4.0), "coarse": (-3.0, 1.0)}
FACE_SCALES = (0.03125, 0.005231001880019903, 0.05012499913573265)  # of input, weights and output
FACE_FACTOR = (1792876400, -8)  # their factor


def sum_layer(kind, pixels, points, bias, scales, activation=Activation.NONE, **more):
    """A layer whose sums can be any integers: one weight of each sum is 1, the others are 127."""
    rows, columns = (Axis(pixels), Axis(1)) if kind is DENSE else (Axis(1), Axis(pixels))
    rng = np.random.default_rng(0)
    base = random_layer(rng, kind, rows, columns, TAPS, len(scales), activation, points=points)
    weights = np.full(base.graph.tensors[1].shape, 127, np.int8)
    weights[..., 0] = 1
    return changed(base, weights, bias, scales, **more)


def layer(form, factors, seed, pixels, values=None):
    """A layer with random factors; its inputs are `values`."""
    (kind, activation, zero_point), rng = FORMS[form], np.random.default_rng(seed)
    scales = 2.0 ** rng.uniform(*FACTORS[factors], CHANNELS)
    bias = rng.integers(-9999, 9999, CHANNELS)
    more = {"steps": (1.0, 1.0), "values": values}
    return sum_layer(kind, pixels, (5, zero_point), bias, scales, activation, **more)


def outputs(row, sums):
    """Returns the reference's outputs without zero point and bounds."""
    if len(row) == 3:
        return multiply_by_quantized_multiplier(sums, row[1], row[2])
    real = ((int(row[1]) << 16) + int(row[3])) / 2.0 ** (47 - int(row[2]))
    return np.trunc(sums * real + np.copysign(0.5, sums)).astype(np.int64)


def steps(row):
    """Returns the smallest sums with outputs from -256 to 256, where a channel's output steps."""
    targets = np.arange(-256, 257)
    low, high = np.full(len(targets), -MOST), np.full(len(targets), MOST)
    while (high - low > 1).any():
        middle = (low + high) // 2
        reached = outputs(row, middle) >= targets
        low, high = np.where(reached, low, middle), np.where(reached, middle, high)
    return high


def inputs(wanted, bias):
    """Returns the inputs that give each of the `wanted` sums."""
    rest = np.clip(wanted - bias, -127 * 128 * (TAPS - 1), 127 * 127 * (TAPS - 1))
    whole = np.rint(rest / 127).astype(np.int64)
    values = np.zeros((len(wanted), TAPS), np.int64)
    values[:, 0] = rest - 127 * whole
    each = whole // (TAPS - 1)
    values[:, 1:] = each[:, None]
    values[:, 1:] += np.arange(TAPS - 1) < (whole - each * (TAPS - 1))[:, None]
    return values.astype(np.int8)


def checked(case):
    """Runs the plain kernel and the family's, which must agree; returns the output and the constants."""
    with on_host(BOARD, FAMILY) as family:
        output = run_whole(case)
    assert family.kernels.total() == 1
    return output, packed(case.graph, case.op, select(family.target, case.graph, case.op))


def modes(block, count):
    """Returns the modes of a block's groups."""
    return [int(block[HEAD + i * RECORD]) for i in range(count)]


CASES = (
    *(("linear", "mixed"), ("linear", "narrow"), ("relu", "wide"), ("bounded", "mixed"), ("dense", "wide")),
    *(("relu", "coarse"), ("dense", "coarse")),
)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids="-".join)
def test_outputs_are_equal_at_every_step(case):
    (form, factors), seed = case, CASES.index(case)
    needed = []
    for row in channel_numbers(layer(form, factors, seed, 1))[1]:
        at = steps(row)
        needed.append(inputs(np.concatenate((at, at - 1)), int(row[0])))
    values = np.unique(np.concatenate(needed), axis=0)
    shape = (len(values), TAPS) if form == "dense" else (1, 1, len(values), TAPS)
    case = layer(form, factors, seed, len(values), values.reshape(shape))
    assert len(values) > 1000 or factors == "coarse"
    kinds = modes(checked(case)[1], 3)
    on_unit = [kind for kind in kinds if not kind & SCALAR]
    assert len(on_unit) >= 2 or factors == "coarse"  # on the unit, except for unlucky groups
    assert factors in ("mixed", "coarse") or {bool(kind & WIDE) for kind in on_unit} == {factors == "wide"}
    assert factors == "coarse" or {bool(kind & SIGNED) for kind in on_unit} == {form == "linear"}


@pytest.mark.slow
def test_outputs_are_equal_at_the_ends_of_the_sums():
    """With one weight of 1 all sums occur; the smallest and the largest are at a step or between two."""
    rng, count = np.random.default_rng(0), 960
    case = random_layer(rng, CONV, Axis(1), Axis(256), 1, count, points=(5, 11))
    bias, scales = rng.integers(-200, 200, count), 2.0 ** rng.uniform(-6, 0, count)
    ones, values = np.ones((count, 1, 1, 1), np.int8), BYTES.reshape(1, 1, 256, 1)
    checked(changed(case, ones, bias, scales, steps=(1.0, 1.0), values=values))


def face_layer():
    """Forty copies of a channel of a public face detector: sums from -3060, outputs -10 to 127, zero point 0.

    A sum's upper part above 0 adds 4096 for the jump near 0 and loses little for the factor's last bits. So
    its largest value is near 0 and not at an end.
    """
    sums = np.arange(-2932, 38790)  # the possible sums, up to the last step
    bias = 128 * (1 + 127 * (TAPS - 1)) - 3060
    scales, biases = np.full(CHANNELS, FACE_SCALES[1]), np.full(CHANNELS, bias)
    more = {"steps": FACE_SCALES[::2], "values": inputs(sums, bias).reshape(1, 1, -1, TAPS)}
    return sum_layer(CONV, len(sums), (0, 0), biases, scales, **more), sums


@pytest.mark.slow
def test_outputs_are_equal_where_a_jump_makes_the_lower_half_largest():
    case, sums = face_layer()
    row = channel_numbers(case)[1][0]
    assert tuple(row[1:]) == FACE_FACTOR
    expected, block = checked(case)
    np.testing.assert_array_equal(expected.reshape(len(sums), -1)[:, 0], outputs(row, sums).clip(-128, 127))
    assert modes(block, 3) == [WIDE + SIGNED + 16, WIDE + SIGNED + 16, WIDE + SIGNED]
