"""What changed between two answers, as text and as Markdown for a pull request."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from buildtool.fronts.texts import builds, table
from buildtool.fronts.texts.table import count, plain

if TYPE_CHECKING:
    from buildtool.fronts.changes.compare import Change, Changes, RowChange

PARTS = ("totals", "regions", "layers", "sizes")  # of the answer
MOST_ROWS = 40  # layers or regions in a table
MOST_SIZES = 200  # lines of the tree of sizes


def text(found: Changes, exceeded: Sequence[str], depth: int = builds.DEPTH) -> str:
    """Tables of totals, regions, layers and sizes that differ, and the limits that are exceeded.

    `depth`: levels of the tree of sizes that are shown.
    """
    beyond = [f"LIMIT EXCEEDED: {limit}" for limit in exceeded]
    if found.is_equal:
        return "\n".join(["nothing changed", *beyond])
    rows = [list(_cells(change)) for change in found.totals]
    lines = [_headline(found), "", table.table(["figure", "before", "after", "change", "%"], rows)]
    for title, changed in (("region", found.regions), ("layer", found.layers)):
        if changed:
            body = [[plain(row.name), row.how, plain(_change_words(row))] for row in changed[:MOST_ROWS]]
            lines += ["", table.table([title, "how", "what"], body), *_more(changed)]
    if found.sizes:
        shown, left = _tree(found, depth)
        tree: list[list[table.Cell]] = [[plain(name), *numbers] for name, *numbers in shown]
        lines += ["", table.table(["memory, and what is in it", "before", "after", "change"], tree), *left]
    return "\n".join([*lines, *(["", *beyond] if beyond else [])])


def markdown(found: Changes, exceeded: Sequence[str], depth: int = builds.DEPTH) -> str:
    """The same as tables of Markdown."""
    beyond, title = [f"LIMIT EXCEEDED: {limit}" for limit in exceeded], f"**{_escape(_headline(found))}**"
    if found.is_equal:
        return "\n\n".join([f"{title}: nothing changed", *beyond])
    lines = [title, "", "| figure | before | after | change |"]
    lines.append("| --- | ---: | ---: | ---: |")
    for change in found.totals:
        name, before, after, growth, percent = _cells(change)
        said = table.cell(growth) if percent is None else f"{table.cell(growth)} ({percent} %)"
        lines.append(f"| {_escape(str(name))} | {table.cell(before)} | {table.cell(after)} | {said} |")
    for of, changed in (("region", found.regions), ("layer", found.layers)):
        if changed:
            lines += ["", f"| {of} | how | what |", "| --- | --- | --- |"]
            for row in changed[:MOST_ROWS]:
                lines.append(f"| {_escape(row.name)} | {row.how} | {_escape(_change_words(row))} |")
            lines += [f"\n{more}" for more in _more(changed)]
    if found.sizes:
        shown, left = _tree(found, depth)
        lines += [
            "",
            "| memory, and what is in it | before | after | change |",
            "| --- | ---: | ---: | ---: |",
        ]
        for name, *numbers in shown:
            words = name.lstrip(" ")
            inside = "&emsp;" * ((len(name) - len(words)) // builds.INDENT)
            lines.append(f"| {inside}{_escape(words)} | {' | '.join(map(table.cell, numbers))} |")
        lines += [f"\n{more}" for more in left]
    return "\n".join([*lines, *(["", *beyond] if beyond else [])])


Line = tuple[str, int | None, int | None, str]


def _tree(found: Changes, depth: int) -> tuple[list[Line], list[str]]:
    """The lines of the tree of sizes that are shown, and a line on the others."""
    nodes = builds.tree_lines(found.sizes, depth)
    lines = [(name, node.before, node.after, f"{node.growth:+,}") for name, node in nodes]
    return lines[:MOST_SIZES], _more(lines, MOST_SIZES)


def _headline(found: Changes) -> str:
    before, after = plain(found.before.about), plain(found.after.about)
    return after if before == after else f"{before} -> {after}"


def _cells(change: Change) -> Iterator[table.Cell]:
    """Name with its unit, before, after, growth and per cent with their signs."""
    name = plain(change.name)
    yield f"{name}, {change.unit}" if change.unit else name
    yield change.before
    yield change.after
    growth, percent = change.growth, change.percent
    if growth is None:
        yield "not there before" if change.before is None else "not there any more"
    else:
        yield "0" if not growth else f"{growth:+,}" if isinstance(growth, int) else f"{growth:+,.2f}"
    yield None if percent is None or not growth else f"{percent:+.1f}"


def _change_words(row: RowChange) -> str:
    """What a layer or a region has changed in, in a line."""
    parts = [word for word in row.words if word]
    for change in row.numbers:
        name = change.name.replace("_", " ")
        before, after = (table.cell(value) or "none" for value in (change.before, change.after))
        values = {"changed": f"{before} -> {after}", "removed": before, "added": after}
        parts.append(f"{name} {values[row.how]}")
    return ", ".join(parts)


def _more(rows: Sequence[object], most: int = MOST_ROWS) -> list[str]:
    left = len(rows) - most
    return [f"and {count(left, 'further row')}"] if left > 0 else []


def _escape(text: str) -> str:
    """Words of a file as one line of Markdown that shows them and does nothing else."""
    return re.sub(r"[\\`*\[\]<|#~&]", r"\\\g<0>", plain(text))
