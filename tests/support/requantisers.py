"""Compares every sum of layers with difficult constants: a family's requantisation against LiteRT's.

Each family's C is its own where this machine can compile it, otherwise a model of its instructions
(`requantised/*.c`). Blocks come from its packing. `requantised/sums.h` has LiteRT's arithmetic, written from
its sources and independent of ours.
"""

import ctypes
import functools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from ckernels import compile_library, constants
from kernelcases import CONV, DENSE, DEPTHWISE, Axis, Case, changed, layer
from paths import KERNELS, TESTS

from buildtool.emit.blocks import channel_head
from buildtool.emit.packing import packings
from buildtool.graph.reference.convolution import channel_scales
from buildtool.graph.types import Activation, OpKind

SIDE = 8  # rows and columns of a depthwise layer's taps
TAPS = SIDE * SIDE
SMALLEST, LARGEST = 8.0, 17.0  # log2 of how many sums a channel has
SPEED = ("-O3", "-march=native", "-DNDEBUG", "-fno-sanitize=all")
QUICK = (*SPEED, "-Wno-unused-function", "-Wno-maybe-uninitialized")


@dataclass(frozen=True)
class Requantiser:
    """A family's requantisation of sums, for a kind of layers."""

    source: str  # of requantised/
    family: str  # whose packing.py
    packing: str
    kind: OpKind
    within: int = 0  # tolerance of an output, in steps

    def __str__(self) -> str:
        return f"{self.family} {self.packing}"


REQUANTISERS = (
    Requantiser("vpu", "xcore_vpu", "conv_vpu", CONV),
    Requantiser("vpu", "xcore_vpu", "depthwise_vpu", DEPTHWISE),
    Requantiser("vpu", "xcore_vpu", "fully_connected_vpu", DENSE),
    Requantiser("vpu", "xcore_vpu16", "conv_vpu16", CONV, 1),
    Requantiser("vpu", "xcore_vpu16", "depthwise_vpu16", DEPTHWISE, 1),
    Requantiser("vpu", "xcore_vpu16", "fully_connected_vpu16", DENSE, 1),
    Requantiser("dsp", "cortex_m_dsp", "conv_pairs", CONV),
    Requantiser("dsp", "cortex_m_dsp", "depthwise_columns", DEPTHWISE),
    Requantiser("dsp", "cortex_m_dsp", "fully_connected_groups", DENSE),
    Requantiser("mve", "cortex_m_mve", "conv_mve", CONV),
    Requantiser("mve", "cortex_m_mve", "depthwise_words_mve", DEPTHWISE),
    Requantiser("mve", "cortex_m_mve", "fully_connected_mve", DENSE),
    Requantiser("riscv", "riscv", "conv_tiles", CONV),
    Requantiser("riscv", "riscv", "fully_connected_tiles", DENSE),
    Requantiser("rvv", "riscv", "conv_vector", CONV),
    Requantiser("rvv", "riscv", "fully_connected_vector", DENSE),
    Requantiser("lx106", "mul32", "conv_quads", CONV),
    Requantiser("lx106", "mul32", "dense_quads", DENSE),
    Requantiser("reference", "reference", "conv_plain", CONV),
    Requantiser("reference", "reference", "fully_connected_plain", DENSE),
)


class _Layer(ctypes.Structure):
    """layer"""

    _fields_ = [
        *((name, ctypes.c_void_p) for name in ("block", "biases", "factors", "scales", "ends", "weights")),
        *((name, ctypes.c_int32) for name in ("channels", "taps", "dense", "depthwise")),
        *((name, ctypes.c_int32) for name in ("zero_point", "low", "high", "within")),
    ]


@dataclass(frozen=True)
class Wrong:
    """A channel whose outputs differ from LiteRT's for `sums` sums. `sum` is one of them."""

    channel: int
    sums: int
    sum: int


