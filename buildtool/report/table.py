"""Plain aligned tables: text to the left, numbers to the right with thousands separated.

A table that is wider than `width` characters has its widest cells, titles among them, in several lines.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from contextvars import ContextVar
from itertools import zip_longest
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from buildtool.schema.runs import Run

Cell = str | int | float | None
WIDTH = 110  # characters, of output that goes to no terminal
LONGEST_WORDS = (24, 12, 6)  # characters of a word that is not broken, in ever narrower tables
width: ContextVar[int] = ContextVar("width", default=WIDTH)


def cell(value: Cell) -> str:
    """A value as text: integers with separators, floats with two digits, nothing for None."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.2f}"
    return value


def table(titles: Sequence[str], rows: Sequence[Sequence[Cell]], total: Sequence[Cell] = ()) -> str:
    """Rows under their titles, and a line of totals when there is one.

    A column is a number's when any of its values is one; its unit belongs in its title.
    """
    body = [*rows, *([total] if total else [])]
    numeric = [any(isinstance(row[i], int | float) for row in body) for i in range(len(titles))]
    texts = [[cell(value) for value in row] for row in body]
    columns = [[list(titles)[i], *(row[i] for row in texts)] for i in range(len(titles))]
    widths = _fitted(columns, numeric, width.get())

    def lines(row: Sequence[str]) -> str:
        cells = [_wrapped(text, n) for text, n in zip(row, widths, strict=True)]
        return "\n".join(map(line, zip_longest(*cells, fillvalue="")))

    def line(row: Sequence[str]) -> str:
        parts = (
            text.rjust(n) if right else text.ljust(n)
            for text, n, right in zip(row, widths, numeric, strict=True)
        )
        return "  ".join(parts).rstrip()

    rule = "  ".join("-" * n for n in widths)
    made = [lines(titles), rule, *map(lines, texts)]
    if total:
        made.insert(len(made) - 1, rule)
    return "\n".join(made)


def _fitted(columns: Sequence[Sequence[str]], numeric: Sequence[bool], most: int) -> list[int]:
    """Columns' widths: as wide as their texts, or narrower where the table would be wider than `most`.

    A column is as wide as its longest word, unless that is too much; numbers are never broken.
    """
    widths = [max(map(len, texts)) for texts in columns]
    for longest in LONGEST_WORDS:
        least = [
            max(
                len(word) if right else min(len(word), longest)
                for text in texts
                for word in text.split() or [""]
            )
            for texts, right in zip(columns, numeric, strict=True)
        ]
        while sum(widths) + 2 * (len(widths) - 1) > most:
            # of the columns that can give way, the widest
            room = [i for i, (have, need) in enumerate(zip(widths, least, strict=True)) if have > need]
            if not room:
                break
            widths[max(room, key=lambda i: widths[i])] -= 1
    return widths


def _wrapped(text: str, most: int) -> list[str]:
    if len(text) <= most:
        return [text]
    return textwrap.wrap(text, most)


def folded(text: str) -> str:
    """Lines of prose that are too wide, in several lines; tables stay as they are, those of Markdown too.

    What follows a label ("weights  80 bytes") goes on below itself.
    """
    return "\n".join(_folded(line, width.get()) for line in text.split("\n"))


def _folded(line: str, most: int) -> str:
    indent = len(line) - len(line.lstrip())
    parts = [part for part in line[indent:].split("  ") if part]
    if len(line) <= most or len(parts) > 2 or indent >= most // 2 or line.startswith("|"):
        return line
    hang = line.index(parts[1].strip(), indent + len(parts[0])) if len(parts) == 2 else indent + 2
    hang = hang if hang < most // 2 else indent + 2
    head = line[:hang] if len(parts) == 2 else " " * indent
    rest = line[len(head) :]
    wrap = textwrap.wrap(
        rest,
        most,
        initial_indent=head,
        subsequent_indent=" " * hang,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return "\n".join(wrap)


def shorten(text: str, width: int) -> str:
    """`text` in at most `width` characters; the end is kept, it tells layers apart."""
    return text if len(text) <= width else "..." + text[3 - width :]


def layer(name: str, width: int) -> str:
    """A layer's name for a column; of the names that a converter joined with ';', the first."""
    return shorten(name.partition(";")[0], width)


def count(number: int, unit: str) -> str:
    """A number with its unit: 1 byte, 55,296 bytes."""
    return f"{number:,} {unit}" if number == 1 else f"{number:,} {unit}s"


def headline(answer: Run) -> str:
    """What was run, and by what: model, board, how real the run was, compiler, strategy."""
    how = ", ".join((answer["level_text"], answer["compiler"], answer["strategy"]))
    return f"{answer['model']} on {answer['board']} ({how})"
