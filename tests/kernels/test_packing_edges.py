"""Packings accept every possible quantisation, and are exact at the limits of a type."""

import dataclasses

import kernelcases
import numpy as np
import pytest
from boardcalls import LARGE_LX106, collect
from hypothesis import strategies as st
from kernelcases import every_pair, unary
from loaded import load_target
from paths import KERNELS

from buildtool.base.errors import ModelError, UnsupportedError
from buildtool.emit.packing import pack, packings
from buildtool.graph.types import DType, MeanAttrs, OpKind, SoftmaxAttrs
from buildtool.target.catalogue import select

BOARDS = ("xcore", "cortex-m4", "cortex-m55", "qemu-virt-rv32", "qemu-virt-rv32v", "host")
KINDS = {**kernelcases.windowed, "mean": kernelcases.means()}


def scaled(case, seed):
    """Returns the case with other scales, near and far, and zero points at the limits of int8."""
    rng = np.random.default_rng(seed)
    tensors = []
    for tensor in case.graph.tensors:
        quant = tensor.quant
        if quant is not None and quant.scales:
            factor = 2.0 ** rng.choice([0.0, rng.uniform(-24, 24), rng.uniform(-6, 6), rng.integers(-10, 11)])
            points = quant.zero_points
            if tensor.data is None and tensor.dtype is DType.INT8:
                points = tuple(int(rng.choice([-128, 127, 0, point])) for point in points)
            scales = tuple(float(np.float32(scale * factor)) for scale in quant.scales)
            quant = dataclasses.replace(quant, scales=scales, zero_points=points)
        tensors.append(dataclasses.replace(tensor, quant=quant))
    return kernelcases.Case(dataclasses.replace(case.graph, tensors=tuple(tensors)), case.inputs)


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_no_packing_fails_for_any_quantisation(kind):
    """It may refuse a factor that is too large, which LiteRT cannot represent either."""
    packed = 0

    def each(drawn):
        nonlocal packed
        case = scaled(*drawn)
        for board in (*BOARDS, LARGE_LX106):
            kernel = select(load_target(board), case.graph, case.op)
            try:
                pack(case.graph, case.op, kernel)
                packed += 1
            except (ModelError, UnsupportedError):
                continue

    collect(st.tuples(KINDS[kind], st.integers(0, 2**32 - 1)), 25, each)
    assert packed > 100


def test_a_factor_of_a_sum_that_rounds_to_2_to_the_15th_is_packed():
    """It does not fit in 16 bits. Packing once failed for this, for a recurrent noise suppressor."""
    case = every_pair(OpKind.ADD, (0.25407007, 0.4999978840351105, 1.0), (127, 0, 127))
    block = pack(case.graph, case.op, select(load_target("xcore"), case.graph, case.op))
    assert np.frombuffer(block, "<i4")[12] == 1  # by the vector unit


def mean_of(count, ratio, zero_points):
    """A MEAN of `count` rows; the input's scale is `ratio` times the output's."""
    shape, more = (1, count, 1, 16), {"scales": (ratio, 1.0), "points": zero_points}
    values = np.random.default_rng(count).choice([-128, 127, 0, 5], shape)
    return unary(OpKind.MEAN, MeanAttrs((1, 2), True), shape, values, out=(1, 1, 1, 16), **more)


@pytest.mark.parametrize(
    ("count", "ratio", "point"),
    [
        (216, 6.259497604332864e-05, 127),
        (83, 4.4790172069042455e-06, -128),
        (15, 119.99600219726562, 127),
        (13, 103.99654388, 0),
    ],
)
def test_means_of_any_factor_are_packed(count, ratio, point):
    """Also for a factor of 0, which has no parts, and for one just above eight parts of 32,767."""
    case = mean_of(count, ratio, (point, -128 if point > 0 else 127))
    block = packings(KERNELS / "xcore_vpu/packing.py")["mean_vpu"](case.graph, case.op)
    times, each, rest = np.frombuffer(block, "<i2")[14:17].tolist()
    assert max(abs(each), abs(rest)) < 1 << 15
    assert times >= 0


@pytest.mark.parametrize(
    ("family", "name"), [("reference", "softmax"), ("cortex_m_cmsis_nn", "softmax_cmsis_nn")]
)
def test_a_softmax_that_cannot_tell_its_inputs_apart_is_refused(family, name):
    scales, points = (2.0**-28, 1 / 256), (0, -128)
    case = unary(OpKind.SOFTMAX, SoftmaxAttrs(1.0), (1, 4), 0, scales=scales, points=points)
    with pytest.raises(ModelError, match="is too small for a softmax"):
        packings(KERNELS / family / "packing.py")[name](case.graph, case.op)
