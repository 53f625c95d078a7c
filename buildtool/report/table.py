"""Plain aligned tables: text to the left, numbers to the right with thousands separated."""

from __future__ import annotations

from collections.abc import Sequence

from buildtool.schema.runs import Run

Cell = str | int | float | None


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
    widths = [max(len(row[i]) for row in [list(titles), *texts]) for i in range(len(titles))]

    def line(row: Sequence[str]) -> str:
        parts = (
            text.rjust(width) if right else text.ljust(width)
            for text, width, right in zip(row, widths, numeric, strict=True)
        )
        return "  ".join(parts).rstrip()

    rule = "  ".join("-" * width for width in widths)
    lines = [line(titles), rule, *map(line, texts)]
    if total:
        lines.insert(len(lines) - 1, rule)
    return "\n".join(lines)


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
    how = ", ".join((answer["level"], answer["compiler"], answer["strategy"]))
    return f"{answer['model']} on {answer['board']} ({how})"
