"""The checker accepts the planner's plans, refuses damage of all kinds, and accepts no corrupting plan."""

from dataclasses import replace

import pytest
from arena_run import run
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from plan_nets import graphs, make_target, residual_net
from planmutants import with_buffer
from zeronet import Net

from buildtool.base.errors import PlanError, TargetError
from buildtool.graph.types import OpKind
from buildtool.plan.assemble.assemble import assemble
from buildtool.plan.assemble.layerwise import plan
from buildtool.plan.check.check import check
from buildtool.plan.schedule.timeline import Timeline
from buildtool.plan.types import Buffer, BufferKind, Group, Load, Move, Overlap, Plan, Region, Scheme
from buildtool.target import catalogue
from buildtool.target.digest import planning_digest
from buildtool.target.types import Contract, Target

TARGET = make_target(scratch="kh * kw * cin")


def _made():
    graph = residual_net()
    return graph, plan(graph, TARGET)


def _refused(damaged, graph, target=TARGET, match=None):
    with pytest.raises(PlanError, match=match):
        check(damaged, graph, target)


def _restacked(made, buffers):
    top = max(b.offset + b.size for b in buffers)
    return replace(made, buffers=tuple(buffers), arena_bytes=-(-top // 16) * 16)


def _with_buffer(made, index, **changes):
    return _restacked(made, with_buffer(made, index, **changes).buffers)


@pytest.mark.parametrize("position", [-1, 99, 1 << 40])
def test_a_region_of_operators_that_are_not_there_is_refused(position):
    graph, made = _made()
    streamed = Region((Group((0,)), Group((position,))))
    _refused(replace(made, regions=(streamed, *made.regions[2:])), graph, match="regions do not hold every")


@pytest.mark.parametrize("field", ["rows_per_step", "hand_off"])
@pytest.mark.parametrize("number", [-1, 1 << 31, (1 << 32) + 1, 1 << 40])
def test_steps_that_c_cannot_count_are_refused(field, number):
    """In 32 bits a step of 2^40 rows makes none, and the firmware would never end."""
    graph, made = _made()
    group = replace(made.regions[0].groups[0], **{"rows_per_step": 1, field: number})
    regions = (Region((group,)), *made.regions[1:])
    _refused(replace(made, regions=regions, overlaps=()), graph, match="no step makes")


@pytest.mark.parametrize("what", ["groups", "overlaps", "buffers"])
def test_a_plan_much_longer_than_its_network_is_refused(what):
    graph, made = _made()
    unused = replace(made.buffers[0], kind=BufferKind.SCRATCH, tensors=(), size=0)
    longer = {
        "groups": {"regions": made.regions * 1000},
        "overlaps": {"overlaps": (Overlap(0, 0, 0, 0),) * 1000},
        "buffers": {"buffers": (*made.buffers, *[unused] * 1000)},
    }
    _refused(replace(made, **longer[what]), graph, match=f"{what}, and the network has no use")


@pytest.mark.parametrize("by", [-16, 16, -8, 1])
def test_every_shift_of_a_buffer_in_a_tight_arena_is_refused(by):
    net = Net((1, 4, 4, 4))  # input and output fill the arena, so any shift of one collides or leaves it
    graph = net.graph(net.concat([net.inputs[0]] * 2))
    result = plan(graph, TARGET)
    assert result.arena_bytes == 64 + 128
    for index, buffer in enumerate(result.buffers):
        _refused(with_buffer(result, index, offset=buffer.offset + by), graph)


@pytest.mark.slow
@settings(derandomize=True, deadline=None, max_examples=60)
@given(st.data())
def test_a_damaged_plan_is_refused_or_still_runs(data):
    graph = data.draw(graphs(most_ops=6))
    result = plan(graph, TARGET)
    index = data.draw(st.integers(0, len(result.buffers) - 1))
    buffer = result.buffers[index]
    steps = st.integers(0, max(len(result.regions) - 1, 0))
    kind = data.draw(st.sampled_from(("offset", "size", "life", "drop", "overlap", "distance", "order")))
    if kind == "offset":
        damaged = _with_buffer(result, index, offset=data.draw(st.integers(0, result.arena_bytes // 16)) * 16)
    elif kind == "size":
        damaged = _with_buffer(result, index, size=data.draw(st.integers(0, buffer.size)))
    elif kind == "life":
        damaged = _with_buffer(result, index, first=data.draw(steps), last=data.draw(steps))
    elif kind == "drop":
        damaged = replace(result, buffers=result.buffers[:index] + result.buffers[index + 1 :])
    elif kind == "overlap":
        buffers = st.integers(0, len(result.buffers) - 1)
        op = data.draw(st.integers(0, len(graph.ops) - 1))
        extra = Overlap(op, data.draw(buffers), data.draw(buffers), data.draw(st.integers(0, 64)))
        other = _with_buffer(result, extra.output, offset=result.buffers[extra.input].offset)
        damaged = replace(other, overlaps=(*result.overlaps, extra))
    elif kind == "distance":
        assume(result.overlaps)
        first = replace(result.overlaps[0], distance=data.draw(st.integers(0, 64)))
        moved = _with_buffer(result, first.output, offset=data.draw(st.integers(0, 16)) * 16)
        damaged = replace(moved, overlaps=(first, *result.overlaps[1:]))
    else:
        damaged = replace(result, regions=tuple(data.draw(st.permutations(result.regions))))
    try:
        check(damaged, graph, TARGET)
    except PlanError:
        return
    assert run(damaged, graph, TARGET) == ""


def _buffers(made, kind):
    return [(i, b) for i, b in enumerate(made.buffers) if b.kind is kind]


def _swapped(regions, i):
    return (*regions[:i], regions[i + 1], regions[i], *regions[i + 2 :])


def _merged(made):
    first, second = made.buffers[:2]
    both = replace(first, tensors=first.tensors + second.tensors, size=max(first.size, second.size), last=9)
    return _restacked(made, (both, *made.buffers[2:]))


def _closer(made, i):
    closer = replace(made.overlaps[i], distance=made.overlaps[i].distance - 1)
    return replace(made, overlaps=(*made.overlaps[:i], closer, *made.overlaps[i + 1 :]))


DAMAGES = {  # the words that refuse them -> plans
    "bytes": lambda made: [
        _with_buffer(made, i, size=b.size - 1)
        for i, b in enumerate(made.buffers)
        if b.kind is BufferKind.TENSOR or b.size
    ],
    "lives": lambda made: [
        _with_buffer(made, i, **cut)
        for i, b in _buffers(made, BufferKind.TENSOR)
        if b.last > b.first
        for cut in ({"first": b.first + 1}, {"last": b.last - 1})
    ],
    "before its input|lives|scratch": lambda made: [
        replace(made, regions=_swapped(made.regions, i)) for i in range(len(made.regions) - 1)
    ],
    "0 of 1 output pixels": lambda made: [replace(made, regions=made.regions[:-1])],
    "twice": lambda made: [replace(made, regions=(*made.regions, made.regions[-1]))],
    "alias": lambda made: [
        replace(made, regions=(*made.regions, Region((Group((9,), Scheme.OPERATOR),)))),
        replace(made, kernels=(*made.kernels[:9], "reshape_test", *made.kernels[10:])),
    ],
    "still reads": lambda made: [_closer(made, i) for i, o in enumerate(made.overlaps) if o.distance],
    "overlap in step": lambda made: [
        replace(made, overlaps=made.overlaps[:i] + made.overlaps[i + 1 :]) for i in range(len(made.overlaps))
    ],
    "overlap names": lambda made: [
        replace(made, overlaps=(*made.overlaps, Overlap(*strange)))
        for strange in ((99, 0, 1, 0), (-1, 0, 1, 0), (0, 2, 1, 0), (9, 0, 1, 0))
    ],
    "bytes of scratch": lambda made: [
        damaged
        for i, b in _buffers(made, BufferKind.SCRATCH)
        for damaged in (
            _with_buffer(made, i, size=b.size - 1),
            _with_buffer(made, i, size=b.size + 16),  # the emitted call would tell the kernel this size
            _with_buffer(made, i, op=b.op + 1),
            _restacked(made, (*made.buffers, replace(b, offset=made.arena_bytes))),
            # the emitted call takes the first one, which is dead when the operator runs
            _restacked(made, (replace(b, size=0, first=b.last + 1, last=b.last + 1), *made.buffers)),
        )
    ],
    ".": lambda made: [
        _restacked(made, made.buffers[:i] + made.buffers[i + 1 :])
        for i, _ in _buffers(made, BufferKind.SCRATCH)
    ],
    "different tensors": lambda made: [_merged(made), _with_buffer(made, 0, kind=BufferKind.RING)],
    "not an activation": lambda made: [_with_buffer(made, 0, tensors=wrong) for wrong in ((0, 999), (1,))],
    "two buffers": lambda made: [_with_buffer(made, 0, tensors=(0, 0))],
    "no kernel 'relu_test'": lambda made: [replace(made, kernels=("relu_test", *made.kernels[1:]))],
}


@pytest.mark.parametrize("words", DAMAGES)
def test_damage_is_refused_in_words_for_it(words):
    graph, made = _made()
    damaged = DAMAGES[words](made)
    assert damaged
    for one in damaged:
        _refused(one, graph, match=words)


def test_a_board_that_reads_its_constants_in_place_loads_none():
    graph, made = _made()
    room = Buffer(BufferKind.WEIGHTS, "constants", (), 4096, 0, 0, made.arena_bytes, op=0)
    loading = replace(made, buffers=(*made.buffers, room), loads=(Load(0, len(made.buffers), 4096),))
    _refused(_restacked(loading, loading.buffers), graph, match="reads them in place")


def test_an_overlap_that_the_kernel_does_not_allow_is_refused():
    graph, made = _made()
    strict = Target(TARGET.board, tuple(replace(k, overlap=Contract.NONE) for k in TARGET.kernels))
    relabelled = replace(made, target=plan(graph, strict).target)
    _refused(relabelled, graph, strict, match="allows no overlap")


def test_an_overlap_with_an_input_that_is_read_later_is_refused():
    net = Net((1, 4, 4, 4))
    x = net.concat([net.inputs[0]])
    y = net.relu(x)
    graph = net.graph(net.concat([x, y]))
    result = plan(graph, TARGET)
    holder = {t: i for i, b in enumerate(result.buffers) for t in b.tensors}
    _refused(replace(result, overlaps=(Overlap(1, holder[x], holder[y], 0),)), graph, match="read later")


@pytest.mark.parametrize("image", ["overwritable", "resident"])
def test_an_overlap_with_what_must_survive_is_refused(image):
    net = Net((1, 4, 4, 4))
    x = net.inputs[0]
    y = net.relu(x)
    graph = net.graph(y, *(() if image == "resident" else (x,)))
    result = plan(graph, TARGET, image=image)
    assert result.overlaps == ()
    _refused(replace(result, overlaps=(Overlap(0, 0, 1, 0),)), graph, match="read later")


def test_aliases_share_their_buffer():
    net = Net((1, 4, 4, 4))
    x = net.concat([net.inputs[0]])
    flat = net.reshape(x, (1, 16, 1, 4))
    graph = net.graph(net.concat([flat]))
    result = plan(graph, TARGET)
    index = next(i for i, b in enumerate(result.buffers) if flat in b.tensors)
    alone = replace(result.buffers[index], tensors=(x,))
    apart = Buffer(BufferKind.TENSOR, "flat", (flat,), 64, 0, 1, result.arena_bytes)
    buffers = (*result.buffers[:index], alone, *result.buffers[index + 1 :], apart)
    _refused(_restacked(result, buffers), graph, match="aliases")


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"topology": "0" * 64}, "topology"),
        ({"target": "0" * 64}, "another board"),
        ({"image": "rotated"}, "image mode"),
        ({"alignment": 8}, "alignment"),
        ({"alignment": 0}, "alignment"),
        ({"alignment": 1 << 40}, "alignment"),
        ({"macs": 1}, "MACs"),
        ({"macs_layerwise": 1}, "MACs"),
        ({"kernels": ()}, "kernels"),
        ({"arena_bytes": 1 << 20}, "its buffers end at"),
        ({"arena_bound_bytes": 1 << 20}, "bound"),
        ({"arena_bound_bytes": -1}, "bound"),
    ],
)
def test_wrong_statements_are_refused(change, match):
    graph, made = _made()
    _refused(replace(made, **change), graph, match=match)


def test_a_kernel_that_does_not_serve_the_shape_is_refused():
    graph, made = _made()
    narrow = Target(
        TARGET.board,
        tuple(replace(k, when="kh == 7" if k.op == "CONV_2D" else k.when) for k in TARGET.kernels),
    )
    _refused(replace(made, target=planning_digest(narrow)), graph, narrow, match="does not serve")


def test_a_board_without_the_memory_it_names_is_the_targets_fault():
    graph = residual_net()
    broken = Target(replace(TARGET.board, arena="nowhere"), TARGET.kernels)
    with pytest.raises(TargetError, match="nowhere"):
        check(plan(graph, broken), graph, broken)


def _slides(graph, region):
    """Whether the region's operator goes through images row by row."""
    return graph.ops[region.groups[0].ops[0]].kind in (OpKind.CONV_2D, OpKind.DEPTHWISE_CONV_2D, OpKind.ADD)


@pytest.mark.parametrize("rows", [1, 3])
def test_operators_cut_into_steps_of_rows_are_placed_checked_and_run(rows):
    graph, made = _made()
    regions = tuple(
        replace(r, groups=(replace(r.groups[0], rows_per_step=rows),)) if _slides(graph, r) else r
        for r in made.regions
    )
    kernels = [next((k for k in TARGET.kernels if k.name == name), None) for name in made.kernels]
    timeline = Timeline.of(graph, regions, "overwritable")
    chopped = assemble(timeline, TARGET, kernels, strategy="layerwise", in_place="rows")
    check(chopped, graph, TARGET)
    assert run(chopped, graph, TARGET) == ""
    assert (chopped.arena_bytes, chopped.macs) == (made.arena_bytes, made.macs)


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
    """The plan with changed fields of its first buffer of a kind."""
    index = next(i for i, b in enumerate(plan.buffers) if b.kind is kind)
    return with_buffer(plan, index, **changes)


def test_a_tensor_without_a_buffer_is_missed(made):
    """Both sides of a RESHAPE share a buffer, and the plan must list both, since code refers to both."""
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
