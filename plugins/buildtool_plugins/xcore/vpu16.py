"""Requantisation with the XS3 vector unit's 16-bit multipliers: its factors, and how far it may be off.

Of a channel, v = sum * m + offset is the output before its last rounding, in steps of the output: `sum` is
that of the products, `offset` has the bias and the zero point in it. The unit's accumulator begins at `start`
in the place of 0. On 16 bits, each operation saturated symmetrically, 16 channels at a time, it computes

    x = VLSAT(start + sum, down)    the accumulator >> down, halves up; a `down` for each channel
    x = VLASHR(x, -up)              x << up, one `up` for all 16; left out where it is 0
    y = VLMUL(x, factor)            x * factor >> 14, halves up
    z = VLADD(y, bias)              now z ~ 2^8 * v
    VDEPTH8(z)                      z >> 8, halves up

`start` is chosen so that the sums which matter lie around 0 in the accumulator: those whose v is in the range
of the output. So the bits of x are spent on them alone.

The proof of `error`, with scale = up - down and exact = (start + sum) * 2^scale. Nothing that matters
saturates in VLSAT and VLASHR, which is asked for. |exact - x| <= lost, which is 2^up / 2 where bits are
shifted out, else 0; |x * factor * 2^-14 - y| <= 1/2. So z * 2^-8 is off v by at most

    m * lost * 2^-scale + |m - factor * 2^(scale - 22)| * (|start + sum| + lost * 2^-scale) + 2^-9
    + |offset - m * start - bias * 2^-8|

and VDEPTH8 rounds as one would round v. Where y saturates for a sum that matters, z is where it rounds to the
output's limit, which is asked for, too; z itself saturates at 127.996, which does. No operation ever
decreases: so for sums that do not matter, whose v is beyond a limit, the output stays at that limit, where it
was for the last sum that matters, and where the reference's is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

LANES = 16  # channels of a group
MOST_ERROR = 0.125  # output steps, before the last rounding
MOST = 32767  # of 16 bits: the unit never makes -32768
FRACTION = 8  # bits of z behind the point
FACTOR_BITS = 14  # of a factor
MOST_CENTRE = 127  # output steps: half a step more is added where a byte is cut out of z
MOST_SHIFT = 15  # up; and bits of a magnitude
_POINT = FRACTION + FACTOR_BITS
_TRIES = 4  # values of scale
_ROOM = 1 << 31

Floats: TypeAlias = npt.NDArray[np.float64]
Int: TypeAlias = npt.NDArray[np.int64]
Flags: TypeAlias = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Sums:
    """Of each channel: least <= sum <= most, and v = (sum + bias) * m + zero_point.

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
    """Of each channel, up to a multiple of 16, what the unit needs; `up` is the same in a group of 16.

    `error`: in output steps before the last rounding, for all sums that are possible. `rounded`: whether the
    unit requantises the channel; where it does not, all others are 0 and the reference's way is taken.
    """

    rounded: Flags
    start: Int
    down: Int
    up: Int
    factor: Int
    bias: Int
    error: Floats


def choose_factors(sums: Sums, most_error: float = MOST_ERROR) -> Factors:
    """The factors of all groups; exact ones are those where one channel's error is above `most_error`."""
    count, padded = len(sums.m), _pad_channels(sums)
    lanes = _Lanes(padded)
    up = np.repeat(lanes.up.reshape(-1, LANES).max(axis=1), LANES)
    best = _best([_try_factors(padded, lanes, up, less) for less in range(_TRIES)])
    good = best.error.reshape(-1, LANES).max(axis=1) <= most_error
    good &= _sane(sums).reshape(-1, LANES).all(axis=1)
    rounded = np.repeat(good, LANES)
    rounded[count:] = False
    in_good = np.repeat(good, LANES)
    kept = {name: np.where(in_good, value, 0) for name, value in best._asdict().items()}
    return Factors(**{**kept, "rounded": rounded, "error": np.where(rounded, best.error, 0.0)})


def _sane(sums: Sums) -> Flags:
    """Channels, up to a multiple of 16, of which neither the unit nor the reference leaves 32 bits."""
    swing = np.abs(sums.bias) + (sums.most - sums.least)
    _, exponent = np.frexp(sums.m)
    left = np.clip(exponent, 0, 31)  # the reference shifts so far to the left first
    sane = (sums.m >= 0) & (np.ldexp(swing.astype(np.float64), left) < _ROOM)
    return np.pad(sane, (0, -len(sane) % LANES), constant_values=True)


