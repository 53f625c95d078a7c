"""Compiled objects and helper programs of all test runs of a user, in his cache; and nothing else is kept."""

from __future__ import annotations

import atexit
import functools
from collections.abc import Callable, Sequence
from pathlib import Path

from buildtool.base.compiler import Identity
from buildtool.base.folders import cache_folder
from buildtool.base.session import Session
from buildtool.base.store.cache import Cache

LEVELS = ("objects", "programs")
_AT_ONCE = 40  # requests for a session, between two of which new entries are written


class Fallback:
    """`at_work` for tests that are no request, or one without a cache."""

    def __init__(self, at_work: Callable[[], Session]) -> None:
        self.real, self._calls = getattr(at_work, "real", at_work), 0
        self._open = functools.cache(lambda folder: Cache(folder, "tests", levels=LEVELS))
        self._flushed: list[Cache] = []
        atexit.register(self._flush)

    def __call__(self) -> Session:
        found, folder = self.real(), cache_folder()
        if found.keeper is not None or folder is None:
            return found
        self._calls += 1
        if self._calls % _AT_ONCE == 0:
            self._flush()
        return self._session(folder)

    @functools.cache  # noqa: B019 - it lives as long as the process
    def _session(self, folder: Path) -> Session:
        keeper = self._open(folder)
        self._flushed.append(keeper)
        return Session(keeper=keeper)

    def _flush(self) -> None:
        for keeper in self._flushed:
            keeper.flush()


Identify = Callable[..., Identity | None]


def asked_once(identify: Identify) -> Identify:
    """`identify`, which asks a compiler once a process; the same where it does that already.

    A test of the suite runs its settings again in this process.
    """
    if hasattr(identify, "__wrapped__"):
        return identify
    known = functools.cache(lambda command, variables, ldflags: identify(command, dict(variables), ldflags))

    @functools.wraps(identify)
    def asked(
        command: Sequence[str], variables: dict[str, str], ldflags: Sequence[str] | None = None
    ) -> Identity | None:
        flags = None if ldflags is None else tuple(ldflags)
        return known(tuple(command), tuple(sorted(variables.items())), flags)

    return asked
