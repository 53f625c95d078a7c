"""Runs one command of buildtool in a process that does nothing else; prints CPU seconds by part, as JSON.

For benchmarks/front.py: python benchmarks/command_parts.py front FILE --board B ...
"""

from __future__ import annotations

import contextlib
import functools
import io
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

PARTS = ("start", "read", "search", "place", "check", "rest")


class Clock:
    """Measures CPU seconds by part. If one part calls another one, the time counts for the called part."""

    def __init__(self) -> None:
        self.seconds = dict.fromkeys(PARTS, 0.0)
        self._open = ["start"]
        self._since = 0.0  # process_time counts from the start of the process

    def turn(self, part: str | None) -> None:
        """Begins to count for a part. None ends the part that began last."""
        now = time.process_time()
        self.seconds[self._open[-1]] += now - self._since
        self._since = now
        if part is None:
            self._open.pop()
        else:
            self._open.append(part)

    def timed(self, owner: Any, name: str, part: str) -> None:
        """Wraps a function or method, so that its time counts for a part."""
        inner: Callable[..., Any] = getattr(owner, name)

        @functools.wraps(inner)
        def outer(*args: Any, **named: Any) -> Any:
            self.turn(part)
            try:
                return inner(*args, **named)
            finally:
                self.turn(None)

        setattr(owner, name, outer)


def measure(words: list[str]) -> dict[str, float]:
    """Runs a command in this process. Returns its CPU seconds by part, its points and its peak memory."""
    clock = Clock()
    from buildtool import api as service
    from buildtool.fronts.cli import main as cli

    handle = service.handle
    service.handle = lambda *args: _timed_inside(clock, lambda: handle(*args))
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        cli.run([*words, "--json"])
    clock.turn(None)
    answer = json.loads(text.getvalue())
    status = Path("/proc/self/status").read_text()  # getrusage would count what the parent had
    peak = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")) / 1024
    found = {"points": len(answer.get("points", ())), "MB": peak, "whole": sum(clock.seconds.values())}
    return {**found, **clock.seconds}


def _timed_inside(clock: Clock, run: Callable[[], Any]) -> Any:
    """Runs the service's function, with the parts of its work measured; returns its result."""
    clock.turn("start")
    from buildtool.plan import models  # before whoever takes their functions by name
    from buildtool.plan.choose import problem

    clock.timed(models, "load_network", "read")
    clock.timed(problem, "prepare_problem", "read")
    from buildtool.plan.assemble import layerwise, loads
    from buildtool.plan.check import check
    from buildtool.plan.search import front, paths

    for owner, name, part in (
        (paths.Search, "least", "search"),
        (paths.Search, "__init__", "search"),
        (front.Space, "ways", "search"),
        (front.Space, "cheapest", "search"),
        (front.Front, "assemble", "place"),
        (front.Front, "cheap", "place"),
        (layerwise, "plan", "place"),
        (loads.Loading, "plan", "place"),
        (check, "check", "check"),
    ):
        clock.timed(owner, name, part)
    clock.turn(None)
    clock.turn("rest")
    try:
        return run()
    finally:
        clock.turn(None)


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1:])))
