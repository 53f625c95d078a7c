"""Values that are rare in random cases: sums around every half, clamps, all pairs of bytes, equal rows.

Families' kernels give the plain kernels' results, on this machine or on an emulated board.
"""

import itertools
import subprocess

import ckernels
import numpy as np
import placement
import pytest
from buildtool_plugins.tools.find import find_host_compiler
from ckernels import packed, run_plain
from hostfamily import comparing, on_host
from kernelcases import every_pair, random_scale, unary
from litert import run_graph
from loaded import load_target
from paths import KERNELS
from placement import run_whole

from buildtool.emit.packing import pack
from buildtool.graph.reference import execute
from buildtool.graph.types import (
    Activation,
    DType,
    FilledPoolAttrs,
    LeakyReluAttrs,
    OpKind,
    Pad,
    PoolAttrs,
    SoftmaxAttrs,
)
from buildtool.target.catalogue import select

slow = pytest.mark.slow
DSP, MVE, XCORE = "cortex_m_dsp", "cortex_m_mve", "xcore_vpu"
ON_MVE = [pytest.param(MVE, "clang"), pytest.param(MVE, "gcc", marks=slow)]
ON_XCORE = pytest.param(XCORE, "", marks=slow)  # compiles the family for several threads
everywhere = pytest.mark.parametrize(
    ("family", "toolchain"),
    [pytest.param(DSP, "clang"), pytest.param(DSP, "gcc", marks=slow), *ON_MVE, ON_XCORE],
)


# ---- poolings: quotients computed by multiplying, for every count and around every half ------------------

MAX_SHORT = 185  # elements of the largest window that the kernels divide in 16 bits
COUNTS = [1, 2, 3, 4, 7, 9, 16, 25, 49, 64, MAX_SHORT - 1, MAX_SHORT, MAX_SHORT + 1, 280]
XCORE_COUNTS = (  # counts that the unit divides by multiplying, and larger ones
    *(*range(1, 27), 36, 49, 63, 64, 65, 81),
    *(100, 127, 128, 169, 196, 225, 255, 256, 289),
)


