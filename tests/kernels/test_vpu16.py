"""Kernels with 16-bit constants equal a twin made from the instructions' descriptions, within their bounds.

They run on this machine, with the C model of the vector unit, in every placement of plans.
"""

import dataclasses
import functools

import numpy as np
import pytest
from boardcalls import collect
from buildtool_plugins.xcore.vpu16 import LANES, Sums, choose_factors
from hostfamily import on_host
from hypothesis import strategies as st
from kernelcases import BYTES, CONV, DEPTHWISE, Axis, changed
from kernelcases import layer as random_layer
from kernelcases import windowed as small
from largecases import extreme
from largecases import windowed as large
from placement import WAYS, run_placed
from vpu16_twin import expected, output, rounded_sums

from buildtool.base.modes import Requantise
from buildtool.emit.packing import load_packing, proven_bound
from buildtool.graph.fixedpoint import multiply_by_quantized_multiplier, quantize_multiplier
from buildtool.graph.reference import execute_op
from buildtool.target.catalogue import select
from buildtool.target.kernels import kernels_root
from buildtool.target.registry import load_board, make_target

KERNELS = "xcore_vpu"  # the family with the C sources
PACKING = load_packing(kernels_root() / "xcore_vpu16" / "packing.py")
NAMES = ("convolution", "depthwise", "dense")
KINDS = {
    **{f"small {name}": small[name] for name in NAMES},
    **{f"large {name}": large[name] for name in NAMES},
    **extreme,
}


@functools.cache
def target():
    return make_target(load_board("xcore"), requantise=Requantise.VPU16)


# ---- the numbers --------------------------------------------------------------------------------


def layer(rng, count=64):
    """Returns an invented layer's sums, and for each channel the smallest, the largest and other sums."""
    spread = rng.choice([0.1, 1, 2])
    m = 10 ** rng.uniform(-5, -0.3) * 10 ** rng.uniform(-spread, 0, count)
    swing = (10 ** rng.uniform(1, 6, count)).astype(np.int64)
    least, most = -swing, (swing * rng.uniform(0.5, 1.5, count)).astype(np.int64)
    bias = np.rint(rng.uniform(-1, 1, count) * rng.choice([10, 150, 400]) / m).astype(np.int64)
    bias = np.clip(bias, -(1 << 29), 1 << 29)
    zero_point = int(rng.integers(-128, 128))
    low = int(rng.choice([-128, -128, min(zero_point, 100)]))
    inside = rng.uniform(low - 4, 131, (20, count))  # outputs
    samples = np.rint((inside - zero_point) / m - bias)
    samples = np.clip(np.concatenate(([least], [most], samples)), least, most).astype(np.int64)
    return Sums(least, most, bias, m, zero_point, low, 127), samples


def test_no_sum_is_farther_off_than_is_proven_and_some_are_nearly_as_far():
    rng, near, exact = np.random.default_rng(5), [], 0
    for _ in range(60):
        sums, samples = layer(rng)
        factors = choose_factors(sums)
        multipliers = np.array([quantize_multiplier(float(m)) for m in sums.m]).T
        want = multiply_by_quantized_multiplier(samples + sums.bias, *multipliers) + sums.zero_point
        z = rounded_sums(factors, samples, slice(len(sums.m)))
        outputs = np.clip(np.floor(z + 0.5), sums.low, sums.high)
        off = np.abs(outputs - np.clip(want, sums.low, sums.high))[:, factors.rounded]
        assert off.max(initial=0) <= PACKING.STEPS
        v = (samples + sums.bias) * sums.m + sums.zero_point
        # values beyond the unit's 16 bits are also beyond the limits
        inside = (v >= sums.low) & (v <= sums.high) & (np.abs(z) < 127.9) & factors.rounded
        error = np.where(inside, np.abs(z - v), 0).max(axis=0)
        assert (error <= factors.error + 1e-9).all()
        near += (error / np.maximum(factors.error, 1e-9))[inside.any(axis=0)].tolist()
        exact += np.count_nonzero(~factors.rounded)
    assert 100 < exact < 2400  # of 3840 channels
    assert np.median(near) > 0.6 and max(near) > 0.98


def test_the_arrays_are_what_the_instructions_give():
    rng = np.random.default_rng(6)
    sums, samples = layer(rng, LANES)
    factors = choose_factors(sums)
    assert factors.rounded.all()
    z = rounded_sums(factors, samples, slice(LANES))
    for lane in range(LANES):
        numbers = [int(getattr(factors, name)[lane]) for name in ("down", "up", "factor", "bias")]
        for acc, each in zip(samples[:, lane] + factors.start[lane], z[:, lane], strict=True):
            for whole in (True, False):
                assert output(int(acc), *numbers, whole) == min(np.floor(each + 0.5), 127)


