"""The sets of allowed offsets of place/search.py, in Python.

A set of offsets is an integer. Bit k stands for the offset of k units.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from buildtool.plan.place.instance import Instance
from buildtool.plan.place.search import WORD, Sets


class _Pair(NamedTuple):
    """An output and an input that may overlap in a section. Distances and sizes are in units.

    `union`: the least that both take together. `separate`: whether they may lie side by side.
    `farthest`: if they overlap, the greatest distance from the output's offset to the input's.
    """

    output: int
    input: int
    distance: int
    union: int
    separate: bool
    farthest: int


class _Section(NamedTuple):
    """The live items of a section, each in at most one pair. `slack`: free units."""

    singles: tuple[int, ...]
    pairs: tuple[_Pair, ...]
    slack: int


def allowed_offsets(instance: Instance, capacity: int) -> list[int]:
    """Returns each item's allowed offsets at a capacity (in units), as a set.

    All sets are empty (0) where nothing fits.
    """
    sizes, alignments = instance.size.tolist(), instance.alignment.tolist()
    offsets = []
    for size, alignment, pin in zip(sizes, alignments, instance.pinned.tolist(), strict=True):
        everywhere = _list_multiples(capacity - size, alignment) if size <= capacity else 0
        offsets.append(everywhere & (1 << pin) if pin >= 0 else everywhere)
    sections = _find_sections(instance, sizes, capacity)
    spans = list(zip(instance.first.tolist(), instance.last.tolist(), strict=True))
    for section in sections:
        # Items that live in one section only do not affect others.
        crossing = [i for i in section.singles if spans[i][1] - spans[i][0] > 1]
        if section.slack < 0 or not _restrict(section, crossing, sizes, capacity, offsets):
            return [0] * len(sizes)
    together = [pair for section in sections for pair in section.pairs if not pair.separate]
    return offsets if _propagate(together, offsets) else [0] * len(sizes)


def as_sets(offsets: Sequence[int], capacity: int) -> Sets:
    """Converts the sets of `allowed_offsets` to 64-bit words."""
    words = capacity // WORD + 1
    data = b"".join(of.to_bytes(8 * words, "little") for of in offsets)
    return np.frombuffer(data, "<u8").astype(np.uint64).reshape(-1, words)


def _spread_up(offsets: int, most: int) -> int:
    """Returns the offsets and all up to `most` above them."""
    reach = 0
    while reach < most:
        step = min(reach + 1, most - reach)
        offsets |= offsets << step
        reach += step
    return offsets


def _spread_down(offsets: int, most: int) -> int:
    """Returns the offsets and all down to `most` below them."""
    reach = 0
    while reach < most:
        step = min(reach + 1, most - reach)
        offsets |= offsets >> step
        reach += step
    return offsets


def _list_multiples(most: int, step: int) -> int:
    """Returns the multiples of `step` up to `most`."""
    return sum(1 << offset for offset in range(0, most + 1, step)) if step > 1 else (1 << most + 1) - 1


def _find_sections(instance: Instance, sizes: Sequence[int], capacity: int) -> list[_Section]:
    """Returns the sections that restrict offsets: nearly full ones in which no three items overlap."""
    spans = list(zip(instance.first.tolist(), instance.last.tolist(), strict=True))
    columns = (instance.share_output, instance.share_input, instance.share_distance, instance.share_units)
    shares = list(zip(*(column.tolist() for column in columns), strict=True))
    shared = list(zip(instance.share_first.tolist(), instance.share_last.tolist(), strict=True))
    sections = []
    for x in range(instance.sections):
        items = [i for i, (first, last) in enumerate(spans) if first <= x < last]
        permitted = [one for one, (first, last) in zip(shares, shared, strict=True) if first <= x < last]
        slack = capacity - sum(sizes[i] for i in items) + sum(units for *_, units in permitted)
        paired = {i for output, source, *_ in permitted for i in (output, source)}
        # otherwise nearly every offset is allowed, or three items overlap
        if 2 * slack <= capacity and len(paired) == 2 * len(permitted):
            pairs = []
            for o, i, away, _ in permitted:
                union = max(sizes[o], away + sizes[i])
                separate = sizes[o] + sizes[i] - union <= slack
                pairs.append(_Pair(o, i, away, union, separate, union + slack - sizes[i]))
            singles = tuple(i for i in items if i not in paired)
            sections.append(_Section(singles, tuple(pairs), slack))
    return sections


def _restrict(
    section: _Section, crossing: Sequence[int], sizes: Sequence[int], capacity: int, offsets: list[int]
) -> bool:
    """Restricts `offsets` of a section's items to its subset sums. False if an item has no offset left."""
    by_size: dict[int, int] = {}
    for i in crossing:
        if sizes[i] not in by_size:
            by_size[sizes[i]] = _spread_up(_sum_subsets(section, sizes, capacity, without=i), section.slack)
        offsets[i] &= by_size[sizes[i]]
        if not offsets[i]:
            return False
    for pair in section.pairs:
        o, i = pair.output, pair.input
        sums = _sum_subsets(section, sizes, capacity, beside=pair)
        output = _spread_up(sums, section.slack)
        source = _spread_up(output << pair.distance, pair.farthest - pair.distance)
        if pair.separate:
            source |= output | output << sizes[o]
            output |= output << sizes[i]
        offsets[o] &= output
        offsets[i] &= source
        if not offsets[o] or not offsets[i]:
            return False
    return True


def _sum_subsets(
    section: _Section, sizes: Sequence[int], capacity: int, without: int = -1, beside: _Pair | None = None
) -> int:
    """Returns the subset sums of a section's live items, without one item or pair."""
    sums, full = 1, (1 << capacity + 1) - 1
    for i in section.singles:
        if i != without:
            sums |= sums << sizes[i]
    for pair in section.pairs:
        if pair is beside:
            continue
        if pair.separate:
            sums |= sums << pair.union | sums << sizes[pair.output] | sums << sizes[pair.input]
        else:
            sums |= sums << pair.union
    return sums & full


def _propagate(together: Sequence[_Pair], offsets: list[int]) -> bool:
    """Restricts the offsets of pairs that must overlap, until nothing changes. False: none is left."""
    changed = True
    while changed:
        changed = False
        for pair in together:
            o, i, most = pair.output, pair.input, pair.farthest - pair.distance
            source = offsets[i] & _spread_up(offsets[o] << pair.distance, most)
            output = offsets[o] & _spread_down(source >> pair.distance, most)
            changed = changed or source != offsets[i] or output != offsets[o]
            offsets[i], offsets[o] = source, output
            if not source or not output:
                return False
    return True
