"""Requantisation with the XS3 vector unit's 16-bit multipliers: its factors, and a bound on its error.

For each channel, v = sum * m + offset is the output before its last rounding, in output steps. `sum` is the
sum of products; `offset` contains the bias and the zero point. The unit's accumulator begins at `start`, not
at 0. For 16 channels at a time, in 16 bits, with symmetric saturation in each operation, the unit computes

    x = VLSAT(start + sum, down)    the accumulator >> down, halves up; a `down` for each channel
    x = VLASHR(x, -up)              x << up, one `up` for all 16; left out where it is 0
    y = VLMUL(x, factor)            x * factor >> 14, halves up
    z = VLADD(y, bias)              now z ~ 2^8 * v
    VDEPTH8(z)                      z >> 8, halves up

A sum is relevant if its v is in the range of the output. `start` puts the relevant sums around 0 in the
accumulator, so that all bits of x serve them.

The proof of `error` uses scale = up - down and exact = (start + sum) * 2^scale. For relevant sums VLSAT and
VLASHR do not saturate: the choice of factors requires it. |exact - x| <= lost, where lost is 2^up / 2 if bits
are shifted out, else 0. |x * factor * 2^-14 - y| <= 1/2. So z * 2^-8 differs from v by at most

    m * lost * 2^-scale + |m - factor * 2^(scale - 22)| * (|start + sum| + lost * 2^-scale) + 2^-9
    + |offset - m * start - bias * 2^-8|

and VDEPTH8 rounds z as v would be rounded. Where y saturates for a relevant sum, z must round to the output's
limit, which the choice of factors also requires; z itself saturates at 127.996, which rounds to the limit.
Every operation is monotonic. So for any other sum, whose v is beyond a limit, the output stays at the value
for the last relevant sum. That is the limit, which is also the reference's output.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

LANES = 16  # channels in a group
MOST_ERROR = 0.125  # output steps, before the last rounding
MOST = 32767  # the largest 16-bit value; the unit never computes -32768
FRACTION = 8  # fraction bits of z
FACTOR_BITS = 14  # fraction bits of a factor
MOST_CENTRE = 127  # output steps; rounding z to a byte adds half a step
MOST_SHIFT = 15  # the largest `up`; also the bits of a magnitude
_POINT = FRACTION + FACTOR_BITS
_TRIES = 4  # values of scale to try
_ROOM = 1 << 31

Floats: TypeAlias = npt.NDArray[np.float64]
Int: TypeAlias = npt.NDArray[np.int64]
Flags: TypeAlias = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Sums:
    """The possible sums of each channel. The output before clamping is v = (sum + bias) * m + zero_point.

    `least`, `most`: the smallest and the largest sum, without `bias`.
    `low`, `high`: the limits of the output, the same for all channels.
    """

    least: Int
    most: Int
    bias: Int
    m: Floats
    zero_point: int
    low: int
    high: int


class Factors(NamedTuple):
    """The unit's parameters for each channel, padded to a multiple of 16; `up` is the same in a group of 16
    channels.

    `error`: the largest error for all possible sums, in output steps before the last rounding.
    `rounded`: whether the unit requantises the channel. If not, all other fields are 0, and the channel is
    requantised exactly.
    """

    rounded: Flags
    start: Int
    down: Int
    up: Int
    factor: Int
    bias: Int
    error: Floats


def choose_factors(sums: Sums, most_error: float = MOST_ERROR) -> Factors:
    """Returns the parameters for all channels. Groups with an error above `most_error` are requantised
    exactly.
    """
    count, padded = len(sums.m), _pad_channels(sums)
    lanes = _Lanes(padded)
    up = np.repeat(lanes.up.reshape(-1, LANES).max(axis=1), LANES)
    best = _best_of([_try_factors(padded, lanes, up, less) for less in range(_TRIES)])
    is_good = best.error.reshape(-1, LANES).max(axis=1) <= most_error
    is_good &= _fits_in_32_bits(sums).reshape(-1, LANES).all(axis=1)
    rounded = np.repeat(is_good, LANES)
    rounded[count:] = False
    in_good = np.repeat(is_good, LANES)
    values = {name: np.where(in_good, value, 0) for name, value in best._asdict().items()}
    return Factors(**{**values, "rounded": rounded, "error": np.where(rounded, best.error, 0.0)})


def _fits_in_32_bits(sums: Sums) -> Flags:
    """Returns for each channel, padded to a multiple of 16, whether all its values fit in 32 bits, in the
    unit and in the reference.
    """
    swing = np.abs(sums.bias) + (sums.most - sums.least)
    _, exponent = np.frexp(sums.m)
    left_shift = np.clip(exponent, 0, 31)  # the reference first shifts left by this many bits
    sane = (sums.m >= 0) & (np.ldexp(swing.astype(np.float64), left_shift) < _ROOM)
    return np.pad(sane, (0, -len(sane) % LANES), constant_values=True)


@dataclass(frozen=True)
class _Channels:
    """Channels, padded to a multiple of 16. Sums are from `least` to `most`, and v = sum * m + offset. `low`
    and `high` are the limits of the output.
    """

    least: Int
    most: Int
    m: Floats
    offset: Floats
    low: int
    high: int


def _pad_channels(sums: Sums) -> _Channels:
    """Returns the channels, padded to a multiple of 16. m is 0 for padding, and for channels whose output
    never changes.
    """
    extra = -len(sums.m) % LANES
    offset = sums.bias * sums.m + sums.zero_point
    above = offset + sums.m * sums.least >= sums.high
    below = offset + sums.m * sums.most <= sums.low
    offset = np.where(below, sums.low, np.where(above, sums.high, offset))
    m = np.where(above | below, 0.0, np.maximum(sums.m, 0.0))
    least, most = (np.pad(a, (0, extra)) for a in (sums.least, sums.most))
    m, offset = (np.pad(a, (0, extra)) for a in (m, offset))
    return _Channels(least, most, m, offset, sums.low, sums.high)


class _Lanes:
    """Values of each channel that do not depend on the other channels of its group.

    `centre`: v if the accumulator is 0.
    `least`, `most`: the accumulator's limits for relevant sums (see the module).
    `largest`: the accumulator's largest magnitude for relevant sums.
    `scale`: the largest scale with which the accumulator fits in 15 bits.
    `up`: the smallest `up` with which the factor fits in 15 bits.
    """

    def __init__(self, sums: _Channels) -> None:
        first, last = _relevant_sums(sums)
        middle = np.clip(np.rint((first + last) / 2), *_range_with_bias(sums, first, last))
        self.start = -middle
        self.centre = sums.offset + sums.m * middle
        self.least, self.most = first - middle, last - middle
        self.largest = np.maximum(-self.least, self.most)
        self.scale = np.clip(_most_exponent(self.largest), -31, MOST_SHIFT)
        self.up = np.clip(_POINT - _most_exponent(sums.m), 0, MOST_SHIFT)


def _relevant_sums(sums: _Channels) -> tuple[Floats, Floats]:
    """Returns the first and the last relevant sum of each channel (see the module), as whole numbers."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        first = np.floor((sums.low - sums.offset) / sums.m)
        last = np.ceil((sums.high - sums.offset) / sums.m)
    never = ~(sums.m > 0)  # v is the same for all sums
    ends = (np.where(never, 0.0, first), np.where(never, 0.0, last))
    clipped = (np.clip(end, sums.least, sums.most).astype(np.float64) for end in ends)
    return next(clipped), next(clipped)


