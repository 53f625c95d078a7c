"""A plan's timeline: the steps of all its regions in order. It is computed once and passed on.

It also has facts about all steps: where regions begin, when an operator runs first and last, the most columns
of its calls, and the pixels that it computes.

The groups of a streamed region run alternately. A turn of a group begins with its first step after a step of
another group, and lasts until the next turn begins. Data in a group's share of the workspace lasts only for
one turn, so the constants of some groups are loaded again at every turn.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from buildtool.base.errors import PlanError
from buildtool.base.modes import Image
from buildtool.base.session import Session
from buildtool.graph.liveness import LiveRange, alias_roots, live_ranges
from buildtool.graph.topology import topology_digest
from buildtool.graph.types import Graph
from buildtool.plan.schedule.delivery import delivered_image
from buildtool.plan.schedule.schedule import Run, Steps, hand_offs, run
from buildtool.plan.types import SOURCE, Buffer, Load, Region, Scheme, Step

MOST_RUNS = 16384  # runs that a session keeps, about a kilobyte each: more than the regions of long plans


class Life(NamedTuple):
    """The first and the last step that touch a tensor or an operator's memory. Both are included."""

    first: int
    last: int


@dataclass(frozen=True, eq=False)
class Timeline:
    """How a plan's regions run, one after the other.

    The number of a step counts over all regions. `image`: overwritable, resident or stream, as in Plan.
    `runs`: how each region runs.
    """

    graph: Graph
    image: str
    runs: tuple[Run, ...]

    @staticmethod
    def of(graph: Graph, regions: Sequence[Region], image: str, session: Session | None = None) -> Timeline:
        """Returns the timeline of some regions. `image`: as in Plan.

        A session caches runs, because plans of one request share most regions.
        """
        if session is None:
            return Timeline(graph, image, tuple(run(region, graph, image) for region in regions))
        digest = topology_digest(graph)

        def known(region: Region) -> Run:
            key = (digest, region, image)
            return session.remember("runs", key, lambda: run(region, graph, image), MOST_RUNS)

        return Timeline(graph, image, tuple(map(known, regions)))

    @cached_property
    def regions(self) -> tuple[Region, ...]:
        """Returns the regions, in order."""
        return tuple(r.region for r in self.runs)

    @cached_property
    def steps(self) -> Steps:
        """Returns all steps, as an array with a row for each."""
        return np.concatenate([np.empty((0, 5), np.int32), *(r.steps for r in self.runs)])

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """Returns the number of each region's first step, and at the end the number of all steps."""
        return (0, *accumulate(r.count for r in self.runs))

    @property
    def last(self) -> int:
        """Returns the number of the last step; 0 if there are no steps."""
        return max(self.starts[-1] - 1, 0)

    def step(self, number: int) -> Step:
        """Returns the step with this number."""
        index = self.region_at(number)
        number -= self.starts[index]
        every = self.runs[index].portions()
        return next(Step(*some[number - at].tolist()) for at, some in every if number < at + len(some))

    def region_at(self, number: int) -> int:
        """Returns the position of the region that runs in a step."""
        return bisect_right(self.starts, number, hi=len(self.runs)) - 1

    @cached_property
    def lives(self) -> Mapping[int, Life]:
        """Returns operator -> its first and last step. SOURCE stands for the deliveries of rows."""
        lives: dict[int, Life] = {}
        for region, start in zip(self.runs, self.starts, strict=False):
            for op, activity in region.activities.items():
                first = lives[op].first if op in lives else start + activity.first
                lives[op] = Life(first, start + activity.last)
        return lives

    @cached_property
    def tensor_lives(self) -> Mapping[int, Life]:
        """Returns tensor (root, see alias_roots) -> the first and the last step that touch its memory.

        An operator touches its tensors from its first step to its last. The network's inputs are in memory
        from step 0 on, except a streamed image. Its outputs, and with a resident image its inputs, are in
        memory until the last step.
        """
        graph, lives = self.graph, dict[int, Life]()

        def touch(tensor: int, life: Life) -> None:
            if tensor in self.roots:
                life_so_far = lives.get(self.roots[tensor], life)
                lives[self.roots[tensor]] = Life(
                    min(life_so_far.first, life.first), max(life_so_far.last, life.last)
                )

        image = delivered_image(graph) if self.image == Image.STREAM else None
        for t in graph.inputs:
            if image is None or t != image.input:
                touch(t, Life(0, 0))
        for position, life in self.lives.items():
            op = graph.ops[position] if position != SOURCE else None
            for t in (*op.inputs, *op.outputs) if op else (image.tensor if image else -1,):
                touch(t, life)
        for t in (*graph.outputs, *(graph.inputs if self.image == Image.RESIDENT else ())):
            touch(t, Life(self.last, self.last))
        return lives

    @cached_property
    def columns(self) -> Mapping[int, int]:
        """Returns operator -> the largest number of output columns of one of its calls."""
        most: dict[int, int] = {}
        for region in self.runs:
            for op, activity in region.activities.items():
                most[op] = max(activity.columns, most.get(op, 0))
        return most

    @cached_property
    def roots(self) -> Mapping[int, int]:
        """Returns activation -> the tensor whose bytes it uses (see alias_roots)."""
        return alias_roots(self.graph)

    @cached_property
    def ranges(self) -> tuple[LiveRange, ...]:
        """Returns the sets of activations that share their bytes (see live_ranges)."""
        return live_ranges(self.graph)


