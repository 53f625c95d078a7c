"""SIGNAL_RFFT and SIGNAL_IRFFT: the transforms of real samples, as KISS FFT computes them.

Two real samples form one complex number. These numbers are transformed in stages of radix 4, 2, 3 and 5.
After the stages, or before those of the inverse, a further step separates the even samples from the odd ones.
In integers every stage divides by its radix. Sums wrap around. The order of operations is that of KISS FFT,
because the rounding of floats depends on it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from buildtool.graph.geometry import attributes
from buildtool.graph.reference.tensors import Values
from buildtool.graph.signal import radices
from buildtool.graph.types import FftAttrs, Graph, Op

Real = npt.NDArray[Any]  # int64 for integers, else float32
Pair = tuple[Real, Real]  # real and imaginary parts


@dataclass(frozen=True)
class Numbers:
    """The arithmetic of one type: fixed point with `bits` bits, or float32 if `bits` is 0."""

    bits: int

    @property
    def largest(self) -> int:
        """The largest number, which represents 1."""
        return (1 << (self.bits - 1)) - 1

    def wrap(self, x: Real) -> Real:
        """Returns integers wrapped around to `bits` bits. Floats stay as they are."""
        if not self.bits:
            return x
        half = 1 << (self.bits - 1)
        return ((x + half) & (2 * half - 1)) - half

    def _round(self, x: Real) -> Real:
        return self.wrap((x + (1 << (self.bits - 2))) >> (self.bits - 1))

    def divide(self, x: Pair, by: int) -> Pair:
        """Returns integers divided by `by`, the radix of a stage. Floats stay as they are."""
        if not self.bits:
            return x
        share = self.largest // by
        return self._round(x[0] * share), self._round(x[1] * share)

    def product(self, a: Pair, b: Pair) -> Pair:
        """Multiplies complex numbers."""
        re, im = a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]
        return (self._round(re), self._round(im)) if self.bits else (re, im)

    def scale(self, x: Real, by: Real) -> Real:
        """Multiplies real numbers."""
        return self._round(x * by) if self.bits else x * by

    def half(self, x: Real) -> Real:
        """Halves numbers; integers are rounded down."""
        return Numbers(32).wrap(x) >> 1 if self.bits else x * np.float32(0.5)

    def add(self, a: Pair, b: Pair) -> Pair:
        """Adds complex numbers."""
        return self.wrap(a[0] + b[0]), self.wrap(a[1] + b[1])

    def subtract(self, a: Pair, b: Pair) -> Pair:
        """Subtracts complex numbers."""
        return self.wrap(a[0] - b[0]), self.wrap(a[1] - b[1])

    def roots(self, phases: list[float]) -> npt.NDArray[Any]:
        """Returns (cosine, sine) of each angle, in the type: (angles, 2)."""
        pairs = [(math.cos(phase), math.sin(phase)) for phase in phases]
        if not self.bits:
            return np.array(pairs, np.float64).reshape(-1, 2).astype(np.float32)
        fixed = [[math.floor(0.5 + self.largest * value) for value in pair] for pair in pairs]
        return np.array(fixed, np.int64).reshape(-1, 2).astype(f"int{self.bits}")


@lru_cache(maxsize=64)
def twiddles(points: int, bits: int, inverse: bool) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Returns (the factors of the stages, the factors of the step that separates samples): (number, 2) each.

    `points`: the number of real samples. `bits`: 0 for float32 (see `Numbers`).
    """
    size, numbers = points // 2, Numbers(bits)
    sign = -1.0 if inverse else 1.0
    stages = [sign * (-2 * math.pi * i / size) for i in range(size)]
    last = [sign * (-math.pi * ((i + 1) / size + 0.5)) for i in range(size // 2)]
    return numbers.roots(stages), numbers.roots(last)


def _at(table: npt.NDArray[Any], index: npt.NDArray[np.int64], numbers: Numbers) -> Pair:
    values = table[index].astype(np.int64 if numbers.bits else np.float32)
    return values[..., 0], values[..., 1]


def _stage(n: Numbers, x: Pair, radix: int, step: int, table: npt.NDArray[Any], inverse: bool) -> Pair:
    """Returns the result of one stage of the transform, in the shape of `x`.

    `x` is (blocks, `radix`, positions). Neighbouring positions use factors that are `step` apart in `table`.
    """
    places = np.arange(x[0].shape[2])
    legs = [n.divide((x[0][:, i], x[1][:, i]), radix) for i in range(radix)]
    turned = [legs[0]]
    for i in range(1, radix):
        turned.append(n.product(legs[i], _at(table, i * step * places, n)))
    if radix == 2:
        results = [n.add(turned[0], turned[1]), n.subtract(turned[0], turned[1])]
    elif radix == 3:
        results = _three(n, turned, _at(table, np.array(step * len(places)), n))
    elif radix == 4:
        results = _four(n, turned, inverse)
    else:
        results = _five(n, turned, [_at(table, np.array(i * step * len(places)), n) for i in (1, 2)])
    return np.stack([r for r, _ in results], axis=1), np.stack([i for _, i in results], axis=1)


def _three(n: Numbers, x: list[Pair], root: Pair) -> list[Pair]:
    both, apart = n.add(x[1], x[2]), n.subtract(x[1], x[2])
    middle = n.subtract(x[0], (n.half(both[0]), n.half(both[1])))
    turned = n.scale(apart[0], root[1]), n.scale(apart[1], root[1])
    second = n.wrap(middle[0] - turned[1]), n.wrap(middle[1] + turned[0])
    return [n.add(x[0], both), second, (n.wrap(middle[0] + turned[1]), n.wrap(middle[1] - turned[0]))]


def _four(n: Numbers, x: list[Pair], inverse: bool) -> list[Pair]:
    difference, first = n.subtract(x[0], x[2]), n.add(x[0], x[2])
    both, apart = n.add(x[1], x[3]), n.subtract(x[1], x[3])
    one = n.wrap(difference[0] + apart[1]), n.wrap(difference[1] - apart[0])
    three = n.wrap(difference[0] - apart[1]), n.wrap(difference[1] + apart[0])
    one, three = (three, one) if inverse else (one, three)
    return [n.add(first, both), one, n.subtract(first, both), three]


def _five(n: Numbers, x: list[Pair], roots: list[Pair]) -> list[Pair]:
    (a_re, a_im), (b_re, b_im) = roots
    s7, s10 = n.add(x[1], x[4]), n.subtract(x[1], x[4])
    s8, s9 = n.add(x[2], x[3]), n.subtract(x[2], x[3])
    total = tuple(n.wrap(x[0][i] + (s7[i] + s8[i])) for i in (0, 1))
    s5 = tuple(n.wrap((x[0][i] + n.scale(s7[i], a_re)) + n.scale(s8[i], b_re)) for i in (0, 1))
    s6 = (
        n.wrap(n.scale(s10[1], a_im) + n.scale(s9[1], b_im)),
        n.wrap(-n.scale(s10[0], a_im) - n.scale(s9[0], b_im)),
    )
    s11 = tuple(n.wrap((x[0][i] + n.scale(s7[i], b_re)) + n.scale(s8[i], a_re)) for i in (0, 1))
    s12 = (
        n.wrap(-n.scale(s10[1], b_im) + n.scale(s9[1], a_im)),
        n.wrap(n.scale(s10[0], b_im) - n.scale(s9[0], a_im)),
    )
    p5, p11 = (s5[0], s5[1]), (s11[0], s11[1])
    results = [(total[0], total[1]), n.subtract(p5, s6), n.add(p11, s12), n.subtract(p11, s12)]
    return [*results, n.add(p5, s6)]


def _complex(n: Numbers, x: Pair, points: int, inverse: bool) -> Pair:
    """Returns the transform of `x`, which has `points` / 2 complex numbers.

    `inverse`: whether it is the inverse transform.
    """
    factors, table = radices(points), twiddles(points, n.bits, inverse)[0]
    order = np.arange(points // 2).reshape(factors[::-1]).T.reshape(-1)
    re, im = x[0][order], x[1][order]
    size = 1
    for radix in reversed(factors):
        shape = (-1, radix, size)
        step = points // 2 // (radix * size)
        re, im = _stage(n, (re.reshape(shape), im.reshape(shape)), radix, step, table, inverse)
        size *= radix
    return re.reshape(-1), im.reshape(-1)


def _numbers(value: Values) -> Numbers:
    return Numbers(0 if value.dtype == np.float32 else 8 * value.dtype.itemsize)


def transform(_graph: Graph, op: Op, inputs: list[Values]) -> list[Values]:
    """Computes SIGNAL_RFFT: real and imaginary parts of the frequencies from 0 to half the sampling rate."""
    points, (x,) = attributes(op, FftAttrs).points, inputs
    rows = [_forward(_numbers(x), row, points) for row in x.reshape(-1, x.shape[-1])]
    return [np.stack(rows).astype(x.dtype).reshape(*x.shape[:-1], points + 2)]


def _forward(n: Numbers, row: Values, points: int) -> Real:
    size = points // 2
    padded = np.zeros(points, np.int64 if n.bits else np.float32)
    padded[: len(row)] = row
    re, im = _complex(n, (padded[::2], padded[1::2]), points, False)
    result = np.zeros((size + 1, 2), padded.dtype)
    first = n.divide((re[:1], im[:1]), 2)
    result[0, 0], result[size, 0] = n.wrap(first[0] + first[1])[0], n.wrap(first[0] - first[1])[0]
    k = np.arange(1, size // 2 + 1)
    near = n.divide((re[k], im[k]), 2)
    far = n.divide((re[size - k], n.wrap(-im[size - k])), 2)
    even, odd = n.add(near, far), n.subtract(near, far)
    turned = n.product(odd, _at(twiddles(points, n.bits, False)[1], k - 1, n))
    result[k, 0], result[k, 1] = n.half(even[0] + turned[0]), n.half(even[1] + turned[1])
    result[size - k, 0], result[size - k, 1] = n.half(even[0] - turned[0]), n.half(turned[1] - even[1])
    return result.reshape(-1)


def invert(_graph: Graph, op: Op, inputs: list[Values]) -> list[Values]:
    """Computes SIGNAL_IRFFT: samples.

    Floats are divided by the number of samples at the end. The stages do this for integers.
    """
    points, (x,) = attributes(op, FftAttrs).points, inputs
    n = _numbers(x)
    rows = [_inverse(n, row, points) for row in x.reshape(-1, x.shape[-1])]
    result: Real = np.stack(rows).astype(x.dtype).reshape(*x.shape[:-1], points)
    return [result if n.bits else result / np.float32(points)]


def _inverse(n: Numbers, row: Values, points: int) -> Real:
    size = points // 2
    spectrum = row.astype(np.int64 if n.bits else np.float32).reshape(-1, 2)
    re, im = (np.zeros(size, spectrum.dtype) for _ in range(2))
    ends = spectrum[0, 0], spectrum[size, 0]
    (re[0],), (im[0],) = n.divide(
        (n.wrap(np.array([ends[0] + ends[1]])), n.wrap(np.array([ends[0] - ends[1]]))), 2
    )
    k = np.arange(1, size // 2 + 1)
    near = n.divide((spectrum[k, 0], spectrum[k, 1]), 2)
    far = n.divide((spectrum[size - k, 0], n.wrap(-spectrum[size - k, 1])), 2)
    even, apart = n.add(near, far), n.subtract(near, far)
    odd = n.product(apart, _at(twiddles(points, n.bits, True)[1], k - 1, n))
    re[k], im[k] = n.add(even, odd)
    other = n.subtract(even, odd)
    re[size - k], im[size - k] = other[0], n.wrap(-other[1])
    return np.stack(_complex(n, (re, im), points, True), axis=1).reshape(-1)
