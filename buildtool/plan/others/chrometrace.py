"""Writes a plan as a trace in Chrome's Trace Event Format, which Perfetto and chrome://tracing open.

The trace has two processes. The network's process has a track of regions and operators, and one of weight
loads and moves. The arena's process has a track for each buffer, lowest address first, and a counter of live
bytes. The format counts in microseconds. `Clock` and the file's `otherData` say what one stands for.

Format: https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from buildtool.graph.types import Graph
from buildtool.plan.summary.steps import Brought, Held, Moved, PlanSteps
from buildtool.plan.types import SOURCE, Buffer, Plan

MOST_SLICES = 100_000  # slices of operators: about 20 MB, which viewers load in seconds
_NETWORK, _ARENA = 1, 2  # processes
_OPERATORS, _LOADS, _BUFFERS = 1, 2, 10  # threads; numbers differ between processes, as viewers mix them up
_DELIVERED = "rows of the image"
Event = dict[str, object]
Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Clock:
    """The trace's scale of time: nanoseconds per unit of cost, and a text that explains the scale."""

    nanoseconds: float = 1000.0
    words: str = "1 us stands for a cost of 1; it is not a time"


class Times(NamedTuple):
    """For each step, in ns: when it begins (with its loads and moves), when its call begins, when it ends."""

    begin: Numbers
    call: Numbers
    end: Numbers


class Trace(NamedTuple):
    """A trace as bytes, how many slices show calls of operators, and the most steps that one slice shows."""

    data: bytes
    slices: int
    merged: int


def trace(
    steps: PlanSteps,
    plan: Plan,
    graph: Graph,
    clock: Clock,
    about: Mapping[str, str],
    memories: Sequence[str] = (),
) -> Trace:
    """Returns the trace of a plan. `about` is written into the file's `otherData`.

    `memories`: for a plan with two arenas, the names of the memories in which they lie.
    """
    times = _times(steps, clock)
    slices = list(_slices(steps, times))
    events = [
        *_names(steps.held, plan, memories),
        *(_region(index, steps, times) for index in range(len(steps.starts) - 1)),
        *(_call(one, plan, graph) for one in slices),
        *_transfers(steps, times, graph, clock),
        *(_life(track, held, graph, times) for track, held in enumerate(_tracks(steps.held), _BUFFERS)),
        *_live(steps, times),
    ]
    merged = max((one.calls for one in slices), default=0)
    details = {**about, "time": clock.words, "steps": str(len(steps.cost)), "slices": str(len(slices))}
    content = {"traceEvents": events, "displayTimeUnit": "ms", "otherData": details}
    return Trace(json.dumps(content, separators=(",", ":")).encode() + b"\n", len(slices), merged)


def _times(steps: PlanSteps, clock: Clock) -> Times:
    """Returns the times of the steps, which run one after the other."""
    before = np.zeros(len(steps.cost))
    transfers: list[Brought | Moved] = [*steps.loads, *steps.moves]
    for one in transfers:
        before[one.step] += one.cost
    ends = np.cumsum(before + steps.cost)

    def nanoseconds(cost: npt.NDArray[np.float64]) -> Numbers:
        return np.rint(cost * clock.nanoseconds).astype(np.int64)

    end = nanoseconds(ends)
    return Times(np.concatenate([np.zeros(1, np.int64), end[:-1]]), nanoseconds(ends - steps.cost), end)


class _Slice(NamedTuple):
    """Calls of one operator that the trace shows as one bar (a slice).

    `rows` and `columns` are the ranges that they compute. `begin` and `end` are in nanoseconds.
    """

    op: int
    calls: int
    rows: tuple[int, int]
    columns: tuple[int, int]
    cost: float
    begin: int
    end: int


