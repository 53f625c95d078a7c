"""What a plan says of its buffers by themselves is refused in words where it cannot be true."""

from dataclasses import replace

import pytest
from plan_nets import make_target
from planmutants import with_buffer
from zeronet import Net

from buildtool.base.errors import PlanError
from buildtool.plan.assemble.assemble import assemble
from buildtool.plan.check.check import check
from buildtool.plan.schedule.timeline import Timeline
from buildtool.plan.types import Buffer, BufferKind, Group, Move, Plan, Region
from buildtool.target import catalogue

TARGET = make_target()


@pytest.fixture(scope="module")
def made():
    """A graph of convolutions, a global pooling and a dense layer, and a streamed plan with accumulators."""
    net = Net((1, 12, 12, 3))
    x = net.conv(net.conv(net.inputs[0], 8, (3, 3)), 8, (3, 3))
    graph = net.graph(net.dense(net.reshape(net.mean(x), (1, 8)), 4))
    streamed = Region(tuple(Group((position,), rows_per_step=1) for position in range(3)))
    timeline = Timeline.of(graph, (streamed, Region((Group((4,)),))), "stream")
    kernels = catalogue.select_all(TARGET, graph)
    plan = assemble(timeline, TARGET, kernels, strategy="test", in_place="rows")
    assert {BufferKind.RING, BufferKind.TENSOR, BufferKind.ACCUMULATOR} <= {b.kind for b in plan.buffers}
    return graph, plan


def _changed(plan: Plan, kind: BufferKind, **changes: object) -> Plan:
    """The plan with its first buffer of a kind changed."""
    index = next(i for i, b in enumerate(plan.buffers) if b.kind is kind)
    return with_buffer(plan, index, **changes)


def test_a_tensor_without_a_buffer_is_missed(made):
    """Both sides of a RESHAPE share a buffer, and neither may be forgotten: code refers to both."""
    graph, plan = made
    index, shared = next((i, b) for i, b in enumerate(plan.buffers) if len(b.tensors) == 2)
    for kept in (shared.tensors[:1], shared.tensors[1:]):
        with pytest.raises(PlanError, match="has no buffer"):
            check(with_buffer(plan, index, tensors=kept), graph, TARGET)
    alone = next(i for i, b in enumerate(plan.buffers) if len(b.tensors) == 1)
    other = with_buffer(plan, alone, kind=BufferKind.SCRATCH, tensors=(), rows=0, columns=0, op=0)
    with pytest.raises(PlanError, match="has no buffer"):
        check(other, graph, TARGET)


@pytest.mark.parametrize(
    ("kind", "changes", "match"),
    [
        (BufferKind.RING, {"columns": -11}, "keeps .* columns"),
        (BufferKind.RING, {"rows": -1}, "keeps -1 rows"),
        (BufferKind.RING, {"rows": 1 << 40}, "keeps .* rows"),
        (BufferKind.RING, {"columns": 1 << 62}, "keeps .* columns"),
        (BufferKind.RING, {"size": 1}, "the buffer has 1 of"),
        (BufferKind.RING, {"tensors": (999,)}, "not an activation"),
        (BufferKind.RING, {"tensors": ()}, "holds different tensors"),
        (BufferKind.TENSOR, {"columns": 1}, "keeps 0 rows and 1 columns"),
        (BufferKind.TENSOR, {"tensors": (-5,)}, "not an activation"),
        (BufferKind.TENSOR, {"size": 0}, "the buffer has 0 of"),
        (BufferKind.ACCUMULATOR, {"size": 0}, "bytes of accumulators"),
        (BufferKind.ACCUMULATOR, {"op": 999}, "serves operator 999"),
        (BufferKind.ACCUMULATOR, {"op": -1}, "serves operator -1"),
    ],
)
def test_a_buffer_that_cannot_hold_what_it_names_is_refused(made, kind, changes, match):
    graph, plan = made
    check(plan, graph, TARGET)
    with pytest.raises(PlanError, match=match):
        check(_changed(plan, kind, **changes), graph, TARGET)


@pytest.mark.parametrize(("source", "target"), [(0, 999), (999, 0), (-1, 0), (0, -1), (1 << 62, 0)])
def test_a_move_between_buffers_that_are_not_there_is_refused(made, source, target):
    graph, plan = made
    with pytest.raises(PlanError, match="a move names buffers"):
        check(replace(plan, moves=(Move(source, target),)), graph, TARGET)


@pytest.mark.parametrize("kind", [BufferKind.RING, BufferKind.ACCUMULATOR])
def test_what_lies_in_two_buffers_is_refused(made, kind):
    graph, plan = made
    first = next(b for b in plan.buffers if b.kind is kind)
    again = replace(first, offset=plan.arena_bytes)
    higher = replace(plan, buffers=(*plan.buffers, again), arena_bytes=plan.arena_bytes + _rounded(again))
    with pytest.raises(PlanError, match=r"two buffers|accumulators twice"):
        check(higher, graph, TARGET)


def _rounded(buffer: Buffer) -> int:
    return -(-buffer.size // 16) * 16
