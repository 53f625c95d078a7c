"""More figures of a plan on its board: estimated seconds, loaded constants, the arena's memories.

"Loads" are copies of constants from a slow flash into the arena (`plan.types.Load`).
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from buildtool.base.errors import BuildtoolError
from buildtool.base.modes import CostUnit
from buildtool.firmware.hopping import needed_bytes
from buildtool.firmware.planned import notes
from buildtool.graph.partviews import without_views
from buildtool.graph.secondpass import without_second_passes
from buildtool.plan.choose.choose import nearest
from buildtool.plan.choose.limits import estimate_ms
from buildtool.plan.choose.memories import caches, waiting
from buildtool.plan.choose.memories import waits as waits_per_byte
from buildtool.plan.choose.problem import Prepared
from buildtool.plan.schedule.schedule import count_executed_macs
from buildtool.plan.schedule.timeline import Timeline, load_steps
from buildtool.plan.summary.fit import excess_bytes, rooms
from buildtool.plan.summary.summary import peak
from buildtool.target.catalogue import features

if TYPE_CHECKING:
    from buildtool.firmware.planned import Planned
    from buildtool.graph.types import Graph
    from buildtool.plan.types import Load, Plan
    from buildtool.schema.boards import BoardFacts, Estimate, Loading, Price
    from buildtool.schema.plans import AloneView, MemoriesView
    from buildtool.target.types import Board, Target


def price(plan: Plan, target: Target, wait_cycles: float = 0.0) -> Price:
    """Returns a plan's memory and cost. The cost includes `wait_cycles`, which the arena's memories add."""
    cost = plan.cost + wait_cycles
    return {
        "arena_bytes": plan.arena_bytes,
        "kept_bytes": needed_bytes(plan) - plan.arena_bytes,
        "f": plan.f,
        "cost": cost,
        "estimated_ms": estimate_ms(cost, target),
    }


def facts(planned: Planned) -> BoardFacts:
    """Returns the part of an answer that is about the board: `note`, `notes`, `estimate` and `loading`."""
    timeline = Timeline.of(planned.graph, planned.plan.regions, planned.plan.image, planned.session)
    return {
        "note": planned.target.board.note,
        "notes": notes(planned),
        "estimate": _estimate_seconds(planned.plan, timeline, planned.target.board),
        "loading": _describe_loads(planned, timeline),
    }


def _describe_loads(planned: Planned, timeline: Timeline) -> Loading | None:
    """Returns how constants are loaded into the arena; None if none are.

    `bind` says whether the buffers of the loads make the arena larger.
    """
    plan = planned.plan
    if not plan.loads:
        return None
    fullest = peak(plan, planned.graph, weights=False, session=planned.session)
    without_weights = fullest.bytes if fullest else 0
    starts = _find_region_starts(timeline)
    loads = [load for _, load in load_steps(timeline, plan.loads, plan.buffers)]
    loaded, size_once = sum(load.size for load in loads), {load.op: load.size for load in plan.loads}
    return {
        "bytes": loaded,
        "operators": len(size_once),
        "again": sum(times > 1 for times in Counter(load.op for load in loads).values()),
        "again_bytes": loaded - sum(size_once.values()),
        "in_slices": sum(load.channels > 0 for load in plan.loads),
        "early": sum(plan.buffers[load.buffer].first < starts[load.op] for load in plan.loads),
        "fullest_without": without_weights,
        "enlarge_arena": without_weights < plan.arena_bytes - plan.alignment,
        "largest": max(plan.buffers[load.buffer].size for load in plan.loads),
    }


def _find_region_starts(timeline: Timeline) -> dict[int, int]:
    """Returns the first step of each operator's region: operator -> step."""
    pairs = zip(timeline.regions, timeline.starts, strict=False)
    return {op: first for region, first in pairs for op in region.ops}


def _estimate_seconds(plan: Plan, timeline: Timeline, board: Board) -> Estimate | None:
    """Returns the estimated seconds for computing, for loading, and in total; they may overlap.

    None if the board's file has no rates for an estimate.
    """
    if board.estimate is None:
        return None
    graph, starts = timeline.graph, _find_region_starts(timeline)
    rate, bandwidth = board.estimate.macs_per_second, board.memory(board.weights).bandwidth
    clock = _Clock(rate, bandwidth)
    before: dict[int, list[Load]] = {}  # step -> loads that begin before it
    inside: dict[int, list[Load]] = {}  # region's first step -> loads while it runs, each time
    steps = load_steps(timeline, plan.loads, plan.buffers)
    for step, load in steps:
        region_runs = load.by_turns or step > starts[load.op]
        times, key = (inside, starts[load.op]) if region_runs else (before, step)
        times.setdefault(key, []).append(load)
    for run, first_step in zip(timeline.runs, timeline.starts, strict=False):
        own = [load for load in plan.loads if starts[load.op] == first_step]
        needed = [load for load in own if load not in inside.get(first_step, [])]
        for_later = [load for load in before.get(first_step, []) if load not in needed]
        for load in before.get(first_step, []):
            if load in needed:
                clock.begin(load, graph)
        clock.wait_for(needed)
        if first_step in inside:  # the region waits in its first round for all loads
            for load in for_later:
                clock.begin(load, graph)
            clock.load_and_wait(inside[first_step])
            for_later = []
        clock.run(count_executed_macs(graph, run), needed, for_later, graph)
    loaded = sum(load.size for _, load in steps)
    return {
        "compute_seconds": plan.macs / rate,
        "load_seconds": loaded / bandwidth if bandwidth else 0.0,
        "total_seconds": clock.core_free,
        "macs_per_second": rate,
        "bytes_per_second": bandwidth,
        "source": board.estimate.source,
    }


