"""Poolings on every path: clamps, and quotients by multiplying, of every count and around every half."""

import numpy as np
import pytest
from boardcalls import recording
from kernelcases import unary
from placement import run_whole

from buildtool.graph.types import Activation, OpKind, Pad, PoolAttrs

slow = pytest.mark.slow
families = pytest.mark.parametrize("family", ["cortex_m_dsp", "cortex_m_mve"])
MAX_SHORT = 185  # elements, as in the kernels: windows up to there are divided in 16 bits


def sums(count):
    """What lies on and beside the halves, from the least sum to the largest."""
    near = [value * count + count // 2 + off for value in range(-128, 128) for off in (-1, 0, 1)]
    ends = [-128 * count, 127 * count]
    return np.unique(np.clip([*near, *ends], *ends))


def pooled(wanted, count, rows=1):
    """A pool of `count` pixels in so many rows; each channel has a sum of its own."""
    low, more = np.divmod(wanted, count)
    values = np.where(np.arange(count)[:, None] < more, low + 1, low).astype(np.int8)
    shape = (1, rows, count // rows, len(wanted))
    attrs = PoolAttrs((rows, count // rows), (1, 1), Pad(), Activation.NONE)
    more = {"out": (1, 1, 1, len(wanted)), "scales": (0.5, 0.5), "points": (3, 3)}
    return unary(OpKind.AVERAGE_POOL_2D, attrs, shape, values.reshape(shape), **more)


def check(family, toolchain, counts):
    with recording(family) as recorder:
        for count, rows in [*((count, 1) for count in counts), (4, 2)]:
            found = run_whole(pooled(sums(count), count, rows)).reshape(-1).astype(int)
            total = sums(count)
            halves = np.abs(total) + count // 2
            np.testing.assert_array_equal(found, np.sign(total) * (halves // count))
    assert recorder.kernels.total() == len(counts) + 1
    recorder.check(toolchain)


@families
@pytest.mark.parametrize("toolchain", ["clang", pytest.param("gcc", marks=slow)])
def test_sums_around_every_half(family, toolchain):
    check(family, toolchain, [1, 2, 3, 4, 7, 9, 16, 25, 49, 64, MAX_SHORT - 1, MAX_SHORT, MAX_SHORT + 1, 280])


def clamped(kind, kernel, channels):
    """A pool whose clamps lie well within int8 on either side."""
    rng = np.random.default_rng((*kernel, channels))
    shape = (1, kernel[0] + 2, kernel[1] + 2, channels)
    attrs = PoolAttrs(kernel, (1, 1), Pad(), Activation.RELU_N1_TO_1)
    values = rng.integers(-40, 40, shape)
    values += np.resize([-80, 0, 80], channels)  # below, around and above the clamps
    return unary(kind, attrs, shape, values, out=(1, 3, 3, channels), scales=(1 / 16, 1 / 16), points=(5, 5))


@families
@pytest.mark.parametrize("toolchain", ["clang", pytest.param("gcc", marks=slow)])
def test_clamps_on_every_path(family, toolchain):
    with recording(family) as recorder:
        for kind in (OpKind.MAX_POOL_2D, OpKind.AVERAGE_POOL_2D):
            for kernel in ((1, 1), (2, 2), (3, 3), (4, 1), (1, 5), (16, 17)):
                for channels in (5, 16, 33):
                    found = run_whole(clamped(kind, kernel, channels))
                    assert (found.min(), found.max()) == (5 - 16, 5 + 16)
    recorder.check(toolchain)


@slow
@families
@pytest.mark.parametrize("first", range(1, 262, 40))
def test_every_count(family, first):
    check(family, "clang", range(first, first + 40))
