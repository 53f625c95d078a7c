"""How two files' figures differ: totals, layers and regions, each before and after."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher

from buildtool.fronts.changes.figures import COST, MEMORY, METRICS, PERCENT, STATE, Figures, Number, Row
from buildtool.fronts.changes.sizetree import Node, changed, tree

MANY = 1000 * 1000  # pairs of rows


@dataclass(frozen=True)
class Change:
    """A figure before and after; None where a file has none. `unit`: "bytes", or "" of plain numbers."""

    name: str
    before: Number | None
    after: Number | None
    unit: str = ""

    @property
    def growth(self) -> Number | None:
        """By how much it grew; None where one of the two is missing."""
        return None if self.before is None or self.after is None else self.after - self.before

    @property
    def percent(self) -> float | None:
        """The growth in per cent of what was before; None where that is 0, missing, or itself in per cent."""
        growth = None if self.unit.startswith(PERCENT) else self.growth
        return None if growth is None or not self.before else 100.0 * growth / self.before


@dataclass(frozen=True)
class RowChange:
    """A layer or a region that differs: "changed", "added" or "removed"; `words`: "conv_a -> conv_b"."""

    name: str
    how: str
    numbers: tuple[Change, ...]
    words: tuple[str, ...]


@dataclass(frozen=True)
class Changes:
    """All that differs between two files; `totals` has every figure of either, also those that are equal.

    `sizes`: of the parts of two images, those that differ.
    """

    before: Figures
    after: Figures
    totals: tuple[Change, ...]
    layers: tuple[RowChange, ...]
    regions: tuple[RowChange, ...]
    sizes: tuple[Node, ...] = ()

    @property
    def is_equal(self) -> bool:
        """Whether no figure differs."""
        return not (self.layers or self.regions or self.sizes) and all(
            t.before == t.after for t in self.totals
        )


def changes(before: Figures, after: Figures) -> Changes:
    """What differs from one to the other."""
    totals = tuple(_totals(before, after))
    sizes = changed(tree(before.parts, after.parts)) if before.parts and after.parts else ()
    if before.rows_of != after.rows_of:
        return Changes(before, after, totals, (), (), sizes)
    pairs = [(before.layers, after.layers), (before.regions, after.regions)]
    if before.units.get(COST) != after.units.get(COST):
        pairs = [(_without_cost(old), _without_cost(new)) for old, new in pairs]
    layers, regions = (tuple(_rows(old, new)) for old, new in pairs)
    return Changes(before, after, totals, layers, regions, sizes)


def _without_cost(rows: Sequence[Row]) -> tuple[Row, ...]:
    return tuple(
        replace(row, numbers={name: n for name, n in row.numbers.items() if name != COST}) for row in rows
    )


def _totals(before: Figures, after: Figures) -> Iterator[Change]:
    names = [metric.name for metric in METRICS]
    names += sorted({name for one in (before, after) for name in one.totals if name.startswith(MEMORY)})
    for name in names:
        if name in before.totals or name in after.totals:
            old, new = before.totals.get(name), after.totals.get(name)
            if name == STATE and not old and not new:
                continue
            was, unit = before.units.get(name, ""), after.units.get(name, "")
            if old is not None and new is not None and was != unit:  # nothing says what one is in the other
                yield Change(name, old, None, was)
                old = None
            yield Change(name, old, new, unit or was)


def _rows(before: Sequence[Row], after: Sequence[Row]) -> Iterator[RowChange]:
    """Rows that differ, matched by their names in the order that they have."""
    matcher = SequenceMatcher(None, *_keys(before, after), autojunk=False)
    for tag, a0, a1, b0, b1 in matcher.get_opcodes():
        if tag == "equal":
            pairs = zip(before[a0:a1], after[b0:b1], strict=True)
            yield from (found for old, new in pairs if (found := _row(old, new)) is not None)
            continue
        yield from (_alone(row, "removed") for row in before[a0:a1])
        yield from (_alone(row, "added") for row in after[b0:b1])


def _keys(before: Sequence[Row], after: Sequence[Row]) -> tuple[Sequence[object], Sequence[object]]:
    """What rows are matched by: their names. Thousands of equal ones are numbered, because matching each
    with each takes minutes.
    """
    old, new = ([row.name for row in rows] for rows in (before, after))
    if len(old) * len(new) < MANY:
        return old, new
    return _numbered(old), _numbered(new)


def _numbered(names: Sequence[str]) -> list[tuple[str, int]]:
    times: Counter[str] = Counter()
    found = []
    for name in names:
        found.append((name, times[name]))
        times[name] += 1
    return found


def _row(old: Row, new: Row) -> RowChange | None:
    numbers = tuple(
        Change(name, old.numbers.get(name), new.numbers.get(name))
        for name in _names(old.numbers, new.numbers)
        if old.numbers.get(name) != new.numbers.get(name)
    )
    words = tuple(
        f"{old.words.get(name, 'none')} -> {new.words.get(name, 'none')}"
        for name in _names(old.words, new.words)
        if old.words.get(name) != new.words.get(name)
    )
    return RowChange(new.name, "changed", numbers, words) if numbers or words else None


def _alone(row: Row, how: str) -> RowChange:
    numbers = tuple(
        Change(name, value, None) if how == "removed" else Change(name, None, value)
        for name, value in row.numbers.items()
    )
    return RowChange(row.name, how, numbers, tuple(row.words.values()))


def _names(old: Mapping[str, object], new: Mapping[str, object]) -> list[str]:
    return list(dict.fromkeys([*old, *new]))
