"""Starts, stops and shows the planner's daemon; formats the state of the cache as text."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from buildtool.base.errors import ToolError, UsageError
from buildtool.base.locks import process
from buildtool.client import daemon, endpoint
from buildtool.client.endpoint import Endpoint
from buildtool.fronts.texts.table import count, table

STOP_SECONDS = 12.0  # a daemon finishes its requests within ten seconds
_NONE_NEEDED = "no command needs one: without a daemon each plans in its own process"
SILENT_SECONDS = 2.0  # time to end for a daemon that does not answer


def daemon_command(action: str, *, every: bool = False) -> tuple[Mapping[str, Any], str, int]:
    """Runs `buildtool daemon ACTION`. Returns the answer, the answer as text, and the exit status.

    If `every` is true, it stops or shows all daemons, also those that run other code.
    """
    if every and action not in ("stop", "status"):
        raise UsageError(f"--all has no effect on 'daemon {action}'", hint="leave it out")
    if action in ("start", "restart"):
        if action == "restart":
            _stop([endpoint.endpoint()])
        try:
            with contextlib.closing(daemon.reach(start=True)) as link:
                pid = link.hello.get("pid")
        except endpoint.AbsentError as error:
            hint = _NONE_NEEDED if error.args[0] == daemon.NO_DAEMONS else ""
            raise ToolError(f"the daemon cannot be started: {error.args[0]}", hint=hint) from None
        return {"running": True, "pid": pid}, f"the daemon runs (process {pid})", 0
    endpoints = endpoint.every() if every else [endpoint.endpoint()]
    if action == "stop":
        return _stop(endpoints)
    if action == "logs":
        log, text = endpoints[0].log, endpoints[0].log_end(200)
        return {"log": str(log), "lines": text.splitlines()}, text or f"{log} is empty", 0
    return _status(endpoints)


def _stop(endpoints: list[Endpoint]) -> tuple[Mapping[str, Any], str, int]:
    stopped: list[int] = []
    failed: list[ToolError] = []
    for at in endpoints:
        try:
            if pid := _stop_daemon(at):
                stopped.append(pid)
        except ToolError as error:  # the others are stopped nevertheless
            failed.append(error)
    said = f"stopped: process {', '.join(map(str, stopped))}"
    if failed:
        raise ToolError("; ".join([*(error.text for error in failed), *([said] if stopped else [])]))
    if stopped:
        return {"stopped": stopped}, said, 0
    others = sum(at.is_alive() for at in endpoint.every())
    run = "1 runs for another" if others == 1 else f"{others} run for others"
    more = f" for this code and this cache; {run}: see --all" if others else ""
    return {"stopped": stopped}, f"no daemon was running{more}", 0


def _stop_daemon(at: Endpoint) -> int:
    """Stops a daemon. Returns the ID of the process that ended, or 0 if no daemon ran.

    A daemon that does not answer is killed, if its process ID and start time are those in its record. Raises
    ToolError if the process does not end.
    """
    if not at.is_alive():
        return 0
    pid, start = at.process()
    try:
        _send_control(at, "stop")
    except endpoint.AbsentError:
        _signal(at, pid, start, signal.SIGTERM)
        _wait_for_end(at, pid, start, SILENT_SECONDS)
    else:
        _wait_for_end(at, pid, start, STOP_SECONDS)
    if _lives(at, pid, start):
        _signal(at, pid, start, signal.SIGKILL)
        _wait_for_end(at, pid, start, SILENT_SECONDS)
    if _lives(at, pid, start):
        raise ToolError(f"process {pid} was asked to end, then killed, and still runs: see {at.log}")
    return pid


def _send_control(at: Endpoint, word: str) -> None:
    """Sends a control word to a running daemon. Raises AbsentError if no daemon answers."""
    with contextlib.closing(daemon.reach(at, start=False)) as link:
        link.control(word)


def _lives(at: Endpoint, pid: int, start: str) -> bool:
    """Whether a daemon still holds its lock, or its process has not ended yet."""
    return at.is_alive() or (pid > 0 and start != "" and process(pid)[1] == start)


def _wait_for_end(at: Endpoint, pid: int, start: str, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while _lives(at, pid, start) and time.monotonic() < deadline:
        time.sleep(0.02)


def _signal(at: Endpoint, pid: int, start: str, word: signal.Signals) -> None:
    """Sends the signal `word` to a daemon, if its process ID and start time are those in its record.

    Does nothing if the daemon has ended. Raises ToolError if it runs but its process is not known.
    """
    if pid <= 0 or not start or process(pid)[1] != start:
        if not at.is_alive():
            return
        raise ToolError(f"the daemon does not answer, and its process number is not known: see {at.log}")
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, word)


def _status(endpoints: list[Endpoint]) -> tuple[Mapping[str, Any], str, int]:
    daemons = []
    for at in endpoints:
        try:
            link = daemon.reach(at, start=False)
        except endpoint.AbsentError as error:
            alive = at.is_alive()
            why = error.args[0] if alive else str(at.read_record().get("ended") or "")
            daemons.append({"running": alive, "socket": str(at.address), "log": str(at.log), "why": why})
            continue
        with contextlib.closing(link):
            try:
                daemons.append({"running": True, **link.control("status")})
            except endpoint.AbsentError as error:
                daemons.append({"running": True, "log": str(at.log), "why": error.args[0]})
    running = any(one["running"] for one in daemons)
    return {"daemons": daemons}, daemons_text(daemons), 0 if running else 1


def drop_answers() -> None:
    """Tells every running daemon to drop its cached answers."""
    for at in endpoint.every():
        with contextlib.suppress(endpoint.AbsentError):
            _send_control(at, "forget")


def stats_text(answer: Mapping[str, Any]) -> str:
    """Returns the state of the cache as text: its folders, its namespaces and its errors, with figures."""
    lines = [f"{answer['folder']}: {answer['bytes']:,} of {answer['most_bytes']:,} bytes"]
    if answer["trouble"]:
        lines.append(f"  the cache is not used: {answer['trouble']}")
    for name, number in answer["errors"].items():
        lines.append(f"  {name}  {number:,}")
    heads = ("hits", "misses", "errors", "sent", "milliseconds")
    used = [
        [name, *(place[head] for head in heads)]
        for name, place in answer["places"].items()
        if any(place.values())
    ]
    lines += ["", table(["place", *heads], used)] if used else []
    figures = ("entries", "bytes", "hits", "misses")
    rows = [[name, *(space[figure] for figure in figures)] for name, space in answer["levels"].items()]
    return "\n".join([*lines, "", table(["namespace", *figures], rows)] if rows else lines)


def verify_text(answer: Mapping[str, Any]) -> str:
    """Returns a text that says how many entries of the cache are intact, and what was done with the
    others.
    """
    text = f"{answer['folder']}: {answer['entries']:,} entries are intact"
    if answer["bad"]:
        text += f"; {answer['bad']:,} were damaged and moved to {answer['aside']}"
    if answer["unreadable"]:
        text += f"; {answer['unreadable']:,} cannot be read"
    return text


def explain_text(answer: Mapping[str, Any]) -> str:
    """Returns lines that say for each request what the cache had, what was computed again, and why."""
    paragraphs = []
    for subject, rows in groupby(answer["asked"], lambda row: row["subject"]):
        lines = [f"{subject}:"]
        for row in rows:
            lines.append(f"  {row['level']}  {row['hits']:,} from the cache, {row['misses']:,} made anew")
            lines += [f"    {one['part']}: {one['was']} -> {one['now']}" for one in row["changed"]]
            if row["misses"] and not row["changed"]:
                lines.append("    the cache had no entry for this key")
        paragraphs.append("\n".join(lines))
    return "\n\n".join(paragraphs) or "no such request is remembered"


def daemons_text(daemons: Sequence[Mapping[str, Any]]) -> str:
    """Returns each daemon's state, processes, answers and watched files as text."""
    return "\n\n".join(map(_daemon_text, daemons)) if daemons else "no daemon is running"


