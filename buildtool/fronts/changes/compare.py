"""Compares the figures of two saved answers: totals, layers and regions, before and after."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from typing import TYPE_CHECKING

from buildtool.base.errors import UsageError, did_you_mean
from buildtool.base.sizes import unit_bytes
from buildtool.fronts.changes.figures import (
    COST,
    HIGHER_IS_BETTER,
    MEMORY,
    METRICS,
    PERCENT,
    SHARES,
    STATE,
    Figures,
    Number,
    Row,
    shares,
)
from buildtool.fronts.changes.sizetree import Node, changed_nodes, tree

if TYPE_CHECKING:
    from buildtool.schema.datasets import DatasetAnswer


MANY = 1000 * 1000  # pairs of rows from which equal names are numbered


@dataclass(frozen=True)
class Change:
    """A figure's values in two files (None: the file lacks it). `unit` is "" for plain numbers."""

    name: str
    before: Number | None
    after: Number | None
    unit: str = ""

    @property
    def growth(self) -> Number | None:
        """Returns `after` minus `before`, or None if one of them is missing."""
        return None if self.before is None or self.after is None else self.after - self.before

    @property
    def percent(self) -> float | None:
        """Returns the growth in per cent of `before`.

        None if `before` is 0, if a value is missing, or if the figure itself is in per cent.
        """
        growth = None if self.unit.startswith(PERCENT) else self.growth
        return None if growth is None or not self.before else 100.0 * growth / self.before


@dataclass(frozen=True)
class RowChange:
    """A layer or a region that differs between two files.

    - `label`: its short name.
    - `how`: "changed", "added" or "removed".
    - `words`: changes of texts, such as "conv_a -> conv_b".
    """

    name: str
    label: str
    how: str
    numbers: tuple[Change, ...]
    words: tuple[str, ...]


@dataclass(frozen=True)
class Changes:
    """The differences between two files.

    `totals` has all total figures, also those that are equal. `sizes` are the parts that differ between two
    firmware images.
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
    """Returns the differences between two files' figures."""
    totals = tuple(_totals(before, after))
    sizes = changed_nodes(tree(before.parts, after.parts)) if before.parts and after.parts else ()
    if before.rows_of != after.rows_of:
        return Changes(before, after, totals, (), (), sizes)
    pairs = [(before.layers, after.layers), (before.regions, after.regions)]
    ignored = COST if before.units.get(COST) != after.units.get(COST) else ""
    layers, regions = (tuple(_changed_rows(old, new, ignored)) for old, new in pairs)
    return Changes(before, after, totals, layers, regions, sizes)


def _totals(before: Figures, after: Figures) -> Iterator[Change]:
    names = [metric.name for metric in METRICS]
    names += sorted({name for one in (before, after) for name in one.totals if name.startswith(MEMORY)})
    for name in names:
        if name in before.totals or name in after.totals:
            old, new = before.totals.get(name), after.totals.get(name)
            if name == STATE and not old and not new:
                continue
            old_unit, unit = before.units.get(name, ""), after.units.get(name, "")
            if old is not None and new is not None and old_unit != unit:  # the units cannot be converted
                yield Change(name, old, None, old_unit)
                old = None
            yield Change(name, old, new, unit or old_unit)


def _changed_rows(before: Sequence[Row], after: Sequence[Row], ignored: str) -> Iterator[RowChange]:
    """Yields the rows that differ in a word or in a number other than `ignored`.

    Rows are matched by name and order. In long lists, rows of the same name are also matched by a number,
    because comparing each of them with every other would take minutes. A row is labelled with its full name
    if its short name stands for another row in `before`.
    """
    labelled = {row.label: row.name for row in before}
    ambiguous = {row.label for row in after if labelled.get(row.label, row.name) != row.name}
    old_keys, new_keys = ([(row.name, 0) for row in rows] for rows in (before, after))
    if len(before) * len(after) >= MANY:
        for names in (old_keys, new_keys):
            times: Counter[str] = Counter()
            for i, (name, _) in enumerate(names):
                names[i] = name, times[name]
                times[name] += 1
    for tag, a0, a1, b0, b1 in SequenceMatcher(None, old_keys, new_keys, autojunk=False).get_opcodes():
        if tag == "equal":
            pairs = [(old, new, "changed") for old, new in zip(before[a0:a1], after[b0:b1], strict=True)]
        else:
            pairs = [(row, replace(row, numbers={}, words={}), "removed") for row in before[a0:a1]]
            pairs += [(replace(row, numbers={}, words={}), row, "added") for row in after[b0:b1]]
        for old, new, how in pairs:
            numbers = tuple(
                Change(name, old.numbers.get(name), new.numbers.get(name))
                for name in dict.fromkeys([*old.numbers, *new.numbers])
                if old.numbers.get(name) != new.numbers.get(name) and name != ignored
            )
            words = [*{**old.words, **new.words}.values()]
            if how == "changed":
                words = [
                    f"{old.words.get(name, 'none')} -> {new.words.get(name, 'none')}"
                    for name in dict.fromkeys([*old.words, *new.words])
                    if old.words.get(name) != new.words.get(name)
                ]
            if numbers or words or how != "changed":
                label = new.name if new.label in ambiguous else new.label
                yield RowChange(new.name, label, how, numbers, tuple(words))


