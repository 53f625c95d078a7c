"""The vector unit's kernels as code of the chip: in the XS3 runner they give the plain kernels' bytes."""

import re

import numpy as np
import pytest
from boardcalls import collect
from buildtool_plugins.xs3.machine import Readings
from hostfamily import on_host
from kernelcases import CONV, DENSE, DEPTHWISE, Axis, Case, changed, layer, padding, unary, windowed
from largecases import deep_convolutions, depthwise_rows, extreme, grouped
from largecases import windowed as large
from placement import run_parts, run_pieces, run_whole
from test_vpu_slices import COARSE, LARGE, UNIT
from test_vpu_slices import layer as of_factors
from xs3family import KERNELS, Xs3Family, link_family, on_xs3

from buildtool.base.modes import Requantise
from buildtool.graph.types import Activation, FilledPoolAttrs, OpKind, PoolAttrs
from buildtool.target.registry import load_board, make_target
from buildtool.zoo.drawn import NetBuilder

pytestmark = pytest.mark.slow  # they compile the family for XS3
FAMILY = "xcore_vpu"
MAXIMUM, AVERAGE = OpKind.MAX_POOL_2D, OpKind.AVERAGE_POOL_2D
OTHERS = {
    **{f"small {kind}": windowed[kind] for kind in ("convolution", "depthwise", "dense", "table")},
    **{
        kind: large[kind]
        for kind in ("convolution", "depthwise", "dense", "large factors", "elementwise", "pool")
    },
    "deep": deep_convolutions(),
    "depthwise rows": depthwise_rows(),
    "grouped": grouped(),
    **extreme,
}


