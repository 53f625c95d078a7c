"""The skips that a strict run allows: those listed in tests/allowed_skips.txt.

A run is strict when the environment variable BUILDTOOL_NO_SKIPS is set. ./.ci/run sets it: everything that
a test may need is installed there, so a skip would hide a missing tool.
"""

import os
import re
from collections.abc import Iterator

from paths import TESTS

SWITCH = "BUILDTOOL_NO_SKIPS"
LIST = TESTS / "allowed_skips.txt"


def entries(text: str) -> Iterator[tuple[str, str]]:
    """Yields (regular expression of skip reasons, why such skips are allowed) for each line.

    A line is `expression  # why`. Empty lines and lines that begin with # are ignored.
    """
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        expression, _, why = line.partition("  # ")
        if not why.strip():
            raise ValueError(f"{LIST.name}:{number}: a skip is allowed without saying why")
        yield expression.strip(), why.strip()


def refusal(reason: str) -> str | None:
    """Returns the error message for a skip. None: it is allowed, or the run is not strict."""
    if not os.environ.get(SWITCH):
        return None
    reason = reason.removeprefix("Skipped: ")
    if any(re.fullmatch(expression, reason) for expression, _ in entries(LIST.read_text())):
        return None
    return f"skipped, which {SWITCH} forbids: {reason}\n(tests/{LIST.name} lists what may be skipped)"
