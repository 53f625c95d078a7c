"""Searches for linear forms that equal a table of outputs, and proves them by computing every entry.

A kernel that has no instruction for the reference's roundings may compute

    clamp(floor((bias + side * lift + x[0] * factors[0] + x[1] * factors[1] + ...) / 2^bits))

instead, if the results are equal for all values of its operands. For operands of 8 bits these are few enough
to compute them all. Without such a form, a kernel computes as the reference does. `side` is 1 or -1: two
roundings with halves away from zero raise values on one side of zero, and lower them on the other.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Ints: TypeAlias = npt.NDArray[np.int64]
Flags: TypeAlias = npt.NDArray[np.bool_]

LIFTS = 64

_SPAN = 6  # the largest distance from its real value at which a factor is tried
_NEAR = 0.03  # in output steps: entries this close to the next output decide the factors
_MOST_BITS = 26


@dataclass(frozen=True)
class Linear:
    """A linear form: output = (bias + side * lift + sum of factor * operand) >> bits."""

    factors: tuple[int, ...]
    bias: int
    bits: int
    lift: int = 0

    def outputs(self, operands: Sequence[Ints], sides: Ints | None, low: int, high: int) -> Ints:
        """Returns the form's outputs, clamped to low..high. `sides` is 1 or -1 for each entry (None: there is
        no lift).
        """
        total = sum((f * x for f, x in zip(self.factors, operands, strict=True)), np.int64(self.bias))
        lifted = total if sides is None else total + self.lift * sides
        return np.asarray(np.clip(lifted >> self.bits, low, high))


def linear_form(
    operands: Sequence[Ints],
    outputs: Ints,
    slopes: Sequence[float],
    limits: tuple[int, int],
    most_factor: int,
    most_sum: int,
    sides: Ints | None = None,
) -> Linear | None:
    """Returns a form whose outputs, clamped to `limits`, equal `outputs`; None if none is found.

    They are equal for all entries. An entry is one combination of operand values.

    operands: for each operand, its value in each entry.
    slopes: for each operand, the number of output steps (a real number) by which the output changes when the
        operand changes by 1.
    most_factor: the absolute values of factors stay below this.
    most_sum: the absolute values of partial sums stay below this.
    sides: as in `Linear.outputs`. If they are given, the lift is a multiple of LIFTS.
    """
    low, high = limits
    inside = (outputs > low) & (outputs < high)
    if not inside.any():  # only the limits occur, so there is no slope to fit
        inside = np.ones(outputs.shape, bool)
    real = np.zeros(outputs.shape)
    for slope, operand in zip(slopes, operands, strict=True):
        real = real + slope * operand
    middle = float(np.median((outputs + 0.5 - real)[inside]))
    largest = [max(int(abs(x.min())), int(abs(x.max()))) for x in operands]
    bits = _find_bits(slopes, middle, largest, most_factor, most_sum)
    if bits is None:
        return None
    low_deciding, high_deciding = _deciding_entries(outputs, real + middle, limits, sides)
    first = [round(slope * 2**bits) for slope in slopes]
    steps = sorted(itertools.product(range(-_SPAN, _SPAN + 1), repeat=len(first)), key=_distance)
    for step in steps:
        factors = tuple(f + d for f, d in zip(first, step, strict=True))
        form = _find_bias(factors, operands, outputs, bits, (low_deciding, high_deciding), sides)
        if form is None or not _fits(form, largest):
            continue
        if np.array_equal(form.outputs(operands, sides, low, high), outputs):
            return form
    return None


def _fits(form: Linear, largest: Sequence[int]) -> bool:
    """Whether all partial sums fit in 32 bits, even after a kernel has added one output step for rounding.
    `largest` has the largest absolute value of each operand.
    """
    terms = sum(abs(f) * x for f, x in zip(form.factors, largest, strict=True))
    return abs(form.bias) + abs(form.lift) + terms + (1 << form.bits) < 1 << 31


def _distance(step: tuple[int, ...]) -> tuple[int, tuple[int, ...]]:
    return sum(map(abs, step)), step


def _find_bits(
    slopes: Sequence[float], middle: float, largest: Sequence[int], most_factor: int, most_sum: int
) -> int | None:
    """Returns the largest number of fraction bits that the limits allow; None if they allow too few.

    middle: the bias as a real number of output steps. largest: the largest absolute value of each operand.
    slopes, most_factor, most_sum: as in `linear_form`.
    """
    total = abs(middle) + 1 + sum(abs(s) * x for s, x in zip(slopes, largest, strict=True))
    spare = (_SPAN + 1) * sum(largest)
    for bits in range(_MOST_BITS, 8, -1):
        fits = all(abs(s) * 2**bits + _SPAN + 1 < most_factor for s in slopes)
        if fits and total * 2**bits + spare < most_sum:
            return bits
    return None


def _deciding_entries(
    outputs: Ints, real: npt.NDArray[np.float64], limits: tuple[int, int], sides: Ints | None
) -> tuple[Flags, Flags]:
    """Returns the entries that decide which factors and biases are possible, as two masks over the entries.

    An entry gives its output if its value before rounding down lies from this output to below the next one.
    The first mask has the entries whose value is closest to the lower end of this range, the second mask
    those closest to its upper end. `real`: the value of each entry as a real number. The other arguments are
    as in `linear_form`.
    """
    above, below = outputs > limits[0], outputs < limits[1]
    room_below, room_above = real - outputs, outputs + 1 - real
    for side in [np.ones(outputs.shape, bool)] if sides is None else [sides > 0, sides < 0]:
        if (above & side).any():
            above &= ~side | (room_below < room_below[above & side].min() + _NEAR)
        if (below & side).any():
            below &= ~side | (room_above < room_above[below & side].min() + _NEAR)
    return above, below


def _find_bias(
    factors: tuple[int, ...],
    operands: Sequence[Ints],
    outputs: Ints,
    bits: int,
    deciding: tuple[Flags, Flags],
    sides: Ints | None,
) -> Linear | None:
    """Returns the form with these factors and a suitable bias (and lift); None if there is no such bias.

    The bias gives the right outputs for all entries in `deciding`, the result of `_deciding_entries`. If
    several biases do, the middle one is taken. The other arguments are as in `linear_form`.
    """
    sums = sum((f * x for f, x in zip(factors, operands, strict=True)), np.int64(0))
    least = (outputs << bits) - sums
    most = ((outputs + 1) << bits) - 1 - sums
    if sides is None:
        low, high = _bias_range(least, most, deciding)
        return Linear(factors, (low + high) // 2, bits) if low <= high else None
    if not any((flags & (sides < 0)).any() for flags in deciding):  # such as if zero is the least output
        sides = np.ones(sides.shape, np.int64)
    up = _bias_range(least, most, (deciding[0] & (sides > 0), deciding[1] & (sides > 0)))
    down = (
        _bias_range(least, most, (deciding[0] & (sides < 0), deciding[1] & (sides < 0)))
        if sides.min() < 0
        else up
    )
    if up[0] > up[1] or down[0] > down[1]:
        return None
    lift = round((sum(up) - sum(down)) / 4 / LIFTS) * LIFTS
    low, high = max(up[0] - lift, down[0] + lift), min(up[1] - lift, down[1] + lift)
    return Linear(factors, (low + high) // 2, bits, lift) if low <= high else None


def _bias_range(least: Ints, most: Ints, deciding: tuple[Flags, Flags]) -> tuple[int, int]:
    """Returns the smallest and the largest bias with which the deciding entries have the right outputs.

    `least`, `most`: for each entry alone, the smallest and the largest such bias. `deciding`: the result of
    `_deciding_entries`. There is no such bias if the first number is above the second.
    """
    low = int(least[deciding[0]].max()) if deciding[0].any() else None
    high = int(most[deciding[1]].min()) if deciding[1].any() else None
    if low is None:
        return (high, high) if high is not None else (0, 0)
    return low, low if high is None else high
