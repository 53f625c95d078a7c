"""Seeded numbers that are the same on every machine: weights, biases, and calibration inputs.

It uses a counter-based generator (splitmix64, Steele, Lea and Flood, 2014): the i-th number of a
stream is a hash of start + i, in 64-bit integer arithmetic. The start is a hash of the stream's name.
"""

from __future__ import annotations

import hashlib
import math

import numpy as np
import numpy.typing as npt

_GAMMA = np.uint64(0x9E3779B97F4A7C15)
_MIX = (
    (np.uint64(30), np.uint64(0xBF58476D1CE4E5B9)),
    (np.uint64(27), np.uint64(0x94D049BB133111EB)),
)


def splitmix64(start: int, count: int) -> npt.NDArray[np.uint64]:
    """Returns the first `count` numbers of the generator whose state begins at `start`."""
    state = np.arange(1, count + 1, dtype=np.uint64)
    state *= _GAMMA
    state += np.uint64(start)
    for shift, factor in _MIX:
        state ^= state >> shift
        state *= factor
    state ^= state >> np.uint64(31)
    return state


def stream(key: str, count: int) -> npt.NDArray[np.uint64]:
    """Returns the first `count` 64-bit numbers of the stream named `key`."""
    digest = hashlib.blake2b(key.encode(), digest_size=8).digest()
    return splitmix64(int.from_bytes(digest, "little"), count)


def stream_bytes(key: str, shape: tuple[int, ...]) -> npt.NDArray[np.uint8]:
    """Returns uniform bytes of `shape`."""
    count = math.prod(shape)
    return stream(key, -(-count // 8)).astype("<u8").view(np.uint8)[:count].reshape(shape)


def bell(key: str, shape: tuple[int, ...]) -> npt.NDArray[np.int8]:
    """Returns bell-shaped int8 weights from -127 to 127: sums of four bytes, with standard deviation 37."""
    total = stream_bytes(key, (*shape, 4)).astype(np.int32).sum(axis=-1, dtype=np.int32) - 510
    return np.asarray((total * 127 + 255) // 510, dtype=np.int8)


def uniform(key: str, count: int, low: float, high: float) -> npt.NDArray[np.float64]:
    """Returns uniform float64 numbers in [low, high)."""
    return low + (high - low) * ((stream(key, count) >> np.uint64(11)).astype(np.float64) / 2.0**53)


def noise(key: str, shape: tuple[int, ...]) -> npt.NDArray[np.int8]:
    """Returns independent int8 values over the whole range."""
    return stream_bytes(key, shape).view(np.int8)


def picture(key: str, shape: tuple[int, int, int]) -> npt.NDArray[np.int8]:
    """Returns an int8 image of soft blobs and some grain over the whole range: (rows, columns, channels)."""
    rows, columns, channels = shape
    total = np.zeros(shape, dtype=np.int64)
    for cells in (2, 4, 8):
        grid = stream_bytes(f"{key}/{cells}", (cells + 1, cells + 1, channels)).astype(np.int64)
        total += _enlarge(grid, rows, columns) * (16 // cells)
    total = total // (rows * columns) + stream_bytes(f"{key}/grain", shape).astype(np.int64)
    low, high = int(total.min()), int(total.max())
    return ((total - low) * 255 // max(1, high - low) - 128).astype(np.int8)


def _enlarge(grid: npt.NDArray[np.int64], rows: int, columns: int) -> npt.NDArray[np.int64]:
    """Interpolates `grid` (n + 1, n + 1, channels) bilinearly, and multiplies by rows * columns."""
    for axis, length in ((0, rows), (1, columns)):
        place = np.arange(length) * (grid.shape[axis] - 1)
        cell, rest = place // length, place % length
        weight = rest.reshape([-1 if a == axis else 1 for a in range(3)])
        grid = np.take(grid, cell, axis) * (length - weight) + np.take(grid, cell + 1, axis) * weight
    return grid
