"""Tensors that move between regions, so that chains do not climb; plans over two memories."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plan_nets import graphs, make_target, residual_net
from planmutants import with_buffer
from zeronet import Net

from buildtool.base.errors import PlanError
from buildtool.plan.assemble.assemble import assemble
from buildtool.plan.assemble.layerwise import plan
from buildtool.plan.assemble.memories import count_touched_bytes, over_two
from buildtool.plan.assemble.moves import in_order, place_in_parts
from buildtool.plan.check.check import check
from buildtool.plan.codec import from_bytes, to_bytes
from buildtool.plan.locked import Locked, from_text, to_text
from buildtool.plan.place.arena import round_up
from buildtool.plan.schedule.timeline import Timeline
from buildtool.plan.search.front import Settings, front
from buildtool.plan.types import Buffer, BufferKind, Group, Move, Overlap, Region
from buildtool.target import catalogue
from buildtool.target.choice import with_arena_in

GRANULE = 16


def chain(layers):
    """Depthwise convolutions whose outputs may lie over their inputs, two rows lower."""
    net = Net((1, 16, 16, 16))
    x = net.inputs[0]
    for _ in range(layers):
        x = net.depthwise(x)
    return net.graph(x)


def alone(graph, target, **changed):
    """The plan in which every operator is a region."""
    kernels = tuple(catalogue.select(target, graph, op) for op in graph.ops)
    regions = tuple(Region((Group((p,)),)) for p in range(len(graph.ops)))
    options = {"strategy": "test", "in_place": "rows"} | changed
    timeline = Timeline.of(graph, regions, options.pop("image", "overwritable"))
    return assemble(timeline, target, kernels, **options)


def test_a_move_is_paid_for():
    graph, target = chain(8), make_target()
    moving, still = alone(graph, target), alone(graph, target, in_place="none")
    assert moving.cost > still.cost
    assert moving.macs == still.macs


@pytest.mark.parametrize("part", ["offset", "first", "tensors", "left out"])
def test_a_wrong_move_is_found(part):
    graph, target = chain(8), make_target()
    plan = alone(graph, target)
    at = plan.moves[0].target
    other = plan.buffers[at]
    changes = {
        "offset": {"offset": plan.arena_bytes},
        "first": {"first": other.first + 1, "last": other.last + 1},
        "tensors": {"tensors": (graph.inputs[0],)},
    }
    wrong = with_buffer(plan, at, **changes[part]) if part in changes else replace(plan, moves=plan.moves[1:])
    with pytest.raises(PlanError):
        check(wrong, graph, target)


@st.composite
def problems(draw):
    """Tensors over up to eight regions of a few ticks, rings inside regions, overlaps of neighbours."""
    ticks = [0]
    for _ in range(draw(st.integers(2, 8))):
        ticks.append(ticks[-1] + draw(st.integers(1, 3)))
    regions = len(ticks) - 1
    buffers, options = [], []
    for i in range(draw(st.integers(2, 10))):
        first = draw(st.integers(0, regions - 1))
        last = min(regions - 1, first + draw(st.integers(0, 2)))
        size = GRANULE * draw(st.integers(1, 12))
        buffers.append(Buffer(BufferKind.TENSOR, "", (i,), size, ticks[first], ticks[last + 1] - 1))
    for _ in range(draw(st.integers(0, 5))):
        region = draw(st.integers(0, regions - 1))
        first = draw(st.integers(ticks[region], ticks[region + 1] - 1))
        size = GRANULE * draw(st.integers(1, 12))
        buffers.append(Buffer(BufferKind.SCRATCH, "", (), size, first, ticks[region + 1] - 1))
    tensors = [i for i, b in enumerate(buffers) if b.tensors]
    for source in tensors:
        for result in tensors:
            a, b = buffers[source], buffers[result]
            if a.first < b.first <= a.last < b.last and draw(st.booleans()):
                distance = GRANULE * draw(st.integers(0, b.size // GRANULE))
                options.append(Overlap(0, source, result, distance))
    return buffers, options, ticks


def live_at(buffers, time):
    return [i for i, b in enumerate(buffers) if b.first <= time <= b.last]


def assert_apart(parted, time):
    """Asserts that no two live buffers share bytes, unless that is permitted."""
    parts, allowed = parted.placed.buffers, {(o.input, o.output): o for o in parted.placed.overlaps}
    alive = live_at(parts, time)
    for i in alive:
        for j in alive:
            a, b = parts[i], parts[j]
            if i < j and a.offset < b.offset + b.size and b.offset < a.offset + a.size:
                o = allowed.get((i, j)) or allowed[j, i]
                assert parts[o.input].offset >= parts[o.output].offset + o.distance


@pytest.mark.slow
@settings(derandomize=True, deadline=None, max_examples=150)
@given(problems())
def test_parts_are_whole_and_apart_and_moves_lose_no_byte(problem):
    buffers, options, ticks = problem
    scratch = {i for i, b in enumerate(buffers) if not b.tensors}
    parted = place_in_parts(buffers, options, GRANULE, ticks, scratch, 1 << 30)
    if parted is None:
        return
    parts = parted.placed.buffers
    for i, buffer in enumerate(buffers):
        own = [parts[k] for k, origin in enumerate(parted.origin) if origin == i]
        times = [t for part in own for t in range(part.first, part.last + 1)]
        assert times == list(range(buffer.first, buffer.last + 1))
        assert {part.size for part in own} == {buffer.size}
        assert len(own) == 1 or i not in scratch
        assert {part.first for part in own[1:]} <= set(ticks)
    for time in range(ticks[-1]):
        assert_apart(parted, time)
    assert max(part.offset + part.size for part in parts) <= parted.placed.height
    memory = np.full(parted.placed.height, -1)
    for move in parted.moves:  # the bytes of each are still present when it moves
        source, target = parts[move.source], parts[move.target]
        earlier = [m for m in parted.moves if parts[m.target].first == target.first]
        if earlier[0] == move:
            memory[:] = -1
            for m in earlier:
                a = parts[m.source]
                memory[a.offset : a.offset + a.size] = m.source
        assert (memory[source.offset : source.offset + source.size] == move.source).all()
        memory[target.offset : target.offset + target.size] = -2


def test_long_stretches_are_placed_piece_by_piece(monkeypatch):
    """A limit on a segment's buffers does not enlarge the arena, and every byte still arrives."""
    graph, target, enough = chain(24), make_target(), 7000
    whole = alone(graph, target, enough=enough)
    monkeypatch.setattr("buildtool.plan.assemble.moves.MOST_TOGETHER", 5)
    pieces = alone(graph, target, enough=enough)
    assert whole.arena_bytes <= enough
    assert pieces.arena_bytes <= enough
    assert pieces.buffers != whole.buffers
    assert pieces.moves
    check(pieces, graph, target)


