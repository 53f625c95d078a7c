"""Plans over two memories: legal, within both capacities, the same work; damaged ones are refused."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plan_nets import graphs, make_target, residual_net

from buildtool.base.errors import PlanError
from buildtool.plan.assemble.layerwise import plan
from buildtool.plan.assemble.memories import in_one, over_two, touched_bytes
from buildtool.plan.assemble.moves import in_order
from buildtool.plan.check.check import check
from buildtool.plan.codec import from_bytes, to_bytes
from buildtool.plan.locked import Locked, from_text, to_text
from buildtool.plan.place.arena import round_up
from buildtool.plan.search.front import Settings, front
from buildtool.plan.types import Buffer, BufferKind, Move
from buildtool.target.choice import with_arena_in


def two_memories(scratch="7"):
    """The target of the planner's tests with its arena in two memories."""
    target = make_target(scratch=scratch)
    return replace(target, board=with_arena_in(target.board, "ram,tcm"))


def plans(graph, target):
    """Layer by layer, with tensors that move, and the front's points, of which some are streamed."""
    yield plan(graph, target, enough=0)
    found = front(graph, target, Settings(max_f=2.0))
    yield from (found.plan(i) for i in range(min(len(found.points), 2)))


@settings(max_examples=15)
@given(graphs(), st.floats(0, 1), st.booleans(), st.booleans())
def test_buffers_lie_in_one_memory_each_within_its_capacity_and_the_plan_is_legal(
    graph, share, reverse, moving
):
    target = two_memories()
    for made in plans(graph, target):
        whole = made.arena_bytes + 64
        rooms = (round_up(int(whole * share), 16), round_up(int(whole * (1 - share)), 16) + 64)
        waits = (3, 1) if reverse else (0, 2)
        found = over_two(made, graph, target, "rows", rooms, waits, moving=moving)
        if found is None:
            continue
        check(found, graph, target)
        assert all(size <= room for size, room in zip(found.arenas, rooms, strict=True))
        assert (found.macs, found.regions, found.kernels) == (made.macs, made.regions, made.kernels)
        for buffer in found.buffers:
            end = buffer.offset + buffer.size
            assert end <= found.second_at or buffer.offset >= found.second_at
        if moving or not made.moves:
            assert sum(touched_bytes(found, graph, target)) == sum(touched_bytes(made, graph, target))
        assert from_bytes(to_bytes(found)) == found
        assert from_text(to_text(Locked(found, "bench", ()))).plan == found


@pytest.mark.parametrize("memory", [0, 1])
def test_a_plan_as_it_is_lies_in_either_memory(memory):
    graph, target = residual_net(), two_memories()
    made = plan(graph, target)
    found = in_one(made, memory, made.alignment)
    check(found, graph, target)
    assert found.arenas[memory] == made.arena_bytes
    assert found.arenas[1 - memory] == made.alignment
    touched = touched_bytes(found, graph, target)
    assert touched[1 - memory] == 0 < touched[memory]


def spread_plan():
    graph, target = residual_net(), two_memories()
    found = over_two(plan(graph, target), graph, target, "rows", (512, 1 << 16), (0, 1))
    assert found is not None
    return graph, target, found


def test_a_buffer_across_both_memories_is_refused():
    graph, target, found = spread_plan()
    low = next(b for b in found.buffers if b.offset < found.second_at and b.size > found.alignment)
    moved = replace(low, offset=found.second_at - found.alignment)
    bad = replace(found, buffers=tuple(moved if b is low else b for b in found.buffers))
    with pytest.raises(PlanError, match="across both memories"):
        check(bad, graph, target)


@pytest.mark.parametrize("second", [-16, 8, 1 << 20])
def test_a_second_arena_that_begins_nowhere_is_refused(second):
    graph, target, found = spread_plan()
    with pytest.raises(PlanError, match="the second arena begins at"):
        check(replace(found, second_at=second), graph, target)


def test_a_plan_for_two_memories_is_refused_where_the_arena_is_in_one():
    graph, _, found = spread_plan()
    with pytest.raises(PlanError, match="lies in two memories, the arena of board 'bench' in 'ram' alone"):
        check(found, graph, make_target(scratch="7"), made_for_it=False)


def test_an_arena_larger_than_its_memory_is_refused():
    graph, target, found = spread_plan()
    tiny = tuple(replace(m, size=256) if m.name == "ram" else m for m in target.board.memories)
    board = replace(target.board, memories=tiny)
    with pytest.raises(PlanError, match="memory 'ram' has 256"):
        check(found, graph, replace(target, board=board), made_for_it=False)


def test_moves_of_one_moment_come_in_an_order_in_which_none_writes_over_what_another_reads():
    """Of two tensors that go up by one place the upper one goes first; two that change places have none."""

    def buffer(offset, first):
        return Buffer(BufferKind.TENSOR, "", (0,), 16, first, first, offset)

    up = [buffer(0, 1), buffer(16, 2), buffer(16, 1), buffer(32, 2)]
    assert in_order((Move(0, 1), Move(2, 3)), up) == (Move(2, 3), Move(0, 1))
    swapped = [buffer(0, 1), buffer(16, 2), buffer(16, 1), buffer(0, 2)]
    assert in_order((Move(0, 1), Move(2, 3)), swapped) is None
    later = [buffer(0, 1), buffer(16, 2), buffer(16, 2), buffer(0, 3)]
    assert in_order((Move(2, 3), Move(0, 1)), later) == (Move(0, 1), Move(2, 3))
