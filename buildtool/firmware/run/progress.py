"""How far a run on many inputs has come, and how much time is left."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from buildtool.base.durations import duration

if TYPE_CHECKING:
    from buildtool.base.session import Session


class Progress:
    """Says what is being done and how much time is left, by what its like has taken so far."""

    def __init__(self, session: Session, firmware: int, reference: int, nominal: float) -> None:
        self._session = session
        self._wanted = {"firmware": firmware, "reference": reference}
        self._nominal = {"firmware": nominal, "reference": 0.0}  # seconds of an input
        self._done = {"firmware": 0, "reference": 0}
        self._took = {"firmware": 0.0, "reference": 0.0}

    def running(self, which: str, began: float, now: int) -> None:
        """So many more inputs than are done have been run since the time `began`."""
        seconds = {**self._took, which: self._took[which] + time.monotonic() - began}
        done = {**self._done, which: self._done[which] + now}
        left = sum(
            (self._wanted[one] - done[one]) * (seconds[one] / done[one] if done[one] else self._nominal[one])
            for one in done
        )
        at = min(done[which] + 1, self._wanted[which])
        self._session.tell(f"{which}: input {at:,} of {self._wanted[which]:,}, {duration(left)} left")

    def ended(self, which: str, began: float, count: int) -> None:
        """So many inputs have been run since the time `began`."""
        self._took[which] += time.monotonic() - began
        self._done[which] += count
