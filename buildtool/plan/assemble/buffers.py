"""The buffers of tensors and accumulators: whole tensors, rings of rows, sums of poolings, state."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from buildtool.graph.liveness import state_of
from buildtool.graph.types import Graph, of_graph
from buildtool.plan.place.arena import round_up
from buildtool.plan.schedule.receptive import accumulates
from buildtool.plan.schedule.rings import LineBuffer, accumulator_bytes, rings
from buildtool.plan.schedule.timeline import Timeline
from buildtool.plan.types import Buffer, BufferKind


def tensor_buffers(
    timeline: Timeline,
    windows: Collection[int],
    found_rings: Iterable[LineBuffer] | None = None,
) -> list[Buffer]:
    """One buffer for each set of tensors that share their bytes: a ring inside a region, else all of it.

    `windows`: tensors that lie in a region's workspace; `found_rings`: those of all regions, where they are
    known. What is never touched has no buffer.
    """
    names, elsewhere = _names(timeline.graph), state_of(timeline.graph)
    if found_rings is None:
        found_rings = (k for r in timeline.runs for k in rings(timeline.graph, r))
    in_rings = {k.tensor: k for k in found_rings}
    found = []
    for shared in timeline.ranges:
        root = shared.tensors[0]
        if root in windows or root in elsewhere or root not in timeline.tensor_lives:
            continue
        life, ring = timeline.tensor_lives[root], in_rings.get(root)
        kind, size = (BufferKind.RING, ring.size) if ring else (BufferKind.TENSOR, shared.size)
        rows, columns = (ring.rows, ring.columns) if ring else (0, 0)
        found.append(
            Buffer(kind, names[root], shared.tensors, size, life.first, life.last, rows=rows, columns=columns)
        )
    return found


def state_buffers(graph: Graph, last: int, alignment: int) -> tuple[Buffer, ...]:
    """One buffer for each state, side by side from 0 on, there from the first step to the `last` one."""
    of = state_of(graph)
    found, base = [], 0
    for index, state in enumerate(graph.states):
        tensors = tuple(sorted(t for t, number in of.items() if number == index))
        size = graph.tensors[state.before].size
        found.append(Buffer(BufferKind.STATE, f"state {index}", tensors, size, 0, last, base))
        base += round_up(size, alignment)
    return tuple(found)


def state_bytes(graph: Graph, alignment: int) -> int:
    """Bytes of what a network keeps between invokes: see `Plan.state_bytes`."""
    return sum(round_up(graph.tensors[state.before].size, alignment) for state in graph.states)


@of_graph
def _names(graph: Graph) -> dict[int, str]:
    """Names of what is fed or computed, by place alone: a plan does not change with tensors' names."""
    names = {t: f"input {i}" for i, t in enumerate(graph.inputs)}
    for position, op in enumerate(graph.ops):
        for i, t in enumerate(op.outputs):
            names[t] = f"operator {position}" if len(op.outputs) == 1 else f"operator {position} output {i}"
    return names


def accumulators(timeline: Timeline) -> Iterator[Buffer]:
    """The sums of each global pooling in a streamed region."""
    graph = timeline.graph
    for region in timeline.regions:
        for position in region.ops if region.is_streamed else ():
            if accumulates(graph, graph.ops[position]):
                life, size = timeline.lives[position], accumulator_bytes(graph, position)
                name = f"operator {position} sums"
                yield Buffer(BufferKind.ACCUMULATOR, name, (), size, life.first, life.last, op=position)