@dataclass(frozen=True)
class _Channels:
    """Of each channel, up to a multiple of 16, least <= sum <= most, and v = sum * m + offset."""

    least: Int
    most: Int
    m: Floats
    offset: Floats
    low: int
    high: int


def _pad_channels(sums: Sums) -> _Channels:
    """Channels whose output never changes have m = 0, and so have those that fill up the last group."""
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
    """Of each channel what does not depend on the others of its group.

    `start`; `centre`: v where the accumulator is 0; `largest`: of the accumulator, for sums that matter;
    `scale`: the largest that 15 bits allow; `up`: the least that a factor of 15 bits asks for.
    """

    def __init__(self, sums: _Channels) -> None:
        first, last = _reach(sums)
        middle = np.clip(np.rint((first + last) / 2), *_where_a_bias_fits(sums, first, last))
        self.start = -middle
        self.centre = sums.offset + sums.m * middle
        self.least, self.most = first - middle, last - middle
        self.largest = np.maximum(-self.least, self.most)
        self.scale = np.clip(_most_exponent(self.largest), -31, MOST_SHIFT)
        self.up = np.clip(_POINT - _most_exponent(sums.m), 0, MOST_SHIFT)


def _reach(sums: _Channels) -> tuple[Floats, Floats]:
    """The first and the last sum that matters, whole numbers."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        first = np.floor((sums.low - sums.offset) / sums.m)
        last = np.ceil((sums.high - sums.offset) / sums.m)
    never = ~(sums.m > 0)  # v is the same for all sums
    ends = (np.where(never, 0.0, first), np.where(never, 0.0, last))
    clipped = (np.clip(end, sums.least, sums.most).astype(np.float64) for end in ends)
    return next(clipped), next(clipped)


def _where_a_bias_fits(sums: _Channels, first: Floats, last: Floats) -> tuple[Floats, Floats]:
    """The part of first..last whose v is within MOST_CENTRE, or the sum that is nearest to it."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ends = [np.rint((v - sums.offset) / sums.m) for v in (-MOST_CENTRE, MOST_CENTRE)]
    low, high = (np.where(sums.m > 0, np.clip(end, first, last), 0.0) for end in ends)
    return low, high


def _most_exponent(values: Floats) -> Int:
    """The largest e with value * 2^e <= 32767 when rounded; 40 where the value is 0."""
    fraction, exponent = np.frexp(values)
    found = MOST_SHIFT - exponent.astype(np.int64)
    found -= np.rint(np.ldexp(fraction, MOST_SHIFT)) > MOST
    found[values == 0] = 40
    return found


def _try_factors(sums: _Channels, lanes: _Lanes, up: Int, less: int) -> Factors:
    """The factors for a group's `up` and a scale that is `less` below the largest."""
    scale = np.minimum(lanes.scale - less, up)
    down = up - scale
    factor = np.rint(np.ldexp(sums.m, _POINT - scale))
    bias = np.clip(np.rint(np.ldexp(lanes.centre, FRACTION)), -MOST, MOST)
    lost = np.ldexp(np.where(down > 0, 0.5, 0.0), down)  # of the accumulator
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

    def kept(values: Floats | Int) -> Int:
        return np.where(fits, values, 0).astype(np.int64)

    whole = (kept(lanes.start), kept(down), kept(up), kept(factor), kept(bias))
    return Factors(fits, *whole, np.where(fits, error, np.inf))


def _ends_at_limits(sums: _Channels, lanes: _Lanes, bias: Floats, error: Floats) -> Flags:
    """Whether the output is at its limit wherever y saturates, if a y that matters can."""
    above, below = lanes.most * sums.m, -lanes.least * sums.m  # of y * 2^-8
    room = (MOST - 1) * 0.5**FRACTION - error
    highest, lowest = (bias + MOST) * 0.5**FRACTION, (bias - MOST) * 0.5**FRACTION
    good = (above <= room) | (highest >= sums.high - 0.5)
    result: Flags = good & ((below <= room) | (lowest < sums.low + 0.5))
    return result


def _best(tries: list[Factors]) -> Factors:
    """Of each channel the try with the least error, the first one of equals."""
    which = np.stack([found.error for found in tries]).argmin(axis=0)[None]
    return Factors(
        *(np.take_along_axis(np.stack(values), which, 0)[0] for values in zip(*tries, strict=True))
    )
