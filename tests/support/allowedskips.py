"""Which skips a strict run lets pass: those that tests/allowed_skips.txt excuses, and no other.

A run is strict when the environment variable BUILDTOOL_NO_SKIPS is set, as ./.ci/run does: there
everything that a test may need is installed, and a test that skips would vanish without a word.
"""

import os
import re
from collections.abc import Iterator

from paths import TESTS

SWITCH = "BUILDTOOL_NO_SKIPS"
LIST = TESTS / "allowed_skips.txt"


def is_strict() -> bool:
    """Whether a skip that is not on the list fails."""
    return bool(os.environ.get(SWITCH))


def entries(text: str) -> Iterator[tuple[str, str]]:
    """Each line's regular expression and why skips with such a reason are let pass.

    A line is `expression  # why`; empty lines and those that begin with # say nothing.
    """
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        expression, _, why = line.partition("  # ")
        if not why.strip():
            raise ValueError(f"{LIST.name}:{number}: a skip is allowed without saying why")
        yield expression.strip(), why.strip()


def refusal(reason: str) -> str | None:
    """What to say of a skip that is not allowed; None when it is, or when the run is not strict."""
    if not is_strict():
        return None
    reason = reason.removeprefix("Skipped: ")
    if any(re.fullmatch(expression, reason) for expression, _ in entries(LIST.read_text())):
        return None
    return f"skipped, which {SWITCH} forbids: {reason}\n(tests/{LIST.name} lists what may be skipped)"
