"""Sums, poolings, means and tables on xcore's vector unit, by five threads: equal to their plain twins."""

from collections import Counter
from ctypes import byref, c_void_p

import ckernels
import kernelcases
import numpy as np
import pytest
from boardcalls import collect
from hostfamily import Family, before_nothing, library, on_host
from hypothesis import given, settings
from hypothesis import strategies as st
from largecases import grouped
from largecases import windowed as large
from loaded import load_target
from placement import WAYS, Room, run_placed, run_whole
from test_pool_paths import clamped, pooled, sums
from widecases import conv, elementwise, pool

from buildtool.emit.packing import pack
from buildtool.graph.reference import execute
from buildtool.graph.types import Activation, MeanAttrs, OpKind
from buildtool.target.catalogue import select

pytestmark = pytest.mark.slow  # they compile the family for several threads
BOARD, FAMILY, THREADS = "xcore", "xcore_vpu", 5


@st.composite
def sums_of_two(draw):
    """ADD or SUB of channels that the unit takes."""
    rng = np.random.default_rng(draw(st.integers(0, 9999)))
    shape = (1, draw(st.integers(1, 4)), draw(st.integers(1, 9)), draw(st.sampled_from([4, 16, 28, 32, 40])))
    scales = rng.uniform(0.02, 0.08, 2)
    steps = (*scales, float(scales.max() * rng.choice([1, 2, rng.uniform(0.7, 2)])))
    points = [int(n) for n in rng.integers(-128, 128, 3)]
    kind = draw(st.sampled_from([OpKind.ADD, OpKind.SUB]))
    values = [rng.integers(-128, 128, shape).astype(np.int8) for _ in range(2)]
    activation = draw(st.sampled_from([Activation.NONE, Activation.RELU]))
    return kernelcases.binary(kind, activation, steps, points, values)


@settings(max_examples=60, derandomize=True, deadline=None, database=None)
@given(sums_of_two(), st.sampled_from(WAYS), st.integers(0, 999))
def test_sums_in_every_placement(case, how, seed):
    expected = run_whole(case)
    with on_host(BOARD, FAMILY, THREADS) as family:
        contract = select(family.target, case.graph, case.op).overlap
        np.testing.assert_array_equal(run_placed(case, how, seed, contract), expected)
    assert family.used or how == "over"


def on_unit(case):
    """The case's output as the family computes it; what it read of constants."""
    with on_host(BOARD, FAMILY, THREADS) as family:
        result = run_whole(case)
    assert family.used.total() == 1
    return result, ckernels.packed(case.graph, case.op, family.select(case.graph, case.op))


@pytest.mark.parametrize("kind", [OpKind.ADD, OpKind.SUB])
@pytest.mark.parametrize(
    ("scales", "points", "activation"),
    [
        ((0.05, 0.05, 0.1), (0, 0, 0), Activation.NONE),  # halves everywhere
        ((0.05, 0.02, 0.05), (-128, 127, -128), Activation.RELU),
        ((0.0173, 0.041, 0.047), (5, -77, 3), Activation.NONE),
        ((0.0173, 0.041, 0.03), (5, -77, -20), Activation.RELU6),
    ],
)
def test_sums_of_all_pairs_of_bytes_come_from_the_unit(kind, scales, points, activation):
    case = kernelcases.every_pair(kind, scales, points, activation)
    found, constants = on_unit(case)
    assert np.frombuffer(constants[48:52].tobytes(), "<i4") == 1, "the packing has found no form"
    np.testing.assert_array_equal(found, run_whole(case))


def test_quotients_around_every_half():
    """Those that the unit divides by multiplying, and larger ones."""
    for count in [*range(1, 27), 36, 49, 63, 64, 65, 81, 100, 127, 128, 169, 196, 225, 255, 256, 289]:
        wanted = np.resize(sums(count), len(sums(count)) // 4 * 4)
        found, _ = on_unit(pooled(wanted, count))
        halves = np.sign(wanted) * ((np.abs(wanted) + count // 2) // count)
        np.testing.assert_array_equal(found.ravel(), halves, err_msg=str(count))


def test_clamps():
    for kind in (OpKind.MAX_POOL_2D, OpKind.AVERAGE_POOL_2D):
        for kernel in ((1, 1), (2, 2), (3, 3), (16, 17)):
            for channels in (32, 36, 68):
                found, _ = on_unit(clamped(kind, kernel, channels))
                assert (found.min(), found.max()) == (5 - 16, 5 + 16)


def mean(rng, sizes, axes):
    scale = float(rng.uniform(0.01, 0.1))
    kept = tuple(size for axis, size in enumerate(sizes) if axis not in axes)
    scales = (scale, scale * float(rng.choice([1, rng.uniform(0.3, 2)])))
    more = {"out": kept, "scales": scales, "points": rng.integers(-128, 128, 2)}
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
        x = np.ascontiguousarray(case.inputs[0])
        room = Room(rng, int(np.prod(case.out_shape)))
        function = getattr(library(FAMILY, THREADS), variant.symbol)
        function.restype = None
        places = (byref(geometry), *(c_void_p(array.ctypes.data) for array in (block, x, room.middle)))
        function(*places)
        room.check_guards()
        wanted = execute(case.graph, [case.inputs[0]])[case.op.outputs[0]]
        np.testing.assert_array_equal(room.middle.reshape(case.out_shape), wanted)
        linear += int(np.frombuffer(block[16:20].tobytes(), "<i4")[0])
    assert linear > 30


def test_nothing_is_read_behind_an_input():
    """The unit loads 32 bytes at a time."""
    used = Counter()
    loading = [large[kind] for kind in ("convolution", "depthwise", "dense", "elementwise", "pool")]

    def check(case):
        expected = run_whole(case)
        guarded = kernelcases.Case(case.graph, tuple(before_nothing(values) for values in case.inputs))
        with on_host(BOARD, FAMILY) as family:
            np.testing.assert_array_equal(run_whole(guarded), expected)
        used.update(family.used)

    for strategy in (*loading, kernelcases.windowed["table"], grouped()):
        collect(strategy, 12, check)
    check(conv((5, 6), 8, 12, (3, 3)))
    check(conv((5, 6), 32, 24, (3, 3), groups=2))
    check(conv((3, 4), 36, 51, (1, 2), groups=3))
    check(elementwise(OpKind.ADD, (3, 5), 36, 36))
    check(pool(OpKind.MAX_POOL_2D, (3, 5), 36))
    check(pool(OpKind.AVERAGE_POOL_2D, (3, 5), 20))
    kernels = {v.name for v in load_target(BOARD).kernels if v.sources[0].endswith("_vpu.c")}
    assert kernels - used.keys() <= {"mean_vpu"}, "which takes addresses"
