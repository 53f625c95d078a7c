"""Work that a request may spend on placing its plans: counted in units, the same every time.

A unit is one buffer that the search for offsets looks at. A value that a session remembers counts as much as
it took to make, once a request: so the budget ends at the same place, and the answer is the same, whatever
was asked before. What the end of a budget has cut short is not remembered.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

# What placing the plans of one request may take: some seconds of one core.
PLANNING = 100_000_000


@dataclass
class Spent:
    """Units that were spent while one value was made; `asked`: those until the budget was last asked."""

    value: int
    units: int = 0
    asked: int = -1


@dataclass
class Account:
    """What making a value takes, in the order in which it was spent; `is_paid`: it counted already."""

    value: int
    is_paid: bool
    denied: int
    spent: list[Spent]

    def add(self, more: Iterable[Spent]) -> None:
        """Adds what another value took that this one needs; what is in it already counts once."""
        known = {spent.value for spent in self.spent}
        self.spent += (spent for spent in more if spent.value not in known)


class Work:
    """What is left of a budget of units. Beyond it nothing is searched any more that asks before.

    A question is answered with yes as long as anything is left, so the last thing that began may take more.
    """

    def __init__(self, most: float = math.inf) -> None:
        self.left = most
        self.denied = 0  # questions that were answered with no
        self._paid = set[int]()
        self._open = list[Account]()

    @contextmanager
    def share(self, part: float, *, first: bool = False) -> Iterator[None]:
        """Leaves this part of what is left to what is done meanwhile: the rest is for what comes later.

        `first`: all of it is done again later, so nothing is left out by its end.
        """
        kept, denied = 0.0 if math.isinf(self.left) else self.left * (1 - part), self.denied
        self.left -= kept
        try:
            yield
        finally:
            self.left += kept
            self.denied = denied if first else self.denied

    @property
    def ended(self) -> bool:
        """Whether anything was left out because nothing was left."""
        return self.denied > 0

    def goes_on(self) -> bool:
        """Whether a search may begin."""
        if self._open:
            spent = self._latest()
            spent.asked = spent.units
            if any(account.is_paid for account in self._open):
                return True
        if self.left > 0:
            return True
        self.denied += 1
        return False

    def spend(self, units: int) -> None:
        """Counts units."""
        if self._open:
            self._latest().units += units
            if any(account.is_paid for account in self._open):
                return
        self.left -= units

    def _latest(self) -> Spent:
        account = self._open[-1]
        if not account.spent or account.spent[-1].value != account.value:
            account.spent.append(Spent(account.value))
        return account.spent[-1]

    def begin(self, value: Hashable) -> None:
        """What is spent from now on is for a value (which its name stands for), until `end`."""
        number = hash(value)
        self._open.append(Account(number, number in self._paid, self.denied, []))

    def end(self) -> tuple[Spent, ...] | None:
        """What the value took that was begun last; None where the budget's end has cut it short."""
        account = self._open.pop()
        if self._open:
            self._open[-1].add(account.spent)
        if account.denied != self.denied:
            return None
        self._paid.update(spent.value for spent in account.spent)
        return tuple(account.spent)

    def pay(self, spent: Iterable[Spent]) -> bool:
        """Counts what a remembered value took; False, and counts nothing, where that would end the budget."""
        left, parts = self.left, list(spent)
        is_paid = any(account.is_paid for account in self._open)
        for one in parts:
            if is_paid or one.value in self._paid:
                continue
            if one.asked >= 0 and left - one.asked <= 0:
                return False
            left -= one.units
        self.left = left
        self._paid.update(one.value for one in parts)
        if self._open:
            self._open[-1].add(parts)
        return True
