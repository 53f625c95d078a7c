"""A session: what was computed once and may be asked for again, for as long as the session lives.

A session is made where a request comes in and is passed along to whatever may reuse a value. Keys are
canonical values (digests, tuples of numbers), never an object's identity, so that two equal questions
share one answer whoever asks them. Nothing else in the project remembers anything between calls.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

T = TypeVar("T")

MOST_ENTRIES = 64  # of one kind


class Session:
    """Values by kind and key; of each kind the ones used last are kept."""

    def __init__(self, most_entries: int = MOST_ENTRIES) -> None:
        self._most = most_entries
        self._kinds: dict[str, OrderedDict[Hashable, Any]] = {}

    def remember(self, kind: str, key: Hashable, make: Callable[[], T], most_entries: int = 0) -> T:
        """The value kept under `kind` and `key`; made, and kept, where there is none.

        `most_entries`: of this kind, if not the session's. An exception of `make` reaches the caller and
        nothing is kept.
        """
        kept = self._kinds.setdefault(kind, OrderedDict())
        if key in kept:
            kept.move_to_end(key)
            value: T = kept[key]
            return value
        value = make()
        kept[key] = value
        while len(kept) > (most_entries or self._most):
            kept.popitem(last=False)
        return value