class _Clock:
    """The times, in seconds, when the core and the flash become free; the flash loads one block at a time."""

    def __init__(self, rate: int, bandwidth: int) -> None:
        self.rate, self.bandwidth = rate, bandwidth
        self.core_free = self.flash_free = 0.0

    def begin(self, load: Load, graph: Graph) -> None:
        """Begins to load all constants of an operator, or the first slice if they are loaded in slices."""
        self._load(load.size / _count_parts(load, graph))

    def _load(self, size: float) -> None:
        self.flash_free = max(self.flash_free, self.core_free) + size / self.bandwidth

    def wait_for(self, needed: Sequence[Load]) -> None:
        """Lets the core wait until all loads that have begun are finished, unless `needed` is empty."""
        if needed:
            self.core_free = max(self.core_free, self.flash_free)

    def load_and_wait(self, loads: Sequence[Load]) -> None:
        """Loads constants while a region runs; the core waits for them."""
        if loads:
            self._load(sum(load.size for load in loads))
            self.core_free = self.flash_free

    def run(self, macs: int, needed: Sequence[Load], for_later: Sequence[Load], graph: Graph) -> None:
        """Computes a region of `macs` multiply-accumulates, and moves the times of core and flash forward.

        `needed` are the region's own loads. If one of them loads slices of channels, the region is computed
        in as many parts, and slices are loaded meanwhile. While the last part runs, the flash begins to load
        `for_later`, the constants of later regions.
        """
        sliced = next((load for load in needed if load.channels), None)
        parts = _count_parts(sliced, graph) if sliced else 1
        for part in range(parts):
            loads_next = sliced is not None and part + 1 < parts
            if sliced is not None and part:
                self.wait_for([sliced])
            if sliced is not None and loads_next and sliced.slots == 2:
                self._load(sliced.size / parts)
            if not loads_next:
                for load in for_later:
                    self.begin(load, graph)
            self.core_free += macs / parts / self.rate
            if sliced is not None and loads_next and sliced.slots == 1:
                self._load(sliced.size / parts)


def _count_parts(load: Load, graph: Graph) -> int:
    """Returns the number of parts in which an operator's constants are loaded; 1 if they are loaded at
    once.
    """
    if not load.channels:
        return 1
    channels = features(graph, graph.ops[load.op])["cout"]
    return -(-channels // load.channels)


# ---- an arena in two memories: the bytes and waits of each, and the plan in each alone ----------------


def count_wait_cycles(planned: Planned) -> float | None:
    """Returns the cycles that the core waits for the arena's memories, which are not part of the plan's cost.

    None if costs are not cycles.
    """
    if planned.target.cost_unit is not CostUnit.CYCLES:
        return None
    if not any(waits_per_byte(planned.target.board)):
        return 0.0
    return waiting(planned.plan, planned.graph, planned.target, planned.session)


def memories_of(planned: Planned) -> MemoriesView | None:
    """Returns what the arena uses of each of its memories; None if the arena is in one memory."""
    board = planned.target.board
    if not board.second:
        return None
    touched, waits = _count_touched_bytes(planned.plan, planned, board), waits_per_byte(board)
    wait_cycles = sum(size * wait for size, wait in zip(touched, waits, strict=False))
    sizes = (*planned.plan.arenas, 0)
    alone = [_plan_alone(planned, name) for name in board.holders]
    costs = [one["cost"] + one["wait_cycles"] for one in alone if one["missing_bytes"] == 0]
    least_alone = min(costs, default=None)
    return {
        "arenas": [
            {
                "memory": name,
                "room_bytes": room,
                "arena_bytes": sizes[index],
                "touched_bytes": touched[index] if index < len(touched) else 0,
                "wait_cycles": touched[index] * waits[index] if index < len(touched) else 0.0,
            }
            for index, (name, room) in enumerate(
                zip(board.holders, rooms(board, planned.plan.state_bytes), strict=True)
            )
        ],
        "wait_cycles": wait_cycles,
        "alone": alone,
        "gain": None if not least_alone else 1 - (planned.plan.cost + wait_cycles) / least_alone,
    }


def _plan_alone(planned: Planned, name: str) -> AloneView:
    """Returns the plan with the whole arena in the memory `name`; if none fits, the smallest plan."""
    board = dataclasses.replace(planned.target.board, arena=name, second="")
    target = dataclasses.replace(planned.target, board=board)
    graph = without_views(without_second_passes(planned.graph))
    plan, wait_cycles, error = None, 0.0, ""
    try:
        _, plan = nearest(Prepared("", (graph,), target, planned.options, session=planned.session))
        (touched,), (wait,) = _count_touched_bytes(plan, planned, board), waits_per_byte(board)
        wait_cycles = touched * wait
    except BuildtoolError as refusal:
        error = refusal.text
    return {
        "memory": name,
        "missing_bytes": excess_bytes(board, plan) if plan else None,
        "arena_bytes": plan.arena_bytes if plan else None,
        "f": plan.f if plan else None,
        "cost": plan.cost if plan else 0.0,
        "wait_cycles": wait_cycles,
        "estimated_ms": estimate_ms(plan.cost + wait_cycles, target) if plan else None,
        "error": error,
    }


def _count_touched_bytes(plan: Plan, planned: Planned, board: Board) -> tuple[int, ...]:
    """Returns the bytes that kernels read and write in each memory of the arena."""
    from buildtool.plan.assemble.memories import count_touched_bytes

    return count_touched_bytes(plan, planned.graph, planned.target, caches(board), planned.session)
