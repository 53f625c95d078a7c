"""Values in memory, by key: the ones used last, up to a limit."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Recent(Generic[K, V]):
    """Recently used values. The sum of their weights is at most `most`. A value weighs 1, or what `weigh`
    returns.

    No value is None. The least recently used value is dropped first. A value above the limit is not kept.
    """

    def __init__(self, most: float, weigh: Callable[[V], int] = lambda _: 1) -> None:
        self.held = 0  # the sum of all weights
        self._values: OrderedDict[K, V] = OrderedDict()
        self._most, self._weigh = most, weigh

    def get(self, key: K) -> V | None:
        """Returns the value or None, and counts this as a use."""
        value = self._values.get(key)
        if value is not None:
            self._values.move_to_end(key)
        return value

    def put(self, key: K, value: V, most: float = 0) -> None:
        """Adds a value, and counts this as a use. `most` is another limit (0: the usual one)."""
        self.pop(key)
        self._values[key] = value
        self.held += self._weigh(value)
        while self.held > (most or self._most):
            self.pop(next(iter(self._values)))

    def pop(self, key: K) -> None:
        """Removes a value, if it is there."""
        value = self._values.pop(key, None)
        if value is not None:
            self.held -= self._weigh(value)

    def clear(self) -> None:
        """Removes all values."""
        self._values.clear()
        self.held = 0

    def __len__(self) -> int:
        return len(self._values)
