"""Emitted C as clang-format leaves it: long lines broken, blocks indented."""

from __future__ import annotations

from collections.abc import Iterable

COLUMNS = 100  # of a line, as in the project's .clang-format


def wrapped(line: str, indent: int = 0) -> list[str]:
    """`line`, indented; if it is too long, broken after its `=` if that is enough, else after commas.

    The commas are those of its outermost parentheses.
    """
    text = " " * indent + line
    opening = text.find("(")
    if len(text) <= COLUMNS:
        return [text]
    name, equals, value = text.partition(" = ")
    margin = len(text) - len(text.lstrip()) + 4
    is_one = equals and "(" not in name and len(_arguments(value)) == 1
    if is_one and margin + len(value) <= COLUMNS:
        return [name + " =", " " * margin + value]
    if opening < 0:
        return [text]
    pieces = _arguments(text[opening + 1 :])
    column = " " * (opening + 1)
    rows = [text[: opening + 1] + pieces[0]]
    for piece in pieces[1:]:
        if len(rows[-1]) + 1 + len(piece) <= COLUMNS:
            rows[-1] += " " + piece
        else:
            rows.append(column + piece)
    return rows


def _arguments(text: str) -> list[str]:
    """What follows an opening parenthesis, cut after the commas at its depth."""
    pieces, depth, start = [], 0, 0
    for place, character in enumerate(text):
        depth += (character in "({[") - (character in ")}]")
        if character == "," and depth == 0:
            pieces.append(text[start : place + 1].strip())
            start = place + 1
    return [*pieces, text[start:].strip()]


def indented(lines: Iterable[str], indent: int = 4) -> list[str]:
    """Lines of a block."""
    return [row for line in lines for row in (wrapped(line, indent) if line.strip() else [""])]


def continued(text: str) -> list[str]:
    """Lines of C: long prototypes broken; a macro's body (the line after it) joined to it if it fits."""
    rows: list[str] = []
    for line in text.splitlines():
        if not (line.startswith("    ") and rows and rows[-1].startswith("#define")):
            rows += [line] if line.startswith(("#", "/", " ")) else wrapped(line)
        elif len(rows[-1]) + 1 + len(line.strip()) <= COLUMNS:
            rows[-1] += " " + line.strip()
        else:
            rows[-1] = f"{rows[-1]:<{COLUMNS - 1}}\\"
            rows.append(line)
    return rows


def numbers(values: Iterable[str], indent: int = 4) -> list[str]:
    """Numbers separated by commas, as many in a line as fit; room is left for what closes the list."""
    rows, row = [], ""
    for value in values:
        part = f"{value},"
        if row and indent + len(row) + 1 + len(part) + 1 > COLUMNS:
            rows.append(row)
            row = part
        else:
            row = f"{row} {part}".strip()
    return [" " * indent + row for row in [*rows, row.rstrip(",")] if row]
