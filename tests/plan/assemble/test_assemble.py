"""The assembler: equal regions give equal plans. Plans layer by layer are legal and have the known sizes."""

from __future__ import annotations

from dataclasses import replace

import pytest
from arena_run import run
from hypothesis import given, settings
from hypothesis import strategies as st
from needs import needs_shared
from plan_nets import graphs, make_target
from zeronet import Net

from buildtool.base.errors import PlanError
from buildtool.base.session import Session
from buildtool.graph.rewrite import rewrite
from buildtool.graph.tflite.reader import read_model
from buildtool.plan.assemble import layerwise
from buildtool.plan.assemble.layerwise import plan
from buildtool.plan.baselines.strips import plan_strips
from buildtool.plan.check.check import check
from buildtool.plan.schedule import timeline as timelines
from buildtool.plan.search.front import Settings, front
from buildtool.plan.types import BufferKind


@settings(derandomize=True, deadline=None, max_examples=20)
@given(
    graphs(),
    st.sampled_from(["rows", "elementwise", "none"]),
    st.sampled_from(["overwritable", "resident"]),
    st.booleans(),
)
def test_equal_regions_give_equal_plans_whoever_asks(graph, in_place, image, scratch):
    target = make_target(scratch="kh * kw * cin + 1" if scratch else "0")
    modes = {"in_place": in_place, "image": image}
    alone = layerwise.plan(graph, target, **modes, enough=0)
    searched = front(graph, target, Settings(**modes)).assemble(alone.regions)
    in_strips = plan_strips(graph, target, (), **modes)
    assert replace(alone, strategy="") == replace(searched, strategy="") == replace(in_strips, strategy="")


@pytest.mark.slow
@settings(derandomize=True, deadline=None, max_examples=20)
@given(graphs(), st.sampled_from(["overwritable", "resident"]))
def test_tensors_move_only_where_that_lowers_the_arena(graph, image):
    target = make_target()
    still = layerwise.plan(graph, target, image=image)
    least = layerwise.plan(graph, target, image=image, enough=0)
    check(least, graph, target)
    assert not still.moves
    assert least.arena_bytes < still.arena_bytes if least.moves else least == still
    assert layerwise.plan(graph, target, image=image, enough=still.arena_bytes) == still
    if least.moves:
        assert layerwise.plan(graph, target, image=image, enough=still.arena_bytes - 1) == least


@pytest.mark.slow
@settings(derandomize=True, deadline=None, max_examples=15)
@given(graphs(), st.sampled_from(["overwritable", "resident"]))
def test_what_is_known_of_regions_changes_no_plan(graph, image):
    """Points of one front share regions, but their plans are those of each point alone."""
    target, session = make_target(scratch="kh * kw * cin"), Session()
    points = front(graph, target, Settings(image=image), session)
    for index in reversed(range(len(points.points))):
        plan = points.plan(index)
        assert front(graph, target, Settings(image=image)).plan(index) == plan
        assert front(graph, target, Settings(image=image), session).plan(index) == plan


def test_an_arena_of_strips_holds_scratch_for_the_columns_of_a_call():
    """With calls of two columns, a kernel needs less scratch than with calls of whole rows."""
    net = Net((1, 12, 12, 4))
    graph = net.graph(net.conv(net.conv(net.inputs[0], 8, (3, 3)), 4, (3, 3)))
    target = make_target(scratch="64 * ow")
    pareto = front(graph, target, Settings(image="stream", hand_off=2))
    for point in range(len(pareto.points)):
        plan = pareto.plan(point)
        check(plan, graph, target)
        timeline = timelines.Timeline.of(graph, plan.regions, plan.image)
        sizes = {b.op: b.size for b in plan.buffers if b.kind is BufferKind.SCRATCH}
        for op, size in sizes.items():
            width = graph.tensors[graph.ops[op].outputs[0]].nhwc[2]
            assert size == 64 * min(width, timeline.columns[op])