def sums_of(m, most=100_000, bias=0):
    """Returns a group's sums, which differ only in `m`."""
    m = np.full(LANES, m) if np.isscalar(m) else np.array(m)
    ends = np.full(LANES, most)
    return Sums(-ends, ends, np.full(LANES, bias), m, 3, -128, 127)


@pytest.mark.parametrize(
    ("sums", "rounded"),
    [
        (sums_of(0.002), True),
        (sums_of([0.0001, 0.02] * 8), True),  # some sums are shifted up, and some down
        (sums_of([0.00001, 0.4] * 8, 10_000_000), False),  # small factors would lose all bits of the sums
        (sums_of([0.00001, 0.4] * 8, 10), True),  # but not for small sums
        (sums_of(0.0), True),  # only one output
        (sums_of(-0.002), False),
        (sums_of(0.00000001, bias=1 << 31), False),  # the reference would need more than 32 bits
        (sums_of(0.0000001, most=(1 << 31) - 1), False),  # so would the unit
        (sums_of(300.0, most=3), False),
    ],
)
def test_what_16_bits_cannot_do_well_stays_exact(sums, rounded):
    factors = choose_factors(sums)
    assert bool(factors.rounded.all()) == bool(factors.rounded.any()) == rounded
    assert (factors.error.max() > 0) == rounded
    none = choose_factors(sums, most_error=-1)
    assert not none.rounded.any()


# ---- the catalogue ------------------------------------------------------------------------------


def test_the_two_families_differ_in_constants_names_and_costs_alone():
    """Both catalogues state what kernels compute, when, and how much memory they need."""
    exact = {kernel.name: kernel for kernel in make_target(load_board("xcore")).kernels}
    of_16 = [kernel for kernel in target().kernels if kernel.packing.endswith("_vpu16")]
    assert len(of_16) == 4
    for kernel in of_16:
        twin = exact[kernel.name.removesuffix("16")]
        packing = twin.packing + "16"
        same = {"name": kernel.name, "packing": packing, "packer": kernel.packer}
        same |= {"cost": kernel.cost, "slice_cost": kernel.slice_cost}
        assert dataclasses.replace(twin, **same) == kernel


# ---- the kernels --------------------------------------------------------------------------------


def check(case, how, seed):
    """Runs a case as plans do; returns the number of rounded channels, and the set of outputs."""
    graph, op = case.graph, case.op
    variant = select(target(), graph, op)
    proven = proven_bound(graph, op, variant)
    if proven is None:
        return 0, set()
    factors, lanes = PACKING.factors_of(graph, op), PACKING.lanes_of(op, proven.channels)
    want = expected(graph, op, case.inputs[0], factors, *lanes)
    with on_host("xcore", KERNELS, target=target()):
        outputs = run_placed(case, how, seed, variant.overlap)
    np.testing.assert_array_equal(outputs, want)
    (exact,) = execute_op(graph, op, {op.inputs[0]: case.inputs[0]})
    off = np.abs(outputs.astype(int) - exact)
    assert off.max() <= proven.steps
    return proven.rounded, set(np.unique(outputs).tolist())


@pytest.mark.slow
@pytest.mark.parametrize("kind", sorted(KINDS))
def test_the_kernels_equal_the_twin_wherever_they_are_placed(kind):
    rounded = 0

    def run(drawn):
        nonlocal rounded
        rounded += check(*drawn)[0]

    collect(st.tuples(KINDS[kind], st.sampled_from(WAYS), st.integers(0, 999)), 12, run)
    assert rounded > 10


@pytest.mark.slow
@pytest.mark.parametrize("channels", [32, 40])  # alternating channels; also adjacent ones
@pytest.mark.parametrize("kind", [CONV, DEPTHWISE])
def test_every_output_value_is_made(kind, channels):
    """Also -128, which VDEPTH8 does not compute, and -127, to which it saturates."""
    cin = channels if kind is DEPTHWISE else 1
    case = random_layer(np.random.default_rng(0), kind, Axis(16), Axis(16), cin, channels, bias=False)
    weights, scales = np.full(case.graph.tensors[1].shape, 100, np.int8), np.full(channels, 0.01)
    values = np.repeat(BYTES.reshape(1, 16, 16, 1), cin, axis=3)
    case = changed(case, weights, None, scales, steps=(1.0, 1.0), values=values)
    rounded, outputs = check(case, "whole", 0)
    assert rounded == channels and outputs == set(range(-128, 128))