@functools.cache
def _load_library(source: str) -> ctypes.CDLL:
    library = compile_library([TESTS / "support/requantised" / f"{source}.c"], QUICK)
    library.layer_wrong.restype = ctypes.c_int64
    return library


def wrong(requantiser: Requantiser, made: Case) -> tuple[int, list[Wrong]]:
    """Returns the number of sums of a layer's channels, and the channels with wrong outputs."""
    packing = packings(KERNELS / requantiser.family / "packing.py")[requantiser.packing]
    block = constants(packing(made.graph, made.op))
    weights, (common, table) = _flatten_weights(made), channel_numbers(made)
    positive, negative = np.maximum(weights, 0).sum(axis=1), np.minimum(weights, 0).sum(axis=1)
    bias = table[:, 0].astype(np.int64)
    ends = np.stack((bias - 128 * positive + 127 * negative, bias + 127 * positive - 128 * negative), axis=1)
    assert np.abs(ends).max() < 1 << 31
    arrays = [
        np.ascontiguousarray(bias.astype(np.int32)),
        np.ascontiguousarray(table[:, 1:3].astype(np.int32)),
        np.array(channel_scales(made.graph, made.op)),
        ends.astype(np.int32),
        weights.sum(axis=1).astype(np.int32),
    ]
    kind = requantiser.kind
    shape = (*weights.shape, kind is DENSE, kind is DEPTHWISE, *common[1:], requantiser.within)
    request = _Layer(block.ctypes.data, *(a.ctypes.data for a in arrays), *map(int, shape))
    counts, first = np.zeros(len(weights), np.int64), np.zeros(len(weights), np.int32)
    compared = _load_library(requantiser.source).layer_wrong(
        ctypes.byref(request), ctypes.c_void_p(counts.ctypes.data), ctypes.c_void_p(first.ctypes.data)
    )
    return compared, [Wrong(int(c), int(counts[c]), int(first[c])) for c in np.flatnonzero(counts)]


def _flatten_weights(made: Case) -> np.ndarray:
    data = made.graph.tensors[made.op.inputs[1]].data
    flat = data.reshape(-1, data.shape[3]).T if made.op.kind is DEPTHWISE else data.reshape(len(data), -1)
    return flat.astype(np.int64)


def channel_numbers(made: Case) -> tuple[np.ndarray, np.ndarray]:
    """Returns (zero points of input and output, least and greatest output), and each channel's numbers."""
    numbers = np.frombuffer(channel_head(made.graph, made.op, made.op.attrs.activation), "<i4")
    count, columns = made.out_shape[-1], 4 if made.op.kind is DENSE else 3
    return numbers[:4], numbers[4 : 4 + columns * count].reshape(count, columns)


# ---- layers ------------------------------------------------------------------------------------


def drawn(
    kind: OpKind, channels: int, seed: int, *, largest: float = LARGEST, pixels: int = 1
) -> Iterator[Case]:
    """Yields layers endlessly. `largest`: log2 of a channel's greatest number of sums.

    Half of them are drawn where bounds are tight: the sums need a little more than 16 bits, usually lie on
    both sides of 0, and outputs use the whole range. The others are arbitrary: sums that begin or end beside
    0 or on a step of the outputs, factors up to 4 and down to 2^-20, clamps.
    """
    rng = np.random.default_rng(seed)
    while True:
        yield _draw_layer(kind, channels, rng, largest, pixels)