_RULE = re.compile(r"([A-Za-z][\w.-]*)\+([0-9]+(?:\.[0-9]+)?)(%| *[A-Za-z]*)")
_FLOOR = re.compile(r"([A-Za-z]\w*)<([0-9]+(?:\.[0-9]+)?)(%?)")
_FLOOR_HELP = "write a figure, < and its lower limit: top1<70%, recall<50%, precision<0.5"
_HELP = "write a figure, + and its largest growth: ram+2%, weights+4K, f+0.05"


@dataclass(frozen=True)
class Limit:
    """The largest growth that a figure may have, in per cent of its earlier value or in its own unit."""

    text: str
    name: str
    most: float
    is_percent: bool


@dataclass(frozen=True)
class Floor:
    """The lower limit of a figure that is a share, from 0 to 1."""

    text: str
    name: str
    least: float


def parse_limit(text: str) -> Limit | Floor:
    """Parses a limit. Raises UsageError if the text is not a limit or names an unknown figure."""
    if "<" in text:
        return parse_floor(text)
    names = [metric.name for metric in METRICS]
    match = _RULE.fullmatch(text)
    scale = None if match is None else 1 if match[3] == "%" else unit_bytes(match[3].strip())
    if match is None or scale is None:
        raise _usage_error(f"'{text}' is not a limit", _HELP)
    name, number, unit = match.groups()
    if name not in names and not name.startswith(MEMORY):
        hint = did_you_mean(name, [*names, f"{MEMORY}NAME"])
        raise _usage_error(f"'{text}': there is no figure '{name}'", hint)
    if name in HIGHER_IS_BETTER:
        hint = f"{name}<70%" if name in SHARES else "elements_different+0"
        raise _usage_error(f"'{text}': '{name}' may grow, since higher is better", hint)
    return Limit(text, name, float(number) * scale, unit == "%")


def parse_floor(text: str) -> Floor:
    """Parses a lower limit. Raises UsageError if the text is not a lower limit or names an unknown figure."""
    match = _FLOOR.fullmatch(text)
    if match is None:
        raise _usage_error(f"'{text}' is not a limit", _FLOOR_HELP)
    name, number, unit = match.groups()
    if name not in SHARES:
        raise _usage_error(f"'{text}': there is no figure '{name}'", did_you_mean(name, SHARES))
    least = float(number) / (100 if unit else 1)
    if least > 1:
        hint = _FLOOR_HELP if unit else f"{name}<{number}%"
        raise _usage_error(f"'{text}': a share is never above 1, which is 100%", hint)
    return Floor(text, name, least)


def _usage_error(what: str, hint: str) -> UsageError:
    return UsageError(what, option="fail_if", hint=hint)


def missed_floors(floors: Sequence[Floor], answer: DatasetAnswer) -> list[str]:
    """Returns a text for each lower limit that an answer is below. Raises UsageError if it has no
    accuracy.
    """
    if not floors:
        return []
    accuracy = answer["accuracy"]
    if accuracy is None:
        raise _usage_error(f"there is no accuracy: {answer['no_accuracy']}", "give labels")
    values = shares(accuracy)
    return [floor.text for floor in floors if values[floor.name] < floor.least]


def exceeded_limits(limits: Sequence[Limit | Floor], totals: Sequence[Change]) -> list[str]:
    """Returns a text for each exceeded limit. Raises UsageError for a figure that one of the files lacks."""
    by_name = {change.name: change for change in totals}
    exceeded = []
    for limit in limits:
        change = by_name.get(limit.name)
        if isinstance(limit, Floor):
            if change is None or change.after is None:
                hint = "buildtool validate MODEL --board B --data FILE --json, with labels"
                raise _usage_error(f"'{limit.text}': the second file has no '{limit.name}'", hint)
            is_exceeded = change.after / 100 < limit.least
        else:
            if change is None or change.growth is None or change.before is None:
                common = [name for name, one in by_name.items() if one.growth is not None]
                hint = "both have: " + ", ".join(common) if common else "the files are of different commands"
                raise _usage_error(f"'{limit.text}': not both files have '{limit.name}'", hint)
            most = limit.most * change.before / 100 if limit.is_percent else limit.most
            is_exceeded = change.growth > most
        if is_exceeded:
            exceeded.append(limit.text)
    return exceeded
