"""Values in memory, by key: the ones used last, within a bound."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Recent(Generic[K, V]):
    """Values that weigh `most` together; each weighs 1, or what `weigh` says.

    No value is None. The one that was not used for longest goes first; one too heavy by itself is not kept.
    """

    def __init__(self, most: float, weigh: Callable[[V], int] = lambda _: 1) -> None:
        self.held = 0  # what all of them weigh
        self._values: OrderedDict[K, V] = OrderedDict()
        self._most, self._weigh = most, weigh

    def get(self, key: K) -> V | None:
        """The value, which counts as a use; None where there is none."""
        value = self._values.get(key)
        if value is not None:
            self._values.move_to_end(key)
        return value

    def put(self, key: K, value: V, most: float = 0) -> None:
        """Keeps a value, which counts as a use. `most`: another bound for this kind."""
        self.pop(key)
        self._values[key] = value
        self.held += self._weigh(value)
        while self.held > (most or self._most):
            self.pop(next(iter(self._values)))

    def pop(self, key: K) -> None:
        """Forgets a value, if it is there."""
        value = self._values.pop(key, None)
        if value is not None:
            self.held -= self._weigh(value)

    def clear(self) -> None:
        """Forgets all."""
        self._values.clear()
        self.held = 0

    def __len__(self) -> int:
        return len(self._values)
