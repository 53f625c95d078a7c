"""What changed between two answers, as text and as Markdown for a pull request."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from buildtool.fronts.changes.figures import COST
from buildtool.fronts.texts import builds, table
from buildtool.fronts.texts.table import count, plain

if TYPE_CHECKING:
    from buildtool.fronts.changes.compare import Change, Changes, RowChange

TITLES = ("figure", "before", "after", "change", "%")
PARTS = ("totals", "regions", "layers", "sizes")  # of the answer
MOST_ROWS = 40  # shown layers or regions of a table
MOST_SIZES = 200  # shown lines of the tree of sizes


def text(changes: Changes, exceeded: Sequence[str], depth: int = builds.DEPTH) -> str:
    """Returns tables of the totals, regions, layers and sizes that differ, and the exceeded limits.

    `depth` is the number of levels of the tree of sizes that it shows.
    """
    failures = [f"LIMIT EXCEEDED: {limit}" for limit in exceeded]
    if changes.is_equal:
        return "\n".join(["nothing changed", *failures])
    rows = [list(_cells(change)) for change in changes.totals]
    lines = [_headline(changes), "", table.table(TITLES, rows, spare=TITLES[-1:])]
    for title, differing in (("region", changes.regions), ("layer", changes.layers)):
        if differing:
            body = [[plain(row.label), row.how, plain(_change_words(row))] for row in differing[:MOST_ROWS]]
            lines += ["", table.table([title, "how", "what"], body), *_count_hidden(differing)]
    if changes.sizes:
        shown, hidden = _tree(changes, depth)
        tree: list[list[table.Cell]] = [[plain(name), *numbers] for name, *numbers in shown]
        lines += ["", table.table(["memory, and what is in it", "before", "after", "change"], tree), *hidden]
    return "\n".join([*lines, *(["", *failures] if failures else [])])


def markdown(changes: Changes, exceeded: Sequence[str], depth: int = builds.DEPTH) -> str:
    """Returns the tables of `text` as Markdown."""
    failures, title = [f"LIMIT EXCEEDED: {limit}" for limit in exceeded], f"**{_escape(_headline(changes))}**"
    if changes.is_equal:
        return "\n\n".join([f"{title}: nothing changed", *failures])
    lines = [title, "", "| figure | before | after | change |"]
    lines.append("| --- | ---: | ---: | ---: |")
    for change in changes.totals:
        name, before, after, growth, percent = _cells(change)
        text = table.cell(growth) if percent is None else f"{table.cell(growth)} ({percent} %)"
        lines.append(f"| {_escape(str(name))} | {table.cell(before)} | {table.cell(after)} | {text} |")
    for kind, differing in (("region", changes.regions), ("layer", changes.layers)):
        if differing:
            lines += ["", f"| {kind} | how | what |", "| --- | --- | --- |"]
            for row in differing[:MOST_ROWS]:
                lines.append(f"| {_escape(row.label)} | {row.how} | {_escape(_change_words(row))} |")
            lines += [f"\n{line}" for line in _count_hidden(differing)]
    if changes.sizes:
        shown, hidden = _tree(changes, depth)
        lines += [
            "",
            "| memory, and what is in it | before | after | change |",
            "| --- | ---: | ---: | ---: |",
        ]
        for name, *numbers in shown:
            words = name.lstrip(" ")
            inside = "&emsp;" * ((len(name) - len(words)) // builds.INDENT)
            lines.append(f"| {inside}{_escape(words)} | {' | '.join(map(table.cell, numbers))} |")
        lines += [f"\n{line}" for line in hidden]
    return "\n".join([*lines, *(["", *failures] if failures else [])])


Line = tuple[str, int | None, int | None, str]


def _tree(changes: Changes, depth: int) -> tuple[list[Line], list[str]]:
    """Returns the first lines of the tree of sizes, and a line that says how many are left out."""
    nodes = builds.tree_lines(changes.sizes, depth)
    lines = [(name, node.before, node.after, f"{node.growth:+,}") for name, node in nodes]
    return lines[:MOST_SIZES], _count_hidden(lines, MOST_SIZES)


def _headline(changes: Changes) -> str:
    before, after = plain(changes.before.about), plain(changes.after.about)
    return after if before == after else f"{before} -> {after}"


def _cells(change: Change) -> Iterator[table.Cell]:
    """Yields the cells of a row: name with unit, values before and after, growth, and growth in per cent."""
    name = plain(change.name)
    yield f"{name}, {change.unit}" if change.unit else name
    change = _rounded(change)
    yield change.before
    yield change.after
    growth, percent = change.growth, change.percent
    if growth is None:
        yield "not there before" if change.before is None else "not there any more"
    else:
        yield "0" if not growth else f"{growth:+,}" if isinstance(growth, int) else f"{growth:+,.2f}"
    yield None if percent is None or not growth else f"{percent:+.1f}"


def _rounded(change: Change) -> Change:
    """Returns a change of the cost rounded to whole units, and any other change as it is."""
    if change.name != COST:
        return change
    before, after = (None if value is None else round(value) for value in (change.before, change.after))
    return replace(change, before=before, after=after)


def _change_words(row: RowChange) -> str:
    """Returns a line that says what changed in a layer or a region."""
    parts = [word for word in row.words if word]
    for change in map(_rounded, row.numbers):
        name = change.name.replace("_", " ")
        before, after = (table.cell(value) or "none" for value in (change.before, change.after))
        values = {"changed": f"{before} -> {after}", "removed": before, "added": after}
        parts.append(f"{name} {values[row.how]}")
    return ", ".join(parts)


def _count_hidden(rows: Sequence[object], most: int = MOST_ROWS) -> list[str]:
    hidden = len(rows) - most
    return [f"and {count(hidden, 'further row')}"] if hidden > 0 else []


def _escape(text: str) -> str:
    """Returns a text from a file as a line of Markdown in which no character has a special meaning."""
    return re.sub(r"[\\`*\[\]<|#~&]", r"\\\g<0>", plain(text))
