"""What a rule of Make, Ninja or CMake reads about a command: a depfile and a stamp.

The stamp is the rule's one output. It is gone while files get their content and comes last, so that a command
that was killed runs again whatever times say. Its time is when the command began: a model that is saved while
it is planned is newer, and planned again. The files themselves change only where their content does.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path

from buildtool.base.errors import UsageError
from buildtool.base.outfiles import write


def depfile(target: str, files: Iterable[str]) -> bytes:
    """The rule `target: files` as Make, Ninja and CMake read it, a file a line, sorted.

    Make alone reads a semicolon and brackets as its own, and knows no way to escape them.
    UsageError for a name with a line break, which none of them can read.
    """
    lines = [_escaped(target) + ":", *(_escaped(name) for name in sorted(set(files)))]
    return (" \\\n  ".join(lines) + "\n").encode(errors="surrogateescape")


def _escaped(name: str) -> str:
    """A name as Ninja's and Make's readers take it: blanks, hashes and dollars have a meaning of their own.

    Backslashes stand for themselves but before a blank or a hash.
    """
    if "\n" in name or "\r" in name:
        raise UsageError("a file with a line break in its name cannot stand in a depfile", path=repr(name))
    found, slashes = "", 0
    for character in name:
        if character in " \t#":
            found += "\\" * slashes + "\\"  # those before it are doubled, and one is its own
        elif character == "$":
            found += "$"
        found += character
        slashes = slashes + 1 if character == "\\" else 0
    return found


def remove(stamp: str) -> None:
    """What was made before is no longer vouched for; UsageError where the stamp cannot be removed."""
    try:
        Path(stamp).unlink(missing_ok=True)
    except OSError as error:
        raise UsageError(f"cannot remove the stamp: {error.strerror}", path=stamp) from None
    except ValueError:  # a null character
        raise UsageError("cannot write: this is not a path", path=repr(stamp)) from None


def finish(stamp: str, rule: tuple[str, bytes] | None, began: int) -> None:
    """Writes the depfile (its path and content), then the stamp with the time `began` (ns since 1970)."""
    if rule is not None:
        path = Path(rule[0])
        write({path.name: rule[1]}, path.parent)
    path = Path(stamp)
    write({path.name: b""}, path.parent)
    with contextlib.suppress(OSError):  # a file system without times, or another process has removed it
        os.utime(path, ns=(began, began))
