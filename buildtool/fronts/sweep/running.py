"""Spreads batches of jobs over processes: of this machine (concurrent.futures), or of a Dask cluster.

A process may be killed at any time. The batches that it may have had are then run again, one job at a time.
Only a job that ends its process twice while no other job runs becomes a failure.
"""

from __future__ import annotations

import contextlib
import importlib
import multiprocessing
import os
import pickle
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    CancelledError,
    Executor,
    Future,
    ProcessPoolExecutor,
    wait,
)
from typing import Any

from buildtool.base.code_digest import code_digest
from buildtool.base.errors import BuildtoolError, MachineError, UsageError
from buildtool.fronts.sweep import worker
from buildtool.fronts.sweep.candidates import Job, Study
from buildtool.fronts.sweep.module import Made
from buildtool.fronts.sweep.worker import Row

MOST_BATCH = 32  # jobs, where they only plan; a step that compiles or runs takes much longer
_AHEAD = 2  # batches for each process: one runs, and one waits
_ATTEMPTS = 2  # attempts of a job that runs alone
Rows = list[tuple[str, Row]]


class Processes:
    """Processes of this machine. If their number is 0, the jobs run in this process."""

    lost: tuple[type[BaseException], ...] = (BrokenExecutor,)  # how a future says that its process ended

    def __init__(self, count: int) -> None:
        self._count = count
        self.lanes = max(count, 1)
        self.width = max(count * _AHEAD, 1)
        self._before = {child.pid for child in multiprocessing.active_children()}
        self._pool = self._open()

    def _open(self) -> Executor:
        if not self._count:
            return _InThisProcess()
        pool = ProcessPoolExecutor(
            self._count, multiprocessing.get_context("spawn"), initializer=worker.prepare
        )
        try:
            pool.submit(worker.ready).result()
        except BrokenExecutor:
            hint = "in a script, call it below `if __name__ == '__main__':`, or give jobs=0"
            raise MachineError("the processes of the sweep did not start", hint=hint) from None
        return pool

    def submit(self, jobs: Sequence[Job]) -> Future[Rows]:
        """Starts a batch and returns the future of its rows.

        Raises UsageError if the function that makes a network cannot be sent to another process.
        """
        for job in jobs if self._count else ():
            if job.make is not None and not isinstance(job.make, Made):
                _check_sendable(job)
        return self._pool.submit(worker.run_batch, jobs)

    def reopen(self) -> None:
        """Starts new processes after one has ended."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._pool = self._open()

    def close(self) -> None:
        """Ends the processes at once. Unfinished jobs will be computed again by the next run."""
        for child in multiprocessing.active_children():
            if child.pid not in self._before:
                child.kill()  # also a child that was stopped (SIGSTOP), for which the command would wait
        self._pool.shutdown(cancel_futures=True)  # its thread must end before the interpreter does


def _check_sendable(job: Job) -> None:
    try:
        pickle.dumps(job.make)
    except (pickle.PicklingError, AttributeError, TypeError):
        hint = "define it at the top level of a module, or give jobs=0"
        text = f"the function that makes '{job.about['network']}' cannot be sent to another process"
        raise UsageError(text, hint=hint) from None


class _InThisProcess(Executor):
    """An executor that runs everything in this process."""

    def submit(self, function: Any, /, *args: Any, **more: Any) -> Future[Any]:
        done: Future[Any] = Future()
        done.set_result(function(*args, **more))
        return done


class Cluster:
    """The workers of a Dask cluster, at the address of its scheduler."""

    def __init__(self, address: str) -> None:
        try:
            # Imported like this because it may have no types.
            distributed: Any = importlib.import_module("distributed")
        except ImportError:
            hint = "pip install 'buildtool-mcu[sweep]' here and on every machine of the cluster"
            raise UsageError("--scheduler needs the package distributed", hint=hint) from None
        self.lost = (distributed.KilledWorker,)
        try:
            self._client = distributed.Client(address, timeout=30)
        except (OSError, ValueError, TimeoutError) as error:
            hint = "start one with `dask scheduler`, and workers with `dask worker ADDRESS --nthreads 1`"
            raise UsageError(f"no Dask scheduler answers at '{address}': {error}", hint=hint) from None
        self._pool = self._client.get_executor(pure=False)
        self._code = code_digest()
        self.lanes = 1  # its workers come and go, and may have caches of their own

    @property
    def width(self) -> int:
        """The number of batches that may run or wait at once; it follows the number of workers."""
        return max(_AHEAD * int(sum(self._client.nthreads().values())), 1)

    def submit(self, jobs: Sequence[Job]) -> Future[Rows]:
        """Starts a batch and returns the future of its rows."""
        future: Future[Rows] = self._pool.submit(worker.run_remote_batch, self._code, jobs)
        return future

    def reopen(self) -> None:
        """Does nothing: Dask starts new workers itself."""

    def close(self) -> None:
        """Disconnects from the cluster, whose workers go on."""
        with contextlib.suppress(Exception):
            self._pool.shutdown(wait=False)
            self._client.close()


def batch_size(study: Study, width: int) -> int:
    """Returns the number of jobs in a batch. It is small enough that `width` processes get several
    batches.
    """
    most = MOST_BATCH if study.steps == ("plan",) else MOST_BATCH // 16
    return most // 2 if study.total is None else max(1, min(most, study.total // (4 * width)))


def cores() -> int:
    """Returns the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run(batches: Iterator[Sequence[Job]], pool: Processes | Cluster) -> Iterator[Rows]:
    """Yields the rows of each batch when it is done, in any order."""
    running: dict[Future[Rows], Sequence[Job]] = {}
    suspects: deque[Job] = deque()  # jobs that may have ended a process
    attempts: Counter[str] = Counter()
    while True:
        if suspects and not running:
            job = suspects.popleft()
            running[pool.submit([job])] = [job]
        while not suspects and len(running) < pool.width and (batch := next(batches, None)):
            running[_submit(pool, batch)] = batch
        if not running:
            return
        ended, _ = wait(running, return_when=FIRST_COMPLETED)
        lost, is_alone = list[Job](), len(running) == 1
        for future in ended:
            batch = running.pop(future)
            try:
                yield future.result()
            except pool.lost:
                lost += batch
                attempts.update([batch[0].key] if is_alone and len(batch) == 1 else [])
            except CancelledError:
                hint = "the same command continues, with this scheduler or another one"
                raise MachineError("the scheduler of the cluster has gone", hint=hint) from None
        if lost:
            lost += _rest(running, pool)
            pool.reopen()
            gone = [job for job in lost if attempts[job.key] >= _ATTEMPTS]
            suspects.extend(job for job in lost if attempts[job.key] < _ATTEMPTS)
            if gone:
                yield [(job.key, _killed(job)) for job in gone]


def _submit(pool: Processes | Cluster, batch: Sequence[Job]) -> Future[Rows]:
    try:
        return pool.submit(batch)
    except BrokenExecutor:  # a process ended since the last look: its futures say so, too
        future: Future[Rows] = Future()
        future.set_exception(BrokenExecutor())
        return future


def _rest(running: dict[Future[Rows], Sequence[Job]], pool: Processes | Cluster) -> list[Job]:
    """Returns the other jobs that were lost when a process of this machine ended, and drops their futures.

    On a cluster it returns [], because the jobs of other workers go on.
    """
    if isinstance(pool, Cluster):
        return []
    wait(running)
    broken = [future for future in running if isinstance(future.exception(), pool.lost)]
    return [job for future in broken for job in running.pop(future)]


def _killed(job: Job) -> Row:
    text = "its process ended twice without an answer: it was killed, or the machine has too little memory"
    error: BuildtoolError = MachineError(text, hint="plan this network alone: buildtool plan")
    return {**job.about, **worker.failure(error, "plan")}
