"""Plain aligned tables: text to the left, numbers to the right with thousands separators.

If a table would be wider than `width` characters, its widest cells and titles are wrapped, and its longest
names lose their middle. If that is not enough, the columns that its caller needs least are left out, and a
line below the table says so. If that is not enough either, each row becomes a record: a few lines with the
titles before the values. Numbers are never shortened.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from itertools import zip_longest
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from buildtool.schema.plans import FloatWork, FourBitWeights, RemovedChannels
    from buildtool.schema.runs import Run


Cell = str | int | float | None
Row = TypeVar("Row")
WIDTH = 110  # characters of a line of output that does not go to a terminal
# Attempts to fit a table: the length up to which names are not shortened, and the gap between columns.
NARROWER = ((24, "  "), (16, "  "), (12, "  "), (12, " "))
READABLE = 2  # the first attempts; a column is left out before the others are made
_FIGURE = re.compile(r"[-+~<]?[\d.,x/]*\d[\d.,]*%?")
width: ContextVar[int] = ContextVar("width", default=WIDTH)


def cell(value: Cell) -> str:
    """Returns a value as text: integers with separators, floats with two digits, "" for None."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.2f}"
    return value


def table(
    titles: Sequence[str],
    rows: Sequence[Sequence[Cell]],
    total: Sequence[Cell] = (),
    *,
    spare: Sequence[str] = (),
) -> str:
    """Returns a table of rows under their titles, or the rows as records (see the module's docstring).

    `total` is its last line. A column that has a number is aligned to the right. Units belong in titles.
    `spare` has titles of columns that a narrow table may omit, in the order in which it omits them.
    """
    body = [*rows, *([total] if total else [])]
    texts = [[cell(value) for value in row] for row in body]
    for without in range(len(spare) + 1):
        shown = [i for i, title in enumerate(titles) if title not in spare[:without]]
        columns = [[titles[i], *(row[i] for row in texts)] for i in shown]
        attempts = NARROWER[:READABLE] if without < len(spare) else NARROWER
        if fitted := _fit_columns(columns, width.get(), attempts):
            break
    else:
        return "\n".join(_record(titles, row, width.get()) for row in texts)
    numeric = [any(isinstance(row[i], int | float) for row in body) for i in shown]
    lines = _lines(columns, numeric, *fitted, bool(total))
    absent = [title for title in titles if title in spare[:without]]
    if absent:
        lines.append(f"(left out at this width: {', '.join(dict.fromkeys(absent))})")
    return "\n".join(lines)


def _lines(
    columns: Sequence[Sequence[str]],
    numeric: Sequence[bool],
    widths: Sequence[int],
    gap: str,
    has_total: bool,
) -> list[str]:
    """Returns the lines of a table. The first cell of each column is its title.

    `numeric` says of each column whether it is aligned to the right, and `has_total` whether the last row is
    a total.
    """

    def format_row(row: Sequence[str]) -> str:
        cells = [_wrap(text, n) for text, n in zip(row, widths, strict=True)]
        return "\n".join(map(format_line, zip_longest(*cells, fillvalue="")))

    def format_line(row: Sequence[str]) -> str:
        parts = (
            text.rjust(n) if right else text.ljust(n)
            for text, n, right in zip(row, widths, numeric, strict=True)
        )
        return gap.join(parts).rstrip()

    rule = gap.join("-" * n for n in widths)
    title, *rows = (format_row(row) for row in zip(*columns, strict=True))
    lines = [title, rule, *rows]
    if has_total:
        lines.insert(len(lines) - 1, rule)
    return lines


def listing(
    rows: Iterable[Row], columns: Mapping[str, Callable[[Row], Cell]], *, spare: Sequence[str] = ()
) -> str:
    """Returns a table of objects. `columns` maps a title to the function that returns an object's cell.

    `spare` has titles of columns that a narrow table may omit (see `table`).
    """
    body = [[value(row) for value in columns.values()] for row in rows]
    return table(list(columns), body, spare=spare)


