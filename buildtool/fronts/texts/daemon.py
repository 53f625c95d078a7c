"""What the planner's daemon does, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from buildtool.fronts.texts.table import count, table


def text(daemons: Sequence[Mapping[str, Any]]) -> str:
    """Each daemon: whether it runs, its processes, what it has answered and what it watches."""
    return "\n\n".join(map(_one, daemons)) if daemons else "no daemon is running"


def _one(daemon: Mapping[str, Any]) -> str:
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
