"""A plan's timeline: the steps of all its regions in order, made once and passed to all who ask when.

What is true of the steps as a whole stands here: where regions begin, when an operator runs first and
last, the most columns that one of its calls makes, the pixels that it computes in all.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from buildtool.base.modes import Image
from buildtool.base.session import Session
from buildtool.graph.liveness import LiveRange, alias_roots, live_ranges
from buildtool.graph.topology import topology_digest
from buildtool.graph.types import Graph
from buildtool.plan.schedule.schedule import Run, Steps, run
from buildtool.plan.types import SOURCE, Region, Step

MOST_RUNS = 16384  # that a session keeps, of a kilobyte or so each: more than the regions of long plans


class Life(NamedTuple):
    """First and last step in which something is touched."""

    first: int
    last: int


@dataclass(frozen=True, eq=False)
class Timeline:
    """How a plan's regions run, one after the other; a step's number counts over all of them.

    `image`: overwritable, resident or stream, as in Plan.
    """

    graph: Graph
    image: str
    runs: tuple[Run, ...]

    @staticmethod
    def of(graph: Graph, regions: Sequence[Region], image: str, session: Session | None = None) -> Timeline:
        """The timeline of some regions. What a session has of them already is not made again."""
        if session is None:
            return Timeline(graph, image, tuple(run(region, graph, image) for region in regions))
        digest = topology_digest(graph)
        return Timeline(graph, image, tuple(_known(session, digest, r, graph, image) for r in regions))

    @cached_property
    def regions(self) -> tuple[Region, ...]:
        """The regions, in order."""
        return tuple(r.region for r in self.runs)

    @cached_property
    def steps(self) -> Steps:
        """All steps, a line each."""
        return np.concatenate([np.empty((0, 5), np.int32), *(r.steps for r in self.runs)])

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """Each region's first step, and at the end the number of all steps."""
        return (0, *accumulate(r.count for r in self.runs))

    @property
    def last(self) -> int:
        """The number of the last step; 0 where there is none."""
        return max(self.starts[-1] - 1, 0)

    def step(self, number: int) -> Step:
        """One step."""
        return Step(*self.steps[number].tolist())

    def region_at(self, number: int) -> int:
        """The position of the region that runs in a step."""
        return bisect_right(self.starts, number, hi=len(self.runs)) - 1

    @cached_property
    def lives(self) -> Mapping[int, Life]:
        """Operator (SOURCE: the deliveries of rows) -> its first and last step."""
        found: dict[int, Life] = {}
        for region, start in zip(self.runs, self.starts, strict=False):
            for op, activity in region.activities.items():
                first = found[op].first if op in found else start + activity.first
                found[op] = Life(first, start + activity.last)
        return found

    @cached_property
    def tensor_lives(self) -> Mapping[int, Life]:
        """Tensor by its root (see alias_roots) -> the first and the last step in which its memory is touched.

        What an operator touches, it touches from its first step to its last. The network's inputs are there
        from step 0, unless rows of a streamed image are delivered; its outputs, and the inputs of a resident
        image, are there until the last step.
        """
        graph, found = self.graph, dict[int, Life]()

        def touch(tensor: int, life: Life) -> None:
            if tensor in self.roots:
                known = found.get(self.roots[tensor], life)
                found[self.roots[tensor]] = Life(min(known.first, life.first), max(known.last, life.last))

        for t in graph.inputs if self.image != Image.STREAM else ():
            touch(t, Life(0, 0))
        for position, life in self.lives.items():
            op = graph.ops[position] if position != SOURCE else None
            for t in (*op.inputs, *op.outputs) if op else graph.inputs[:1]:
                touch(t, life)
        end = Life(self.last, self.last)
        for t in (*graph.outputs, *(graph.inputs if self.image == Image.RESIDENT else ())):
            touch(t, end)
        return found

    @cached_property
    def columns(self) -> Mapping[int, int]:
        """Operator -> the most columns of its output that one of its calls makes."""
        found: dict[int, int] = {}
        for region in self.runs:
            for op, activity in region.activities.items():
                found[op] = max(activity.columns, found.get(op, 0))
        return found

    @cached_property
    def roots(self) -> Mapping[int, int]:
        """Activation -> the tensor whose bytes it is: see alias_roots."""
        return alias_roots(self.graph)

    @cached_property
    def ranges(self) -> tuple[LiveRange, ...]:
        """The activations that share their bytes: see live_ranges."""
        return live_ranges(self.graph)


def _known(session: Session, digest: str, region: Region, graph: Graph, image: str) -> Run:
    """A run that a session may have already: plans asked for together share most of their regions."""
    return session.remember("runs", (digest, region, image), lambda: run(region, graph, image), MOST_RUNS)
