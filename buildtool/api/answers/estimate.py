"""Boards whose speed cannot be measured here: an estimate, and what the user has to know of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from buildtool.firmware.needs import notes
from buildtool.plan.schedule.schedule import executed_macs
from buildtool.plan.schedule.timeline import Timeline, brought
from buildtool.plan.summary.summary import peak
from buildtool.target.catalogue import features

if TYPE_CHECKING:
    from buildtool.firmware.planned import Planned
    from buildtool.graph.types import Graph
    from buildtool.plan.types import Load, Plan
    from buildtool.schema.boards import BoardFacts, Estimate, Loading
    from buildtool.target.types import Board


def facts(made: Planned) -> BoardFacts:
    """For an answer: `note` (""), `notes`, `estimate` and `loading` (None where there is none)."""
    timeline = Timeline.of(made.graph, made.plan.regions, made.plan.image, made.session)
    return {
        "note": made.target.board.note,
        "notes": notes(made),
        "estimate": _estimate(made.plan, timeline, made.target.board),
        "loading": _loads(made, timeline),
    }


def _loads(made: Planned, timeline: Timeline) -> Loading | None:
    """How constants come into the arena, and whether their buffers make it larger."""
    plan = made.plan
    if not plan.loads:
        return None
    bare = peak(plan, made.graph, weights=False, session=made.session)
    without = bare.bytes if bare else 0
    starts = _region_starts(timeline)
    brings = brought(timeline, plan.loads, plan.buffers)
    again = {op for op, times in Counter(load.op for _, load in brings).items() if times > 1}
    once = {load.op: load.size for load in plan.loads}
    return {
        "bytes": sum(load.size for _, load in brings),
        "operators": len(once),
        "again": len(again),
        "again_bytes": sum(load.size for _, load in brings) - sum(once.values()),
        "in_slices": sum(load.channels > 0 for load in plan.loads),
        "ahead": sum(plan.buffers[load.buffer].first < starts[load.op] for load in plan.loads),
        "fullest_without": without,
        "bind": without < plan.arena_bytes - plan.alignment,
        "largest": max(plan.buffers[load.buffer].size for load in plan.loads),
    }


def _region_starts(timeline: Timeline) -> dict[int, int]:
    """Operator -> the first step of its region."""
    pairs = zip(timeline.regions, timeline.starts, strict=False)
    return {op: first for region, first in pairs for op in region.ops}


def _estimate(plan: Plan, timeline: Timeline, board: Board) -> Estimate | None:
    """Seconds of computing, of loading, and of both as they overlap."""
    if board.estimate is None:
        return None
    graph = timeline.graph
    rate, bandwidth = board.estimate.macs_per_second, board.memory(board.weights).bandwidth
    clock = _Clock(rate, bandwidth)
    starts = _region_starts(timeline)
    begun: dict[int, list[Load]] = {}
    inside: dict[int, list[Load]] = {}  # region's first step -> what is brought while it runs, each time
    brings = brought(timeline, plan.loads, plan.buffers)
    for step, load in brings:
        waits = load.by_turns or step > starts[load.op]
        (inside if waits else begun).setdefault(starts[load.op] if waits else step, []).append(load)
    for run, number in zip(timeline.runs, timeline.starts, strict=False):
        here = [
            load for load in plan.loads if starts[load.op] == number and load not in inside.get(number, [])
        ]
        later = [load for load in begun.get(number, []) if load not in here]
        for load in begun.get(number, []):
            if load in here:
                clock.begin(load, graph)
        clock.wait(here)
        if number in inside:  # it waits at its first turn for all that comes
            for load in later:
                clock.begin(load, graph)
            clock.stop(inside[number])
            later = []
        clock.run(executed_macs(graph, run), here, later, graph)
    loaded = sum(load.size for _, load in brings)
    return {
        "compute_seconds": plan.macs / rate,
        "load_seconds": loaded / bandwidth if bandwidth else 0.0,
        "total_seconds": clock.now,
        "macs_per_second": rate,
        "bytes_per_second": bandwidth,
        "source": board.estimate.source,
    }


class _Clock:
    """When the core and the flash are free, in seconds; the flash loads one block after the other."""

    def __init__(self, rate: int, bandwidth: int) -> None:
        self.rate, self.bandwidth = rate, bandwidth
        self.now = self.flash = 0.0

    def begin(self, load: Load, graph: Graph) -> None:
        """Starts to load all of an operator's constants, or the first slice of them."""
        self._bring(load.size / _parts(load, graph))

    def _bring(self, size: float) -> None:
        self.flash = max(self.flash, self.now) + size / self.bandwidth

    def wait(self, loads: Sequence[Load]) -> None:
        """Waits until all that was begun is loaded, if any of it is needed."""
        if loads:
            self.now = max(self.now, self.flash)

    def stop(self, loads: Sequence[Load]) -> None:
        """Constants that come inside of a region, which waits for each of them."""
        if loads:
            self._bring(sum(load.size for load in loads))
            self.now = self.flash

    def run(self, macs: int, here: Sequence[Load], later: Sequence[Load], graph: Graph) -> None:
        """Computes a region; the constants of later regions are loaded meanwhile."""
        cut = next((load for load in here if load.channels), None)
        parts = _parts(cut, graph) if cut else 1
        for part in range(parts):
            more = cut is not None and part + 1 < parts
            if cut is not None and part:
                self.wait([cut])
            if cut is not None and more and cut.slots == 2:
                self._bring(cut.size / parts)
            if not more:
                for load in later:
                    self.begin(load, graph)
            self.now += macs / parts / self.rate
            if cut is not None and more and cut.slots == 1:
                self._bring(cut.size / parts)


def _parts(load: Load, graph: Graph) -> int:
    """The number of parts in which an operator's constants are loaded."""
    if not load.channels:
        return 1
    channels = features(graph, graph.ops[load.op])["cout"]
    return -(-channels // load.channels)
