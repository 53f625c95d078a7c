"""Turns: in a streamed region constants of some groups come anew whenever another group ran meanwhile.

The groups of a region take turns: a turn begins with the first step of a group after a step of another one,
and lasts until the next turn begins. What is in a group's share of the workspace lasts as long as its turn.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from buildtool.base.errors import PlanError
from buildtool.plan.schedule.schedule import Run, hand_offs
from buildtool.plan.schedule.timeline import Timeline
from buildtool.plan.types import Buffer, Load, Region, Scheme


class Turn(NamedTuple):
    """A turn of one of a region's groups (by its place in the region) that begins with a step of the run."""

    step: int
    group: int


class Part(NamedTuple):
    """Rows [y0, y1) that a group makes in one go, from a step of the run on."""

    step: int
    y0: int
    y1: int


def turns(run: Run, graph_ops: int) -> list[Turn]:
    """The turns of a region's groups, in order; `graph_ops`: operators of the whole graph."""
    places = _places(run, graph_ops)
    at = np.flatnonzero(places >= 0)
    groups = places[at]
    begins = np.flatnonzero(np.diff(groups, prepend=-1))
    return [Turn(*pair) for pair in zip(at[begins].tolist(), groups[begins].tolist(), strict=True)]


def parts(run: Run, timeline: Timeline, group: int) -> list[Part]:
    """What a group makes in one go, one after the other; nothing of a group of branches."""
    found = run.region.groups[group]
    if found.scheme is Scheme.BRANCHES:
        return []
    at = np.flatnonzero(_places(run, len(timeline.graph.ops)) == group)
    each = len(hand_offs(found, timeline.graph))
    rows = [(advance.y0, advance.y1) for advance in run.advances if advance.group == group]
    return [Part(step, *span) for step, span in zip(at[::each].tolist(), rows, strict=True)]


def _places(run: Run, graph_ops: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Step -> its group's place in the region; -1: rows of the image are delivered."""
    place = np.full(graph_ops + 1, -1, np.int64)
    for index, group in enumerate(run.region.groups):
        place[list(group.ops)] = index
    found: np.ndarray[tuple[int], np.dtype[np.int64]] = place[run.steps[:, 0]]
    return found


def group_of(region: Region, op: int) -> int:
    """The place in a region of an operator's group; PlanError where it is not in it."""
    for index, group in enumerate(region.groups):
        if op in group.ops:
            return index
    raise PlanError(f"operator {op} takes turns in a region that it is not in")


def brought(timeline: Timeline, loads: Iterable[Load], buffers: Sequence[Buffer]) -> list[tuple[int, Load]]:
    """(step, load), each time that constants are brought, in order."""
    found: list[tuple[int, int, Load]] = []
    taking: dict[int, list[tuple[int, Load]]] = {}  # region -> its loads that come by turns
    regions = {op: i for i, region in enumerate(timeline.regions) for op in region.ops}
    for number, load in enumerate(loads):
        if not load.by_turns:
            found.append((buffers[load.buffer].first, number, load))
        elif load.op not in regions:
            raise PlanError(f"operator {load.op} takes turns in no region")
        else:
            taking.setdefault(regions[load.op], []).append((number, load))
    for index, own in taking.items():
        run, start = timeline.runs[index], timeline.starts[index]
        groups = {number: group_of(run.region, load.op) for number, load in own}
        for turn in turns(run, len(timeline.graph.ops)):
            step = start + turn.step
            found += [
                (step, number, load)
                for number, load in own
                if groups[number] == turn.group
                and buffers[load.buffer].first <= step <= buffers[load.buffer].last
            ]
    return [(step, load) for step, _, load in sorted(found, key=lambda one: one[:2])]
