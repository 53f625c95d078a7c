"""What the workers of a sweep send to a shared cache, and what 1,000 of them would send.

    python -m benchmarks.sweep_traffic [--candidates 128] [--workers 4] [--board B] [--ram 64K]

The networks are those of benchmarks/sweeping.py. Each worker is a process with an empty cache folder, as on a
machine of its own; batches go to the workers in rotation. The server is Python's own on the loopback, with a
key. The last table computes the figures of 1,000 workers from the measured requests and bytes of a candidate
and the CPU time that it takes: it does not show whether a server or Dask's scheduler bears them.
"""

from __future__ import annotations

import argparse
import os
import pickle
import tempfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from benchmarks.shared_cache import Server
from benchmarks.sweeping import family, mean, measured
from buildtool.base.store.disk import Disk
from buildtool.base.store.notes import Notes
from buildtool.base.store.remote import cache as remote
from buildtool.fronts.sweep.candidates import batches, study_of
from buildtool.fronts.sweep.running import MOST_BATCH

MANY = 1000  # workers
# Of Dask's scheduler for a task: it comes, goes to a worker, and ends there; the client hears of it, and
# fetches the rows through the scheduler; both release it.
MESSAGES = 10


def use_server(folder: str, url: str) -> None:
    """Prepares a worker: gives it its cache folder, and the server of the shared cache."""
    os.environ |= {
        "BUILDTOOL_CACHE": "on",
        "BUILDTOOL_CACHE_DIR": folder,
        "BUILDTOOL_CACHE_URL": url,
        "BUILDTOOL_CACHE_MODE": "write",
        "BUILDTOOL_CACHE_KEY": "a key for this benchmark",
    }
    # The server would answer at once, if the machine were not busy.
    remote.REQUEST_SECONDS = remote.UPLOAD_SECONDS = 60.0


class Traffic:
    """A sweep that has run: its rows, the server, the namespaces of keys, and the sizes of tasks."""

    def __init__(self, count: int, workers: int, board: str, options: dict[str, Any], batch: int) -> None:
        self.server, self.rows, self.tasks = Server(), list[dict[str, Any]](), list[tuple[int, int]]()
        self.levels: dict[str, str] = {}
        self.places: Counter[str] = Counter()
        study = study_of(family(count), [board], options, [], Path.cwd())
        with tempfile.TemporaryDirectory() as name:
            folders = [f"{name}/{number}" for number in range(workers)]
            pools = [
                ProcessPoolExecutor(
                    1, get_context("spawn"), initializer=use_server, initargs=(folder, self.server.url)
                )
                for folder in folders
            ]
            jobs = list(batches(study.jobs(), batch, 1))
            futures = [pools[number % workers].submit(measured, one) for number, one in enumerate(jobs)]
            for one, future in zip(jobs, futures, strict=True):
                found = future.result()
                self.rows += [row for _, row in found]
                self.tasks.append((len(pickle.dumps(one)), len(pickle.dumps(found))))
            for pool in pools:
                pool.shutdown()
            for folder in map(Path, folders):
                self.levels |= {f"/ac/{key}": level for level, key, _ in Disk(folder).entries()}
                self.places.update(
                    {k: n for k, n in Notes(folder).counts().items() if k.startswith("remote")}
                )

    def namespaces(self) -> Iterator[list[str]]:
        """Yields a row for each cache namespace: entries, bytes of one, GETs, PUTs and bytes per
        candidate.
        """
        count, asked = len(self.rows), self.server.gets.keys() | self.server.puts.keys()
        for level in [*sorted(set(self.levels.values())), "of no entry"]:
            keys = [key for key in asked if self.levels.get(key, "of no entry") == level]
            if not keys:
                continue
            sizes = {key: len(self.server.entries.get(key, b"")) for key in keys}
            gets = sum(self.server.gets[key] for key in keys)
            puts = sum(self.server.puts[key] for key in keys)
            moved = sum(sizes[key] * (self.server.gets[key] + self.server.puts[key]) for key in keys)
            hot = max(self.server.gets[key] for key in keys)
            yield [
                level,
                f"{len(keys):,}",
                f"{sum(sizes.values()) / len(keys):,.0f}",
                f"{gets / count:.1f}",
                f"{puts / count:.1f}",
                f"{moved / count:,.0f}",
                f"{hot}",
            ]


def main() -> None:
    """Prints the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--candidates", type=int, default=128)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--batch", type=int, default=MOST_BATCH // 2)
    parser.add_argument("--board", default="cortex-m4")
    parser.add_argument("--ram", default="64K")
    given = parser.parse_args()
    options = {"simplify": "structure", "image": "stream", "ram": given.ram}
    traffic = Traffic(given.candidates, given.workers, given.board, options, given.batch)
    rows, server = traffic.rows, traffic.server
    failed = sum(row["status"] == "failed" for row in rows)
    print(f"{len(rows)} candidates, {failed} failed, {given.workers} workers, batches of {given.batch}\n")
    print(
        "| namespace | entries | bytes of one | GETs per candidate | PUTs | bytes | GETs of the hottest key |"
    )
    print("| --- |" + " ---: |" * 6)
    for cells in traffic.namespaces():
        print(f"| {' | '.join(cells)} |")
    print(f"\nall: {server.gets.total()} GETs, {server.puts.total()} PUTs, {dict(traffic.places)}")
    for line in on_paper(traffic):
        print(line)


def on_paper(traffic: Traffic) -> Iterator[str]:
    """Yields the lines of the table for MANY workers."""
    rows, server = traffic.rows, traffic.server
    seconds = mean(rows, "planned") + mean(rows, "made")
    rate = MANY / seconds
    entries = {key: len(server.entries.get(key, b"")) for key in server.gets | server.puts}
    moved = {key: size * (server.gets[key] + server.puts[key]) for key, size in entries.items()}
    sent, got = (sum(sizes) / len(rows) for sizes in zip(*traffic.tasks, strict=True))
    figures = {
        "candidates": 1.0,
        "requests to the cache": (server.gets.total() + server.puts.total()) / len(rows),
        "bytes of the cache": sum(moved.values()) / len(rows),
        "tasks of Dask": 1 / MOST_BATCH,
        "messages of its scheduler": MESSAGES / MOST_BATCH,
        "bytes through its scheduler": sent + got,
    }
    yield f"\n| | a candidate, of {seconds:.2f} CPU s | {MANY:,} workers, in a second |"
    yield "| --- | ---: | ---: |"
    for name, value in figures.items():
        yield f"| {name} | {value:,.{0 if value >= 100 else 2}f} | {value * rate:,.0f} |"


if __name__ == "__main__":
    main()
