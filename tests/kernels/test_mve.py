"""Properties of the Helium kernels: roundings, factors of any size."""

import dataclasses
import functools
import struct

import kernelcases
import numpy as np
import pytest
from boardcalls import recording
from ckernels import packed, whole
from placement import Margin, broadcast, part_view, run_whole

from buildtool.api import handle
from buildtool.emit.blocks import channel_factors
from buildtool.firmware.sizes import open_elf
from buildtool.firmware.stack.need import Stacks
from buildtool.graph.fixedpoint import (
    INT32_MAX,
    INT32_MIN,
    multiply_by_quantized_multiplier,
    saturating_rounding_doubling_high_mul,
)
from buildtool.graph.tflite.writer import write_model
from buildtool.graph.types import Activation, OpKind
from buildtool.target.catalogue import select
from buildtool.zoo.drawn import NetBuilder

FAMILY = "cortex_m_mve"
slow = pytest.mark.slow
compilers = pytest.mark.parametrize("toolchain", ["clang", pytest.param("gcc", marks=slow)])


# ---- sums that requantise to halves, where roundings differ: weights are 0, the biases are the sums -------

CHANNELS = 240
ZERO_POINT = 3  # of the output
SCALE = 1 / 3  # of the input, so that factors need all their bits


def zero_weights(kind, scales, bias, activation):
    cin, points = CHANNELS if kind is OpKind.DEPTHWISE_CONV_2D else 1, (0, ZERO_POINT)
    rng = np.random.default_rng(0)
    base = kernelcases.layer(
        rng, kind, kernelcases.Axis(1), kernelcases.Axis(1), cin, CHANNELS, activation, points=points
    )
    nothing, values = (np.zeros(data.shape, np.int8) for data in (base.graph.tensors[1], base.inputs[0]))
    return kernelcases.changed(base, nothing, bias, scales, steps=(SCALE, 1.0), values=values)


