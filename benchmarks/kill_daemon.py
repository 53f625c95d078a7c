"""Kills the daemon's processes at random moments, and takes its disk away; counts how commands end.

    python -m benchmarks.kill_daemon --rounds 200

Each round saves a network with other weights, and asks for it as a command does (`auto`). At a random moment
of the round one of these things happens: the daemon, a process that plans or the one that prepares is killed;
one of them is stopped (SIGSTOP); the cache's folder is removed; the client goes away. The answer has to be
that of a process without a daemon and without a cache. After the last round no process may be left, and the
daemon may have noted no internal errors.

Then the same happens with a cache that is read-only and with one that is full, if this system allows it (a
tmpfs, by root): every answer has to be right, and nothing half-written may be left.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgpack

from buildtool import zoo
from buildtool.api import handle
from buildtool.base import folders
from buildtool.client import daemon as client
from buildtool.client import door
from buildtool.client import endpoint as places
from buildtool.client.files import Located
from buildtool.fronts.cli import upkeep

HARMS = ("nothing", "kill daemon", "kill planner", "kill preparer", "stop planner", "no cache", "leave")


class Bench:
    """A network that is saved repeatedly, and the correct answers about it."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder, self.rng = folder, random.Random(seed)
        self.model = folder / "net.tflite"
        self._data = bytearray(zoo.build("ds_cnn"))
        self._expected: dict[tuple[bytes, str], bytes] = {}

    def save(self) -> None:
        """Saves the network with changed weights, sometimes with weights that it had before."""
        self._data[len(self._data) // 2 + self.rng.randrange(8)] ^= 1
        part = self.model.with_suffix(".part")
        part.write_bytes(self._data)
        part.replace(self.model)

    def request(self) -> dict[str, Any]:
        """Returns a random request about the network."""
        kind = self.rng.choice(("plan", "emit", "front"))
        limit = {"options": {"ram": 1024 * self.rng.randrange(10, 14)}} if self.rng.random() < 0.5 else {}
        more = {"name": "net"} if kind == "emit" else {}
        request = {"kind": kind, "model": str(self.model), "board": "cortex-m4", **more}
        return Located(request | (limit if kind != "front" else {}), str(self.folder)).request

    def expected(self, request: dict[str, Any]) -> bytes:
        """Returns the answer that this process computes, without daemon and cache."""
        key = bytes(self._data), repr(sorted(request.items(), key=str))
        if key not in self._expected:
            self._expected[key] = msgpack.packb(handle(request))
        return self._expected[key]


def _status() -> dict[str, Any]:
    try:
        link = client.reach(start=False)
        try:
            return link.control("status")
        finally:
            link.close()
    except places.AbsentError:
        return {}


def harm(what: str, rng: random.Random) -> str:
    """Waits for a random moment, does `what`, and returns what was done."""
    if what == "kill preparer":
        for _ in range(100):
            if any(w["prepares"] and w["doing"] != "idle" for w in _status().get("workers", ())):
                break
            time.sleep(0.02)
    time.sleep(rng.random() * 0.4)
    if what == "no cache":
        shutil.rmtree(os.environ[folders.CACHE], ignore_errors=True)
        return what
    status = _status()
    workers = status.get("workers", ())
    pids = {
        "daemon": [status["pid"]] if status else [],
        "planner": [worker["pid"] for worker in workers if not worker["prepares"]],
        "preparer": [worker["pid"] for worker in workers if worker["prepares"]],
    }
    word, _, who = what.partition(" ")
    if not pids.get(who):
        return f"{what}: none there"
    with contextlib.suppress(ProcessLookupError):
        os.kill(rng.choice(pids[who]), signal.SIGKILL if word == "kill" else signal.SIGSTOP)
    return what


def rounds(bench: Bench, count: int) -> Iterator[Counter[str]]:
    """Sends requests while something goes wrong; yields counts.

    Raises AssertionError for a wrong answer.
    """
    counts: Counter[str] = Counter()
    for _ in range(count):
        what = bench.rng.choice(HARMS)
        bench.save()
        request = bench.request()
        expected = bench.expected(request)
        done: list[str] = []
        thread = threading.Thread(target=lambda w=what, into=done: into.append(harm(w, bench.rng)))
        if what == "kill preparer":  # before the request ends it
            thread.start()
            thread.join()
        time.sleep(bench.rng.choice((0.0, 0.3, 0.8, 1.5)))
        if what == "leave":
            with contextlib.suppress(places.AbsentError):
                link = client.reach(start=True)
                threading.Timer(bench.rng.random() * 0.1, link.close).start()
                with contextlib.suppress(places.AbsentError, OSError, ValueError):
                    link.request(request, "on", None)
            done.append(what)
        if what not in ("nothing", "leave", "kill preparer"):
            thread.start()
        here: list[int] = []

        def answer(asked: Any, here: list[int] = here) -> dict[str, Any]:
            here.append(1)
            return handle(asked)

        with contextlib.redirect_stderr(io.StringIO()):
            found = door.ask(request, answer, mode=door.Mode.AUTO)
        assert msgpack.packb(found) == expected, f"a wrong answer ({what})"
        if thread.ident is not None:
            thread.join()
        counts[f"{done[0] if done else what}: answered {'by itself' if here else 'by the daemon'}"] += 1
        yield counts


def left_over(folder: Path) -> list[int]:
    """Returns the ids of processes whose environment has the folders of this benchmark."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            mine = f"{folders.STATE}={folder / 'state'}".encode()
            is_there = (path / "stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
            if (
                is_there
                and mine in (path / "environ").read_bytes().split(b"\0")
                and int(path.name) != os.getpid()
            ):
                found.append(int(path.name))
    return found


def disks(bench: Bench, count: int) -> Iterator[Counter[str]]:
    """Repeats the requests with the cache on a full disk and on a read-only disk; yields counts."""
    counts: Counter[str] = Counter()
    for name, options in (("full", "size=64k"), ("read-only", "size=1m,ro")):
        place = bench.folder / name
        place.mkdir()
        command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(place)]
        if subprocess.run(command, capture_output=True).returncode:
            counts[f"{name}: cannot be made here"] += 1
            continue
        os.environ[folders.CACHE] = str(place / "cache")
        try:
            for found in rounds(bench, count):
                yield Counter({f"{name} disk, {what}": number for what, number in found.items()})
            assert not list(place.rglob("*.part")), "something half-written is left"
            upkeep.daemon_command("stop", every=True)
        finally:
            subprocess.run(["umount", "-l", str(place)], check=False)
    yield counts


def main() -> int:
    """Runs both parts with folders of their own, and prints the counts."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--disks", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    total: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ |= {
            folders.STATE: str(folder / "state"),
            folders.CACHE: str(folder / "cache"),
            folders.MODE: "on",
            "BUILDTOOL_DAEMON_AHEAD": "1000000",
            "BUILDTOOL_DAEMON_SILENCE": "3",
        }
        bench = Bench(folder, args.seed)
        try:
            for source in (rounds(bench, args.rounds), disks(bench, args.disks)):
                counts: Counter[str] = Counter()
                latest: dict[str, int] = {}
                for counts in source:
                    latest |= counts
                    print(f"\r{sum(latest.values()):,} rounds", end="", file=sys.stderr, flush=True)
                total.update(latest)
            faults = _status().get("counts", {}).get("faults", 0)
            assert faults == 0, "the daemon has noted faults of its own: see its log"
        finally:
            upkeep.daemon_command("stop", every=True)
        time.sleep(1)
        assert not (left := left_over(folder)), f"processes are left: {left}"
        logs = [path.read_text(errors="replace") for path in (folder / "state").glob("*.log*")]
        traces = [part.split("\n\n")[0] for text in logs for part in text.split("Traceback")[1:]]
    print()
    for what, number in sorted(total.items()):
        print(f"{number:8,}  {what}")
    print(f"{len(traces):8,}  tracebacks in logs; no process is left")
    print(*sorted({text[-1500:] for text in traces}), sep="\n", end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