def two_memories(scratch="7"):
    """The target of the planner's tests with its arena in two memories."""
    target = make_target(scratch=scratch)
    return replace(target, board=with_arena_in(target.board, "ram,tcm"))


def plans(graph, target):
    """Plans layer by layer, with tensors that move, and plans of the front, of which some are streamed."""
    yield plan(graph, target, enough=0)
    pareto = front(graph, target, Settings(max_f=2.0))
    yield from (pareto.plan(i) for i in range(min(len(pareto.points), 2)))


@pytest.mark.slow
@settings(max_examples=8)
@given(graphs(), st.floats(0, 1), st.booleans(), st.booleans())
def test_buffers_lie_in_one_memory_each_within_its_capacity_and_the_plan_is_legal(
    graph, share, reverse, moving
):
    target = two_memories()
    for made in plans(graph, target):
        whole = made.arena_bytes + 64
        rooms = (round_up(int(whole * share), 16), round_up(int(whole * (1 - share)), 16) + 64)
        waits = (3, 1) if reverse else (0, 2)
        result = over_two(made, graph, target, "rows", rooms, waits, moving=moving)
        if result is None:
            continue
        check(result, graph, target)
        assert all(size <= room for size, room in zip(result.arenas, rooms, strict=True))
        assert (result.macs, result.regions, result.kernels) == (made.macs, made.regions, made.kernels)
        for buffer in result.buffers:
            end = buffer.offset + buffer.size
            assert end <= result.second_at or buffer.offset >= result.second_at
        if moving or not made.moves:
            assert sum(count_touched_bytes(result, graph, target)) == sum(
                count_touched_bytes(made, graph, target)
            )
        assert from_bytes(to_bytes(result)) == result
        assert from_text(to_text(Locked(result, "bench", ()))).plan == result


@pytest.fixture(scope="module")
def spread():
    """A plan over two memories."""
    graph, target = residual_net(), two_memories()
    result = over_two(plan(graph, target), graph, target, "rows", (512, 1 << 16), (0, 1))
    assert result is not None
    return graph, target, result


def test_a_buffer_across_both_memories_is_refused(spread):
    graph, target, found = spread
    edge = found.second_at
    low = next(i for i, b in enumerate(found.buffers) if b.offset < edge and b.size > found.alignment)
    with pytest.raises(PlanError, match="across both memories"):
        check(with_buffer(found, low, offset=edge - found.alignment), graph, target)


@pytest.mark.parametrize("second", [-16, 8, 1 << 20])
def test_a_second_arena_that_begins_nowhere_is_refused(spread, second):
    graph, target, found = spread
    with pytest.raises(PlanError, match="the second arena begins at"):
        check(replace(found, second_at=second), graph, target)


def test_a_plan_for_two_memories_is_refused_where_they_are_not_there(spread):
    """On a board with the arena in one memory, and on one with too little memory."""
    graph, target, found = spread
    with pytest.raises(PlanError, match="lies in two memories, the arena of board 'bench' in 'ram' alone"):
        check(found, graph, make_target(scratch="7"), made_for_it=False)
    tiny = tuple(replace(m, size=256) if m.name == "ram" else m for m in target.board.memories)
    with pytest.raises(PlanError, match="memory 'ram' has 256"):
        check(found, graph, replace(target, board=replace(target.board, memories=tiny)), made_for_it=False)


def test_moves_of_one_moment_come_in_an_order_in_which_none_writes_over_what_another_reads():
    """If two tensors move up by one place, the upper one moves first. Two that swap places have no order."""

    def buffer(offset, first):
        return Buffer(BufferKind.TENSOR, "", (0,), 16, first, first, offset)

    up = [buffer(0, 1), buffer(16, 2), buffer(16, 1), buffer(32, 2)]
    assert in_order((Move(0, 1), Move(2, 3)), up) == (Move(2, 3), Move(0, 1))
    swapped = [buffer(0, 1), buffer(16, 2), buffer(16, 1), buffer(0, 2)]
    assert in_order((Move(0, 1), Move(2, 3)), swapped) is None
    later = [buffer(0, 1), buffer(16, 2), buffer(16, 2), buffer(0, 3)]
    assert in_order((Move(2, 3), Move(0, 1)), later) == (Move(0, 1), Move(2, 3))