def _slices(steps: PlanSteps, times: Times) -> Iterator[_Slice]:
    """Yields the slices of the trace: consecutive steps of an operator are one slice.

    If there are too many slices, each block of steps gets one slice per operator.
    """
    count, ops = len(steps.cost), steps.steps[:, 0]
    begins = np.ones(count, bool)  # another operator, another region, or a transfer comes before
    begins[1:] = (ops[1:] != ops[:-1]) | (steps.region[1:] != steps.region[:-1])
    begins[1:] |= times.call[1:] != times.end[:-1]
    apart = np.flatnonzero(begins)
    if len(apart) <= MOST_SLICES:
        for low, high in pairwise([*apart.tolist(), count]):
            yield _slice(steps, np.arange(low, high), int(times.call[low]), int(times.end[high - 1]))
        return
    for low, high in pairwise([*_blocks(steps).tolist(), count]):
        # one slice per operator, in the order in which they begin
        kinds, first = np.unique(ops[low:high], return_index=True)
        begin = int(times.begin[low])
        for op in kinds[np.argsort(first)].tolist():
            at = low + np.flatnonzero(ops[low:high] == op)
            end = begin + int((times.end[at] - times.begin[at]).sum())
            yield _slice(steps, at, begin, end)
            begin = end


def _blocks(steps: PlanSteps) -> Numbers:
    """Returns the first step of each block of steps. In a block, each operator has one slice.

    No block has steps of two regions.
    """
    regions = list(pairwise(steps.starts))
    alternating = max(len(np.unique(steps.steps[low:high, 0])) for low, high in regions)
    size = -(-len(steps.cost) * alternating // MOST_SLICES)
    return np.concatenate([np.arange(low, high, size) for low, high in regions])


def _slice(steps: PlanSteps, at: Numbers, begin: int, end: int) -> _Slice:
    lines = steps.steps[at]
    low, high = lines.min(axis=0).tolist(), lines.max(axis=0).tolist()
    cost = float(steps.cost[at].sum())
    return _Slice(low[0], len(at), (low[1], high[2]), (low[3], high[4]), cost, begin, end)


def _event(process: int, thread: int, name: str, kind: str, begin: int, end: int, args: object) -> Event:
    """Returns a complete event (one with a duration). `begin` and `end` are in nanoseconds."""
    named = {"name": name, "cat": kind, "args": args}
    return {
        "ph": "X",
        "pid": process,
        "tid": thread,
        "ts": begin / 1000,
        "dur": (end - begin) / 1000,
        **named,
    }


def _call(one: _Slice, plan: Plan, graph: Graph) -> Event:
    shown = {"rows": list(one.rows), "columns": list(one.columns), "calls": one.calls, "cost": one.cost}
    if one.op == SOURCE:
        return _event(_NETWORK, _OPERATORS, _DELIVERED, "image", one.begin, one.end, shown)
    args = {"operator": one.op, "kernel": plan.kernels[one.op], **shown}
    kind = str(graph.ops[one.op].kind)
    return _event(_NETWORK, _OPERATORS, graph.op_name(one.op), kind, one.begin, one.end, args)


def _region(index: int, steps: PlanSteps, times: Times) -> Event:
    low, high = steps.starts[index : index + 2]
    ops = [op for op in dict.fromkeys(steps.steps[low:high, 0].tolist()) if op != SOURCE]
    live = int(steps.live[low:high].max())
    args = {"operators": sorted(ops), "steps": high - low, "live_bytes": live}
    begin, end = int(times.begin[low]), int(times.end[high - 1])
    return _event(_NETWORK, _OPERATORS, f"region {index}", "region", begin, end, args)


def _transfers(steps: PlanSteps, times: Times, graph: Graph, clock: Clock) -> Iterator[Event]:
    """Yields an event for each load of weights and each move of a tensor.

    They follow each other before the step that waits for them.
    """
    every: list[Brought | Moved] = [*steps.moves, *steps.loads]
    costs: dict[int, float] = {}  # step -> cost of the transfers before it so far
    for one in sorted(every, key=lambda one: one.step):
        before = costs.get(one.step, 0.0)
        costs[one.step] = before + one.cost
        low = int(times.begin[one.step])
        begin, end = (low + round(cost * clock.nanoseconds) for cost in (before, costs[one.step]))
        end = min(max(begin, end), int(times.call[one.step]))
        if isinstance(one, Moved):
            tensors = ", ".join(steps.held[one.move.source].tensors)
            args: object = {"bytes": one.size, "from": one.move.source, "to": one.move.target}
            yield _event(_NETWORK, _LOADS, f"move {tensors}", "move", min(begin, end), end, args)
            continue
        load = one.load
        args = {"operator": load.op, "bytes": load.size, "buffer": load.buffer, "channels": load.channels}
        name = f"weights of {graph.op_name(load.op)}"
        yield _event(_NETWORK, _LOADS, name, "load", min(begin, end), end, args)


def _tracks(held: Sequence[Held]) -> list[Held]:
    """Returns the buffers in the order in which the trace shows their tracks."""
    return sorted(held, key=lambda one: (one.buffer.offset, one.buffer.first, one.position))


def _life(track: int, held: Held, graph: Graph, times: Times) -> Event:
    """Returns the event of a buffer, from the beginning of its first step to the end of its last step."""
    buffer = held.buffer
    args = {
        "buffer": held.position,
        "offset": buffer.offset,
        "bytes": buffer.size,
        "operator": graph.op_name(held.operator) if held.operator >= 0 else "",
        "steps": [buffer.first, buffer.last],
    }
    begin, end = int(times.begin[buffer.first]), int(times.end[buffer.last])
    name = ", ".join(held.tensors) or buffer.name
    return _event(_ARENA, track, name, str(buffer.kind), begin, end, args)


def _live(steps: PlanSteps, times: Times) -> Iterator[Event]:
    """Yields counter events with the live bytes, where they change.

    If there are too many steps, each block of steps has its maximum.
    """
    if not len(steps.live):
        return

    def count(at: int, live: int) -> Event:
        return {"ph": "C", "pid": _ARENA, "ts": at / 1000, "name": "live bytes", "args": {"bytes": live}}

    at = np.arange(len(steps.live)) if len(steps.live) <= MOST_SLICES else _blocks(steps)
    live = np.maximum.reduceat(steps.live, at)
    for one in np.flatnonzero(np.diff(live, prepend=-1)).tolist():
        yield count(int(times.begin[at[one]]), int(live[one]))
    yield count(int(times.end[-1]), 0)


def _names(held: Sequence[Held], plan: Plan, memories: Sequence[str]) -> Iterator[Event]:
    """Yields events that set the names and the order of processes and threads."""

    def name_event(process: int, thread: int, what: str, **args: object) -> Event:
        return {"ph": "M", "pid": process, "tid": thread, "ts": 0, "name": what, "args": args}

    for process, name in ((_NETWORK, "network"), (_ARENA, "arena")):
        yield name_event(process, 0, "process_name", name=name)
        yield name_event(process, 0, "process_sort_index", sort_index=process)
    yield name_event(_NETWORK, _OPERATORS, "thread_name", name="operators")
    yield name_event(_NETWORK, _LOADS, "thread_name", name="weight loads and moves")
    for track, one in enumerate(_tracks(held), _BUFFERS):
        place = _place(one.buffer, plan, memories)
        yield name_event(_ARENA, track, "thread_name", name=f"{place}: {one.buffer.name}")
        yield name_event(_ARENA, track, "thread_sort_index", sort_index=track)


def _place(buffer: Buffer, plan: Plan, memories: Sequence[str]) -> str:
    """Returns a text with the offset of a buffer, and with its arena if there are two."""
    if not plan.second_at:
        return f"offset {buffer.offset:,}"
    is_second = buffer.offset >= plan.second_at
    name = memories[is_second] if len(memories) > is_second else f"arena {is_second + 1}"
    return f"{name} offset {buffer.offset - is_second * plan.second_at:,}"
