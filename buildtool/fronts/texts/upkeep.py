"""What is kept of earlier plans, and what the planner's daemon does, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from buildtool.fronts.texts.table import count, table


def stats(answer: Mapping[str, Any]) -> str:
    """The levels, and what went wrong."""
    lines = [f"{answer['folder']}: {answer['bytes']:,} of {answer['most_bytes']:,} bytes"]
    if answer["trouble"]:
        lines.append(f"  it is not used: {answer['trouble']}")
    for name, number in answer["errors"].items():
        lines.append(f"  {name}  {number:,}")
    figures = ("entries", "bytes", "hits", "misses")
    rows = [[name, *(level[figure] for figure in figures)] for name, level in answer["levels"].items()]
    return "\n".join([*lines, "", table(["level", *figures], rows)] if rows else lines)


def verified(answer: Mapping[str, Any]) -> str:
    """How many entries are sound, and what became of the others."""
    text = f"{answer['folder']}: {answer['entries']:,} entries are sound"
    if answer["bad"]:
        text += f"; {answer['bad']:,} were not, and lie in {answer['aside']} now"
    if answer["unreadable"]:
        text += f"; {answer['unreadable']:,} cannot be read"
    return text


def explained(answer: Mapping[str, Any]) -> str:
    """For each request that is remembered: what was kept, what was made anew, and why."""
    parts = [
        _subject(name, list(rows)) for name, rows in groupby(answer["asked"], lambda row: row["subject"])
    ]
    return "\n\n".join(parts) or "no such request is remembered"


def _subject(name: str, rows: list[Mapping[str, Any]]) -> str:
    lines = [f"{name}:"]
    for row in rows:
        found = f"{row['hits']:,} kept, {row['misses']:,} made anew"
        lines.append(f"  {row['level']}  {found}")
        for change in row["changed"]:
            lines.append(f"    {change['part']}: {change['was']} -> {change['now']}")
        if row["misses"] and not row["changed"]:
            lines.append("    nothing was kept under its key before")
    return "\n".join(lines)


def daemons_text(daemons: Sequence[Mapping[str, Any]]) -> str:
    """Each daemon: whether it runs, its processes, what it has answered and what it watches."""
    return "\n\n".join(map(_daemon, daemons)) if daemons else "no daemon is running"


def _daemon(daemon: Mapping[str, Any]) -> str:
    if "pid" not in daemon:
        if daemon["running"]:
            return f"a daemon runs, and does not answer: {daemon['why']}\n  log  {daemon['log']}"
        why = f" (the last one ended: {daemon['why']})" if daemon.get("why") else ""
        return f"no daemon is running{why}"
    counts, prepares = daemon["counts"], daemon["preparing"]
    lines = [
        f"the daemon runs: process {daemon['pid']}, for {daemon['seconds']:,.0f} seconds, {daemon['state']}",
        f"  requests  {counts['requests']:,}: {counts['from_memory']:,} answered from memory, "
        f"{counts['planned']:,} planned; {counts['prepared']:,} prepared in the background",
        f"  waiting   {count(daemon['waiting'], 'request')}; {count(daemon['clients'], 'client')}, "
        f"{daemon['leases']:,} of them watching; {daemon['unread_bytes']:,} bytes they have not read",
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
        lines.append(f"  no events {folder}: {why}; its files are looked at instead")
    rows = [
        [w["pid"], w["doing"], w["about"], f"{w['seconds']:,.1f}", w["memory_bytes"]]
        for w in daemon["workers"]
    ]
    if rows:
        lines += ["", table(["process", "it is", "about", "for s", "memory bytes"], rows)]
    return "\n".join(lines)
