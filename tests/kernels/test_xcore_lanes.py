"""Means on xcore's vector unit with five threads, and inputs at the end of mapped memory."""

from collections import Counter
from ctypes import byref, c_void_p
from functools import partial

import ckernels
import kernelcases
import numpy as np
import pytest
from boardcalls import collect, select_lean
from ckernels import of_an_operator
from hostfamily import Family, before_nothing, library, on_host
from largecases import grouped
from largecases import windowed as large
from loaded import load_target
from placement import Room, run_whole
from widecases import conv, elementwise, pool

from buildtool.emit.packing import pack
from buildtool.graph.reference import execute
from buildtool.graph.types import MeanAttrs, OpKind

pytestmark = pytest.mark.slow  # they compile the family for several threads
BOARD, FAMILY, THREADS = "xcore", "xcore_vpu", 5


def mean(rng, sizes, axes):
    scale = float(rng.uniform(0.01, 0.1))
    out = tuple(size for axis, size in enumerate(sizes) if axis not in axes)
    scales = (scale, scale * float(rng.choice([1, rng.uniform(0.3, 2)])))
    more = {"out": out, "scales": scales, "points": rng.integers(-128, 128, 2)}
    return kernelcases.unary(
        OpKind.MEAN, MeanAttrs(axes, False), sizes, rng.integers(-128, 128, sizes), **more
    )


def test_means_over_any_axes():
    rng, family, linear = np.random.default_rng(3), Family(BOARD, FAMILY, THREADS), 0
    for _ in range(40):
        rows, columns = (int(n) for n in rng.integers(1, 12, 2))
        axes = [(1, 2), (1, 2), (1,), (2,), (3,)][rng.integers(5)]
        case = mean(rng, (1, rows, columns, int(rng.choice([16, 20, 32, 100]))), axes)
        variant = family.select(case.graph, case.op)
        block = ckernels.constants(pack(case.graph, case.op, variant))
        geometry = ckernels.geometry(case.graph, case.op)
        x, room = np.ascontiguousarray(case.inputs[0]), Room(rng, int(np.prod(case.out_shape)))
        function = getattr(library(FAMILY, THREADS), variant.symbol)
        function.restype = None
        function(byref(geometry), *(c_void_p(array.ctypes.data) for array in (block, x, room.middle)))
        room.check_guards()
        expected = execute(case.graph, [case.inputs[0]])[case.op.outputs[0]]
        np.testing.assert_array_equal(room.middle.reshape(case.out_shape), expected)
        linear += int(np.frombuffer(block[16:20].tobytes(), "<i4")[0])
    assert linear > 30


def test_nothing_is_read_behind_an_input():
    """The unit loads 32 bytes at a time."""
    kernels_used = Counter()
    loading = [
        large[kind] for kind in ("convolution", "depthwise", "dense", "elementwise", "pool", "filled pool")
    ]

    def check(case):
        guarded = kernelcases.Case(case.graph, tuple(before_nothing(values) for values in case.inputs))
        with on_host(BOARD, FAMILY) as family:
            run_whole(guarded)
        kernels_used.update(family.kernels)

    for strategy in (*loading, kernelcases.windowed["table"], grouped()):
        collect(strategy, 12, check)
    check(conv((5, 6), 8, 12, (3, 3)))
    check(conv((5, 6), 32, 24, (3, 3), groups=2))
    check(conv((3, 4), 36, 51, (1, 2), groups=3))
    check(elementwise(OpKind.ADD, (3, 5), 36, 36))
    check(pool(OpKind.MAX_POOL_2D, (3, 5), 36))
    check(pool(OpKind.AVERAGE_POOL_2D, (3, 5), 20))
    with on_host(BOARD, FAMILY) as lean:  # of equal convolutions, the kernel with the scratch of one thread
        lean.select = of_an_operator(partial(select_lean, lean.target, FAMILY))
        for each in (conv((5, 6), 8, 12, (3, 3)), conv((5, 6), 32, 24, (3, 3)), conv((3, 4), 36, 51, (1, 2))):
            run_whole(kernelcases.Case(each.graph, tuple(before_nothing(values) for values in each.inputs)))
    kernels_used.update(lean.kernels)
    kernels = {v.name for v in load_target(BOARD).kernels if v.sources[0].endswith("_vpu.c")}
    assert kernels - kernels_used.keys() <= {"mean_vpu"}, "which takes addresses"
