"""Packs constants for the kernels in this folder, for XMOS's vector unit.

The unit has 16 accumulators (lanes). It computes a group of 16 output channels together, one in each lane.

A block is nn_conv_constants, then a record of 224 bytes for each group, then the weights. A record has the
constants with which the unit requantises the group's sums. If the unit would not be exact for every possible
sum, the record has the scalar code's constants.

Both the kernel's requantisation and the unit's arithmetic (`_outputs`) are monotonic. So a channel's output
changes (steps) at no more than 255 sums. If both change at the same sums, all their outputs are equal, and
the unit's constants are used.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from buildtool.emit.blocks import (
    Packing,
    by_group,
    channel_table,
    clamp,
    filter_weights,
    quantization,
    sum_ends,
    words,
)
from buildtool.emit.linear_forms import LIFTS, linear_form
from buildtool.emit.packing import packings
from buildtool.graph.fixedpoint import multiply_by_quantized_multiplier
from buildtool.graph.reference.elementwise import add_sub
from buildtool.graph.reference.reduction import mean_count
from buildtool.graph.types import Graph, Op, OpKind
from buildtool.target.kernels import kernels_root

Int = npt.NDArray[np.int64]
Real = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

LANES = 16  # accumulators
PAIR = 2 * LANES  # channels of two groups whose outputs alternate
WIDE, SIGNED, SCALAR, OF_PAIR, FINE = 1, 2, 4, 16, 32  # bits of a record's mode, as in nn_vpu_requantise.h
WORST = 1 << 15  # the largest magnitude of a signed 16-bit element
MOST_FRACTION = 23  # the most fraction bits of a sum's scaled value
MOST_SHIFT = 7  # the largest shift of sums
MOST_STEP = 22  # largest right shift of a factor that has exact steps in 64 bits
RECORD = 224  # bytes of nn_vpu_record
MOST_SIGN = 1 << 12  # the largest sign, a quarter of a jump
MOST_LAST = 1 << 13  # the largest last bits of a factor: they add at most half a unit per upper part
NO_SIGN = 15  # stands for no sign, in place of 14 - log2 of a sign
CENTRES = 6  # centres with room that are tried
TURNS = 48 * 10  # ways that are tried
TOGETHER = 512  # the most ways that are tried at once, but at least one for each channel
SCALES = (14, 13, 12, 15)  # bits of a factor, in the order in which they are tried
MOVES = 64  # the most that a sum's centre is moved, to make room in the lower half of a scaled sum
FAR = 1 << 40  # larger than all sums
FULL = float(1 << 62)


@dataclass(frozen=True)
class _Channels:
    """The constants and sums of each output channel; all arrays have one element per channel."""

    common: tuple[int, ...]  # zero points of input and output, smallest and largest output
    table: npt.NDArray[np.int32]  # channels x (bias, multiplier, shift[, low])
    low: Int  # the smallest sum, bias included
    high: Int  # the largest sum, bias included

    @property
    def bias(self) -> Int:
        """The bias, which includes the input's zero point."""
        return self.table[:, 0].astype(np.int64)


@dataclass(frozen=True)
class _Steps:
    """The sums at which outputs increase (channels x steps), and whether these sums are possible."""

    outputs: Int  # for each step, the output that begins there
    sums: Int  # the first sum with this output
    met: Bools  # whether this sum and the one below it are possible
    slope: Real  # outputs per unit of the sum
    jump: Int  # a sum below 0 is moved by 2^-jump outputs; -1: it is not moved
    exact: Bools  # whether the steps are known
    ends: Int  # channels x 2: the outputs of the smallest and the largest sum


@dataclass(frozen=True)
class _Fit:
    """The vector unit's constants for each channel: 16-bit elements, except `offset` and `centre`.

    The unit subtracts `centre` from a sum, splits the difference into an upper and a lower part, multiplies
    both, and adds `offset` (see nn_vpu_requantise.h).
    """

    centre: Int  # is subtracted from the bias
    shift: Int
    high: Int  # the factor of a sum's upper part
    high_low: Int  # 14 further bits of this factor
    sign: Int  # a quarter of the jump
    offset: Int  # 32 bits
    down: Int
    fine: Int  # 1: the lower bits are multiplied as a 16-bit fraction, and rounded once

    @property
    def low(self) -> Int:
        """The factor of the lower bits, as the kernel computes it."""
        bits = np.where(self.fine > 0, 2, self.shift)
        return np.asarray((self.high + ((1 << bits) >> 1)) >> bits)

    @property
    def reach(self) -> Int:
        """The largest magnitude of the term that a sum's lower part adds to its scaled value."""
        return np.where(self.fine > 0, 2 * self.low + 1, ((1 << self.shift) >> 1) * self.low)