def sums(count, family):
    """Returns the sums at and next to every half, from the smallest to the largest."""
    near = [value * count + count // 2 + off for value in range(-128, 128) for off in (-1, 0, 1)]
    ends = [-128 * count, 127 * count]
    values = np.unique(np.clip([*near, *ends], *ends))
    # The vector unit needs a multiple of four channels.
    return np.resize(values, len(values) // 4 * 4) if family == XCORE else values


def pooled(totals, count, rows=1):
    """A pool of `count` pixels in `rows` rows; each channel has a sum of its own."""
    low, more = np.divmod(totals, count)
    values = np.where(np.arange(count)[:, None] < more, low + 1, low).astype(np.int8)
    shape = (1, rows, count // rows, len(totals))
    attrs = PoolAttrs((rows, count // rows), (1, 1), Pad(), Activation.NONE)
    more = {"out": (1, 1, 1, len(totals)), "scales": (0.5, 0.5), "points": (3, 3)}
    return unary(OpKind.AVERAGE_POOL_2D, attrs, shape, values.reshape(shape), **more)


def check_sums(family, toolchain, counts):
    with comparing(family) as compared:
        for count, rows in [*((count, 1) for count in counts), (4, 2)]:
            total = sums(count, family)
            outputs = run_whole(pooled(total, count, rows)).reshape(-1).astype(int)
            halves = np.abs(total) + count // 2
            np.testing.assert_array_equal(outputs, np.sign(total) * (halves // count))
    assert compared.kernels.total() == len(counts) + 1
    compared.check(toolchain)


@everywhere
def test_sums_around_every_half(family, toolchain):
    check_sums(family, toolchain, XCORE_COUNTS if family == XCORE else COUNTS)


@slow
@pytest.mark.parametrize("family", [DSP, MVE])
@pytest.mark.parametrize("first", range(1, 262, 40))
def test_every_count(family, first):
    check_sums(family, "clang", range(first, first + 40))


def clamped(kind, kernel, channels, value=None):
    """A pool whose clamps are well inside the range of int8. `value`: that of a padding that counts."""
    rng = np.random.default_rng((*kernel, channels))
    pad = Pad() if value is None else Pad(kernel[0] > 1, 0, kernel[1] > 1, 0)
    shape = (1, kernel[0] + 2 - pad.top, kernel[1] + 2 - pad.left, channels)
    attrs = PoolAttrs(kernel, (1, 1), pad, Activation.RELU_N1_TO_1)
    attrs = attrs if value is None else FilledPoolAttrs(**vars(attrs), value=value)
    values = rng.integers(-40, 40, shape)
    values += np.resize([-80, 0, 80], channels)  # below, around and above the clamps
    return unary(kind, attrs, shape, values, out=(1, 3, 3, channels), scales=(1 / 16, 1 / 16), points=(5, 5))


@everywhere
def test_clamps_on_every_path(family, toolchain):
    kernels, channels = ((1, 1), (2, 2), (3, 3), (4, 1), (1, 5), (16, 17)), (5, 16, 33)
    cases = list(itertools.product((OpKind.MAX_POOL_2D, OpKind.AVERAGE_POOL_2D), kernels, channels))
    cases += [(OpKind.AVERAGE_POOL_2D, *rest, 77) for rest in itertools.product(kernels, channels)]
    if family == XCORE:
        cases = [(kind, size, {5: 32, 16: 36, 33: 68}[count], *rest) for kind, size, count, *rest in cases]
    with comparing(family) as compared:
        for case in cases:
            outputs = run_whole(clamped(*case))
            assert (outputs.min(), outputs.max()) == (5 - 16, 5 + 16)
    assert family != XCORE or compared.kernels.total() == len(cases)
    compared.check(toolchain)


# ---- two operands: all pairs of bytes ---------------------------------------------------------------------

NONE, RELU, RELU6 = Activation.NONE, Activation.RELU, Activation.RELU6
# Scales of both operands and of the output; zero points; whether the packing finds a linear form for a plain
# sum, for a sum with RELU, and for a sum whose second operand has a single channel.
MVE_SUMS = [
    ((0.021, 0.034, 0.047), (-128, 3, -5), (1, 1, 1)),
    ((0.013, 0.0041, 0.0087), (-128, -128, -128), (1, 1, 1)),
    # Halves are rounded away from zero; below it they are clamped away.
    ((0.5, 0.5, 1.0), (0, 0, 0), (0, 1, 0)),
    ((0.5, 0.004, 0.002), (0, 0, 0), (0, 0, 0)),  # a slope that does not fit in 32 bits
]
XCORE_SUMS = [
    ((0.05, 0.05, 0.1), (0, 0, 0), NONE),  # halves everywhere
    ((0.05, 0.02, 0.05), (-128, 127, -128), RELU),
    ((0.0173, 0.041, 0.047), (5, -77, 3), NONE),
    ((0.0173, 0.041, 0.03), (5, -77, -20), RELU6),
]


def sums_of_pairs(family, kind):
    """Returns cases, and whether each is computed by a linear form."""
    if family == XCORE:
        return [(every_pair(kind, *row), 1) for row in XCORE_SUMS]
    return [
        (every_pair(kind, scales, points, activation, (1, 256, 1, 256), repeated=repeated), linear)
        for scales, points, forms in MVE_SUMS
        for (activation, repeated), linear in zip(
            ((NONE, False), (RELU, False), (NONE, True)), forms, strict=True
        )
    ]


@pytest.mark.parametrize("kind", [OpKind.ADD, OpKind.SUB])
@pytest.mark.parametrize(("family", "toolchain"), [*ON_MVE, ON_XCORE])
def test_sums_of_all_pairs(family, toolchain, kind):
    with comparing(family) as compared:
        for case, linear in sums_of_pairs(family, kind):
            block = packed(case.graph, case.op, compared.select(case.graph, case.op))
            assert np.frombuffer(block[48:52].tobytes(), "<i4") == linear, case
            run_whole(case)
    compared.check(toolchain)


def drawn_pair(kind, seed):
    """ADD, SUB or MUL of all pairs of int8 values."""
    rng = np.random.default_rng(seed)
    scales = [random_scale(rng), random_scale(rng)]
    zero_points = rng.integers(-128, 128, 3)
    spread = scales[0] * scales[1] * 74 * 74 if kind is OpKind.MUL else max(scales) * 74
    scales.append(spread / 2.0 ** rng.uniform(3, 8))
    return every_pair(kind, scales, zero_points, shape=(1, 256, 256, 1))


@pytest.mark.parametrize(("family", "toolchain"), ON_MVE)
def test_every_pair_of_values_and_dense_operands_into_a_part_of_wider_pixels(family, toolchain):
    with comparing(family) as compared:
        for kind, seed in itertools.product((OpKind.ADD, OpKind.SUB, OpKind.MUL), range(4)):
            run_whole(drawn_pair(kind, seed))
        for kind in (OpKind.ADD, OpKind.MUL):
            case = drawn_pair(kind, 0)
            operands, (height, width, channels) = placement.images(case)
            noise = np.random.default_rng(1).integers(-128, 128, (height, width, channels + 3), np.int8)
            out, _ = placement.part_view(noise, placement.Margin(1, 2), 0, height, width)
            views = [ckernels.whole(operand) for operand in operands]
            placement.compute(case.graph, case.op, views, out, (0, height, 0, width))
    compared.check(toolchain)


def edge_scales(seed):
    """Scales whose ratio is just below a power of two, so that a factor's part is 2^15, or 1 or 2 less."""
    rng = np.random.default_rng(seed)
    below = (rng.uniform(2e-6, 1.2e-5), rng.uniform(3.4e-5, 6e-5))[seed % 2]
    near = 2.0 ** rng.integers(-1, 2) * (1 - below)
    return (float(2.0 ** rng.integers(-9, -4)), float(np.float32(near)), 1.0)


@slow
def test_sums_at_the_edges_of_their_factors_are_litert_s():
    linear = 0  # cases on the vector unit with a part at the edge
    for seed in range(24):
        kind = (OpKind.ADD, OpKind.SUB)[seed // 2 % 2]
        points = tuple(np.random.default_rng(seed).integers(-128, 128, 3).tolist())
        pair = every_pair(kind, edge_scales(seed), points, (NONE, RELU, RELU6)[seed % 3], (1, 1, 16384, 4))
        block = pack(pair.graph, pair.op, select(load_target("xcore"), pair.graph, pair.op))
        linear += np.abs(np.frombuffer(block, "<i2", 8, 60).astype(int)).max() > 32_700
        with on_host("xcore", XCORE) as family:
            outputs = run_whole(pair)
        assert family.kernels.total() == 1
        expected = run_graph(pair.graph, pair.inputs)[pair.op.outputs[0]]
        np.testing.assert_array_equal(outputs.reshape(-1), expected.reshape(-1))
    assert linear > 1


# ---- one operand ------------------------------------------------------------------------------------------

ALPHAS = (-0.5, -0.125, -0.75, -1.0, -3.0, -0.3, 0.25)
# (input scale, output scale, zero points): powers of two, so that products fall on halves.
SCALES = ((1 / 32, 1 / 4, 105, 0), (1 / 4, 1 / 2, -90, 4), (1 / 16, 1 / 32, -23, -3), (0.11, 0.07, 100, -60))


def leaky(alpha, scales, dtype):
    """A LEAKY_RELU of every value of the type, as one tensor."""
    limits = np.iinfo(dtype.value)
    values = np.arange(limits.min, limits.max + 1).astype(dtype.value).reshape(1, 1, -1, 256)
    points, attrs = scales[2:] if dtype is DType.INT8 else (0, 0), LeakyReluAttrs(float(np.float32(alpha)))
    more = {"scales": scales[:2], "points": points, "dtype": dtype}
    return unary(OpKind.LEAKY_RELU, attrs, values.shape, values, **more)


@pytest.mark.parametrize("dtype", [DType.INT16, DType.INT8])
def test_every_value_of_a_negative_slope_is_rounded_as_litert_rounds_it(dtype):
    for alpha, scales in itertools.product(ALPHAS, SCALES):
        layer = leaky(alpha, scales, dtype)
        expected = run_graph(layer.graph, layer.inputs)[1]
        assert len(np.unique(expected)) > 3
        for result in (execute(layer.graph, layer.inputs)[1], run_plain(layer.graph, layer.inputs[0])):
            np.testing.assert_array_equal(result, expected, err_msg=f"{alpha} {scales}")


def even_row(classes, last=5):
    """A softmax of elements that are equal, except for the last one."""
    values = np.full((1, 1, 1, classes), 5)
    values[..., -1] = last
    scales, points = (1 / 16, 1 / 256), (0, -128)
    return unary(OpKind.SOFTMAX, SoftmaxAttrs(), values.shape, values, scales=scales, points=points)


@pytest.mark.parametrize("classes", [512, 513, 4095, 4096, 20000])
def test_rows_that_litert_refuses_become_nothing(classes):
    refused = even_row(classes)
    np.testing.assert_array_equal(run_whole(refused), np.full(refused.out_shape, -128, np.int8))
    np.testing.assert_array_equal(execute(refused.graph, refused.inputs)[1], run_whole(refused))


def test_the_last_row_that_litert_accepts_is_rounded_up():
    accepted = even_row(511)
    np.testing.assert_array_equal(run_whole(accepted), np.full(accepted.out_shape, -127, np.int8))


def test_softmaxes_whose_probabilities_vanish_on_helium():
    """They vanish from 512 equal inputs on; from 4,096 on the plain kernel computes them."""
    with comparing(MVE) as compared:
        for classes in (511, 512, 600, 4095, 4096):
            run_whole(even_row(classes, 22))
    assert compared.kernels.total() == 5
    compared.check("clang")


NO_EXPONENTIALS = """
#include "nn.h"
int main(void) {
    static nn_softmax_constants constants;
    static int8_t in[8], out[8];
    const nn_view from = {in, 8, 8, 1, 1, 0, 1, 1, 8}, to = {out, 8, 8, 1, 1, 0, 1, 1, 8};
    const nn_window all = {0, 1, 0, 1};
    for (int i = 0; i < 256; i++)
        constants.exponentials[i] = INT32_MIN >> (i % 12);
    nn_softmax_s8(&constants, &from, &to, &all);
    return 0;
}
"""


def test_a_damaged_table_of_exponentials_does_not_hang_a_softmax(tmp_path):
    (tmp_path / "main.c").write_text(NO_EXPONENTIALS)
    kernel, program = KERNELS / "reference" / "nn_softmax_s8.c", tmp_path / "program"
    command = [find_host_compiler(), "-O1", f"-I{KERNELS / 'include'}", "main.c", kernel, "-o", program]
    subprocess.run(command, cwd=tmp_path, check=True)
    subprocess.run([program], check=True, timeout=60)
