"""Values in memory, by key. Only those that were used last are kept, up to a limit."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Recent(Generic[K, V]):
    """Recently used values, by key. No value is None. The sum of their weights is at most `most`; a value
    weighs 1, or what `weigh` returns.

    The least recently used value is dropped first. A value that alone exceeds the limit is not stored.
    """

    def __init__(self, most: float, weigh: Callable[[V], int] = lambda _: 1) -> None:
        self.held = 0  # the sum of all weights
        self._values: OrderedDict[K, V] = OrderedDict()
        self._most, self._weigh = most, weigh

    def get(self, key: K) -> V | None:
        """Returns the value under `key`, None if there is none there. This counts as a use."""
        value = self._values.get(key)
        if value is not None:
            self._values.move_to_end(key)
        return value

    def put(self, key: K, value: V, most: float = 0) -> None:
        """Adds a value; this counts as a use. `most` is the limit for this call (0: the usual limit)."""
        self.pop(key)
        self._values[key] = value
        self.held += self._weigh(value)
        while self.held > (most or self._most):
            self.pop(next(iter(self._values)))

    def pop(self, key: K) -> None:
        """Removes the value under `key`, if there is one."""
        value = self._values.pop(key, None)
        if value is not None:
            self.held -= self._weigh(value)

    def clear(self) -> None:
        """Removes all values."""
        self._values.clear()
        self.held = 0

    def __len__(self) -> int:
        return len(self._values)
