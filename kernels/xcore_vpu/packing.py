"""Constants of the kernels for XMOS's vector unit, laid out as the kernels beside this file read them.

A block is nn_conv_constants, then a record of 224 bytes for each group of 16 output channels, then the
weights. A record has the constants with which the vector unit requantises its group, or the scalar code's
where the unit would not be exact for every sum that the weights allow.

Requantisation is monotonic, and so is the unit's arithmetic (`_outputs`). Constants are taken if both step at
the same sums, at most 255 a channel: then every output is equal.
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
WORST = 1 << 15  # the size of a signed 16-bit element
MOST_FRACTION = 23  # bits of a sum's scaled value behind the point
MOST_SHIFT = 7  # of sums
MOST_STEP = 22  # largest right shift of a factor that has exact steps in 64 bits
RECORD = 224  # bytes of nn_vpu_record
MOST_SIGN = 1 << 12  # a quarter of a jump
MOST_LAST = 1 << 13  # of a factor's last bits: from an upper part to the next they add half a unit at most
NO_SIGN = 15  # in place of 14 - log2 of a sign
CENTRES = 6  # of those with room
TURNS = 48 * 10  # ways that are tried,
TOGETHER = 512  # and most of them at once, but one of each channel
SCALES = (14, 13, 12, 15)  # bits of a factor, in the order in which they are tried
MOVES = 64  # most moves of a sum's centre, to make room in the lower half of a scaled sum
FAR = 1 << 40  # beyond all sums
FULL = float(1 << 62)


@dataclass(frozen=True)
class _Channels:
    """The constants and sums of each output channel; all arrays have one element a channel."""

    common: tuple[int, ...]  # zero points of input and output, least and greatest output
    table: npt.NDArray[np.int32]  # channels x (bias, multiplier, shift[, low])
    low: Int  # the least and
    high: Int  # the greatest sum, bias included

    @property
    def bias(self) -> Int:
        """With the input's zero point folded in."""
        return self.table[:, 0].astype(np.int64)


@dataclass(frozen=True)
class _Steps:
    """The sums at which outputs step (channels x steps, of the steps `outputs`), and which of them matter."""

    outputs: Int  # step n: from here on the output is at least n
    sums: Int
    met: Bools  # the sum can be reached, and so can the one below it
    slope: Real  # outputs a unit of sum
    jump: Int  # a sum below 0 is moved by 2^-jump outputs; -1: it is not
    exact: Bools  # the steps are known
    ends: Int  # channels x 2: the outputs of the least and the greatest sum, which may lie between steps


@dataclass(frozen=True)
class _Fit:
    """The vector unit's constants of each channel: elements of 16 bits but for `offset` and `centre`."""

    centre: Int  # is taken from the bias
    shift: Int
    high: Int  # the factor of a sum's upper part,
    high_low: Int  # 14 bits more of it
    sign: Int  # a quarter of the jump
    offset: Int  # 32 bits
    down: Int
    fine: Int  # 1: the lower bits are multiplied as a fraction of 16 bits, and rounded once

    @property
    def low(self) -> Int:
        """The factor of the lower bits, as the kernel derives it."""
        bits = np.where(self.fine > 0, 2, self.shift)
        return np.asarray((self.high + ((1 << bits) >> 1)) >> bits)

    @property
    def reach(self) -> Int:
        """The most that the lower bits add, up to its sign."""
        return np.where(self.fine > 0, 2 * self.low + 1, ((1 << self.shift) >> 1) * self.low)


@dataclass(frozen=True)
class _Ways:
    """A way to find constants for each channel; an array of one element is for all channels."""

    bits: Int  # of the factor's upper half
    more: Int  # bits that a sum is shifted beyond need
    nth: Int  # of the centres that leave room
    slope: Int  # distance from the factor, in 1024ths of what moves the last step by one sum
    fine: int


_Table = TypeVar("_Table", _Channels, _Steps)


# ---- where outputs step ------------------------------------------------------------------------