def convolution(
    size, inputs, outputs, kernel=1, stride=1, kind=CONV, activation=Activation.NONE, per_channel=True
):
    axis = Axis(size, kernel, stride, 1, *[(kernel - 1) // 2] * 2)
    points = (-3, -128 if activation is Activation.RELU else 5)
    rng = np.random.default_rng([size, inputs, outputs, kernel])
    return layer(rng, kind, axis, axis, inputs, outputs, activation, points=points, per_channel=per_channel)


def depthwise(size, channels, kernel, stride=1):
    return convolution(size, channels, channels, kernel, stride, DEPTHWISE)


def dense(inputs, outputs, rows=1):
    return layer(np.random.default_rng(inputs), DENSE, Axis(rows), Axis(1), inputs, outputs, points=(7, -9))


def pool(
    kind, size, channels, kernel, stride=1, activation=Activation.NONE, *, value=None, point=4, scale=0.05
):
    axis = Axis(size, kernel, stride, 1, kernel // 2, kernel // 2)
    window = (kernel, kernel), (stride, stride), padding(axis, axis)
    attrs = PoolAttrs(*window, activation)
    if value is not None:
        attrs = FilledPoolAttrs(*window, activation, value)
    rng, out = np.random.default_rng([size, channels, kernel]), (1, axis.outputs, axis.outputs, channels)
    more = {"scales": (scale, scale), "points": (point, point)}
    return unary(kind, attrs, (1, size, size, channels), rng, out=out, **more)


def addition(seed, activation):
    net, rng, shape = NetBuilder(seed), np.random.default_rng(seed), (1, 4, 5, 36)
    a, b = net.input(shape), net.input(shape)
    graph = net.graph([net.elementwise(OpKind.ADD, a, b, activation)])
    return Case(graph, tuple(rng.integers(-128, 128, shape).astype(np.int8) for _ in range(2)))


POINTWISE = ((16, 32), (20, 12), (32, 40), (64, 64), (100, 48), (96, 16))  # inputs, outputs
WINDOWS = (  # rows and columns of the kernel, inputs, outputs, stride
    *((3, 32, 32, 1), (3, 64, 20, 2), (3, 16, 36, 1)),
    *((3, 3, 32, 2), (5, 4, 16, 1), (3, 5, 7, 1)),
)
DEPTHWISES = (  # size, channels, kernel, stride
    *((6, 16, 3, 1), (7, 80, 3, 2), (9, 20, 5, 1), (9, 32, 7, 2), (4, 8, 3, 1)),
    *((5, 4, 3, 1), (5, 6, 3, 1), (4, 48, 1, 1), (11, 16, 9, 1), (6, 48, 7, 1)),
)
POOLS = (  # size, channels, kernel, stride: whole groups, and last ones that lie over others
    *((6, 32, 2, 2), (7, 36, 3, 2), (5, 100, 3, 1), (7, 64, 7, 7), (9, 16, 5, 3)),
    *((15, 20, 15, 15), (13, 48, 13, 13), (20, 16, 17, 3)),
)
DENSES = ((64, 12), (200, 70), (33, 130), (8, 16))  # inputs, outputs
# Whole chunks of inputs, odd and even numbers of them, and rests; pairs of groups, and a last one alone; taps
# in place and collected, aligned or not, with and without padding; fewer channels than lanes.
CASES = {
    **{f"1x1, {cin} to {cout}": convolution(3, cin, cout) for cin, cout in POINTWISE},
    "1x1, relu": convolution(4, 48, 70, activation=Activation.RELU),
    "1x1, by 2": convolution(5, 24, 33, 1, 2),
    **{f"{k}x{k}, {cin} to {cout}, by {s}": convolution(5, cin, cout, k, s) for k, cin, cout, s in WINDOWS},
    **{f"depthwise {k}x{k}, {c}, by {s}": depthwise(n, c, k, s) for n, c, k, s in DEPTHWISES},
    **{f"dense, {cin} to {cout}": dense(cin, cout) for cin, cout in DENSES},
    **{f"maximum {k}x{k}, {c}, by {s}": pool(MAXIMUM, n, c, k, s) for n, c, k, s in POOLS if c >= 32},
    **{f"average {k}x{k}, {c}, by {s}": pool(AVERAGE, n, c, k, s) for n, c, k, s in POOLS},
    "maximum, bounded": pool(MAXIMUM, 6, 68, 2, 1, Activation.RELU, point=-20),
    "average, bounded": pool(AVERAGE, 6, 68, 2, 1, Activation.RELU, point=-20),
    "average, bounded above": pool(AVERAGE, 6, 68, 2, 1, Activation.RELU6, point=-128, scale=0.04),
    "average, bounded at both ends": pool(AVERAGE, 6, 68, 2, 1, Activation.RELU6, point=-70, scale=0.04),
    "average, filled": pool(AVERAGE, 6, 36, 3, 2, value=-77),
    **{f"addition {seed}": addition(seed, Activation.NONE) for seed in range(4)},
    "addition, bounded": addition(1, Activation.RELU6),
    "dense, three rows": dense(40, 36, 3),
    "bounded": of_factors(2, 48, 80, "relu"),
    "bounded, alone": of_factors(2, 35, 16, "relu"),
    "some scalar": of_factors(4, 36, 72, "linear", even=COARSE),
    "scalar, factors of 1 and of a third": of_factors(8, 36, 16, "linear", even=COARSE, odd=(-1.9, -1.1)),
    "scalar, bounded": of_factors(9, 36, 16, "relu", even=COARSE, odd=(-9.0, -2.1)),
    "scalar, dense": of_factors(5, 40, 40, "linear", odd=COARSE, kernel=0),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_odd_shapes(case):
    with on_xs3(FAMILY) as family:
        run_whole(case)
        run_parts(case, 1)
        for seed in range(2):
            run_pieces(case, seed, columns=case.op.kind is not DENSE, wide=seed > 0)
    assert family.kernels.total() > 3


@pytest.mark.parametrize("kind", OTHERS)
def test_random_layers(kind):
    """Also where VLMACCR saturates after every product, as one of the vendor's models says."""
    with on_xs3(FAMILY, Readings(vlmaccr_saturates=True)) as family:
        collect(
            OTHERS[kind],
            8,
            lambda case: (run_whole(case), run_pieces(case, 3, columns=case.op.kind is not DENSE)),
        )
    assert family.kernels.total() > 3


def most_products(bias):
    """As many products as the unit's sums hold, all of them as large as they get; half of them cancel."""
    case = layer(np.random.default_rng(0), DENSE, Axis(1), Axis(1), 131071, 3, points=(0, -9))
    weights = np.full((3, 131071), -128, np.int8)
    weights[1, 65536:] = 127
    weights[2] = -weights[1] - 1
    more = {"bias": np.full(3, bias), "scales": np.full(3, 2.0**-24), "steps": (1.0, 1.0)}
    return changed(case, weights, **more, values=np.full(case.inputs[0].shape, -128, np.int8))


@pytest.mark.parametrize("saturates", [False, True])
def test_no_partial_sum_saturates(saturates):
    """So it does not matter whether VLMACCR saturates once or after every product."""
    with on_xs3(FAMILY, Readings(vlmaccr_saturates=saturates)):
        for bias in (0, 2**14 - 1, -(2**31)):
            assert len(np.unique(run_whole(most_products(bias)))) > 1
        for kind in ("deep sums", "extreme sums"):
            collect(OTHERS[kind], 6, run_whole)


@pytest.mark.parametrize("name", ["1x1, 64 to 64", "depthwise 3x3, 16, by 1"])
def test_kernels_rely_on_vlashr_rounding_down(name):
    family = on_xs3(FAMILY, Readings(vlashr_rounds=True))
    with family, pytest.raises(Exception, match="plain kernel leaves"):
        run_whole(CASES[name])


@pytest.mark.parametrize("name", ["some scalar", "scalar, dense", "bounded", "1x1, by 2", "dense, 64 to 12"])
def test_slices(name):
    with on_xs3(FAMILY) as family:
        wanted = run_whole(CASES[name])
        for width in (1, 4, 8, 16):
            assert np.array_equal(family.in_slices(CASES[name], width), wanted), width


def test_factors_of_16_bits():
    """They are not exact; the C on the host is what they are compared with."""
    target = make_target(load_board("xcore"), requantise=Requantise.VPU16)
    for case in (of_factors(13, 64, 64, "linear", UNIT, LARGE), of_factors(6, 40, 16, "relu")):
        with on_host("xcore", FAMILY, target=target):
            wanted = run_whole(case)
        with on_xs3(FAMILY, target=target):
            assert np.array_equal(run_whole(case), wanted)


def test_functions_restore_what_they_save():
    for path in sorted((KERNELS / FAMILY).glob("*.S")):
        text = path.read_text()
        for function in text.split("dualentsp")[1:]:
            saved, restored = (
                dict(reversed(re.findall(rf"\{{ {word} (r[4-9]|r10), (sp\[\d+\]) ;", function)))
                for word in ("stw", "ldw")
            )
            used = set(re.findall(r"\b(?:r[4-9]|r10)\b", function.split("retsp")[0]))
            assert saved == restored and (not saved or used == set(saved)), path.name


# A wrong line in each file of assembly, and a case of those above that shows it.
MUTANTS = {
    "nn_vpu_pixels.S": ("add r7, r7, r10", "sub r7, r7, r10", "1x1, 64 to 64"),
    "nn_vpu_taps.S": ("and r11, r1, r2", "mov r11, r2", "depthwise 3x3, 16, by 1"),
    "nn_vpu_outputs.S": ("add r9, r9, r5 }", "nop }", "1x1, 16 to 32"),
    "nn_vpu_ready.S": ("shl r5, r5, 2", "nop", "1x1, 16 to 32"),
    "nn_vpu_collect.S": ("add r2, r2, r11", "nop", "3x3, 16 to 36, by 1"),
    "nn_vpu_max_pool.S": ("sub r2, r2, r11", "nop", "maximum 3x3, 36, by 2"),
    "nn_vpu_average.S": ("vlsat r9[0]", "nop", "average 3x3, 36, by 2"),
}


@pytest.mark.parametrize("file", MUTANTS)
def test_wrong_lines_are_found(file):
    right, wrong, name = MUTANTS[file]
    family = Xs3Family(FAMILY, image=link_family(FAMILY, (file, right, wrong)))
    with (
        pytest.MonkeyPatch.context() as patch,
        pytest.raises(Exception, match=r"plain kernel leaves|outside|stopped"),
    ):
        patch.setattr("placement.compute", family.compute)
        run_whole(CASES[name])
