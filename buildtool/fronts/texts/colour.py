"""Colours on a terminal: verdicts, titles of tables, the arena's map. They say nothing that words do not."""

from __future__ import annotations

import re

RESET = "\x1b[0m"
BOLD, DIM, RED, GREEN, YELLOW, CYAN = (f"\x1b[{n}m" for n in (1, 2, 31, 32, 33, 36))
_GOOD = re.compile(r"^(EQUAL to|WITHIN THE BOUNDS)|: (EQUAL to)")
_BAD = re.compile(r"^(DIFFERENT|BEYOND THE BOUNDS|LIMIT exceeded|NOT COMPARED)|: (DIFFERENT)")
_RULE = re.compile(r"-[- ]*-|-")
_MAP = re.compile(r"^(.*\|)([a-zA-Z.]+)(\|)$")
_USES = {  # letters of the map
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


def answer(text: str) -> str:
    """An answer's text in colours; its characters and lines are the same."""
    lines = text.split("\n")
    found = []
    for at, line in enumerate(lines):
        follows_title = at + 1 < len(lines) and _is_rule(lines[at + 1]) and not _is_rule(line)
        found.append(f"{BOLD}{line}{RESET}" if follows_title and line else _line(line))
    return "\n".join(found)


def message(text: str) -> str:
    """An error or a note in colours: the word that says which it is."""
    return "\n".join(
        _MESSAGE.sub(lambda m: f"{m[1] or ''}{BOLD}{_MESSAGES[m[2]]}{m[2]}:{RESET}", line, count=1)
        for line in text.split("\n")
    )


def _is_rule(line: str) -> bool:
    return len(line) > 2 and _RULE.fullmatch(line) is not None


def _line(line: str) -> str:
    if _is_rule(line):
        return f"{DIM}{line}{RESET}"
    if found := _MAP.match(line):
        return f"{found[1]}{_cells(found[2])}{found[3]}"
    for pattern, colour in ((_GOOD, GREEN), (_BAD, RED)):
        if found := pattern.search(line):
            word = found[1] or found[2]
            return line.replace(word, f"{BOLD}{colour}{word}{RESET}", 1)
    return line


def _cells(text: str) -> str:
    """Runs of a letter in the colour of what it stands for."""
    runs = re.finditer(r"(.)\1*", text)
    return "".join(f"{_USES[run[1]]}{run[0]}{RESET}" if run[1] in _USES else run[0] for run in runs)
