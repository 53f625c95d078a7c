"""Makes text of emitted C: identifiers and comments from names in models, and lines.

Lines have the format of clang-format: long lines are broken, blocks are indented.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

COLUMNS = 100  # the longest line, as in the project's .clang-format
_KEYWORDS = frozenset(
    """auto break case char const continue default do double else enum extern float for goto if inline int
    long register restrict return short signed sizeof static struct switch typedef union unsigned void
    volatile while main asm nn""".split()
)
# The string.h of a network called `string` would hide the C library's.
_HEADERS = frozenset(
    """aio alloca assert complex cpio ctype curses dirent dlfcn elf endian errno error execinfo fcntl features
    fenv float fmtmsg fnmatch ftw getopt glob grp harness_io harness_net iconv ieee754 inttypes iso646
    langinfo libgen libintl limits link locale malloc math mcheck memory monetary mqueue ndbm netdb nl_types
    paths poll print pthread pwd regex sched search semaphore semihosting setjmp sgtty signal spawn stab
    stdalign stdarg stdatomic stdbool stdc_predef stddef stdint stdio stdlib stdnoreturn string strings
    stropts syscall syslog tar termio termios tgmath threads time trace uchar ucontext ulimit unistd utime
    utmp utmpx values wait wchar wctype wordexp""".split()
)
_LONGEST_COMMENT = 80


def identifier(name: str) -> str:
    """Returns a C identifier in lower case (letters, digits, underscores) that is not a header's name."""
    word = re.sub(r"[^0-9a-z]+", "_", name.lower()).strip("_") or "network"
    if word[0].isdigit() or word in _KEYWORDS or word in _HEADERS or word.startswith("nn_"):
        word = "net_" + word
    return word[:60].rstrip("_")


def comment(text: str) -> str:
    """Returns a text that is safe inside a C comment, cut to 80 characters.

    The result cannot end the comment, open another one, continue a line, or contain a trigraph (`??/` is a
    backslash in C99).
    """
    safe = "".join(c if " " <= c <= "~" and c != "\\" else "_" for c in text)[:_LONGEST_COMMENT]
    for pair in ("*/", "/*", "??"):
        while pair in safe:
            safe = safe.replace(pair, f"{pair[0]} {pair[1]}")
    return safe[:_LONGEST_COMMENT].strip()


def shape(dims: tuple[int, ...]) -> str:
    """Returns a shape as text, such as 1x96x96x3."""
    return "x".join(str(n) for n in dims) or "scalar"


# ---- lines ------------------------------------------------------------------------------------------


def block(head: str, body: Iterable[str]) -> list[str]:
    """Returns the lines of `body` in braces, after `head` ("": only the braces)."""
    return [f"{head} {{".lstrip(), *("    " + line for line in body), "}"]


def plus(expression: str, offset: int) -> str:
    """Returns C for the sum of an expression and a number; only the expression if the number is 0."""
    return f"{expression} {'+' if offset > 0 else '-'} {abs(offset)}" if offset else expression


def wrap(line: str, indent: int = 0) -> list[str]:
    """Returns `line`, indented and broken into several lines if it is too long.

    It is broken after its `=` if that is enough, otherwise after commas in its outermost parentheses.
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
    """Returns the arguments in a text that follows an opening parenthesis: it is cut at commas outside inner
    parentheses.
    """
    pieces, depth, start = [], 0, 0
    for place, character in enumerate(text):
        depth += (character in "({[") - (character in ")}]")
        if character == "," and depth == 0:
            pieces.append(text[start : place + 1].strip())
            start = place + 1
    return [*pieces, text[start:].strip()]


def indent_lines(lines: Iterable[str], indent: int = 4) -> list[str]:
    """Returns the lines of a block, indented and broken if too long."""
    return [row for line in lines for row in (wrap(line, indent) if line.strip() else [""])]


def join_continuations(text: str) -> list[str]:
    """Returns the lines of C text. Long prototypes are broken; a macro is joined with its body on the next
    line if that fits.
    """
    rows: list[str] = []
    for line in text.splitlines():
        if not (line.startswith("    ") and rows and rows[-1].startswith("#define")):
            rows += [line] if line.startswith(("#", "/", " ")) else wrap(line)
        elif len(rows[-1]) + 1 + len(line.strip()) <= COLUMNS:
            rows[-1] += " " + line.strip()
        else:
            rows[-1] = f"{rows[-1]:<{COLUMNS - 1}}\\"
            rows.append(line)
    return rows


def numbers(values: Iterable[str], indent: int = 4) -> list[str]:
    """Returns lines of numbers separated by commas; the last line has room for a closing brace."""
    rows, row = [], ""
    for value in values:
        part = f"{value},"
        if row and indent + len(row) + 1 + len(part) + 1 > COLUMNS:
            rows.append(row)
            row = part
        else:
            row = f"{row} {part}".strip()
    return [" " * indent + row for row in [*rows, row.rstrip(",")] if row]


def array_lines(data: bytes) -> list[str]:
    """Returns the lines of a C array of bytes, each of at most 100 characters."""
    lines, line = [], ""
    for number in map(str, data):
        if len(line) + len(number) + 1 > COLUMNS:
            lines.append(line)
            line = ""
        line += number + ","
    return [*lines, line]
