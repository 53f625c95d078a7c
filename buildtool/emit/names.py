"""C identifiers and comments from the names that models carry."""

from __future__ import annotations

import re

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
