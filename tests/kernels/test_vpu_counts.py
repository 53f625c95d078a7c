"""Issues of convolutions and dense layers, which the model of the vector unit counts."""

import ctypes
import functools
from typing import NamedTuple

import ckernels
import hostfamily
import numpy as np
import pytest
from hostfamily import on_host
from kernelcases import CONV, DENSE, DEPTHWISE, Axis, layer
from placement import run_whole
from slicing import in_slices

from buildtool.base.expression import evaluate
from buildtool.graph.types import Activation
from buildtool.target.catalogue import features, of_channels

pytestmark = pytest.mark.slow  # all tests: they compile the kernels again
BOARD, FAMILY = "xcore", "xcore_vpu"
LANES, CHUNK = 16, 32  # accumulators; inputs of an issue


def convolution(size, inputs, outputs, kernel, stride=1, zero_point=-128, activation=Activation.RELU):
    rng, axis = (
        np.random.default_rng(inputs + outputs),
        Axis(size, kernel, stride, 1, *[(kernel - 1) // 2] * 2),
    )
    points = (-128, zero_point)
    return layer(rng, CONV, axis, axis, inputs, outputs, activation, points=points, per_channel=False)


def depthwise(size, channels, kernel):
    rng, axis = np.random.default_rng(channels), Axis(size, kernel, 1, 1, *[(kernel - 1) // 2] * 2)
    more = {"activation": Activation.RELU, "points": (-128, -128), "per_channel": False}
    return layer(rng, DEPTHWISE, axis, axis, channels, channels, **more)


def dense(inputs, outputs):
    rng = np.random.default_rng(inputs)
    return layer(rng, DENSE, Axis(1), Axis(1), inputs, outputs, points=(3, 3), per_channel=False)


class Counts(NamedTuple):
    """Issues of one call on one thread: VPU issues, those of them in loops that multiply, all others."""

    vpu: int
    mac: int
    scalar: int


class CountsInC(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in Counts._fields]


@functools.cache
def counting_library():
    files = [*sorted((ckernels.KERNELS / FAMILY).glob("*.c")), *ckernels.sources()]
    library = ckernels.compile_library(files, ["-DNN_VPU_COUNT"])
    library.nn_vpu_counted.restype = CountsInC
    return library


def counts(case):
    """Counts the issues of a call for a case's whole output."""
    with pytest.MonkeyPatch.context() as patch, on_host(BOARD, FAMILY) as family:
        patch.setattr(hostfamily, "library", lambda *_: counting_library())
        before = counting_library().nn_vpu_counted()
        run_whole(case)
        after = counting_library().nn_vpu_counted()
    assert family.kernels.total() == 1
    return Counts(*(getattr(after, name) - getattr(before, name) for name in Counts._fields))


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
    """The formulas are for sums of more than 16 bits; smaller sums need 4 issues less per group."""
    with on_host(BOARD, FAMILY) as family:
        variant = family.select(case.graph, case.op)
    own, issues = family.target.board.core.threads, counts(case)
    assert f"({own} > 1)" in variant.cost
    formula = variant.cost.replace(f" {own})", " 1)").replace(f"({own} > 1)", "0")  # of a single thread
    assert abs(evaluate(formula, features(case.graph, case.op)) / (issues.vpu + issues.scalar) - 1) <= within


@pytest.mark.parametrize("width", [1, 2, 4, 8, 16])
@pytest.mark.parametrize(
    "case",
    [dense(4096, 64), convolution(8, 64, 64, 1), convolution(9, 64, 48, 3), convolution(9, 16, 48, 3)],
    ids=["dense", "1x1", "3x3", "3x3 of few"],
)
def test_costs_of_narrow_slices_are_near_the_issues_that_are_counted(case, width):
    library, (outputs,) = counting_library(), case.out_shape[-1:]
    with on_host(BOARD, FAMILY) as family:
        variant = family.select(case.graph, case.op)
    before = library.nn_vpu_counted()
    in_slices(case, variant, library, width)
    after = library.nn_vpu_counted()
    issues = sum(getattr(after, kind) - getattr(before, kind) for kind in ("vpu", "scalar"))
    values, threads = features(case.graph, case.op), family.target.board.core.threads
    formula = variant.slice_cost.replace(f" {threads})", " 1)").replace(f"({threads} > 1)", "0")
    cost = evaluate(formula, values | of_channels(values, width)) * -(-outputs // width)
    assert abs(cost / issues - 1) <= 0.35