def _daemon_text(daemon: Mapping[str, Any]) -> str:
    if "pid" not in daemon:
        if daemon["running"]:
            return f"a daemon runs but does not answer: {daemon['why']}\n  log  {daemon['log']}"
        why = f" (the last one ended: {daemon['why']})" if daemon.get("why") else ""
        return f"no daemon is running{why}"
    counts, prepares = daemon["counts"], daemon["preparing"]
    lines = [
        f"the daemon runs: process {daemon['pid']}, for {daemon['seconds']:,.0f} seconds, {daemon['state']}",
        f"  requests  {counts['requests']:,}: {counts['from_memory']:,} answered from memory, "
        f"{counts['planned']:,} planned; {counts['prepared']:,} prepared in the background",
        f"  waiting   {count(daemon['waiting'], 'request')}; {count(daemon['clients'], 'client')}, "
        f"{daemon['leases']:,} of them watching; {daemon['unread_bytes']:,} bytes not read by them",
        f"  prepares  {prepares['waiting']:,} more; CPU time since the last request: "
        f"{prepares['spent']:,.1f} s spent, {prepares['left']:,.1f} s left",
        f"  memory    {daemon['memory_bytes']:,} of {daemon['most_memory_bytes']:,} bytes in its processes, "
        f"{daemon['answers_bytes']:,} of answers",
        f"  watched   {count(len(daemon['watched']['files']), 'file')}",
        f"  log       {daemon['log']}",
    ]
    if counts["crashes"]:
        lines.append(f"  crashes   {counts['crashes']:,}")
    for folder, why in daemon["watched"]["without_events"].items():
        lines.append(f"  no events {folder}: {why}; its files are checked every second")
    rows = [
        [w["pid"], w["doing"], w["about"], f"{w['seconds']:,.1f}", w["memory_bytes"]]
        for w in daemon["workers"]
    ]
    if rows:
        lines += ["", table(["process", "it is", "about", "for s", "memory bytes"], rows)]
    return "\n".join(lines)