def _conv_steps(channels: _Channels) -> _Steps:
    """The steps of nn_requantise with factors >= 0 that are not shifted to the left."""
    _, zero_point, least, greatest = channels.common
    outputs = np.arange(least + 1, greatest + 1, dtype=np.int64)
    multiplier, shift = channels.table[:, 1].astype(np.int64), channels.table[:, 2].astype(np.int64)
    exact = (multiplier > 0) & (shift <= 0) & (shift >= -MOST_STEP)
    right = np.where(exact, -shift, 0)[:, None]
    factor = np.where(exact, multiplier, 1 << 30)
    wanted = (outputs - zero_point)[None, :]
    half = (np.int64(1) << right) >> 1
    inner = (wanted << right) - half + ((wanted <= 0) & (right > 0))  # the least rounded product
    edge = (inner << 31) - (1 << 30)
    sums = -(-edge // factor[:, None])
    slope = factor / 2.0 ** (31 + right[:, 0])
    return _steps(channels, outputs, sums, slope, np.where(right[:, 0] > 0, right[:, 0], -1), exact)


def _dense_steps(channels: _Channels) -> _Steps:
    """The steps of nn_dense_output: it is symmetric, so a step below 0 follows from its partner above."""
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
        for column, wanted in enumerate((outputs - zero_point).tolist()):
            up = wanted if wanted > 0 else 1 - wanted
            first = -(-((2 * up - 1) << (bits - 1)) // factor)
            sums[row, column] = min(first, 1 << 40) if wanted > 0 else max(1 - first, -(1 << 40))
    return _steps(channels, outputs, sums, slope, np.full(len(sums), -1), exact)


def _steps(channels: _Channels, outputs: Int, sums: Int, slope: Real, jump: Int, exact: Bools) -> _Steps:
    met = (sums > channels.low[:, None]) & (sums <= channels.high[:, None])
    signed = (met & (sums <= 0)).any(axis=1) & (jump > 0)
    passed = [(sums <= reach[:, None]).sum(axis=1) for reach in (channels.low, channels.high)]
    ends = channels.common[2] + np.stack(passed, axis=1)
    return _Steps(outputs, np.where(met, sums, 0), met, slope, np.where(signed, jump, -1), exact, ends)


# ---- constants of the vector unit ----------------------------------------------------------------


def _outputs(fit: _Fit, sums: Int, whole: Bools) -> Int:
    """The unit's outputs for channels x sums (nn_vpu_requantise.h), with no bounds but the type's."""
    at = {name: getattr(fit, name)[:, None] for name in (*fit.__dataclass_fields__, "low")}
    moved = sums - at["centre"]
    upper = _upper(moved, at["shift"])
    lower = moved - (upper << at["shift"])  # of the product with it, 16 bits matter
    near = _near(fit, upper)
    least = near + lower * at["low"]
    if fit.fine.any():
        fraction = (((moved << (16 - at["shift"])) + WORST) & 0xFFFF) - WORST
        least = np.where(at["fine"] > 0, _element(near + _rounded(fraction * at["low"])), least)
    least &= 0xFFFF
    scaled = _word((at["offset"] >> 16 << 16) + least + upper * at["high"])
    result = _element((scaled + ((1 << at["down"]) >> 1)) >> at["down"])
    return np.asarray(np.clip((result + 128 * whole[:, None]) >> 8, -128, 127))


def _upper(moved: Int, shift: Int) -> Int:
    return _element((moved + ((1 << shift) >> 1)) >> shift)


def _near(fit: _Fit, upper: Int) -> Int:
    """The start of the lower half of a scaled sum: the factor's last bits, the offset's, the jump."""
    half = (fit.offset & 0xFFFF)[:, None]
    half = np.where(half < WORST, half, half - (WORST << 1))
    near = _element(_rounded(upper * fit.high_low[:, None]) + half)
    if not fit.sign.any():
        return near
    return _element(near + _rounded((WORST - 1) * np.sign(upper) * fit.sign[:, None]))


def _rounded(products: Int) -> Int:
    return (products + (1 << 13)) >> 14


def _element(values: Int) -> Int:
    return np.clip(values, 1 - WORST, WORST - 1)


def _word(values: Int) -> Int:
    return np.clip(values, -(1 << 31) + 1, (1 << 31) - 1)


def _intercepts(channels: _Channels, steps: _Steps, slope: Real) -> Real:
    """The middle of the intercepts with which a line of `slope` passes all steps, and none at the ends."""
    sums = steps.sums
    moved = np.where(steps.jump > 0, 2.0 ** -np.maximum(steps.jump, 0).astype(np.float64), 0.0)
    above = steps.outputs + moved[:, None] * (sums < 0)
    below = steps.outputs + moved[:, None] * (sums <= 0)
    least = np.where(steps.met, above - slope[:, None] * sums, -FULL).max(axis=1, initial=-FULL)
    most = np.where(steps.met, below - slope[:, None] * (sums - 1), FULL).min(axis=1, initial=FULL)
    first = steps.ends[:, 0] + moved * (channels.low < 0) - slope * channels.low
    last = steps.ends[:, 1] + 1 + moved * (channels.high < 0) - slope * channels.high
    least = np.where(steps.ends[:, 0] > channels.common[2], np.maximum(least, first), least)
    most = np.where(steps.ends[:, 1] < channels.common[3], np.minimum(most, last), most)
    return np.asarray(np.where(steps.met.any(axis=1), (least + most) / 2, 0.0))


def _fit(channels: _Channels, steps: _Steps, slope: Real, whole: Bools, ways: _Ways) -> _Fit:
    """Constants for outputs on a line of `slope`."""
    low, high = _relevant(channels, steps)
    first, last = _met(steps)
    middle = np.where((steps.jump < 0) & (first < last), (first + last) // 2, 0)
    reach = np.maximum(np.maximum(np.abs(low - middle), np.abs(high - middle)) + MOVES, 1)
    least = np.ceil(np.log2(reach / (WORST - 1.0 - _margin(1 << (ways.bits - 1)))))
    shift = np.clip(least + ways.more, 2 * ways.fine, MOST_SHIFT).astype(np.int64)
    unit = slope * 2.0**shift  # outputs a unit of the upper part
    most = np.where(steps.jump > 0, np.minimum(steps.jump + 14, MOST_FRACTION), MOST_FRACTION)
    fraction = np.clip(np.floor(ways.bits - np.log2(unit)).astype(np.int64), 8, most)
    factor = unit * 2.0**fraction
    upper = np.rint(factor).astype(np.int64)
    fine = np.rint((factor - upper) * 2.0**14).astype(np.int64)
    has_jump = (steps.jump > 0) & (fraction >= steps.jump + 2)
    sign = np.where(has_jump, 1 << np.clip(fraction - steps.jump - 2, 0, 12), 0)
    none = np.zeros_like(upper)
    fit = _Fit(middle, shift, upper, fine, sign, none, fraction - 8, none + ways.fine)
    return _with_room(fit, low, high, slope, _intercepts(channels, steps, slope), whole, ways.nth)


def _with_room(fit: _Fit, low: Int, high: Int, slope: Real, intercept: Real, whole: Bools, nth: Int) -> _Fit:
    """`fit` with an offset, and a centre beside the middle that leaves room in the lower half."""
    moves = np.arange(2 * MOVES)
    moves = np.where(moves % 2, -(moves + 1) // 2, moves // 2)
    fraction = fit.down + 8
    value = (intercept + slope * fit.centre)[:, None] + slope[:, None] * moves
    # The sign gives half of the jump upwards and half downwards; the last shift rounds halves up.
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
    wanted = np.minimum(nth + 1, passed[:, -1])[:, None]
    best = np.where(passed[:, -1] > 0, (passed >= wanted).argmax(axis=1), room.argmax(axis=1))
    return replace(fit, centre=fit.centre + moves[best], offset=offset[rows, best])


def _span(fit: _Fit, low: Int, high: Int) -> tuple[Int, Int]:
    """The least and the greatest addition to the offset's lower half, for the sums that matter.

    `_near` is a line in the upper part, with a step up beside 0: it can turn at both ends, at 0 and on both
    sides of it. The line alone counts as well: the step comes after it, and both saturate.
    """
    without = replace(fit, offset=np.zeros_like(fit.offset))
    ends = np.stack((low, high), axis=1) - fit.centre[:, None] + np.array((-MOVES, MOVES))
    ends = _element(_upper(ends, fit.shift[:, None]) + _margin(fit.high)[:, None] * np.array((-1, 1)))
    turns = np.concatenate((ends, np.clip(np.array((-1, 0, 1)), ends[:, :1], ends[:, 1:])), axis=1)
    line = _near(replace(without, sign=np.zeros_like(fit.sign)), turns)
    near = np.concatenate((line, _near(without, turns)), axis=1)
    return near.min(axis=1) - fit.reach, near.max(axis=1) + fit.reach


def _relevant(channels: _Channels, steps: _Steps) -> tuple[Int, Int]:
    """The first and the last sum that matter: beyond them outputs are the channel's least and greatest."""
    first, last = _met(steps)
    least, greatest = channels.common[2:4]
    first = np.where(steps.ends[:, 0] > least, channels.low, first)
    last = np.where(steps.ends[:, 1] < greatest, channels.high, last)
    return np.where(first < last, first, 0), np.where(first < last, last, 0)


def _met(steps: _Steps) -> tuple[Int, Int]:
    """The sum before the first step, and the last step; the first is greater where there is none."""
    first = np.where(steps.met, steps.sums - 1, FAR).min(axis=1, initial=FAR)
    return first, np.where(steps.met, steps.sums, -FAR).max(axis=1, initial=-FAR)


def _margin(high: Int | int) -> Int:
    """The units of the upper part that outweigh the lower half of a scaled sum."""
    return np.asarray(0x10000 // np.maximum(high, 1) + 1)


def _good(channels: _Channels, steps: _Steps, fit: _Fit, whole: Bools) -> Bools:
    """Whether the unit's outputs step where the kernel's do, and never decrease between these sums.

    Among the sums that matter, and as far beyond as `_margin` says, the lower half of a scaled sum has room
    wherever it can turn (`_span`): its parts add up to 0 at least and to less than 2^16, so that all is exact
    but for one rounding. From a sum to the next the scaled value then gains `low`, and where the upper part
    grows, `low` less what rounding `low` and the factor's last bits takes (1 at most: MOST_LAST). Beyond, the
    lower half may be anything; the upper part is so much farther that the outputs are those of the last sum
    that matters. A step beyond the sums' ends is none at an end either.
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


def _constant(channels: _Channels, dense: bool) -> tuple[Bools, Int]:
    """The channels that have the same output for all their sums; and that output."""
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


def _with_constants(fit: _Fit, alone: Bools, output: Int, whole: Bools) -> _Fit:
    """`fit` with channels that have one output only."""
    fields = {name: np.where(alone, 0, getattr(fit, name)) for name in fit.__dataclass_fields__}
    fields["offset"] = np.where(alone, (output << 16) + (1 << 15) * ~whole, fit.offset)
    fields["down"] = np.where(alone, 8, fit.down)
    return _Fit(**fields)


def _fitted(channels: _Channels, dense: bool, whole: Bools, fine: int = 0) -> tuple[_Fit, Bools]:
    """The constants of all channels, and which of them are exact for each output.

    If those of the factor itself are not, slopes beside it are tried.
    """
    steps = _dense_steps(channels) if dense else _conv_steps(channels)
    alone, output = _constant(channels, dense)
    span = np.maximum(np.subtract(*_relevant(channels, steps)[::-1]), 1)
    fit = _fit(channels, steps, steps.slope, whole, _ways(np.zeros(1, np.int64), fine))
    good = _good(channels, steps, fit, whole)
    turn = 1
    while turn < TURNS:
        left = np.flatnonzero(~good & ~alone & steps.exact)
        if not len(left):
            break
        turns = np.arange(turn, min(turn + max(TOGETHER // len(left), 1), TURNS))
        rows, ways = np.repeat(left, len(turns)), _ways(np.tile(turns, len(left)), fine)
        slope = steps.slope[rows] * (1 + ways.slope / (1024.0 * span[rows]))
        some = (_chosen(channels, rows), _chosen(steps, rows))
        other = _fit(*some, slope, whole[rows], ways)
        better = _good(*some, other, whole[rows]).reshape(len(left), -1)
        found = np.flatnonzero(better.any(axis=1))
        from_row = found * len(turns) + better[found].argmax(axis=1)
        for name in fit.__dataclass_fields__:
            getattr(fit, name)[left[found]] = getattr(other, name)[from_row]
        good[left[found]] = True
        turn += len(turns)
    return _with_constants(fit, alone, output, whole), good | alone


def _ways(turns: Int, fine: int) -> _Ways:
    """Another way for every turn: bits of the factor, then centres, then shifts, then slopes."""
    rest, scale = np.divmod(turns, len(SCALES))
    rest, nth = np.divmod(rest, CENTRES)
    beside, more = np.divmod(rest, 2)
    size = ((beside + 1) // 2) ** 2 * np.where(beside % 2, 1, -1)
    return _Ways(np.array(SCALES)[scale], more, nth, size, fine)


def _chosen(table: _Table, rows: Int) -> _Table:
    """Some of the channels; fields that are for all of them stay."""
    one = ("common", "outputs")
    fields = {name: getattr(table, name) for name in table.__dataclass_fields__}
    return replace(table, **{name: value[rows] for name, value in fields.items() if name not in one})


# ---- blocks ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Groups:
    """The channels that are computed together: groups x 16, -1 for none.

    `whole`: groups whose outputs lie side by side; other groups' alternate with a second group's.
    """

    lanes: Int
    whole: Bools


def _block(graph: Graph, op: Op, weights: Int, groups: _Groups, packed: bytes) -> bytes:
    """Head, records of the groups, packed weights. `weights`: channels x taps."""
    common, table = channel_table(graph, op)
    channels = _Channels(tuple(common.tolist()), table.astype(np.int32), *sum_ends(table[:, 0], weights))
    whole = np.zeros(len(weights), np.bool_)
    alone = groups.lanes[groups.whole]
    whole[alone[alone >= 0]] = True
    fit, good = _fitted_groups(channels, op.kind is OpKind.FULLY_CONNECTED, whole, groups)
    kinds = np.where(groups.whole, 0, OF_PAIR).tolist()
    records = [
        _record(channels, fit, good, lanes, kind) for lanes, kind in zip(groups.lanes, kinds, strict=True)
    ]
    return words(*channels.common) + b"".join(records) + packed


def _fitted_groups(channels: _Channels, dense: bool, whole: Bools, groups: _Groups) -> tuple[_Fit, Bools]:
    """The constants of all channels, with finer ones for groups that are not exact without."""
    fit, good = _fitted(channels, dense, whole)
    left = [lanes[lanes >= 0] for lanes in groups.lanes if not good[lanes[lanes >= 0]].all()]
    if not left:
        return fit, good
    chosen = np.concatenate(left)
    finer, better = _fitted(_chosen(channels, chosen), dense, whole[chosen], 1)
    first = 0
    for lanes in left:
        here = slice(first, first + len(lanes))
        if better[here].all():
            for name in fit.__dataclass_fields__:
                getattr(fit, name)[lanes] = getattr(finer, name)[here]
            good[lanes] = True
        first += len(lanes)
    return fit, good


def _record(channels: _Channels, fit: _Fit, good: Bools, lanes: Int, kind: int) -> bytes:
    """nn_vpu_record of one group; `kind`: 0 or OF_PAIR."""
    used = lanes >= 0
    own = lanes[used]
    if not good[own].all():
        return _scalar_record(channels.table[own], used, kind)
    mode = kind + WIDE * bool(fit.shift[own].any()) + SIGNED * bool(fit.sign[own].any())
    mode += FINE * bool(fit.fine[own].any())
    bias, offset = (channels.bias - fit.centre)[own], fit.offset[own]
    columns = (bias >> 16, bias, fit.high[own], fit.high_low[own], offset >> 16, offset)
    table = np.zeros((len(columns), LANES), np.int64)
    table[:, used] = columns
    jumps = np.full(LANES, NO_SIGN)
    jumps[used] = [14 - round(math.log2(sign)) if sign else NO_SIGN for sign in fit.sign[own].tolist()]
    shifts = np.zeros(LANES, np.int64)
    shifts[used] = 16 * fit.shift[own] + fit.down[own]
    head = bytes((mode, *bytes(7))) + _bytes(16 * jumps[8:] + jumps[:8] - 128)
    return head + (table & 0xFFFF).astype("<u2").tobytes() + _bytes(shifts - 128)


def _bytes(values: Int) -> bytes:
    return values.astype(np.int8).tobytes()


def _scalar_record(table: npt.NDArray[np.int32], used: Bools, kind: int) -> bytes:
    """nn_vpu_record of a scalar group; `table`: of the lanes that are used."""
    factors = np.zeros((LANES, 4), "<i4")
    factors[used, : table.shape[1]] = table
    bias, multiplier, shift, low = factors.T
    halves = ((bias >> 16) & 0xFFFF).astype("<u2").tobytes() + (bias & 0xFFFF).astype("<u2").tobytes()
    own = multiplier.tobytes() + low.astype("<u2").tobytes() + shift.astype(np.int8).tobytes()
    return (bytes((SCALAR + kind, *bytes(15))) + halves + own).ljust(RECORD, b"\0")


def pairs(count: int) -> _Groups:
    """The even ones of 32 channels, then the odd ones; a rest of up to 16 is one group."""
    groups: list[Int] = []
    for first in range(0, count, PAIR):
        rest = np.arange(first, min(first + PAIR, count))
        groups += [rest] if len(rest) <= LANES else [rest[0::2], rest[1::2]]
    lanes = np.array([np.pad(group, (0, LANES - len(group)), constant_values=-1) for group in groups])
    whole = np.zeros(len(lanes), np.bool_)
    whole[-1] = len(lanes) % 2 == 1
    return _Groups(lanes, whole)


def _rows(weights: npt.NDArray[np.int8], groups: int) -> bytes:
    """A row of weights for each channel, filled up to a multiple of 4; rows of zeros fill the groups up."""
    channels, inputs = weights.shape
    return np.pad(weights, ((0, groups * LANES - channels), (0, -inputs % 4))).tobytes()


def _matrix(graph: Graph, op: Op) -> bytes:
    """The constants of nn_conv2d_s8_vpu and nn_fully_connected_s8_vpu."""
    weights = filter_weights(graph, op)
    flat = weights.reshape(len(weights), -1)
    groups = pairs(len(flat))
    return _block(graph, op, flat.astype(np.int64), groups, _rows(flat, len(groups.lanes)))


def channels_of(count: int) -> _Groups:
    """The groups of a depthwise convolution: the last one has the last 16 channels, if there are 16."""
    firsts = np.minimum(np.arange(0, count, LANES), max(count - LANES, 0))
    lanes = firsts[:, None] + np.arange(LANES)
    lanes = np.where(lanes < count, lanes, -1)
    return _Groups(lanes, np.ones(len(lanes), np.bool_))


def _depthwise(graph: Graph, op: Op) -> bytes:
    """The constants of nn_depthwise_conv2d_s8_vpu: for each group, tap by tap, the weights of its lanes.

    The kernel reads 16 bytes behind the last tap.
    """
    flat = filter_weights(graph, op)[0].reshape(-1, graph.tensors[op.outputs[0]].shape[3])
    groups = channels_of(flat.shape[1])
    padded = np.pad(flat, ((0, 0), (0, 1)))
    packed = padded[:, groups.lanes].transpose(1, 0, 2).tobytes() + bytes(LANES)
    return _block(graph, op, flat.T.astype(np.int64), groups, packed)


# ---- elementwise: lanes of 16 bits -------------------------------------------------------------

ELEMENT = WORST - 1  # the largest part of a factor
MOST_FACTOR = 128 * ELEMENT  # of a byte
MOST_SUM = (1 << 31) - (1 << 20)


def _plain(name: str, graph: Graph, op: Op) -> bytes:
    """The constants of the plain kernel."""
    return packings(kernels_root() / "reference" / "packing.py")[name](graph, op)


def _parts_of(factor: int, unit: int) -> tuple[int, int]:
    """A factor as a multiple of `unit` and a rest of either sign."""
    high = (factor + unit // 2) // unit
    return high, factor - high * unit


def _can_clamp(low: int, high: int) -> bool:
    """As nn_vpu_can_clamp, of 256ths."""
    down = 0 if high == 127 else 32767 - (256 * high + 255)
    up = 0 if low == -128 else -32767 - 256 * low
    return down <= 32767 and up >= -32767 and up - down >= -32768


def _addition(graph: Graph, op: Op) -> bytes:
    """nn_add_constants and nn_add_lanes."""
    scales = [quantization(graph, op, t).scale for t in (*op.inputs[:2], op.outputs[0])]
    sign = -1 if op.kind is OpKind.SUB else 1
    limits, form = clamp(graph, op), None
    if _can_clamp(*limits):  # the form that gives the reference's output for every pair of bytes
        slopes = (scales[0] / scales[2], sign * scales[1] / scales[2])
        first, second = (x.ravel() for x in np.meshgrid(np.arange(-128, 128), np.arange(-128, 128)))
        outputs = add_sub(graph, op, [first, second])[0].astype(np.int64)
        form = linear_form((first, second), outputs, slopes, limits, MOST_FACTOR, MOST_SUM)
    if form is None:
        return _plain("add", graph, op) + bytes(28)
    shift = form.bits - 8
    factors = [half for f in form.factors for half in (*_parts_of(f, 128), *_parts_of(f, 256))]
    own = words(1, form.bias - (1 << shift >> 1), shift) + np.array(factors, "<i2").tobytes()
    return _plain("add", graph, op) + own


# ---- means -------------------------------------------------------------------------------------

MOST_COUNT = 255  # bytes whose sum fits 16 bits
MOST_MEAN = 8 * ELEMENT  # a factor's largest value


def _mean(graph: Graph, op: Op) -> bytes:
    """nn_mean_constants and nn_mean_lanes."""
    head, count, form = _plain("mean", graph, op), mean_count(graph, op), None
    if count <= MOST_COUNT:  # the form that gives the reference's output for every possible sum
        sum_zero_point, zero_point, multiplier, right = np.frombuffer(head, "<i4").tolist()
        sums = np.arange(-128 * count, 127 * count + 1)
        scaled = multiply_by_quantized_multiplier(sums - sum_zero_point, multiplier, right)
        outputs, slope = np.clip(scaled + zero_point, -128, 127), multiplier * 2.0 ** (right - 31)
        sides = np.where(sums >= sum_zero_point, 1, -1)
        form = linear_form((sums,), outputs, (slope,), (-128, 127), MOST_MEAN, MOST_SUM, sides)
    if form is None or abs(form.lift // LIFTS) >= 1 << 15:
        return head + bytes(20)
    (factor,), shift = form.factors, form.bits - 8
    # Equal parts of a factor are added in turns, then its rest: all at most ELEMENT in size.
    times = max(-(-abs(factor) // ELEMENT), 1)
    each = -(-abs(factor) // times) * (1 if factor >= 0 else -1)
    times -= 1
    # The lanes are rounded by VLSAT, and once more where they become bytes.
    own = words(1, form.bias - (1 << shift >> 1) - (128 << shift), shift)
    return head + own + np.array((times, each, factor - times * each, form.lift // LIFTS), "<i2").tobytes()


PACKINGS: dict[str, Packing] = {
    "conv_vpu": _matrix,
    "grouped_conv_vpu": by_group(_matrix),
    "depthwise_vpu": _depthwise,
    "fully_connected_vpu": _matrix,
    "add_vpu": _addition,
    "mean_vpu": _mean,
}
