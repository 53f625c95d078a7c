"""The sets of place/search.py, which says what they are, in Python.

Sets of offsets are integers, bit k for the offset of k units.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from buildtool.plan.place.instance import Instance
from buildtool.plan.place.search import WORD, Sets


class _Pair(NamedTuple):
    """An output and an input that may overlap, both live in a section; distances and sizes in units.

    `union`: what both take at the least together; `separate`: whether they may lie side by side there;
    `farthest`: if they overlap, most units from the output's offset to the input's.
    """

    output: int
    input: int
    distance: int
    union: int
    separate: bool
    farthest: int


class _Section(NamedTuple):
    """What is live in a section, in which no item has two permissions; `slack`: units that are left."""

    singles: tuple[int, ...]
    pairs: tuple[_Pair, ...]
    slack: int


def allowed_offsets(instance: Instance, capacity: int) -> list[int]:
    """Item -> the offsets that are left to it at a capacity (in units), as a set of bits.

    Where nothing fits, that is nowhere: 0.
    """
    sizes, alignments = instance.size.tolist(), instance.alignment.tolist()
    found = []
    for size, alignment, pin in zip(sizes, alignments, instance.pinned.tolist(), strict=True):
        everywhere = _multiples(capacity - size, alignment) if size <= capacity else 0
        found.append(everywhere & (1 << pin) if pin >= 0 else everywhere)
    sections = _sections(instance, sizes, capacity)
    spans = list(zip(instance.first.tolist(), instance.last.tolist(), strict=True))
    for section in sections:
        # What lives in one section only has nothing to tell to others.
        crossing = [i for i in section.singles if spans[i][1] - spans[i][0] > 1]
        if section.slack < 0 or not _fill(section, crossing, sizes, capacity, found):
            return [0] * len(sizes)
    together = [pair for section in sections for pair in section.pairs if not pair.separate]
    return found if _agree(together, found) else [0] * len(sizes)


def as_sets(offsets: Sequence[int], capacity: int) -> Sets:
    """What `allowed_offsets` found, in words."""
    words = capacity // WORD + 1
    data = b"".join(of.to_bytes(8 * words, "little") for of in offsets)
    return np.frombuffer(data, "<u8").astype(np.uint64).reshape(-1, words)


def _up(offsets: int, most: int) -> int:
    """The offsets, and all above them by `most` at the most."""
    done = 0
    while done < most:
        step = min(done + 1, most - done)
        offsets |= offsets << step
        done += step
    return offsets


def _down(offsets: int, most: int) -> int:
    """The offsets, and all below them by `most` at the most."""
    done = 0
    while done < most:
        step = min(done + 1, most - done)
        offsets |= offsets >> step
        done += step
    return offsets


def _multiples(most: int, step: int) -> int:
    """The multiples of `step` up to `most`."""
    return sum(1 << offset for offset in range(0, most + 1, step)) if step > 1 else (1 << most + 1) - 1


def _sections(instance: Instance, sizes: Sequence[int], capacity: int) -> list[_Section]:
    """The sections of which something can be told: nearly full ones, in which no three items overlap."""
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
        # else nearly every offset would be left, or three items overlap
        if 2 * slack <= capacity and len(paired) == 2 * len(permitted):
            pairs = []
            for o, i, away, _ in permitted:
                union = max(sizes[o], away + sizes[i])
                separate = sizes[o] + sizes[i] - union <= slack
                pairs.append(_Pair(o, i, away, union, separate, union + slack - sizes[i]))
            singles = tuple(i for i in items if i not in paired)
            sections.append(_Section(singles, tuple(pairs), slack))
    return sections


def _fill(
    section: _Section, crossing: Sequence[int], sizes: Sequence[int], capacity: int, found: list[int]
) -> bool:
    """Leaves to the items of a section, in `found`, what its subset sums allow; false if that is nothing."""
    by_size: dict[int, int] = {}
    for i in crossing:
        if sizes[i] not in by_size:
            by_size[sizes[i]] = _up(_sums(section, sizes, capacity, without=i), section.slack)
        found[i] &= by_size[sizes[i]]
        if not found[i]:
            return False
    for pair in section.pairs:
        o, i = pair.output, pair.input
        sums = _sums(section, sizes, capacity, beside=pair)
        output = _up(sums, section.slack)
        source = _up(output << pair.distance, pair.farthest - pair.distance)
        if pair.separate:
            source |= output | output << sizes[o]
            output |= output << sizes[i]
        found[o] &= output
        found[i] &= source
        if not found[o] or not found[i]:
            return False
    return True


def _sums(
    section: _Section, sizes: Sequence[int], capacity: int, without: int = -1, beside: _Pair | None = None
) -> int:
    """What can lie below something: sums of what is live in the section, but for one item or pair."""
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


def _agree(together: Sequence[_Pair], found: list[int]) -> bool:
    """Carries what is left along pairs that have to overlap, to the end; false: nothing is left."""
    changed = True
    while changed:
        changed = False
        for pair in together:
            o, i, most = pair.output, pair.input, pair.farthest - pair.distance
            source = found[i] & _up(found[o] << pair.distance, most)
            output = found[o] & _down(source >> pair.distance, most)
            changed = changed or source != found[i] or output != found[o]
            found[i], found[o] = source, output
            if not source or not output:
                return False
    return True
