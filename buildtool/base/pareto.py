"""What no other beats in two numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

T = TypeVar("T")


def undominated(found: Iterable[T], key: Callable[[T], tuple[Any, ...]]) -> list[T]:
    """Those that no other equals or beats in both of the first two numbers of `key`, by the first one.

    Of equal ones the one whose key is least, then the first.
    """
    kept: list[T] = []
    least = math.inf
    for one in sorted(found, key=key):
        if key(one)[1] < least:
            kept.append(one)
            least = key(one)[1]
    return kept
