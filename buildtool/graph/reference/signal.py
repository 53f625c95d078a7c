"""The operators of TensorFlow Lite Micro's (TFLM's) signal library, except two groups.

The Fourier transforms are in `fourier`, and operators that keep samples between invokes in `signalstate`.
Sums and products wrap around. For signed numbers C does not define this, but TFLM does so with its authors'
compiler options.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from buildtool.graph import types as g
from buildtool.graph.fixedpoint import wrap_int32
from buildtool.graph.geometry import attributes
from buildtool.graph.reference.tensors import Values
from buildtool.graph.types import Graph, Op

_SEGMENTS = 128  # of the table of logarithms
_LOG_BITS = 16
_LN_2 = 45426  # in units of 2^-16
_SNR_BITS, _PCAN_BITS = 12, 6
_LOW_32, _LOW_64 = 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF

_Unsigned = npt.NDArray[np.uint64]


def window(_graph: Graph, op: Op, inputs: list[Values]) -> list[Values]:
    """Computes SIGNAL_WINDOW: samples times weights, rounded down and clamped."""
    samples, weights = (x.astype(np.int64) for x in inputs)
    products = samples * weights >> attributes(op, g.ShiftedAttrs).shift
    return [np.clip(products, -32768, 32767).astype(np.int16)]


def auto_scale(_graph: Graph, _op: Op, inputs: list[Values]) -> list[Values]:
    """Computes SIGNAL_FFT_AUTO_SCALE: (samples shifted left until they fill 16 bits, the shift in bits)."""
    (x,) = inputs
    largest = _largest(x)
    bits = max(0, 15 - largest.bit_length()) if largest else 0
    return [(x.astype(np.int64) << bits).astype(np.int16), np.array(bits, np.int32)]


def _largest(x: Values) -> int:
    """Returns the largest magnitude of the samples, as TFLM finds it.

    -32768 has no magnitude in int16. If it occurs, TFLM takes the largest magnitude of the samples after the
    last -32768. If none follows, the result is -32768 as 32 unsigned bits.
    """
    values = x.astype(np.int64)
    lowest = np.flatnonzero(values == -32768)
    if not lowest.size:
        return int(np.abs(values).max())
    largest = -32768
    for value in map(int, values[lowest[-1] + 1 :]):
        largest = value if value > largest else max(largest, -value)
    return largest & _LOW_32


def energy(_graph: Graph, op: Op, inputs: list[Values]) -> list[Values]:
    """Computes SIGNAL_ENERGY: the squares of the magnitudes of some bins.

    TFLM does not write the other bins. Here they are 0.
    """
    attrs, (x,) = attributes(op, g.EnergyAttrs), inputs
    squares = (x.astype(np.int64).reshape(-1, 2) ** 2).sum(axis=1)
    squares[: attrs.first] = squares[attrs.end :] = 0
    return [squares.astype(np.uint32)]


def filter_bank(_graph: Graph, _op: Op, inputs: list[Values]) -> list[Values]:
    """Computes SIGNAL_FILTER_BANK: weighted sums of bins, modulo 2^64.

    The rising side of a channel covers the same bins as the falling side of the channel before it. The first
    entry of the tables has only the rising side of the first channel.
    """
    x = inputs[0].astype(np.uint64)
    rising, falling = (table.astype(np.int64).view(np.uint64) for table in inputs[1:3])
    sums, carried = [], 0
    for start, first, width in zip(*(table.astype(np.int64) for table in inputs[3:]), strict=True):
        bins, place = x[start : start + width], slice(first, first + width)
        sums.append((carried + int((rising[place] * bins).sum(dtype=np.uint64))) & _LOW_64)
        carried = int((falling[place] * bins).sum(dtype=np.uint64))
    return [np.array(sums[1:], np.uint64)]


def square_root(_graph: Graph, _op: Op, inputs: list[Values]) -> list[Values]:
    """Computes SIGNAL_FILTER_BANK_SQUARE_ROOT: rounded roots, shifted right by the bits of FFT_AUTO_SCALE."""
    x, bits = inputs
    roots = np.array([_root(int(value)) for value in x], np.uint32)
    return [roots >> np.uint32(int(bits) & 31)]


def _root(value: int) -> int:
    root = math.isqrt(value)
    largest = 0xFFFF if value <= _LOW_32 else _LOW_32
    return root + (value - root * root > root and root != largest)


def spectral_subtraction(_graph: Graph, op: Op, inputs: list[Values]) -> list[Values]:
    """Computes SIGNAL_FILTER_BANK_SPECTRAL_SUBTRACTION.

    Returns (signal without noise, estimate of the noise, the state's new value, which is this estimate).
    """
    attrs, (signal, noise) = attributes(op, g.SubtractionAttrs), inputs
    odd = np.arange(len(signal)) % 2 == 1
    smoothing = _unsigned(np.where(odd, attrs.odd_smoothing, attrs.smoothing))
    remaining = _unsigned(np.where(odd, attrs.odd_remaining, attrs.remaining))
    bits, up = np.uint64(attrs.bits), np.uint64(attrs.smoothing_bits)
    x = signal.astype(np.uint64)
    scaled = (x << up) & _LOW_32
    estimate = (scaled * smoothing + noise.astype(np.uint64) * remaining >> bits) & _LOW_32
    least = (x * _unsigned(attrs.least) >> bits) & _LOW_32
    subtracted = (scaled - np.minimum(estimate, scaled)) >> up
    kept = np.minimum(estimate, scaled) if attrs.clamps else estimate
    now = kept.astype(np.uint32)
    return [np.maximum(subtracted, least).astype(np.uint32), now, now.copy()]


def _unsigned(value: npt.ArrayLike) -> Any:
    return (np.asarray(value, np.int64) & _LOW_32).astype(np.uint64)


def pcan(_graph: Graph, op: Op, inputs: list[Values]) -> list[Values]:
    """Computes SIGNAL_PCAN, an automatic gain control whose gain follows the noise."""
    x, noise, table = inputs
    gains = _gains(noise.astype(np.int64), table.astype(np.int64))
    ratio = (
        x.astype(np.uint64) * _unsigned(gains) >> np.uint64(attributes(op, g.ShiftedAttrs).shift)
    ) & _LOW_32
    small = (ratio * ratio & _LOW_32) >> np.uint64(2 + 2 * _SNR_BITS - _PCAN_BITS)
    large = (ratio >> np.uint64(_SNR_BITS - _PCAN_BITS)) - np.uint64(1 << _PCAN_BITS)
    return [np.where(ratio < (2 << _SNR_BITS), small, large).astype(np.uint32)]


def _gains(noise: npt.NDArray[np.int64], table: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Returns the gain for each estimate of noise: `table` has a parabola for each power of two."""
    length = _bit_lengths(noise)
    place = np.maximum(4 * length - 6, 0)
    left, right = np.maximum(11 - length, 0), np.maximum(length - 11, 0)
    part = ((noise << left) >> right) & 0x3FF
    value = wrap_int32((table[place + 2] * part >> 5) + (table[place + 1] << 5))
    value = (wrap_int32(wrap_int32(value * part) + (1 << 14)) >> 15) + table[place]
    return np.where(noise <= 2, table[np.minimum(noise, 2)], value).astype(np.int16).astype(np.int64)


def _bit_lengths(x: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    return np.array([int(value).bit_length() for value in x.reshape(-1)], np.int64).reshape(x.shape)


def log_table() -> npt.NDArray[np.uint16]:
    """Returns log2(1 + i/128) - i/128 in units of 2^-16 for i from 0 to 128."""
    steps = np.arange(_SEGMENTS + 1) / _SEGMENTS
    return np.rint((np.log2(1 + steps) - steps) * (1 << _LOG_BITS)).astype(np.uint16)


def log(_graph: Graph, op: Op, inputs: list[Values]) -> list[Values]:
    """Computes SIGNAL_FILTER_BANK_LOG: natural logarithms, 0 for inputs below 2.

    They are interpolated linearly between 128 points per octave.
    """
    attrs, (x,) = attributes(op, g.SignalLogAttrs), inputs
    scaled = np.maximum((x.astype(np.int64) << attrs.bits) & _LOW_32, 1)
    whole = _bit_lengths(scaled) - 1
    part = scaled - (np.int64(1) << whole)
    part = (part << np.maximum(_LOG_BITS - whole, 0)) >> np.maximum(whole - _LOG_BITS, 0)
    table, segment = log_table().astype(np.int64), part >> (_LOG_BITS - 7)
    first, second = table[segment], table[segment + 1]
    between = (second - first) * (part & 511) >> _LOG_BITS
    logs = (whole << _LOG_BITS) + part + first + between
    natural = (_LN_2 * logs + (1 << 15)) >> _LOG_BITS
    result = ((((attrs.scale & _LOW_32) * natural) & _LOW_32) + (1 << 15) & _LOW_32) >> _LOG_BITS
    return [np.where(scaled > 1, np.minimum(result, 32767), 0).astype(np.int16)]