@dataclass(frozen=True)
class _Ways:
    """Parameters of one or several tries to find a channel's constants.

    An array of one element is for all channels.
    """

    bits: Int  # bits of the factor's upper half
    more: Int  # further bits by which a sum is shifted
    nth: Int  # index among the centres that leave room
    slope: Int  # distance from the factor, in 1024ths of what moves the last step by one sum
    fine: int


_Table = TypeVar("_Table", _Channels, _Steps)


# ---- where outputs step ------------------------------------------------------------------------


def _conv_steps(channels: _Channels) -> _Steps:
    """Returns the steps of nn_requantise, for factors >= 0 without a left shift."""
    _, zero_point, least, greatest = channels.common
    outputs = np.arange(least + 1, greatest + 1, dtype=np.int64)
    multiplier, shift = channels.table[:, 1].astype(np.int64), channels.table[:, 2].astype(np.int64)
    exact = (multiplier > 0) & (shift <= 0) & (shift >= -MOST_STEP)
    right = np.where(exact, -shift, 0)[:, None]
    factor = np.where(exact, multiplier, 1 << 30)
    distances = (outputs - zero_point)[None, :]
    half = (np.int64(1) << right) >> 1
    inner = (distances << right) - half + ((distances <= 0) & (right > 0))  # the smallest rounded product
    edge = (inner << 31) - (1 << 30)
    sums = -(-edge // factor[:, None])
    slope = factor / 2.0 ** (31 + right[:, 0])
    return _steps(channels, outputs, sums, slope, np.where(right[:, 0] > 0, right[:, 0], -1), exact)


def _dense_steps(channels: _Channels) -> _Steps:
    """Returns the steps of nn_dense_output. They are symmetric: steps below 0 follow from steps above 0."""
    _, zero_point, least, greatest = channels.common
    outputs = np.arange(least + 1, greatest + 1, dtype=np.int64)
    sums = np.zeros((len(channels.table), len(outputs)), np.int64)
    slope, exact = np.ones(len(sums)), np.zeros(len(sums), np.bool_)
    for row, (_, multiplier, shift, low) in enumerate(channels.table.tolist()):
        factor, bits = (multiplier << 16) + low, 47 - shift
        exact[row] = factor > 0 and shift <= 0
        if not exact[row]:
            continue
        slope[row] = factor / 2.0**bits
        for column, distance in enumerate((outputs - zero_point).tolist()):
            up = distance if distance > 0 else 1 - distance
            first = -(-((2 * up - 1) << (bits - 1)) // factor)
            sums[row, column] = min(first, 1 << 40) if distance > 0 else max(1 - first, -(1 << 40))
    return _steps(channels, outputs, sums, slope, np.full(len(sums), -1), exact)


def _steps(channels: _Channels, outputs: Int, sums: Int, slope: Real, jump: Int, exact: Bools) -> _Steps:
    met = (sums > channels.low[:, None]) & (sums <= channels.high[:, None])
    signed = (met & (sums <= 0)).any(axis=1) & (jump > 0)
    passed = [(sums <= reach[:, None]).sum(axis=1) for reach in (channels.low, channels.high)]
    ends = channels.common[2] + np.stack(passed, axis=1)
    return _Steps(outputs, np.where(met, sums, 0), met, slope, np.where(signed, jump, -1), exact, ends)


# ---- constants of the vector unit ----------------------------------------------------------------


def _outputs(fit: _Fit, sums: Int, whole: Bools) -> Int:
    """Returns the unit's outputs for these sums (channels x sums), clamped only to int8.

    nn_vpu_requantise.h describes the arithmetic. `whole`: for each channel, whether its group's outputs are
    adjacent.
    """
    fields = {name: getattr(fit, name)[:, None] for name in (*fit.__dataclass_fields__, "low")}
    centred = sums - fields["centre"]
    upper = _upper(centred, fields["shift"])
    lower = centred - (upper << fields["shift"])  # only 16 bits of the product with it matter
    near = _near(fit, upper)
    least = near + lower * fields["low"]
    if fit.fine.any():
        fraction = (((centred << (16 - fields["shift"])) + WORST) & 0xFFFF) - WORST
        least = np.where(fields["fine"] > 0, _element(near + _round_product(fraction * fields["low"])), least)
    least &= 0xFFFF
    scaled = _word((fields["offset"] >> 16 << 16) + least + upper * fields["high"])
    result = _element((scaled + ((1 << fields["down"]) >> 1)) >> fields["down"])
    return np.asarray(np.clip((result + 128 * whole[:, None]) >> 8, -128, 127))


def _upper(centred: Int, shift: Int) -> Int:
    return _element((centred + ((1 << shift) >> 1)) >> shift)


def _near(fit: _Fit, upper: Int) -> Int:
    """Returns the part of a scaled sum's lower half that depends only on the sum's upper part `upper`.

    It is the upper part times the last bits of its factor, plus the lower half of the offset, plus the jump
    (see `_Steps`).
    """
    half = (fit.offset & 0xFFFF)[:, None]
    half = np.where(half < WORST, half, half - (WORST << 1))
    near = _element(_round_product(upper * fit.high_low[:, None]) + half)
    if not fit.sign.any():
        return near
    return _element(near + _round_product((WORST - 1) * np.sign(upper) * fit.sign[:, None]))


def _round_product(products: Int) -> Int:
    return (products + (1 << 13)) >> 14


def _element(values: Int) -> Int:
    return np.clip(values, 1 - WORST, WORST - 1)


def _word(values: Int) -> Int:
    return np.clip(values, -(1 << 31) + 1, (1 << 31) - 1)


def _intercepts(channels: _Channels, steps: _Steps, slope: Real) -> Real:
    """Returns intercepts, one for each channel, with which a line of `slope` has exactly these steps.

    The line gives the output as a function of the sum. Of all such intercepts it is the one in the middle.
    """
    sums = steps.sums
    jump_size = np.where(steps.jump > 0, 2.0 ** -np.maximum(steps.jump, 0).astype(np.float64), 0.0)
    above = steps.outputs + jump_size[:, None] * (sums < 0)
    below = steps.outputs + jump_size[:, None] * (sums <= 0)
    least = np.where(steps.met, above - slope[:, None] * sums, -FULL).max(axis=1, initial=-FULL)
    most = np.where(steps.met, below - slope[:, None] * (sums - 1), FULL).min(axis=1, initial=FULL)
    first = steps.ends[:, 0] + jump_size * (channels.low < 0) - slope * channels.low
    last = steps.ends[:, 1] + 1 + jump_size * (channels.high < 0) - slope * channels.high
    least = np.where(steps.ends[:, 0] > channels.common[2], np.maximum(least, first), least)
    most = np.where(steps.ends[:, 1] < channels.common[3], np.minimum(most, last), most)
    return np.asarray(np.where(steps.met.any(axis=1), (least + most) / 2, 0.0))


def _fit(channels: _Channels, steps: _Steps, slope: Real, whole: Bools, ways: _Ways) -> _Fit:
    """Returns the unit's constants for outputs that are a line of `slope` (outputs per unit of the sum).

    `whole`: for each channel, whether its group's outputs are adjacent. `ways`: parameters of the try.
    """
    low, high = _relevant(channels, steps)
    first, last = _reachable_range(steps)
    middle = np.where((steps.jump < 0) & (first < last), (first + last) // 2, 0)
    reach = np.maximum(np.maximum(np.abs(low - middle), np.abs(high - middle)) + MOVES, 1)
    least = np.ceil(np.log2(reach / (WORST - 1.0 - _margin(1 << (ways.bits - 1)))))
    shift = np.clip(least + ways.more, 2 * ways.fine, MOST_SHIFT).astype(np.int64)
    unit = slope * 2.0**shift  # outputs per unit of the upper part
    most = np.where(steps.jump > 0, np.minimum(steps.jump + 14, MOST_FRACTION), MOST_FRACTION)
    fraction = np.clip(np.floor(ways.bits - np.log2(unit)).astype(np.int64), 8, most)
    factor = unit * 2.0**fraction
    upper = np.rint(factor).astype(np.int64)
    fine = np.rint((factor - upper) * 2.0**14).astype(np.int64)
    has_jump = (steps.jump > 0) & (fraction >= steps.jump + 2)
    sign = np.where(has_jump, 1 << np.clip(fraction - steps.jump - 2, 0, 12), 0)
    none = np.zeros_like(upper)
    fit = _Fit(middle, shift, upper, fine, sign, none, fraction - 8, none + ways.fine)
    return _make_room(fit, low, high, slope, _intercepts(channels, steps, slope), whole, ways.nth)


def _make_room(fit: _Fit, low: Int, high: Int, slope: Real, intercept: Real, whole: Bools, nth: Int) -> _Fit:
    """Returns `fit` with a new centre and offset, so that a scaled sum's lower half does not overflow.

    Of the centres that achieve this, it takes the one at position `nth`, counted from the present centre
    outwards; if there is none, the centre that comes closest. `low` and `high` are the smallest and largest
    relevant sums (see `_relevant`). The outputs are a line with `slope` and `intercept`.
    """
    moves = np.arange(2 * MOVES)
    moves = np.where(moves % 2, -(moves + 1) // 2, moves // 2)
    fraction = fit.down + 8
    value = (intercept + slope * fit.centre)[:, None] + slope[:, None] * moves
    # The sign adds half of the jump upwards and half downwards; the last shift rounds halves up.
    offset = np.rint(value * 2.0 ** fraction[:, None] - 2 * fit.sign[:, None]).astype(np.int64)
    offset -= ((1 << (fit.down)) >> 1)[:, None]
    offset -= (((1 << fraction) >> 1) * whole)[:, None]
    bottom, top = _span(fit, low, high)
    half = offset & 0xFFFF
    room = np.minimum(half + bottom[:, None], 0xFFFF - half - top[:, None])
    room = np.minimum(
        room, np.where(half < WORST, WORST - 1 - half - top[:, None], half - WORST - 1 + bottom[:, None])
    )
    rows = np.arange(len(room))
    passed = np.cumsum(room >= 0, axis=1)
    index = np.minimum(nth + 1, passed[:, -1])[:, None]
    best = np.where(passed[:, -1] > 0, (passed >= index).argmax(axis=1), room.argmax(axis=1))
    return replace(fit, centre=fit.centre + moves[best], offset=offset[rows, best])


def _span(fit: _Fit, low: Int, high: Int) -> tuple[Int, Int]:
    """Returns the smallest and the largest number that relevant sums add to the offset's lower half.

    `_near` is a linear function of the upper part, with a jump near 0. Its extremes can be at both ends, at 0
    and on both sides of 0. The function without the jump counts, too, because the unit saturates after each
    of the two additions.
    """
    without = replace(fit, offset=np.zeros_like(fit.offset))
    ends = np.stack((low, high), axis=1) - fit.centre[:, None] + np.array((-MOVES, MOVES))
    ends = _element(_upper(ends, fit.shift[:, None]) + _margin(fit.high)[:, None] * np.array((-1, 1)))
    extremes = np.concatenate((ends, np.clip(np.array((-1, 0, 1)), ends[:, :1], ends[:, 1:])), axis=1)
    line = _near(replace(without, sign=np.zeros_like(fit.sign)), extremes)
    near = np.concatenate((line, _near(without, extremes)), axis=1)
    return near.min(axis=1) - fit.reach, near.max(axis=1) + fit.reach


def _relevant(channels: _Channels, steps: _Steps) -> tuple[Int, Int]:
    """Returns the first and the last relevant sum. Beyond them, the output is the channel's limit."""
    first, last = _reachable_range(steps)
    least, greatest = channels.common[2:4]
    first = np.where(steps.ends[:, 0] > least, channels.low, first)
    last = np.where(steps.ends[:, 1] < greatest, channels.high, last)
    return np.where(first < last, first, 0), np.where(first < last, last, 0)


def _reachable_range(steps: _Steps) -> tuple[Int, Int]:
    """Returns the sum just below the first step, and the sum of the last step.

    Without steps, the first value is larger than the last.
    """
    first = np.where(steps.met, steps.sums - 1, FAR).min(axis=1, initial=FAR)
    return first, np.where(steps.met, steps.sums, -FAR).max(axis=1, initial=-FAR)


def _margin(high: Int | int) -> Int:
    """Returns by how much the upper part must grow to add more than the whole lower half of a scaled sum.

    `high`: the factor of the upper part.
    """
    return np.asarray(0x10000 // np.maximum(high, 1) + 1)


def _is_exact(channels: _Channels, steps: _Steps, fit: _Fit, whole: Bools) -> Bools:
    """Returns a mask of the channels whose output changes at the same sums in the unit as in the kernel.

    Between these sums, the unit's output must not decrease. This is checked as follows. For relevant sums,
    and for others up to `_margin` beyond, the lower half of a scaled sum does not overflow at any extreme
    (`_span`): its parts add up to at least 0 and less than 2^16. So everything is exact except for one
    rounding. From one sum to the next, the scaled value then grows by `low`. Where the upper part grows, the
    scaled value grows by `low` minus the roundings of `low` and of the factor's last bits (at most 1, see
    MOST_LAST). For sums further out, the lower half may have any value. Their upper part is so large that the
    outputs are those of the last relevant sum. A step outside the possible sums must not appear at an end
    either.
    """
    low, high = _relevant(channels, steps)
    ends = np.stack((low, high), axis=1)
    least, greatest = channels.common[2:4]
    at_ends = np.clip(_outputs(fit, ends, whole), least, greatest) == steps.ends
    from_here = _outputs(fit, steps.sums, whole) >= steps.outputs
    until_here = _outputs(fit, steps.sums - 1, whole) < steps.outputs
    stepwise = (~steps.met | (from_here & until_here)).all(axis=1) & at_ends.all(axis=1)
    least_low = np.where(fit.fine > 0, 2 << fit.shift, (1 << fit.shift) >> 1)
    rising = (fit.low > least_low) & (fit.high >= 3)
    elements = (
        (fit.high < WORST)
        & (np.abs(fit.high_low) <= MOST_LAST)
        & (fit.sign >= 0)
        & (fit.sign <= MOST_SIGN)
        & ((fit.low << fit.shift < WORST) | (fit.fine > 0))
        & (np.abs(fit.offset) < 1 << 31)
    )
    upper = (ends - fit.centre[:, None] + ((1 << fit.shift) >> 1)[:, None]) >> fit.shift[:, None]
    elements &= (np.abs(upper) + _margin(fit.high)[:, None] < WORST).all(axis=1)
    room = np.maximum(np.abs(channels.low - fit.centre), np.abs(channels.high - fit.centre)) < (1 << 31) - 1
    room &= np.abs(channels.bias - fit.centre) < (1 << 31) - 1
    bottom, top = _span(fit, low, high)
    half = fit.offset & 0xFFFF
    room &= (half + bottom >= 0) & (half + top <= 0xFFFF)
    room &= np.where(half < WORST, half + top < WORST, half + bottom > WORST)
    return np.asarray(stepwise & rising & elements & room & steps.exact)


def _find_constants(channels: _Channels, dense: bool) -> tuple[Bools, Int]:
    """Returns (a mask of the channels that have the same output for all their sums, the output of each)."""
    _, zero_point, least, greatest = channels.common
    first, last = (
        np.clip(_scaled(channels, sums, dense) + zero_point, least, greatest)
        for sums in (channels.low, channels.high)
    )
    small = (channels.low > -(1 << 31)) & (channels.high < 1 << 31)
    return (first == last) & small & (channels.table[:, 2] <= 0), first


def _scaled(channels: _Channels, sums: Int, dense: bool) -> Int:
    multiplier, shift = channels.table[:, 1].astype(np.int64), channels.table[:, 2].astype(np.int64)
    if not dense:
        return multiply_by_quantized_multiplier(sums, multiplier, shift)
    rows = zip(sums.tolist(), *channels.table[:, 1:].T.tolist(), strict=True)
    sizes = [
        (abs(total) * ((factor << 16) + low) + (1 << (46 - right))) >> (47 - right)
        for total, factor, right, low in rows
    ]
    return np.sign(sums) * np.minimum(np.array(sizes, np.float64), 1 << 20).astype(np.int64)


def _add_constants(fit: _Fit, constant: Bools, output: Int, whole: Bools) -> _Fit:
    """Returns `fit` with constants for the channels that always have the output `output`.

    `constant` is a mask of these channels.
    """
    fields = {name: np.where(constant, 0, getattr(fit, name)) for name in fit.__dataclass_fields__}
    fields["offset"] = np.where(constant, (output << 16) + (1 << 15) * ~whole, fit.offset)
    fields["down"] = np.where(constant, 8, fit.down)
    return _Fit(**fields)


def _fit_channels(channels: _Channels, dense: bool, whole: Bools, fine: int = 0) -> tuple[_Fit, Bools]:
    """Returns the constants of all channels, and a mask of the channels that are exact for every sum.

    If the constants for a channel's factor are not exact, further ones are tried, also for slopes near it.
    `dense`: whether the layer is a dense one. `whole`: for each channel, whether its group's outputs are
    adjacent. `fine`: 1 to multiply the lower bits as a 16-bit fraction (see `_Fit`).
    """
    steps = _dense_steps(channels) if dense else _conv_steps(channels)
    constant, output = _find_constants(channels, dense)
    span = np.maximum(np.subtract(*_relevant(channels, steps)[::-1]), 1)
    fit = _fit(channels, steps, steps.slope, whole, _ways(np.zeros(1, np.int64), fine))
    is_exact = _is_exact(channels, steps, fit, whole)
    first_try = 1
    while first_try < TURNS:
        remaining = np.flatnonzero(~is_exact & ~constant & steps.exact)
        if not len(remaining):
            break
        tries = np.arange(first_try, min(first_try + max(TOGETHER // len(remaining), 1), TURNS))
        rows, ways = np.repeat(remaining, len(tries)), _ways(np.tile(tries, len(remaining)), fine)
        slope = steps.slope[rows] * (1 + ways.slope / (1024.0 * span[rows]))
        subset = (_select_channels(channels, rows), _select_channels(steps, rows))
        candidate = _fit(*subset, slope, whole[rows], ways)
        candidate_exact = _is_exact(*subset, candidate, whole[rows]).reshape(len(remaining), -1)
        solved = np.flatnonzero(candidate_exact.any(axis=1))
        from_row = solved * len(tries) + candidate_exact[solved].argmax(axis=1)
        for name in fit.__dataclass_fields__:
            getattr(fit, name)[remaining[solved]] = getattr(candidate, name)[from_row]
        is_exact[remaining[solved]] = True
        first_try += len(tries)
    return _add_constants(fit, constant, output, whole), is_exact | constant


def _ways(tries: Int, fine: int) -> _Ways:
    """Returns the parameters of the tries with the numbers `tries`.

    Consecutive tries first vary the bits of the factor, then the centre, the shift and the slope. `fine`: see
    `_Fit`.
    """
    rest, scale = np.divmod(tries, len(SCALES))
    rest, nth = np.divmod(rest, CENTRES)
    nth_slope, more = np.divmod(rest, 2)
    size = ((nth_slope + 1) // 2) ** 2 * np.where(nth_slope % 2, 1, -1)
    return _Ways(np.array(SCALES)[scale], more, nth, size, fine)


def _select_channels(table: _Table, rows: Int) -> _Table:
    """Returns the table with only the channels `rows`. Fields that are the same for all channels stay."""
    shared = ("common", "outputs")
    fields = {name: getattr(table, name) for name in table.__dataclass_fields__}
    return replace(table, **{name: value[rows] for name, value in fields.items() if name not in shared})


# ---- blocks ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Groups:
    """Groups of 16 channels that the unit computes together.

    `lanes`: the channel in each lane of each group, groups x 16; -1 for an unused lane.
    `whole`: for each group, whether its outputs are adjacent in memory. Otherwise they alternate with those
    of a second group.
    """

    lanes: Int
    whole: Bools


def _block(graph: Graph, op: Op, weights: Int, groups: _Groups, packed: bytes) -> bytes:
    """Packs the head, the records of the groups and the packed weights. `weights`: channels x taps."""
    common, table = channel_table(graph, op)
    channels = _Channels(tuple(common.tolist()), table.astype(np.int32), *sum_ends(table[:, 0], weights))
    whole = np.zeros(len(weights), np.bool_)
    adjacent = groups.lanes[groups.whole]
    whole[adjacent[adjacent >= 0]] = True
    fit, is_exact = _fit_groups(channels, op.kind is OpKind.FULLY_CONNECTED, whole, groups)
    kinds = np.where(groups.whole, 0, OF_PAIR).tolist()
    records = [
        _record(channels, fit, is_exact, lanes, kind) for lanes, kind in zip(groups.lanes, kinds, strict=True)
    ]
    return words(*channels.common) + b"".join(records) + packed


def _fit_groups(channels: _Channels, dense: bool, whole: Bools, groups: _Groups) -> tuple[_Fit, Bools]:
    """Returns the constants of all channels, and a mask of the channels that are exact.

    Groups with a channel that is not exact are tried again with `fine` (see `_Fit`). `whole`: for each
    channel, whether its group's outputs are adjacent.
    """
    fit, is_exact = _fit_channels(channels, dense, whole)
    remaining = [lanes[lanes >= 0] for lanes in groups.lanes if not is_exact[lanes[lanes >= 0]].all()]
    if not remaining:
        return fit, is_exact
    members = np.concatenate(remaining)
    finer, finer_exact = _fit_channels(_select_channels(channels, members), dense, whole[members], 1)
    first = 0
    for lanes in remaining:
        part = slice(first, first + len(lanes))
        if finer_exact[part].all():
            for name in fit.__dataclass_fields__:
                getattr(fit, name)[lanes] = getattr(finer, name)[part]
            is_exact[lanes] = True
        first += len(lanes)
    return fit, is_exact


def _record(channels: _Channels, fit: _Fit, is_exact: Bools, lanes: Int, kind: int) -> bytes:
    """Packs nn_vpu_record of one group.

    `is_exact`: a mask of the channels that the unit computes exactly. `lanes`: the channel in each lane, -1
    for none. `kind`: OF_PAIR if the outputs alternate with those of a second group, otherwise 0.
    """
    used = lanes >= 0
    channels_of_group = lanes[used]
    if not is_exact[channels_of_group].all():
        return _scalar_record(channels.table[channels_of_group], used, kind)
    mode = (
        kind
        + WIDE * bool(fit.shift[channels_of_group].any())
        + SIGNED * bool(fit.sign[channels_of_group].any())
    )
    mode += FINE * bool(fit.fine[channels_of_group].any())
    bias, offset = (channels.bias - fit.centre)[channels_of_group], fit.offset[channels_of_group]
    columns = (
        bias >> 16,
        bias,
        fit.high[channels_of_group],
        fit.high_low[channels_of_group],
        offset >> 16,
        offset,
    )
    table = np.zeros((len(columns), LANES), np.int64)
    table[:, used] = columns
    jumps = np.full(LANES, NO_SIGN)
    jumps[used] = [
        14 - round(math.log2(sign)) if sign else NO_SIGN for sign in fit.sign[channels_of_group].tolist()
    ]
    shifts = np.zeros(LANES, np.int64)
    shifts[used] = 16 * fit.shift[channels_of_group] + fit.down[channels_of_group]
    head = bytes((mode, *bytes(7))) + _bytes(16 * jumps[8:] + jumps[:8] - 128)
    return head + (table & 0xFFFF).astype("<u2").tobytes() + _bytes(shifts - 128)


def _bytes(values: Int) -> bytes:
    return values.astype(np.int8).tobytes()


def _scalar_record(table: npt.NDArray[np.int32], used: Bools, kind: int) -> bytes:
    """Packs nn_vpu_record of a group that scalar code requantises.

    `table`: bias, multiplier, shift and low of each channel. `used`: a mask of the lanes that have a channel.
    `kind`: as for `_record`.
    """
    factors = np.zeros((LANES, 4), "<i4")
    factors[used, : table.shape[1]] = table
    bias, multiplier, shift, low = factors.T
    halves = ((bias >> 16) & 0xFFFF).astype("<u2").tobytes() + (bias & 0xFFFF).astype("<u2").tobytes()
    own = multiplier.tobytes() + low.astype("<u2").tobytes() + shift.astype(np.int8).tobytes()
    return (bytes((SCALAR + kind, *bytes(15))) + halves + own).ljust(RECORD, b"\0")


def pairs(count: int) -> _Groups:
    """Returns two groups for every 32 of `count` channels: the even and the odd ones.

    If at most 16 channels remain, they form one group.
    """
    groups: list[Int] = []
    for first in range(0, count, PAIR):
        rest = np.arange(first, min(first + PAIR, count))
        groups += [rest] if len(rest) <= LANES else [rest[0::2], rest[1::2]]
    lanes = np.array([np.pad(group, (0, LANES - len(group)), constant_values=-1) for group in groups])
    whole = np.zeros(len(lanes), np.bool_)
    whole[-1] = len(lanes) % 2 == 1
    return _Groups(lanes, whole)


def _rows(weights: npt.NDArray[np.int8], groups: int) -> bytes:
    """Packs a row of weights for each channel; rows are padded to a multiple of 4, groups to 16 rows."""
    channels, inputs = weights.shape
    return np.pad(weights, ((0, groups * LANES - channels), (0, -inputs % 4))).tobytes()


def _matrix(graph: Graph, op: Op) -> bytes:
    """Packs the constants of nn_conv2d_s8_vpu and nn_fully_connected_s8_vpu."""
    weights = filter_weights(graph, op)
    flat = weights.reshape(len(weights), -1)
    groups = pairs(len(flat))
    return _block(graph, op, flat.astype(np.int64), groups, _rows(flat, len(groups.lanes)))


def channels_of(count: int) -> _Groups:
    """Returns the groups of a depthwise convolution of `count` channels.

    The last group has the last 16 channels, and may overlap the one before it.
    """
    firsts = np.minimum(np.arange(0, count, LANES), max(count - LANES, 0))
    lanes = firsts[:, None] + np.arange(LANES)
    lanes = np.where(lanes < count, lanes, -1)
    return _Groups(lanes, np.ones(len(lanes), np.bool_))


def _depthwise(graph: Graph, op: Op) -> bytes:
    """Packs the constants of nn_depthwise_conv2d_s8_vpu: for each group, tap by tap, the lanes' weights.

    The kernel reads 16 bytes after the last tap.
    """
    flat = filter_weights(graph, op)[0].reshape(-1, graph.tensors[op.outputs[0]].shape[3])
    groups = channels_of(flat.shape[1])
    padded = np.pad(flat, ((0, 0), (0, 1)))
    packed = padded[:, groups.lanes].transpose(1, 0, 2).tobytes() + bytes(LANES)
    return _block(graph, op, flat.T.astype(np.int64), groups, packed)


# ---- elementwise: lanes of 16 bits -------------------------------------------------------------

ELEMENT = WORST - 1  # the largest part of a factor
MOST_FACTOR = 128 * ELEMENT  # the largest factor of a byte
MOST_SUM = (1 << 31) - (1 << 20)


def _plain(name: str, graph: Graph, op: Op) -> bytes:
    """Packs the constants of the plain kernel with the packing `name`."""
    return packings(kernels_root() / "reference" / "packing.py")[name](graph, op)


def _split_factor(factor: int, unit: int) -> tuple[int, int]:
    """Splits a factor into a multiple of `unit` and a remainder of either sign."""
    high = (factor + unit // 2) // unit
    return high, factor - high * unit


def _can_clamp(low: int, high: int) -> bool:
    """Whether the unit can clamp to these limits, as nn_vpu_can_clamp tells.

    Outputs are in steps of 256 here, and are cut off, not rounded.
    """
    down = 0 if high == 127 else 32767 - (256 * high + 255)
    up = 0 if low == -128 else -32767 - 256 * low
    return down <= 32767 and up >= -32767 and up - down >= -32768


def _addition(graph: Graph, op: Op) -> bytes:
    """Packs nn_add_constants and nn_add_lanes."""
    scales = [quantization(graph, op, t).scale for t in (*op.inputs[:2], op.outputs[0])]
    sign = -1 if op.kind is OpKind.SUB else 1
    limits, form = clamp(graph, op), None
    if _can_clamp(*limits):  # a form with the reference's output for every pair of bytes
        slopes = (scales[0] / scales[2], sign * scales[1] / scales[2])
        first, second = (x.ravel() for x in np.meshgrid(np.arange(-128, 128), np.arange(-128, 128)))
        outputs = add_sub(graph, op, [first, second])[0].astype(np.int64)
        form = linear_form((first, second), outputs, slopes, limits, MOST_FACTOR, MOST_SUM)
    if form is None:
        return _plain("add", graph, op) + bytes(28)
    shift = form.bits - 8
    factors = [half for f in form.factors for half in (*_split_factor(f, 128), *_split_factor(f, 256))]
    lanes = words(1, form.bias - (1 << shift >> 1), shift) + np.array(factors, "<i2").tobytes()
    return _plain("add", graph, op) + lanes


# ---- means -------------------------------------------------------------------------------------

MOST_COUNT = 255  # bytes whose sum fits in 16 bits
MOST_MEAN = 8 * ELEMENT  # a factor's largest value


def _mean(graph: Graph, op: Op) -> bytes:
    """Packs nn_mean_constants and nn_mean_lanes."""
    head, count, form = _plain("mean", graph, op), mean_count(graph, op), None
    if count <= MOST_COUNT:  # a form with the reference's output for every possible sum
        sum_zero_point, zero_point, multiplier, right = np.frombuffer(head, "<i4").tolist()
        sums = np.arange(-128 * count, 127 * count + 1)
        scaled = multiply_by_quantized_multiplier(sums - sum_zero_point, multiplier, right)
        outputs, slope = np.clip(scaled + zero_point, -128, 127), multiplier * 2.0 ** (right - 31)
        sides = np.where(sums >= sum_zero_point, 1, -1)
        form = linear_form((sums,), outputs, (slope,), (-128, 127), MOST_MEAN, MOST_SUM, sides)
    if form is None or abs(form.lift // LIFTS) >= 1 << 15:
        return head + bytes(20)
    (factor,), shift = form.factors, form.bits - 8
    # The factor is applied as equal parts and a remainder, each at most ELEMENT in magnitude.
    times = max(-(-abs(factor) // ELEMENT), 1)
    each = -(-abs(factor) // times) * (1 if factor >= 0 else -1)
    times -= 1
    # VLSAT rounds the lanes, and they are rounded again when they become bytes.
    lanes = words(1, form.bias - (1 << shift >> 1) - (128 << shift), shift)
    return head + lanes + np.array((times, each, factor - times * each, form.lift // LIFTS), "<i2").tobytes()


PACKINGS: dict[str, Packing] = {
    "conv_vpu": _matrix,
    "grouped_conv_vpu": by_group(_matrix),
    "depthwise_vpu": _depthwise,
    "fully_connected_vpu": _matrix,
    "add_vpu": _addition,
    "mean_vpu": _mean,
}
