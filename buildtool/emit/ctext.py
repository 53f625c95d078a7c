"""Pieces of emitted C: identifiers and comments from the names that models carry, and lines.

Lines are as clang-format leaves them: long ones broken, blocks indented.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

COLUMNS = 100  # of a line, as in the project's .clang-format
_KEYWORDS = frozenset(
    """auto break case char const continue default do double else enum extern float for goto if inline int
    long register restrict return short signed sizeof static struct switch typedef union unsigned void
    volatile while main asm nn""".split()
)
# A network called `string` would put its string.h before the C library's in every include path.
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
    """A C identifier in lower case (letters, digits, underscores) that no header's name clashes with."""
    word = re.sub(r"[^0-9a-z]+", "_", name.lower()).strip("_") or "network"
    if word[0].isdigit() or word in _KEYWORDS or word in _HEADERS or word.startswith("nn_"):
        word = "net_" + word
    return word[:60].rstrip("_")


def comment(text: str) -> str:
    """Text of at most 80 characters that is safe inside a C comment, whoever wrote it.

    It cannot end the comment, open another one, continue a line, or hold a trigraph (`??/` is a
    backslash in C99).
    """
    safe = "".join(c if " " <= c <= "~" and c != "\\" else "_" for c in text)[:_LONGEST_COMMENT]
    for pair in ("*/", "/*", "??"):
        while pair in safe:
            safe = safe.replace(pair, f"{pair[0]} {pair[1]}")
    return safe[:_LONGEST_COMMENT].strip()


def shape(dims: tuple[int, ...]) -> str:
    """1x96x96x3."""
    return "x".join(str(n) for n in dims) or "scalar"


# ---- lines ------------------------------------------------------------------------------------------


def block(head: str, body: Iterable[str]) -> list[str]:
    """Statements in braces behind `head` ("": nothing)."""
    return [f"{head} {{".lstrip(), *("    " + line for line in body), "}"]


def plus(expression: str, offset: int) -> str:
    """C of an expression and a number; the expression alone for 0."""
    return f"{expression} {'+' if offset > 0 else '-'} {abs(offset)}" if offset else expression


def wrap(line: str, indent: int = 0) -> list[str]:
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


def indent_lines(lines: Iterable[str], indent: int = 4) -> list[str]:
    """Lines of a block."""
    return [row for line in lines for row in (wrap(line, indent) if line.strip() else [""])]


def join_continuations(text: str) -> list[str]:
    """Lines of C: long prototypes broken; a macro's body (the line after it) joined to it if it fits."""
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
