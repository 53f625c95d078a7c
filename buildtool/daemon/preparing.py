"""Preparations: answers made before a client asks, by one process of the lowest priority, within a budget.

The budget is CPU time: a share of the time since the last request. If the share is more than one core, which
the process cannot use up, the process has the normal priority. Answers to requests whose files were saved, or
that an older daemon has sent, come first. After them, with half of the budget, the process looks ahead: it
prepares what the next request may ask for. When a client sends a request, the process is ended and not
paused, since it may hold a lock of the cache.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from buildtool.daemon.memory import request_key
from buildtool.daemon.pool import Job, Pool, Worker, lower_priority
from buildtool.daemon.watcher import without_digests

SHARE = 10.0  # per cent of one core; $BUILDTOOL_DAEMON_AHEAD: another share, 0 to prepare nothing
COUNTED_SECONDS = 600.0  # upper limit for the time since the last request
LEAST_SECONDS = 0.3  # CPU time that must be left before a preparation begins
OVERDRAFT_SECONDS = 1.0  # CPU time by which a step may exceed the budget
MOST_WAITING = 32
AHEAD_PART = 0.5  # share of the budget for looking ahead


class Budget:
    """Limits the CPU time for preparations to a share of the time since the last request.

    share: CPU seconds per second; 0.5 is half a core.
    """

    def __init__(self, share: float, clock: Callable[[], float]) -> None:
        self._share, self._clock = share, clock
        self._since = clock()
        self.spent = 0.0

    def begin(self, idle_seconds: float = 0.0, spent: float = 0.0) -> None:
        """Restarts the budget: a request came `idle_seconds` ago, and `spent` CPU seconds were used since
        then.
        """
        self._since = self._clock() - idle_seconds
        self.spent = spent

    @property
    def idle_seconds(self) -> float:
        """Seconds since the last request."""
        return self._clock() - self._since

    def left(self, part: float = 1.0) -> float:
        """Returns the CPU seconds that are left of `part` of the budget; below 0 if more were used."""
        return self._share * part * min(self.idle_seconds, COUNTED_SECONDS) - self.spent


@dataclass(eq=False)
class Preparation:
    """An answer to prepare.

    - `job`: the request.
    - `ahead`: whether to prepare what may be asked for after this request, instead of its answer.
    - `subject`: identifies it without the content of its files; a later preparation with the same subject
      replaces it.
    - `needs`: the CPU seconds that must be left in the budget before it begins. If it was ended because it
      exceeded the budget, this is twice the time that it used.
    """

    job: Job
    ahead: bool
    subject: str
    needs: float = LEAST_SECONDS

    @property
    def part(self) -> float:
        """The part of the budget that this preparation may use, from 0 to 1."""
        return AHEAD_PART if self.ahead else 1.0


class Preparer:
    """The waiting preparations, and the worker that does them."""

    def __init__(self, pool: Pool, share: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.budget = Budget(share, clock)
        self.waiting: list[Preparation] = []
        self.at_work: Preparation | None = None
        self._pool, self._share = pool, share
        self._counted: dict[Worker, float] = {}  # counted CPU seconds of processes that were ended
        self._began = 0.0  # CPU seconds of the worker when the preparation at work began

    @property
    def worker(self) -> Worker | None:
        """The process that prepares, or None."""
        return next((worker for worker in self._pool.workers if worker.prepares), None)

    def add(self, job: Job, *, ahead: bool = False) -> None:
        """Adds a preparation, which begins as soon as the budget allows it.

        With `ahead`, it replaces an earlier preparation for the same network and board.
        """
        if self._share <= 0:
            return
        subject = job.about if ahead else _subject(job.request, job.environment)
        preparation = Preparation(job, ahead, subject)
        others = [one for one in self.waiting if (one.ahead, one.subject) != (ahead, preparation.subject)]
        self.waiting = sorted([*others, preparation][-MOST_WAITING:], key=lambda one: one.ahead)

    def asked(self, request: Mapping[str, Any], environment: Mapping[str, str]) -> None:
        """Handles a client's new request: ends the running preparation, which waits again, and restarts the
        budget.

        A waiting preparation of this request's answer is dropped, even if the files have changed since.
        """
        self.stop()
        self.budget.begin()
        if self.waiting:
            subject = _subject(request, environment)
            self.waiting = [one for one in self.waiting if one.ahead or one.subject != subject]

    def go_on(self) -> None:
        """Begins a preparation if the budget allows it. Ends one that has used too much of the budget."""
        self._reap()
        if self.at_work is not None:
            if self.budget.left(self.at_work.part) < -OVERDRAFT_SECONDS:
                used = self.worker.cpu - self._began if self.worker is not None else 0.0
                self.at_work.needs = 2 * used
                self.stop()
            return
        for one in self.waiting:
            if self.budget.left(one.part) >= one.needs:
                self._begin(one)
                return

    def take_message(self, worker: Worker, message: Mapping[str, Any]) -> Preparation | None:
        """Handles a message of the worker. Returns the preparation that the message completes, or None."""
        self._account(worker, float(message.get("cpu", worker.cpu)))
        preparation = self.at_work
        # the message may end an earlier preparation
        if preparation is not None and not (
            message.get("rested") == preparation.job.key if preparation.ahead else "final" in message
        ):
            return None
        if "rested" in message:
            worker.doing, worker.since = "idle", time.monotonic()
        if preparation is None:
            return None
        self.at_work = worker.job = None
        if message.get("left"):  # it has used up its CPU seconds
            self.waiting.append(preparation)
        return preparation

    def drop_worker(self, worker: Worker) -> None:
        """Handles the unexpected end of the worker. Its preparation is not tried again."""
        self._account(worker, worker.cpu)
        self.at_work = None

    def status(self) -> dict[str, Any]:
        """Returns what `buildtool daemon status` shows."""
        waits = len(self.waiting) + (self.at_work is not None)
        return {"waiting": waits, "spent": round(self.budget.spent, 2), "left": round(self.budget.left(), 2)}

    def _begin(self, one: Preparation) -> None:
        self.waiting.remove(one)
        job, worker = one.job, self.worker
        try:
            if worker is None:
                worker = self._pool.add(prepares=True)
                if self._share <= 1:
                    lower_priority(worker.pid)
        except OSError:  # the system has no process left
            return
        self.at_work, self._began = one, worker.cpu
        worker.job, worker.about, worker.dropped = job.key, job.about, False
        worker.doing = "preparing other limits" if one.ahead else "preparing"
        worker.since = time.monotonic()
        ahead = {"ahead": job.request, "key": job.key, "seconds": self.budget.left(one.part)}
        self._pool.tell(worker, ahead if one.ahead else job.message())

    def stop(self) -> None:
        """Ends the process unless it is idle. The running preparation waits again."""
        one, worker = self.at_work, self.worker
        if worker is None or worker.doing == "idle":
            return
        self.at_work = None
        if one is not None:
            self.waiting = sorted([one, *self.waiting], key=lambda one: one.ahead)
        self._counted[worker] = worker.cpu
        self._pool.remove(worker)
        self._reap()

    def _reap(self) -> None:
        """Adds to the spent time what ended workers used after their last message."""
        for worker in self._pool.reap():
            self.budget.spent += max(0.0, worker.cpu - self._counted.pop(worker, worker.cpu))

    def _account(self, worker: Worker, cpu: float) -> None:
        self.budget.spent += max(0.0, cpu - worker.cpu)
        worker.cpu = cpu


def _subject(request: Mapping[str, Any], environment: Mapping[str, str]) -> str:
    """Returns a key for a request that does not depend on the content of its files."""
    return request_key(without_digests(request), environment, "")
