"""C identifiers and comments from the names that models carry."""

from __future__ import annotations

import re

_RESERVED = frozenset(
    """auto break case char const continue default do double else enum extern float for goto if inline int
    long register restrict return short signed sizeof static struct switch typedef union unsigned void
    volatile while main asm nn""".split()
)


def identifier(name: str) -> str:
    """A C identifier in lower case: letters, digits, underscores."""
    word = re.sub(r"[^0-9a-z]+", "_", name.lower()).strip("_") or "network"
    if word[0].isdigit() or word in _RESERVED or word.startswith("nn_"):
        word = "net_" + word
    return word[:60]


def comment(text: str) -> str:
    """Text that cannot end a C comment or start a line continuation; at most 80 characters."""
    safe = "".join(c if " " <= c <= "~" and c != "\\" else "?" for c in text)
    return safe.replace("*/", "* /").replace("/*", "/ *")[:80]


def shape(dims: tuple[int, ...]) -> str:
    """1x96x96x3."""
    return "x".join(str(n) for n in dims) or "scalar"
