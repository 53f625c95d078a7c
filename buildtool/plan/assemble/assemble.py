"""From regions to a placed plan, in five steps: lives, buffers, overlaps, offsets, totals.

Tensors between regions are whole. Inside a streamed region a tensor is a ring (a line buffer, between groups)
or a window of some columns (inside a group). The windows and the kernel scratch of different groups of a
region are never in use at the same time, so they share memory (see `workspace`). All plans are assembled
here, layer by layer or streamed, so equal regions give equal plans.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import Any, NamedTuple

from buildtool.base.modes import Image
from buildtool.base.session import Session
from buildtool.graph.liveness import state_of
from buildtool.graph.macs import total_macs
from buildtool.graph.partviews import views
from buildtool.graph.topology import topology_digest
from buildtool.graph.types import Graph, cached_on_graph
from buildtool.plan.assemble.moves import Parted, least_between, place_in_parts
from buildtool.plan.assemble.placement import Placed, look, place_quickly, search_placement
from buildtool.plan.assemble.workspace import RegionFacts, Regions, Ticks, Workspace, with_turns
from buildtool.plan.place.arena import round_up
from buildtool.plan.schedule.overlap import overlaps
from buildtool.plan.schedule.receptive import accumulates
from buildtool.plan.schedule.rings import LineBuffer, accumulator_bytes, kept_lines
from buildtool.plan.schedule.timeline import Timeline
from buildtool.plan.types import Buffer, BufferKind, Move, Overlap, Plan, Scheme, replace_numbers
from buildtool.target.digest import planning_digest
from buildtool.target.types import KernelVariant, Target

ASSEMBLED = 2_000  # units of work per buffer to assemble a plan, without its offsets
MOST_PLACEMENTS = 512  # placements that a session keeps, some kilobytes each
MOST_BUFFERS = 1 << 13  # buffers of all these placements together; at least two are kept


class Contents(NamedTuple):
    """What lies in the arena, and what may overlap there.

    facts: for each region, the facts that do not depend on the regions around it (see `RegionFacts`).
    buffers: all buffers except the windows and scratch of regions (see `RegionFacts.workspace`).
    overlaps: the permitted overlaps; they refer to positions in `buffers`.
    """

    facts: list[RegionFacts]
    buffers: list[Buffer]
    overlaps: list[Overlap]


def contents(
    timeline: Timeline,
    regions: Regions,
    not_in_place: Collection[int] = (),
    turns: Mapping[int, int] = MappingProxyType({}),
) -> Contents:
    """Returns the facts, buffers and permitted overlaps of a timeline's regions.

    `not_in_place` and `turns`: as in `assemble`.
    """
    # 1. The timeline says when each tensor's and each operator's memory is touched first and last.
    # 2. What lies in the arena: workspaces of regions, whole tensors and rings, sums of poolings.
    facts = [regions.facts(run) for run in timeline.runs]
    if turns:
        alignment = regions.target.board.alignment
        facts = [
            known._replace(workspace=with_turns(known.workspace, run.region, turns, alignment))
            for known, run in zip(facts, timeline.runs, strict=True)
        ]
    inside = {t for known in facts for t in known.workspace.windows}
    rings = (ring for known in facts for ring in known.rings)
    buffers = [*tensor_buffers(timeline, inside, rings), *accumulators(timeline), *band_lines(timeline)]

    # 3. Which of these buffers may overlap.
    streamed = (overlap for known in facts for overlap in known.overlaps)
    return Contents(facts, buffers, overlaps(timeline, regions.permitted, streamed, buffers, not_in_place))


def tensor_buffers(timeline: Timeline, windows: Collection[int], rings: Iterable[LineBuffer]) -> list[Buffer]:
    """Returns one buffer for each set of tensors that share their bytes.

    The buffer is a ring (line buffer) for a tensor in `rings`, and a whole tensor otherwise. There are no
    buffers for tensors in `windows`, which lie in the workspaces, for states, which have a memory of their
    own, and for tensors that no step touches. `rings`: the rings of all regions.
    """
    names, elsewhere = _names(timeline.graph), state_of(timeline.graph)
    in_rings = {timeline.roots[ring.tensor]: ring for ring in rings}
    buffers = []
    for shared in timeline.ranges:
        root = shared.tensors[0]
        if root in windows or root in elsewhere or root not in timeline.tensor_lives:
            continue
        life, ring = timeline.tensor_lives[root], in_rings.get(root)
        kind, size = (BufferKind.RING, ring.size) if ring else (BufferKind.TENSOR, shared.size)
        rows, columns = (ring.rows, ring.columns) if ring else (0, 0)
        buffers.append(Buffer(kind, names[root], shared.tensors, size, *life, rows=rows, columns=columns))
    return buffers


@cached_on_graph
def _names(graph: Graph) -> dict[int, str]:
    """Returns names for a plan's inputs and computed tensors, made from positions.

    So a plan does not depend on the names in the model's file.
    """
    names = {t: f"input {i}" for i, t in enumerate(graph.inputs)}
    for position, op in enumerate(graph.ops):
        for i, t in enumerate(op.outputs):
            names[t] = f"operator {position}" if len(op.outputs) == 1 else f"operator {position} output {i}"
    return names


def accumulators(timeline: Timeline) -> Iterator[Buffer]:
    """Yields a buffer for the sums of each global pooling in a streamed region."""
    graph = timeline.graph
    for op in (op for region in timeline.regions if region.is_streamed for op in region.ops):
        if accumulates(graph, graph.ops[op]):
            size, life = accumulator_bytes(graph, op), timeline.lives[op]
            yield Buffer(BufferKind.ACCUMULATOR, f"operator {op} sums", (), size, *life, op=op)


def band_lines(timeline: Timeline) -> Iterator[Buffer]:
    """Yields a buffer for the rows that a group of bands keeps of each tensor inside it.

    These rows are kept from one step to the next, outside of the windows that kernels see (see
    `schedule.bands`).
    """
    graph = timeline.graph
    for group in (group for region in timeline.regions for group in region.groups):
        makers = {graph.ops[position].outputs[0]: position for position in group.ops}
        for kept in kept_lines(graph, group):
            op = makers[kept.tensor]
            name, life = f"operator {op} lines", timeline.lives[op]
            columns = kept.columns if group.scheme is Scheme.SWAPS else 0
            yield Buffer(BufferKind.LINES, name, (), kept.size, *life, rows=kept.rows, columns=columns, op=op)


def state_buffers(graph: Graph, last: int, alignment: int) -> tuple[Buffer, ...]:
    """Returns one buffer for each state that lives between invokes, side by side from offset 0.

    They are live from the first step to step `last`, the plan's last one.
    """
    buffers, base = [], 0
    for index, state in enumerate(graph.states):
        tensors = tuple(sorted(t for t, number in state_of(graph).items() if number == index))
        size = graph.tensors[state.before].size
        buffers.append(Buffer(BufferKind.STATE, f"state {index}", tensors, size, 0, last, base))
        base += round_up(size, alignment)
    return tuple(buffers)


def state_bytes(graph: Graph, alignment: int) -> int:
    """Returns the bytes of the states that a network keeps between invokes (see `Plan.state_bytes`)."""
    return sum(round_up(graph.tensors[state.before].size, alignment) for state in graph.states)


def region_bounds(timeline: Timeline, regions: Regions, not_in_place: Collection[int] = ()) -> list[int]:
    """Returns for each region a lower bound of the arena in bytes while the region runs.

    It holds wherever tensors lie and move. `not_in_place`: as in `assemble`.
    """
    if not timeline.regions:  # a network whose outputs are its inputs
        return []
    facts, buffers, permitted = contents(timeline, regions, not_in_place)
    ticks = Ticks(timeline, [known.workspace for known in facts])
    timed = [*map(ticks.timed, buffers), *ticks.pieces()]
    return least_between(timed, permitted, regions.target.board.alignment, ticks.starts) if timed else []


def assemble(
    timeline: Timeline,
    target: Target,
    kernels: Sequence[KernelVariant | None],
    *,
    strategy: str,
    in_place: str,
    extra: Sequence[Buffer] = (),
    not_in_place: Collection[int] = (),
    turns: Mapping[int, int] = MappingProxyType({}),
    enough: float = 0,
    session: Session | None = None,
) -> Plan:
    """Returns the placed plan that runs a timeline's regions.

    kernels: one per operator, None for aliases.
    extra: further buffers, which are last in the plan.
    not_in_place: operators whose output must not lie over their input.
    turns: operator -> bytes of its constants, if they are loaded at each turn of its group (see `workspace`).
    enough: tensors are moved between regions only where the arena would be larger than this, in bytes
        (math.inf: tensors never move).
    strategy, in_place: as in Plan and PlanOptions.
    """
    graph, alignment = timeline.graph, target.board.alignment
    regions = Regions.of(graph, kernels, target, timeline.image, in_place, session)
    facts, buffers, permitted = contents(timeline, regions, not_in_place, turns)
    spaces = [known.workspace for known in facts]
    session = session or Session()
    session.work.spend(ASSEMBLED * (len(buffers) + len(extra)))

    # 4. The lowest offsets that are found; tensors move between regions where that makes the arena lower.
    placed, moves = _place_contents(timeline, buffers, extra, spaces, permitted, alignment, enough, session)

    # 5. Totals.
    moved_sizes = [placed.buffers[move.source].size for move in moves]
    return Plan(
        strategy=strategy,
        topology=topology_digest(graph),
        target=planning_digest(target),
        image=timeline.image,
        regions=timeline.regions,
        kernels=tuple(kernel.name if kernel else "" for kernel in kernels),
        buffers=placed.buffers,
        overlaps=placed.overlaps,
        alignment=alignment,
        arena_bytes=placed.height,
        arena_bound_bytes=placed.bound,
        macs=sum(known.macs for known in facts),
        macs_layerwise=total_macs(graph),
        cost=sum((known.cost for known in facts), 0.0) + sum(map(regions.model.pricer.move, moved_sizes)),
        cost_unit=target.cost_unit,
        accounting=accounting(timeline.image, in_place, alignment),
        moves=moves,
        states=state_buffers(graph, timeline.last, alignment),
        second_passes=graph.second_passes,
        views=views(graph),
    )


def accounting(image: str, in_place: str, alignment: int, *, is_loaded: bool = False) -> tuple[str, ...]:
    """Returns the sentences that say what the arena's bytes include.

    `image`: as in Plan. `in_place`: the overlaps that are allowed. `is_loaded`: whether constants are loaded
    into the arena.
    """
    weights = "weights are in the arena while their operator runs, and while they come"
    others = "stack and the application's memory are not in the arena"
    return (
        _INPUTS[image],
        "the network's outputs are in the arena until the end",
        "reshaped tensors share their bytes",
        _OVERLAPS[in_place],
        "kernel scratch is in the arena during its operator",
        f"offsets and sizes are rounded up to {alignment} bytes",
        *((weights, others) if is_loaded else (others.replace("stack and", "stack, weights and"),)),
    )


# The sentences of `accounting` that depend on the image mode and on `in_place`.
_INPUTS = {
    "overwritable": "the network's inputs are in the arena; their memory is used again once read",
    "resident": "the network's inputs are in the arena to the end",
    "stream": "the network's input comes row by row; the rows still needed are in the arena",
}
_OVERLAPS = {
    "rows": "an output may lie over rows of its input that are dead",
    "elementwise": "an output may lie over its dying input element by element",
    "none": "no output lies over its input",
}


def _place_contents(
    timeline: Timeline,
    buffers: Sequence[Buffer],
    extra: Sequence[Buffer],
    spaces: Sequence[Workspace],
    permitted: Sequence[Overlap],
    alignment: int,
    enough: float,
    session: Session,
) -> tuple[Placed, tuple[Move, ...]]:
    """Places all buffers. Returns them with their offsets, and the moves of tensors.

    buffers: tensors, rings and sums. In the result, a tensor that moves is several buffers, one for each
        place.
    extra: further buffers, which come last in the result. Windows and scratch come before them.
    spaces: the workspace of each region, with its windows and scratch.
    permitted: overlaps by positions in `buffers`. The result's overlaps and moves have positions in its own
        buffers.
    enough: tensors move only where the arena would be larger than this, in bytes.

    The inputs of a resident image are live all the time. They lie side by side at the bottom. This costs no
    bytes, as a buffer below them could as well lie above. They neither move nor overlap, so all other buffers
    are placed without them.
    """
    ticks, in_steps = Ticks(timeline, spaces), [*buffers, *extra]
    timed = [*map(ticks.timed, in_steps), *ticks.pieces()]
    resident = timeline.graph.inputs if timeline.image == Image.RESIDENT else ()
    ground = [i for i, b in enumerate(timed) if b.kind is BufferKind.TENSOR and b.tensors[0] in resident]
    rest = [i for i in range(len(timed)) if i not in ground]
    index = {i: k for k, i in enumerate(rest)}
    among = [replace_numbers(o, input=index[o.input], output=index[o.output]) for o in permitted]
    base = 0
    parts = list[tuple[int, Buffer, int]]()  # position in `timed`, buffer, and the part of `above` (-1: none)
    for i in ground:
        parts.append((i, replace_numbers(timed[i], offset=base), -1))
        base += round_up(timed[i].size, alignment)
    above = _place([timed[i] for i in rest], among, alignment, ticks.starts, enough - base, session)
    for part, (k, b) in enumerate(zip(above.origin, above.placed.buffers, strict=True)):
        parts.append((rest[k], replace_numbers(b, offset=base + b.offset), part))
    parts.sort(key=lambda part: part[0])  # stable: the parts of a buffer follow each other
    at = {part: place for place, (_, _, part) in enumerate(parts)}

    first, last, places = list[Buffer](), list[Buffer](), list[int]()
    for i, b, _ in parts:
        if i < len(in_steps):
            (first if i < len(buffers) else last).append(ticks.in_steps(b, in_steps[i], timed[i]))
        else:
            places.append(b.offset)
    pieces = (piece for space in spaces for piece in space.pieces)
    inside = [b for piece, low in zip(pieces, places, strict=True) for b in piece.buffers(low, timeline)]
    overlaps = tuple(
        replace_numbers(o, input=at[o.input], output=at[o.output]) for o in above.placed.overlaps
    )
    height, bound = base + above.placed.height, base + above.placed.bound
    moves = tuple(Move(at[move.source], at[move.target]) for move in above.moves)
    return Placed((*first, *inside, *last), overlaps, height, bound), moves


class _Key(tuple[Any, ...]):
    """A large key that several caches use. It computes its hash only once."""

    @cached_property
    def _hash(self) -> int:
        return super().__hash__()

    def __hash__(self) -> int:
        return self._hash


def _place(
    timed: Sequence[Buffer],
    overlaps: Sequence[Overlap],
    alignment: int,
    starts: Sequence[int],
    enough: float,
    session: Session,
) -> Parted:
    """Returns the lowest placement that is found for buffers whose lives are in ticks (see `Ticks`).

    starts: the first tick of each region; between regions, tensors may move.
    enough: the placement has moves only if the arena would otherwise have more bytes than this.

    If a placement in parts (one with moves) is as low as the lower bound of buffers that do not move, the
    search ends. The session keeps placements, because a search under a limit needs the same few plans many
    times.
    """
    key, work = _Key((tuple(timed), tuple(overlaps), alignment)), session.work
    limit = max(2, min(MOST_PLACEMENTS, MOST_BUFFERS // max(1, len(timed))))
    fixed = {i for i, b in enumerate(timed) if b.kind is not BufferKind.TENSOR}

    def parted(below: float) -> Parted | None:
        return session.remember(
            "placements in parts",
            (key, tuple(starts), below, enough),
            lambda: place_in_parts(timed, overlaps, alignment, starts, fixed, below, enough, work),
            limit,
        )

    first_look = session.remember("looks", key, lambda: look(timed, overlaps, alignment, work), limit)
    if enough < first_look.bound and first_look.impossible:
        parts = parted(math.inf)
        if parts is not None and parts.placed.height <= first_look.bound:
            return parts
    quick = session.remember(
        "placements", key, lambda: place_quickly(timed, overlaps, alignment, first_look, work), limit
    )
    if enough < quick.bound < quick.height and not first_look.impossible:
        parts = parted(quick.height)
        if parts is not None and parts.placed.height <= quick.bound:
            return parts
    placed = session.remember(
        "searched placements", key, lambda: search_placement(quick, overlaps, alignment, work), limit
    )
    whole = Parted(placed, tuple(range(len(timed))), ())
    return whole if placed.height <= enough else parted(placed.height) or whole