def _fit_columns(
    columns: Sequence[Sequence[str]], most: int, attempts: Sequence[tuple[int, str]]
) -> tuple[list[int], str] | None:
    """Returns the columns' widths and the gap between them, such that lines have at most `most` characters.

    `attempts` are tried in order: how far names may be shortened, and the gap (see NARROWER). Returns None if
    no attempt fits. Numbers keep their width.
    """
    widths = [max(map(len, texts)) for texts in columns]
    for longest, gap in attempts:
        minima = [
            max(_least_width(word, longest) for text in texts for word in text.split() or [""])
            for texts in columns
        ]
        while sum(widths) + len(gap) * (len(widths) - 1) > most:
            # Narrow the widest column that can be narrower.
            candidates = [i for i, (have, need) in enumerate(zip(widths, minima, strict=True)) if have > need]
            if not candidates:
                break
            widths[max(candidates, key=lambda i: widths[i])] -= 1
        else:
            return widths, gap
    return None


def _least_width(word: str, longest: int) -> int:
    """Returns the smallest width for a word. A name may be shortened to `longest`, a number may not."""
    return len(word) if _FIGURE.fullmatch(word) else min(len(word), longest)


def _wrap(text: str, most: int) -> list[str]:
    """Returns a cell's text in lines of at most `most` characters. Longer words lose their middle."""
    if len(text) <= most:
        return [text]
    words = " ".join(shorten(word, most) for word in text.split())
    return textwrap.wrap(words, most, break_on_hyphens=False)


def _record(titles: Sequence[str], row: Sequence[str], most: int) -> str:
    """Returns a row as lines: its name, and below it the titles with their values."""
    cells = [(title, text) for title, text in zip(titles, row, strict=True) if text]
    if not cells:
        return ""
    head = 2 if len(cells) > 1 and _FIGURE.fullmatch(cells[0][1]) else 1  # a number and its name
    lines = ["  ".join(shorten(text, most - 4) for _, text in cells[:head])]
    line = ""
    for title, text in cells[head:]:
        pair = shorten(f"{title}: {text}" if title else text, most - 2)
        if line and len(line) + 2 + len(pair) > most - 2:
            lines.append(f"  {line}")
            line = ""
        line += f"  {pair}" if line else pair
    return "\n".join([*lines, *([f"  {line}"] if line else [])])


def fold(text: str) -> str:
    """Wraps lines of prose that are too wide. Tables, also of Markdown, stay as they are.

    If a line begins with a label ("weights  80 bytes"), its further lines are indented by the label's width.
    """
    return "\n".join(_fold_line(line, width.get()) for line in text.split("\n"))


def _fold_line(line: str, most: int) -> str:
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
    """Returns `text` in at most `width` characters.

    A longer text loses its middle: layers differ at the end.
    """
    if len(text) <= width:
        return text
    begin = max(width - 3, 0) // 3
    return f"{text[:begin]}...{text[3 + begin - width :]}" if width > 3 else text[-width:]


def layer(name: str, width: int) -> str:
    """Returns a layer's name in at most `width` characters.

    If a converter joined several names with ';', only the first one counts.
    """
    return shorten(name.partition(";")[0], width)


def count(number: int, unit: str) -> str:
    """Returns a number with its unit: 1 byte, 55,296 bytes."""
    return f"{number:,} {unit}" if number == 1 else f"{number:,} {unit}s"


def headline(answer: Run) -> str:
    """Returns a line about a run: model, board, what ran it, compiler and strategy."""
    how = ", ".join((answer["level_text"], answer["compiler"], answer["strategy"]))
    return f"{answer['model']} on {answer['board']} ({how})"


def plain(text: str) -> str:
    """Returns a text from a file as one line without control codes."""
    return "".join(one if one.isprintable() else " " for one in text)


def state_suffix(size: int) -> str:
    """Returns words about the state's bytes, which follow an arena's size; "" if there is no state."""
    return f" and {count(size, 'byte')} of state" if size else ""


