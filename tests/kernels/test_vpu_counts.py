"""What convolutions and dense layers issue: chip code in the XS3 runner, the model, and the catalogue."""

import ctypes
import functools

import ckernels
import hostfamily
import numpy as np
import pytest
from hostfamily import on_host
from kernelcases import CONV, DENSE, DEPTHWISE, Axis, layer
from placement import run_whole
from slicing import in_slices
from xs3family import on_xs3

from buildtool.base.expression import evaluate
from buildtool.graph.types import Activation, OpKind
from buildtool.target.catalogue import features, of_channels
from buildtool.zoo.drawn import NetBuilder

pytestmark = pytest.mark.slow  # all tests: they compile the kernels again
BOARD, FAMILY = "xcore", "xcore_vpu"


def convolution(size, inputs, outputs, kernel=1, stride=1):
    rng, axis = (
        np.random.default_rng(inputs + outputs),
        Axis(size, kernel, stride, 1, *[(kernel - 1) // 2] * 2),
    )
    more = {"points": (-128, -128), "per_channel": False}
    return layer(rng, CONV, axis, axis, inputs, outputs, Activation.RELU, **more)


def depthwise(size, channels, kernel):
    rng, axis = np.random.default_rng(channels), Axis(size, kernel, 1, 1, *[(kernel - 1) // 2] * 2)
    more = {"points": (-128, -128), "per_channel": False}
    return layer(rng, DEPTHWISE, axis, axis, channels, channels, Activation.RELU, **more)


def dense(inputs, outputs):
    rng = np.random.default_rng(inputs)
    return layer(rng, DENSE, Axis(1), Axis(1), inputs, outputs, points=(3, 3), per_channel=False)


CASES = {
    "1x1": convolution(8, 64, 64),
    "1x1 with a rest": convolution(8, 24, 96),
    "3x3": convolution(9, 64, 48, 3),
    "first layer": convolution(17, 3, 32, 3, 2),
    "depthwise 3x3": depthwise(12, 96, 3),
    "depthwise 5x5": depthwise(10, 48, 5),
    "dense": dense(1280, 256),
}


class CountsInC(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in ("vpu", "mac", "scalar")]


@functools.cache
def counting_library():
    files = [*sorted((ckernels.KERNELS / FAMILY).glob("*.c")), *ckernels.sources()]
    library = ckernels.compile_library(files, ["-DNN_VPU_COUNT"])
    library.nn_vpu_counted.restype = CountsInC
    return library


def operations_in_c(case):
    """Returns the operations of the vector unit that the C with its model counts."""
    before = counting_library().nn_vpu_counted().vpu
    with pytest.MonkeyPatch.context() as patch, on_host(BOARD, FAMILY):
        patch.setattr(hostfamily, "library", lambda *_: counting_library())
        run_whole(case)
    return counting_library().nn_vpu_counted().vpu - before


def of_one_thread(formula, family):
    threads = family.target.board.core.threads
    return formula.replace(f" {threads})", " 1)").replace(f"({threads} > 1)", "0")


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_costs_and_operations(case):
    """Costs are near the issue slots of chip code, whose vector operations are those of the C beside it."""
    with on_xs3(FAMILY) as family:
        family.machine.clear_counts()
        run_whole(case)
    counts, formula = family.machine.counts(), family.select(case.graph, case.op).cost
    assert (
        abs(evaluate(of_one_thread(formula, family), features(case.graph, case.op)) / counts.issues - 1)
        <= 0.12
    )
    if case is not CASES["1x1 with a rest"]:  # whose last pixel C computes, in the order of C
        assert counts.vectors == operations_in_c(case)


@pytest.mark.parametrize(
    ("kind", "shape", "kernel"),
    [
        (OpKind.AVERAGE_POOL_2D, (1, 9, 9, 32), (3, 3)),
        (OpKind.AVERAGE_POOL_2D, (1, 12, 12, 256), (2, 2)),
        (OpKind.MAX_POOL_2D, (1, 7, 7, 128), (7, 7)),
        (OpKind.MAX_POOL_2D, (1, 16, 16, 32), (2, 3)),
        (OpKind.LOGISTIC, (1, 16, 16, 32), ()),
    ],
)
def test_costs_of_poolings_and_tables(kind, shape, kernel):
    net = NetBuilder(3)
    x = net.input(shape)
    graph = net.graph([net.pool(kind, x, kernel, (2, 2)) if kernel else net.unary(kind, x)])
    (op,), out = graph.ops, graph.tensors[graph.outputs[0]].shape
    values = np.random.default_rng(0).integers(-128, 128, shape[1:], np.int8)
    with on_xs3(FAMILY) as family:
        family.machine.clear_counts()
        result = np.zeros(out[1:], np.int8)
        family.compute(graph, op, [ckernels.whole(values)], ckernels.whole(result), (0, out[1], 0, out[2]))
    cost = evaluate(of_one_thread(family.select(graph, op).cost, family), features(graph, op))
    assert abs(cost / family.machine.counts().issues - 1) <= 0.12


@pytest.mark.parametrize("width", [1, 2, 8, 16])
@pytest.mark.parametrize("name", ["1x1", "3x3", "dense"])
def test_slices(name, width):
    """Slices give the whole output, with the vector operations of C, at a cost near their issue slots."""
    case = CASES[name]
    with on_xs3(FAMILY) as family:
        output = family.in_slices(case, width)
        issues, vectors = family.slices_issues, family.machine.counts().vectors
        assert np.array_equal(output, run_whole(case))
        variant = family.select(case.graph, case.op)
    before = counting_library().nn_vpu_counted().vpu
    in_slices(case, variant, counting_library(), width)
    assert vectors == counting_library().nn_vpu_counted().vpu - before
    values = features(case.graph, case.op)
    formula = of_one_thread(variant.slice_cost, family)
    cost = evaluate(formula, values | of_channels(values, width)) * -(-case.out_shape[-1] // width)
    assert abs(cost / issues - 1) <= 0.2