class Turn(NamedTuple):
    """A turn of a group: the step of its region's run with which it begins, and the group's index."""

    step: int
    group: int


class Part(NamedTuple):
    """Rows [y0, y1) that a group makes at a time. `step`: the first step of the run that makes them."""

    step: int
    y0: int
    y1: int


def turns(run: Run, graph_ops: int) -> list[Turn]:
    """Returns the turns of a region's groups, in order.

    `graph_ops`: the number of operators of the whole graph.
    """
    groups = _groups(run, graph_ops)
    at = np.flatnonzero(groups >= 0)
    begins = at[np.flatnonzero(np.diff(groups[at], prepend=-1))]
    return [Turn(*pair) for pair in zip(begins.tolist(), groups[begins].tolist(), strict=True)]


def parts(run: Run, timeline: Timeline, group: int) -> list[Part]:
    """Returns the parts (rows made at a time) of group number `group`, in order; empty for branches."""
    own = run.region.groups[group]
    if own.scheme is Scheme.BRANCHES:
        return []
    at = np.flatnonzero(_groups(run, len(timeline.graph.ops)) == group)
    each = len(hand_offs(own, timeline.graph))
    lines = run.advance_lines
    rows = lines[lines[:, 0] == group, 2:].tolist()
    return [Part(step, *span) for step, span in zip(at[::each].tolist(), rows, strict=True)]


def _groups(run: Run, graph_ops: int) -> npt.NDArray[np.int64]:
    """Returns step -> the index of its group in the region; -1 if rows of the input image are delivered.

    `graph_ops`: the number of operators of the whole graph.
    """
    place = np.full(graph_ops + 1, -1, np.int64)
    for index, group in enumerate(run.region.groups):
        place[list(group.ops)] = index
    return place[run.steps[:, 0]]


def group_of(region: Region, op: int) -> int:
    """Returns the index in a region of an operator's group.

    Raises PlanError if the region does not have the operator.
    """
    for index, group in enumerate(region.groups):
        if op in group.ops:
            return index
    raise PlanError(f"operator {op} takes turns in a region that it is not in")


def load_steps(
    timeline: Timeline, loads: Iterable[Load], buffers: Sequence[Buffer]
) -> list[tuple[int, Load]]:
    """Returns (step, load) for each time that constants are loaded, in order.

    `buffers`: those of the plan that has the loads. Raises PlanError if constants are loaded at each turn,
    but no region has their operator.
    """
    times: list[tuple[int, int, Load]] = []
    turning: dict[int, list[tuple[int, Load]]] = {}  # region -> its loads that repeat at each turn
    regions = {op: i for i, region in enumerate(timeline.regions) for op in region.ops}
    for number, load in enumerate(loads):
        if not load.by_turns:
            times.append((buffers[load.buffer].first, number, load))
        elif load.op not in regions:
            raise PlanError(f"operator {load.op} takes turns in no region")
        else:
            turning.setdefault(regions[load.op], []).append((number, load))
    for index, own in turning.items():
        for at, group in turns(timeline.runs[index], len(timeline.graph.ops)):
            step = timeline.starts[index] + at
            times += [
                (step, number, load)
                for number, load in own
                if load.op in timeline.regions[index].groups[group].ops
                and buffers[load.buffer].first <= step <= buffers[load.buffer].last
            ]
    return [(step, load) for step, _, load in sorted(times, key=lambda one: one[:2])]