def removed_text(removed: RemovedChannels) -> str:
    """Returns words that say how many channels are removed, and what that saves."""
    channels = f"{removed['channels']:,} of {removed['total_channels']:,}"
    some = f"{channels} are removed, as they are constant or unused"
    macs = f"MACs {removed['total_macs']:,} -> {removed['macs']:,}"
    sizes = f"{removed['total_weight_bytes']:,} -> {removed['weight_bytes']:,} bytes"
    return f"{some}; {macs}, weights before packing {sizes}"


def four_bits_text(weights: FourBitWeights) -> str:
    """Returns words that say how many operators' weights are stored in four bits, and what that saves."""
    some = f"{weights['operators']:,} of {count(weights['total_operators'], 'operator')} with weights"
    return f"weights of {some} in four bits: {weights['total_bytes']:,} -> {weights['bytes']:,} bytes"


def floats_text(work: FloatWork) -> str:
    """Returns words that say how many operators compute in float32, and what share of the cost that is."""
    how = "by the core's float unit" if work["float_unit"] else "in software: the core has no float unit"
    some = f"{work['operators']:,} of {count(work['operators_of_network'], 'operator')}"
    return f"{some} in float32, {100 * work['cost_share']:.1f} % of the cost, {how}"


RESET = "\x1b[0m"
BOLD, DIM, RED, GREEN, YELLOW, CYAN = (f"\x1b[{n}m" for n in (1, 2, 31, 32, 33, 36))
_GOOD = re.compile(r"^(EQUAL to|WITHIN THE BOUNDS)|: (EQUAL to)")
_BAD = re.compile(r"^(DIFFERENT|BEYOND (?:THE BOUNDS|ITS BOUND)|LIMIT EXCEEDED|NOT COMPARED)|: (DIFFERENT)")
_RULE = re.compile(r"-[- ]*-|-")
_MAP = re.compile(r"^(.*\|)([a-zA-Z.]+)(\|)$")
_USES = {  # colours of the map's letters
    "i": "\x1b[34m",
    "o": "\x1b[32m",
    "k": "\x1b[36m",
    "r": "\x1b[35m",
    "w": "\x1b[33m",
    "a": "\x1b[33m",
    "s": "\x1b[31m",
    "W": "\x1b[37m",
    ".": DIM,
}
_MESSAGE = re.compile(r"^(.*?\b)?(error|warning|note|hint):")
_MESSAGES = {"error": RED, "warning": YELLOW, "note": CYAN, "hint": CYAN}


def coloured(text: str) -> str:
    """Returns an answer's text with colours. The characters and lines are the same."""
    lines = text.split("\n")
    result = []
    for i, line in enumerate(lines):
        is_title = i + 1 < len(lines) and _is_rule(lines[i + 1]) and not _is_rule(line)
        result.append(f"{BOLD}{line}{RESET}" if is_title and line else _colour_line(line))
    return "\n".join(result)


def coloured_message(text: str) -> str:
    """Returns an error or a note with its first word in colour."""
    return "\n".join(
        _MESSAGE.sub(lambda m: f"{m[1] or ''}{BOLD}{_MESSAGES[m[2]]}{m[2]}:{RESET}", line, count=1)
        for line in text.split("\n")
    )


def _is_rule(line: str) -> bool:
    return len(line) > 2 and _RULE.fullmatch(line) is not None


def _colour_line(line: str) -> str:
    if _is_rule(line):
        return f"{DIM}{line}{RESET}"
    if match := _MAP.match(line):
        return f"{match[1]}{_colour_map(match[2])}{match[3]}"
    for pattern, colour in ((_GOOD, GREEN), (_BAD, RED)):
        if match := pattern.search(line):
            word = match[1] or match[2]
            return line.replace(word, f"{BOLD}{colour}{word}{RESET}", 1)
    return line


def _colour_map(text: str) -> str:
    """Returns a line of the arena's map, with each letter in the colour of its use."""
    runs = re.finditer(r"(.)\1*", text)
    return "".join(f"{_USES[run[1]]}{run[0]}{RESET}" if run[1] in _USES else run[0] for run in runs)