def _range_with_bias(sums: _Channels, first: Floats, last: Floats) -> tuple[Floats, Floats]:
    """Returns the first and the last sum between `first` and `last` whose v is within MOST_CENTRE of 0.

    If there is no such sum, both are the nearest sum.
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ends = [np.rint((v - sums.offset) / sums.m) for v in (-MOST_CENTRE, MOST_CENTRE)]
    low, high = (np.where(sums.m > 0, np.clip(end, first, last), 0.0) for end in ends)
    return low, high


def _most_exponent(values: Floats) -> Int:
    """Returns the largest e with round(value * 2^e) <= 32767; 40 for a value of 0."""
    fraction, exponent = np.frexp(values)
    exponents = MOST_SHIFT - exponent.astype(np.int64)
    exponents -= np.rint(np.ldexp(fraction, MOST_SHIFT)) > MOST
    exponents[values == 0] = 40
    return exponents


def _try_factors(sums: _Channels, lanes: _Lanes, up: Int, less: int) -> Factors:
    """Returns the parameters with the groups' `up`, and scales that are `less` below the largest ones."""
    scale = np.minimum(lanes.scale - less, up)
    down = up - scale
    factor = np.rint(np.ldexp(sums.m, _POINT - scale))
    bias = np.clip(np.rint(np.ldexp(lanes.centre, FRACTION)), -MOST, MOST)
    lost = np.ldexp(np.where(down > 0, 0.5, 0.0), down)  # in units of the accumulator
    error = (
        sums.m * lost
        + np.abs(sums.m - np.ldexp(factor, scale - _POINT)) * (lanes.largest + lost)
        + 0.5**FRACTION / 2
        + np.abs(lanes.centre - np.ldexp(bias, -FRACTION))
    )
    fits = (factor <= MOST) & (down <= 31)
    fits &= np.abs(lanes.start) + (sums.most - sums.least) < _ROOM
    fits &= np.ldexp(np.floor(np.ldexp(lanes.largest, -down) + 0.5), up) <= MOST
    fits &= _ends_at_limits(sums, lanes, bias, error)

    def masked(values: Floats | Int) -> Int:
        return np.where(fits, values, 0).astype(np.int64)

    integers = (masked(lanes.start), masked(down), masked(up), masked(factor), masked(bias))
    return Factors(fits, *integers, np.where(fits, error, np.inf))


def _ends_at_limits(sums: _Channels, lanes: _Lanes, bias: Floats, error: Floats) -> Flags:
    """Returns for each channel whether the output is at its limit wherever y (see the module) saturates for a
    relevant sum.
    """
    above, below = lanes.most * sums.m, -lanes.least * sums.m  # limits of y * 2^-8
    room = (MOST - 1) * 0.5**FRACTION - error
    highest, lowest = (bias + MOST) * 0.5**FRACTION, (bias - MOST) * 0.5**FRACTION
    is_good = (above <= room) | (highest >= sums.high - 0.5)
    result: Flags = is_good & ((below <= room) | (lowest < sums.low + 0.5))
    return result


def _best_of(candidates: list[Factors]) -> Factors:
    """Returns for each channel the candidate with the smallest error; the first one if several are equal."""
    which = np.stack([candidate.error for candidate in candidates]).argmin(axis=0)[None]
    return Factors(
        *(np.take_along_axis(np.stack(values), which, 0)[0] for values in zip(*candidates, strict=True))
    )
