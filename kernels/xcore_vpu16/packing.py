"""Packs constants of the vector unit's kernels that requantise in 16 bits, and bounds the error of doing so.

A block is that of the exact family (`xcore_vpu`): a head, a record with requantisation constants for each
group of 16 output channels, and the weights. This family replaces records by others, with which the unit
requantises in 16 bits: faster, but not exactly. A group keeps its exact record if the error of the unit's
16-bit multipliers would be too large.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from buildtool_plugins.xcore.vpu16 import LANES, Factors, Sums, choose_factors

from buildtool.emit.blocks import (
    Packing,
    channel_axis,
    channel_bias,
    clamp,
    filter_weights,
    quantization,
    sum_ends,
)
from buildtool.emit.packing import Bound, load_packing
from buildtool.graph.reference.convolution import channel_scales
from buildtool.graph.types import Graph, Op, OpKind
from buildtool.target.kernels import kernels_root

EXACT = load_packing(kernels_root() / "xcore_vpu" / "packing.py")
HEAD, RECORD = 16, EXACT.RECORD  # bytes
ON16 = 8  # a bit of a record's mode, as in nn_vpu_requantise.h
HALF = 128  # half an output step in z: it rounds where outputs are the upper bytes
STEPS = 1  # the unit's error is at most 0.5 + 0.125 output steps, the reference's at most 0.75
Int = npt.NDArray[np.int64]


def lanes_of(op: Op, channels: int) -> tuple[Int, npt.NDArray[np.bool_]]:
    """Returns the channel in each lane of each group (groups x 16, -1: none), and a mask of the groups.

    A lane is one of the unit's accumulators. The mask is true for groups whose outputs are adjacent in
    memory.
    """
    groups = (EXACT.channels_of if op.kind is OpKind.DEPTHWISE_CONV_2D else EXACT.pairs)(channels)
    return groups.lanes, groups.whole


def factors_of(graph: Graph, op: Op) -> Factors:
    """Returns the constants with which each lane requantises in 16 bits, and bounds for their errors.

    The lanes of all groups follow one another.
    """
    weights = np.moveaxis(filter_weights(graph, op), channel_axis(op), 0)
    taps = weights.reshape(len(weights), -1).astype(np.int64)
    zero_point = quantization(graph, op, op.inputs[0]).zero_point
    bias = channel_bias(graph, op, len(taps)) - zero_point * taps.sum(axis=1)
    lanes = lanes_of(op, len(taps))[0].reshape(-1)

    lowest, highest = sum_ends(np.zeros_like(bias), taps)
    low, high = clamp(graph, op)
    has, scales = lanes >= 0, np.array(channel_scales(graph, op))
    least, most, biases = (np.where(has, values[lanes], 0) for values in (lowest, highest, bias))
    to = quantization(graph, op, op.outputs[0]).zero_point
    return choose_factors(Sums(least, most, biases, np.where(has, scales[lanes], 0.0), to, low, high))


def bound(graph: Graph, op: Op) -> Bound:
    """Returns a proven bound for how far an operator's outputs are from the exact ones."""
    factors, channels = factors_of(graph, op), len(channel_scales(graph, op))
    lanes = lanes_of(op, channels)[0].reshape(-1)
    rounded = len(set(lanes[factors.rounded].tolist()) - {-1})
    return Bound(STEPS if rounded else 0, float(factors.error.max(initial=0.0)), rounded, channels)


def _with_records(exact: Packing) -> Packing:
    """Returns a packing like `exact`, but with other records for groups that requantise in 16 bits."""

    def pack(graph: Graph, op: Op) -> bytes:
        block, factors = bytearray(exact(graph, op)), factors_of(graph, op)
        _, whole = lanes_of(op, len(channel_scales(graph, op)))
        for group, is_whole in enumerate(whole.tolist()):
            lanes = slice(group * LANES, (group + 1) * LANES)
            if factors.rounded[lanes].any():
                start = HEAD + group * RECORD
                block[start : start + RECORD] = _record(factors, lanes, is_whole)
        return bytes(block)

    return pack


def _record(factors: Factors, lanes: slice, whole: bool) -> bytes:
    """Packs nn_vpu_record of one group. `whole`: whether its outputs are adjacent."""
    half = 0 if whole else HALF
    start = factors.start[lanes]
    arrays = (start >> 16, start, factors.down[lanes], factors.factor[lanes], factors.bias[lanes] + half)
    table = (np.stack(arrays) & 0xFFFF).astype("<u2").tobytes()
    head = bytes((ON16 if whole else ON16 + EXACT.OF_PAIR, int(factors.up[lanes][0]) & 0xFF, *bytes(14)))
    return (head + table).ljust(RECORD, b"\0")


PACKINGS: dict[str, Packing] = {
    f"{name}16": _with_records(EXACT.PACKINGS[name])
    for name in ("conv_vpu", "depthwise_vpu", "fully_connected_vpu")
}
BOUNDS = dict.fromkeys(PACKINGS, bound)
