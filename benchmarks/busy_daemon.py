"""How fast the daemon answers while it plans, and what a thousand requests do to its memory.

    python -m benchmarks.busy_daemon

The benchmark starts a daemon, and has three parts:

- The daemon is asked for the front of a large network that it does not know. Until the answer comes, `status`
  is asked over and over. Shown are the median and the largest time, and the longest time for which the client
  of the front got no message.
- Some clients ask 55 times each for the network's sources and read nothing. Shown is the largest memory that
  the daemon has had, before and after.
- A thousand requests for plans, a quarter of them with new limits. Shown is the memory of all processes of
  the daemon, before and after.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import socket
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

from buildtool.base import folders, wire
from buildtool.client import daemon
from buildtool.client import endpoint as places


def busy(model: str, board: str) -> None:
    """Asks for `status` repeatedly while a front is searched, and prints how long the answers took."""
    at = places.endpoint()
    link = daemon.reach(at, start=True)
    heard = [time.perf_counter()]
    ended = threading.Event()

    def hear(_message: Mapping[str, Any]) -> None:
        heard.append(time.perf_counter())

    def ask() -> None:
        link.request({"kind": "front", "model": model, "board": board}, "on", hear)
        heard.append(time.perf_counter())
        ended.set()

    threading.Thread(target=ask, daemon=True).start()
    times = []
    while not ended.is_set():
        began = time.perf_counter()
        status = daemon.reach(at, start=False)
        status.control("status")
        status.close()
        times.append(time.perf_counter() - began)
        time.sleep(0.01)
    silence = max(later - earlier for earlier, later in pairwise(heard))
    print(
        f"status while the front of {model} is searched ({heard[-1] - heard[0]:.1f} s): "
        f"median {statistics.median(times) * 1e3:.1f} ms, at most {max(times) * 1e3:.1f} ms of {len(times)}; "
        f"the client heard nothing for at most {silence:.2f} s"
    )


def greedy(clients: int, model: str) -> None:
    """Prints the daemon's peak memory before and after many requests whose answers nobody reads."""
    at = places.endpoint()
    request = {"kind": "emit", "model": model, "board": "host", "name": "net"}
    link = daemon.reach(at, start=False)
    pid = link.hello["pid"]
    answer = len(wire.pack_frame(link.request(request, "on", None)))
    before = _peak(pid)
    hello = wire.pack_frame({"protocol": wire.PROTOCOL, "hello": {}})
    asked = wire.pack_frame({"protocol": wire.PROTOCOL, "request": request, "cache": "on", "environment": {}})
    with contextlib.ExitStack() as stack:
        for _ in range(clients):
            ours = stack.enter_context(socket.socket(socket.AF_UNIX))
            ours.connect(str(at.address))
            ours.sendall(hello + 55 * asked)
        time.sleep(4)
        after = _peak(pid)
    link.close()
    print(
        f"peak memory (bytes) of the daemon: {before:,}; after {clients} clients have asked 55 times ", end=""
    )
    print(f"each for {answer:,} bytes and read nothing: {after:,}")


def many(number: int, board: str) -> None:
    """Prints the memory of the daemon's processes before and after `number` requests."""
    at = places.endpoint()

    def ask(count: int) -> list[int]:
        link = daemon.reach(at, start=False)
        for index in range(count):
            request: dict[str, Any] = {"kind": "plan", "model": "ds_cnn", "board": board}
            if index % 4 == 0:
                request["options"] = {"ram": 300_000 + index}
            link.request(request, "on", None)
        while any(worker["doing"] != "idle" for worker in link.control("status")["workers"]):
            time.sleep(0.05)
        pids = [link.hello["pid"], *(worker["pid"] for worker in link.control("status")["workers"])]
        link.close()
        return [_resident(pid) for pid in pids]

    ask(number // 2)
    before, after = ask(number // 2), ask(number)
    print(f"memory (bytes) of the daemon and its workers: {_numbers(before)}", end="")
    print(f"; after {number:,} more requests: {_numbers(after)}")


def _numbers(values: list[int]) -> str:
    return " + ".join(f"{value:,}" for value in values)


def _peak(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM"))


def _resident(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def main() -> int:
    """Runs all parts with a state folder and a cache of their own."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--model", default="mobilenetv2:size=160")
    parser.add_argument("--board", default="cortex-m4")
    parser.add_argument("--requests", type=int, default=1000)
    parser.add_argument("--greedy", type=int, default=12)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        os.environ[folders.STATE] = str(Path(name) / "state")
        os.environ[folders.CACHE] = str(Path(name) / "cache")
        try:
            busy(args.model, args.board)
            greedy(args.greedy, args.model)
            many(args.requests, args.board)
        finally:
            daemon.reach(start=False).control("stop")
    return 0


if __name__ == "__main__":
    sys.exit(main())
