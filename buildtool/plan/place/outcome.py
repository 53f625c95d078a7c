"""The result of one run of the search."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


class Verdict(enum.IntEnum):
    """How a run ended."""

    FOUND = 1
    IMPOSSIBLE = 2  # proven: nothing fits
    LIMIT = 3  # too many nodes


@dataclass(frozen=True)
class Outcome:
    """The end of a run; `offsets` in units, of the instance's items, mean something only if FOUND."""

    verdict: Verdict
    offsets: tuple[int, ...]
    nodes: int


class Search(Protocol):
    """The search, in Python or in C, on one instance at one capacity."""

    def run(self, order: Sequence[int], limit: int, crowded: bool = False) -> Outcome:
        """One run with items in this order of preference, ended after `limit` nodes.

        `crowded`: what falls apart is ordered anew by the most that waits in an item's sections, and
        `order` decides between equals.
        """