def layer(kind, seed, exponents, activation, greatest=INT32_MAX):
    """Returns a layer with factors of 2^exponents, and the number of sums that VRSHL alone rounds wrongly.

    Half of the sums are the smallest ones whose quotient ends in a half, or next to these. The other half are
    random, up to `greatest`.
    """
    rng = np.random.default_rng(seed)
    scales = (2.0 ** rng.uniform(*exponents, CHANNELS)).astype(np.float32)
    plain = zero_weights(kind, scales, np.zeros(CHANNELS), activation)
    factors = np.array(channel_factors(plain.graph, plain.op), np.int64)
    multipliers, right = factors[:, 0], np.maximum(-factors[:, 1], 0)
    halves = (2 * rng.integers(-128, 128, CHANNELS) + 1) << np.maximum(right - 1, 0)
    bias = -(-((halves << 31) - (1 << 30)) // np.maximum(multipliers, 1))
    bias = np.clip(bias + rng.choice([0, 0, -1, 1], CHANNELS), INT32_MIN, INT32_MAX)
    anything = rng.integers(INT32_MIN, INT32_MAX, CHANNELS, endpoint=True) >> rng.integers(0, 32, CHANNELS)
    bias = np.clip(np.where(rng.random(CHANNELS) < 0.5, bias, anything), ~greatest, greatest)
    case = zero_weights(kind, scales, bias, activation)
    wrong = 0
    if kind is not OpKind.FULLY_CONNECTED:
        high = saturating_rounding_doubling_high_mul(bias << np.maximum(factors[:, 1], 0), multipliers)
        up = (high + ((np.int64(1) << right) >> 1)) >> right
        expected = multiply_by_quantized_multiplier(bias, multipliers, factors[:, 1])
        wrong = int(np.sum((up != expected) & (np.abs(expected) < 120)))
    return case, wrong


def fixed_point(case):
    """Computes a convolution's outputs by fixed-point arithmetic, without a kernel."""
    graph, op = case.graph, case.op
    factors = np.array(channel_factors(graph, op), np.int64)
    bias = graph.tensors[op.inputs[2]].data
    scaled = multiply_by_quantized_multiplier(bias.astype(np.int64), factors[:, 0], factors[:, 1])
    low = ZERO_POINT if op.attrs.activation is Activation.RELU else -128
    return np.clip(scaled + ZERO_POINT, low, 127).astype(np.int8)


@compilers
def test_halves_are_rounded_as_the_reference_rounds_them(toolchain):
    """This matters: many of these sums would be wrong if halves were rounded up."""
    modes, wrong = set(), 0
    with recording(FAMILY) as recorder:
        for seed in range(6):
            for kind in (OpKind.CONV_2D, OpKind.DEPTHWISE_CONV_2D):
                for exponents in ((-20.0, -2.0), (-31.0, -6.0), (-3.0, 4.0)):
                    activation = Activation.RELU if seed % 3 == 0 else Activation.NONE
                    case, missed = layer(kind, seed, exponents, activation)
                    wrong += missed * (activation is Activation.NONE)
                    np.testing.assert_array_equal(run_whole(case).reshape(-1), fixed_point(case))
                    modes.add((kind, mode_of(recorder, case)))
    assert wrong > 150
    kinds = {kind: {mode for other, mode in modes if other is kind} for kind, _ in modes}
    assert kinds == {OpKind.CONV_2D: {PLAIN, ODD, GENERAL}, OpKind.DEPTHWISE_CONV_2D: {PLAIN, GENERAL}}
    recorder.check(toolchain)


@compilers
def test_depthwise_factors_below_2_need_no_path_of_their_own(toolchain):
    """Tiles of columns and single columns, with one to four vectors per channel."""
    with recording(FAMILY) as recorder:
        for seed in range(12):
            activation = Activation.RELU if seed % 3 == 0 else Activation.NONE
            case, _ = layer(OpKind.DEPTHWISE_CONV_2D, seed, (-3.0, 2.5), activation, (1 << 30) - 2)
            assert max(shift for _, shift in channel_factors(case.graph, case.op)) == 1
            np.testing.assert_array_equal(run_whole(case).reshape(-1), fixed_point(case))
            assert mode_of(recorder, case) == PLAIN
        for kernel, columns in ((3, 6), (3, 2), (5, 2), (7, 2), (5, 6)):
            for seed, activation in enumerate((Activation.NONE, Activation.RELU)):
                case = steep(seed, kernel, columns, activation)
                run_whole(case)
                assert mode_of(recorder, case) == PLAIN
    recorder.check(toolchain)


def steep(seed, kernel, columns, activation):
    """A depthwise layer with small values, and with factors both below and above 1."""
    rng, channels = np.random.default_rng(seed), 36
    axes = (kernelcases.Axis.same(size, kernel, 1) for size in (5, columns))
    base = kernelcases.layer(
        *(rng, OpKind.DEPTHWISE_CONV_2D, *axes, channels, channels, activation), points=(0, -7)
    )
    weights = rng.integers(-3, 4, (1, kernel, kernel, channels)).astype(np.int8)
    bias, scales = rng.integers(-30, 30, channels), 2.0 ** rng.uniform(-4, 1, channels)
    values = rng.integers(-5, 6, base.inputs[0].shape).astype(np.int8)
    return kernelcases.changed(base, weights, bias, scales, steps=(1.0, 1.0), values=values)


@functools.cache
def dense_layers():
    """Records calls of dense layers with factors of all sizes; cached because packing is slow."""
    modes = set()
    with recording(FAMILY) as recorder:
        for exponents in ((-16.0, -12.0), (-11.0, -7.0), (-3.0, 4.0), (-31.0, -20.0)):
            case, _ = layer(OpKind.FULLY_CONNECTED, 1, exponents, Activation.NONE)
            run_whole(case)
            modes.add(mode_of(recorder, case))
    assert modes == {PLAIN, ODD, GENERAL}
    return recorder


@pytest.mark.slow
@compilers
def test_dense_layers_round_once_whatever_their_factors(toolchain):
    dense_layers().check(toolchain)


PLAIN, ODD, GENERAL = range(3)  # as in nn_mve.h


def mode_of(recorder, case):
    """Returns the mode (NN_MVE_*) of a packed layer."""
    kernel = select(recorder.target, case.graph, case.op)
    return struct.unpack_from("<5i", packed(case.graph, case.op, kernel))[4]


@compilers
def test_convolutions_leave_the_stack_of_a_network_below_the_library_s(toolchain):
    """CMSIS-NN's networks need at least 920 bytes, up to 170 outside kernels (docs/internals/helium.md)."""
    with recording(FAMILY) as recorder:
        stacks = Stacks(open_elf(recorder.firmware(toolchain).image().read_bytes()))
    assert stacks.need("nn_conv2d_s8_mve") <= 790
    assert stacks.need("nn_depthwise_conv2d_s8_mve") <= 620


# ---- views ------------------------------------------------------------------------------------------------


@compilers
def test_an_operand_of_one_channel_in_a_tensor_as_wide_as_the_output_is_no_run(toolchain):
    """Its pixels are as far apart as the output's, but elements of one pixel are not one after the other."""
    rng, height, width, channels = np.random.default_rng(5), 3, 4, 5
    with recording(FAMILY) as recorder:
        for kind in (OpKind.ADD, OpKind.MUL, OpKind.MAXIMUM):
            for channel in range(channels):
                values = [
                    rng.integers(-128, 128, (1, height, width, n), dtype=np.int8) for n in (channels, 1)
                ]
                pair = kernelcases.binary(kind, Activation.NONE, (0.5,) * 3, (3, -5, 7), values)
                first, second = (each[0] for each in pair.inputs)
                pixels = rng.integers(-128, 128, first.shape, dtype=np.int8)
                margin = Margin(channel, channels - 1 - channel)
                view, part = part_view(pixels, margin, 0, height, width)
                part[:] = second
                out = np.zeros_like(first)
                recorder.compute(
                    pair.graph,
                    pair.op,
                    [whole(first), broadcast(view, part, first.shape)],
                    whole(out),
                    (0, height, 0, width),
                )
                np.testing.assert_array_equal(out, run_whole(pair)[0])
    recorder.check(toolchain)


# ---- additions of an operand that lacks channels ----------------------------------------------------------

LACKING = ((28, 24, 0), (5, 3, 1), (40, 1, 17), (33, 16, 16), (21, 20, 0), (48, 31, 9))


def additions(seed):
    """Every second sum is scaled up, so that no line has its roundings."""
    net, sums = NetBuilder(seed, "lacking"), []
    for i, (channels, narrow, before) in enumerate(LACKING):
        image = (1, *(int(n) for n in net.rng.integers(1, 7, 2)))
        missing = ((0, 0), (0, 0), (0, 0), (before, channels - narrow - before))
        wide = net.pad(net.input((*image, narrow)), missing)
        activation = Activation.RELU6 if i % 3 else Activation.NONE
        sums.append(net.elementwise(OpKind.ADD, net.input((*image, channels)), wide, activation))
        if i % 2:
            steep = net.random_quant(net.scale(sums[-1]) / 40)
            net.tensors[sums[-1]] = dataclasses.replace(net.tensors[sums[-1]], quant=steep)
    return net.graph(sums)


def streamed_addition():
    """A layer, and an addition of its output to a narrower one, which streams with both."""
    net = NetBuilder(3, "streamed")
    x = net.input((1, 20, 20, 12))
    narrow = net.conv(x, 20, kernel=(3, 3), same=True)
    wide = net.pad(narrow, ((0, 0), (0, 0), (0, 0), (3, 12)))
    y = net.elementwise(OpKind.ADD, net.conv(x, 35), wide)
    return net.graph([net.conv(y, 4, kernel=(3, 3), same=True, stride=(2, 2))])


@compilers
@pytest.mark.parametrize(
    ("graph", "options"),
    [(additions(7), {"strategy": "layerwise"}), (streamed_addition(), {"objective": "ram"})],
    ids=["whole", "streamed"],
)
def test_additions_of_an_operand_that_lacks_channels_are_one_call(graph, options, toolchain, tmp_path):
    model = tmp_path / "lacking.tflite"
    model.write_bytes(write_model(graph))
    request = {"model": str(model), "board": "cortex-m55", "options": options}
    assert any("nn_add_widened" in source for source in handle({"kind": "emit", **request})["kernel_sources"])
    request |= {"toolchain": toolchain, "reference": "litert", "tensors": True, "inputs": 3}
    answer = handle({"kind": "validate", **request})
    assert answer["exact"], answer["first_difference"]
