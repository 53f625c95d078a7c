"""Runs attempts in child processes with limits of memory and time, and notices those that die.

A child works through the numbers of a batch and writes a line after each; the one that it was at when it died
is known by the lines. Children are forked from a parent that has imported everything.

The limit on address space counts from what the parent has: near the limit, CPython 3.11 itself fails. A call
that finds no memory for its frame drops one reference to the function too many ("error return without
exception set"), and later another function may lie in its place.
"""

from __future__ import annotations

import functools
import json
import os
import resource
import select
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from benchmarks.fuzz.attempts import Outcome
from buildtool.target import family

BATCH = 500  # files of one child
MOST_ADDRESSES = 3 << 30  # bytes of address space beyond what the parent has
CPU_SECONDS = 20.0  # of one file
WALL_SECONDS = 400.0  # of one file, for those that wait

Work = Callable[[int, Path], Outcome]


def run(work: Work, numbers: Sequence[int]) -> Iterator[tuple[int, Outcome]]:
    """Yields (number, outcome) for each number, in order."""
    left = list(numbers)
    while left:
        done = 0
        for number, outcome in _batch(work, left[:BATCH]):
            done += 1
            yield number, outcome
        left = left[done:]


def _batch(work: Work, numbers: Sequence[int]) -> Iterator[tuple[int, Outcome]]:
    """Yields the outcomes that a child process sends for some numbers; ends early if the child dies."""
    sys.stdout.flush()
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _serve(work, numbers, writing)
    os.close(writing)
    place, rest, killed = 0, b"", False
    try:
        while True:
            ready, _, _ = select.select([reading], [], [], WALL_SECONDS)
            if not ready:
                killed = True
                os.kill(child, signal.SIGKILL)
            part = os.read(reading, 1 << 16)
            if not part:
                break
            *lines, rest = (rest + part).split(b"\n")
            for line in lines:
                what, detail = json.loads(line)
                yield numbers[place], Outcome(what, detail)
                place += 1
    finally:
        os.close(reading)
        _, status = os.waitpid(child, 0)
    if place < len(numbers):
        yield numbers[place], _death(status, killed)


def _death(status: int, killed: bool) -> Outcome:
    number = os.waitstatus_to_exitcode(status)
    if killed or -number == signal.SIGVTALRM:
        return Outcome("hang", f"over {CPU_SECONDS:g} s")
    return Outcome("crash", f"signal {-number}" if number < 0 else f"exit {number}")


def _serve(work: Work, numbers: Sequence[int], writing: int) -> None:
    """Runs in the child process: does the work for each number, sends the outcome, and exits."""
    status = 1
    try:
        most = _addresses() + MOST_ADDRESSES
        resource.setrlimit(resource.RLIMIT_AS, (most, resource.RLIM_INFINITY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        signal.signal(signal.SIGVTALRM, signal.SIG_DFL)
        # Every command reads the catalogues, which no damaged file changes: this process reads each once.
        family.load_family = functools.cache(family.load_family)
        with tempfile.TemporaryDirectory(prefix="buildtool-fuzz-") as name:
            for number in numbers:
                signal.setitimer(signal.ITIMER_VIRTUAL, CPU_SECONDS)
                outcome = work(number, Path(name))
                os.write(writing, json.dumps([outcome.what, outcome.detail]).encode() + b"\n")
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        status = 0
    finally:
        os._exit(status)


def _addresses() -> int:
    """Returns the bytes of address space that this process has."""
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


def without_limits() -> None:
    """Removes the limit on address space, of which AddressSanitizer needs terabytes; allows more time."""
    resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    signal.setitimer(signal.ITIMER_VIRTUAL, 10 * CPU_SECONDS)