def _draw_layer(kind: OpKind, channels: int, rng: np.random.Generator, largest: float, pixels: int) -> Case:
    tight = rng.random() < 0.5
    octaves = largest - 2 * rng.random() if tight else SMALLEST + (largest - SMALLEST) * rng.random() ** 2
    sizes = np.maximum(2.0**octaves * rng.uniform(0.5, 1, channels) / 255, 1).astype(np.int64)
    weights = _draw_weights(rng, sizes)
    span = 255 * np.abs(weights.astype(np.int64)).sum(axis=1)
    reach = 2.0 ** (rng.uniform(7, 9) if tight else rng.uniform(-2, 14))  # outputs from end to end
    slope = np.minimum(reach * 2.0 ** rng.uniform(-2, 2, channels) / span, 2.0 ** rng.uniform(-1, 2))
    zero_points = rng.integers(-128, 128, 2).tolist()
    activation = Activation.NONE
    if not tight:
        activation = (Activation.NONE, Activation.RELU, Activation.RELU6)[rng.integers(3)]
        zero_points = [int(rng.choice([z, -128, 0, 127])) for z in zero_points]
    bias = _draw_biases(rng, weights.astype(np.int64), span, slope, zero_points[0])
    steps = float(np.float32(2.0 ** rng.uniform(-6, -3)))  # of outputs
    inputs, (rows, columns) = _draw_inputs(rng, weights, pixels), (Axis(pixels), Axis(1))
    if kind is CONV:
        rows, columns, inputs, weights = Axis(1), Axis(pixels), inputs[None, None], weights[:, None, None]
    elif kind is DEPTHWISE:  # with the same inputs for all channels
        rows, columns = Axis(SIDE, SIDE), Axis(pixels * SIDE, SIDE, SIDE)
        weights = weights.T.reshape(1, SIDE, SIDE, channels)
        inputs = inputs.reshape(pixels, SIDE, SIDE).transpose(1, 0, 2).reshape(1, SIDE, pixels * SIDE, 1)
        inputs = np.repeat(inputs, channels, axis=3)
    cin, plain = channels if kind is DEPTHWISE else TAPS, np.random.default_rng(0)
    case = layer(plain, kind, rows, columns, cin, channels, activation, points=tuple(zero_points))
    weights, inputs = np.ascontiguousarray(weights), np.ascontiguousarray(inputs)
    return changed(case, weights, bias, slope * steps, steps=(1, steps), values=inputs)


def _draw_weights(rng: np.random.Generator, sizes: np.ndarray) -> np.ndarray:
    """Returns rows of TAPS weights whose absolute values add up to `sizes`."""
    sizes = np.minimum(sizes, 127 * TAPS)
    each = sizes // TAPS
    weights = each[:, None] + (np.arange(TAPS) < (sizes - each * TAPS)[:, None])
    sides = rng.random(weights.shape) < rng.choice([0.0, 0.5, 1.0, 0.1], len(sizes))[:, None]
    return np.where(sides, -weights, weights).astype(np.int8)


def _draw_biases(
    rng: np.random.Generator, weights: np.ndarray, span: np.ndarray, slope: np.ndarray, zero_point: int
) -> np.ndarray:
    """Draws biases that put 0 among the sums, beside an end of them, or outside."""
    count = len(weights)
    positive, negative = np.maximum(weights, 0).sum(axis=1), np.minimum(weights, 0).sum(axis=1)
    style = rng.random(count)
    low = np.select(
        [style < 0.5, style < 0.7, style < 0.8, style < 0.9],
        [
            -rng.random(count) * span,
            -rng.integers(0, 4096, count),
            -span + rng.integers(0, 4096, count),
            (rng.integers(-256, 256, count) + 0.5) / slope + rng.integers(-2, 3, count),
        ],
        rng.normal(0, 1, count) * 128 / slope,
    )
    low = np.clip(low, -(1 << 28), 1 << 28).astype(np.int64)
    return low + 128 * positive - 127 * negative + zero_point * weights.sum(axis=1)


def _draw_inputs(rng: np.random.Generator, weights: np.ndarray, pixels: int) -> np.ndarray:
    """Draws inputs for each pixel that reach any sum between a channel's least and greatest."""
    signs = np.sign(weights[rng.integers(0, len(weights), pixels)].astype(np.int64))
    values = signs * rng.uniform(-128, 127, (pixels, 1)) + rng.normal(0, 2, signs.shape)
    return np.clip(np.rint(values), -128, 127).astype(np.int8)
