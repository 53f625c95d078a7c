"""The budget of work that a request may spend on placing its plans, in deterministic units.

A unit is one buffer that the search for offsets looks at. Values that the session remembers cost the same as
new ones: the first time that a request uses a value, the work that once computed it is subtracted from the
request's budget; the value is then paid for. So the budget ends at the same place, and the answer is the
same, whatever was requested before. A value is not remembered if the end of a budget has cut its computation
short.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

# The budget for placing the plans of one request: some seconds on one core.
PLANNING = 100_000_000


@dataclass
class Spent:
    """The work on one value.

    `value`: the hash of the value's key.
    `units`: the units of work (see the module) that were spent on the value itself.
    `asked`: how many of these had been spent at the last call of `goes_on`; -1 without such a call.
    """

    value: int
    units: int = 0
    asked: int = -1


@dataclass
class Account:
    """The work on a value that is being computed.

    `value`: the hash of the value's key.
    `is_paid`: whether the request has paid for the value before, so that computing it again is free.
    `denied`: how often `goes_on` had returned False before the work began.
    `spent`: the work on this value and on the values that it needs, in order.
    """

    value: int
    is_paid: bool
    denied: int
    spent: list[Spent]

    def add(self, more: Iterable[Spent]) -> None:
        """Adds the work `more` on another value, which this value needs. Work that was added before is left
        out.
        """
        values = {spent.value for spent in self.spent}
        self.spent += (spent for spent in more if spent.value not in values)


class Work:
    """A budget of `most` units of work. A search may begin while any unit is left, so the last search may
    exceed the budget.
    """

    def __init__(self, most: float = math.inf) -> None:
        self.left = most
        self.denied = 0  # how often `goes_on` said no
        self._paid = set[int]()
        self._open = list[Account]()

    @contextmanager
    def share(self, part: float, *, first: bool = False) -> Iterator[None]:
        """A context that may use this `part` (0 to 1) of the remaining budget; the rest is for later work.

        `first` says that the same work is done again later. Searches that the budget does not allow in this
        context then do not count for `ended`.
        """
        reserved, denied = 0.0 if math.isinf(self.left) else self.left * (1 - part), self.denied
        self.left -= reserved
        try:
            yield
        finally:
            self.left += reserved
            self.denied = denied if first else self.denied

    @property
    def ended(self) -> bool:
        """Whether a search was skipped because the budget was used up."""
        return self.denied > 0

    def goes_on(self) -> bool:
        """Returns whether the budget allows another search.

        It does while units are left, and for a value that the request has already paid for.
        """
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
        """Subtracts units of work from the budget, unless they are for a value that is already paid for."""
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
        """Begins the work on a value, whose key is `value`. The work ends with a call of `end`."""
        number = hash(value)
        self._open.append(Account(number, number in self._paid, self.denied, []))

    def end(self) -> tuple[Spent, ...] | None:
        """Ends the work on the value that was begun last, and returns this work.

        Returns None if the end of the budget cut the work short: the value must then not be remembered.
        """
        account = self._open.pop()
        if self._open:
            self._open[-1].add(account.spent)
        if account.denied != self.denied:
            return None
        self._paid.update(spent.value for spent in account.spent)
        return tuple(account.spent)

    def pay(self, spent: Iterable[Spent]) -> bool:
        """Subtracts the work that once computed a remembered value from the budget, if it is not paid for
        yet.

        Returns False and changes nothing if the budget would have ended during that work: the value must then
        be computed again.
        """
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