def parts():
    """Convolutions and the concatenation of their outputs, with every part in its place."""
    net = Net((1, 6, 6, 4))
    halves = [net.conv(net.inputs[0], 16), net.conv(net.inputs[0], 16)]
    return net.graph(net.relu(net.concat(halves))), make_target()


def test_a_streamed_plan_has_parts_in_place_and_the_replay_goes_line_by_line():
    graph, target = parts()
    plan = plan_strips(graph, target, (), image="stream")
    check(plan, graph, target)
    assert plan.arena_bytes < plan_strips(graph, target, (), image="stream", in_place="none").arena_bytes
    on_it = [o for o in plan.overlaps if o.op == 2]
    assert len(on_it) == 2
    first = on_it[0]
    assert plan.buffers[first.input].offset == plan.buffers[first.output].offset + first.distance
    higher = [
        replace(b, offset=b.offset + plan.alignment) if i == first.output else b
        for i, b in enumerate(plan.buffers)
    ]
    wrong = replace(plan, buffers=tuple(higher), arena_bytes=plan.arena_bytes + plan.alignment)
    with pytest.raises(PlanError, match="not in the arena when they are read"):
        check(wrong, graph, target)


MODES = ("none", "elementwise", "rows")


@pytest.mark.slow
@settings(derandomize=True, deadline=None, max_examples=12)
@given(graphs(), st.sampled_from(("overwritable", "resident")), st.sampled_from(("0", "kh * kw * cin + 1")))
def test_random_networks_get_legal_plans_that_run_and_more_freedom_never_costs(graph, image, scratch):
    target = make_target(scratch=scratch)
    sizes = []
    for mode in MODES:
        result = plan(graph, target, in_place=mode, image=image)
        check(result, graph, target)
        assert run(result, graph, target) == ""
        assert result.arena_bound_bytes <= result.arena_bytes
        sizes.append(result.arena_bytes)
    assert sizes == sorted(sizes, reverse=True)
    assert plan(graph, target, image=image) == result


def _model(name):
    path = needs_shared(f"models/{name}")
    return rewrite(read_model(path.read_bytes(), path=name))


# Without overlaps: the largest live sum after pads are folded into their consumers. With rows: by hand, with
# the distances of overlap.py (d of the deeper tensor, ..., size of the highest):
#   MobileNetV2: the strided depthwise 80x80x96 -> 40x40x96 and the expansion 16 -> 96 before it,
#     40*96 + (80*80*96 - 79*80*16) + 80*80*16 = 3,840 + 513,280 + 102,400
#   VWW: the same with 48x48x8 -> 48x48x16 -> 24x24x16: 384 + (36,864 - 47*384) + 18,432
#   ResNet8: the skip's 32x32x16, and a 3x3 convolution in place and two rows: 16,384 * 2 + 2*512
#   KWS: four depthwise (two rows of 5x64) and four 1x1 (one row) in a chain: 8,000 + 4*(640 + 320)
# MCUNet's residuals branch the chain, so its values are those of TinyEngine, in place and patched.
@pytest.mark.parametrize(
    ("name", "none", "rows"),
    [
        ("mobilenetv2_160.tflite", 768_000, 619_520),
        ("mlperf_vww96.tflite", 55_296, 37_632),
        ("mlperf_resnet8.tflite", 49_152, 33_792),
        ("mlperf_kws.tflite", 16_000, 11_840),
        ("mcunet_320k_imagenet.tflite", 340_736, None),
    ],
)
def test_known_networks_need_what_is_known(name, none, rows):
    graph, target = _model(name), make_target()
    for image in ("overwritable", "resident"):
        for mode in MODES:
            check(plan(graph, target, in_place=mode, image=image), graph, target)
    plain = plan(graph, target, in_place="none")
    assert plain.arena_bytes == plain.arena_bound_bytes == none
    result = plan(graph, target, in_place="rows")
    if rows:
        assert result.arena_bytes == result.arena_bound_bytes == rows
    else:
        assert result.arena_bytes < 218_800
