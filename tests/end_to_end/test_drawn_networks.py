"""Networks drawn at random, natively: emitted, compiled under sanitizers, run, and equal in every tensor.

Every tensor is compared with LiteRT's reference kernels and with the executor. Arenas are exactly as large as
planned, between the sanitizer's red zones, and full of junk before each run.
"""

import dataclasses
import functools
from collections.abc import Callable
from pathlib import Path

import pytest
from drawnnets import (
    branching_networks,
    gated_networks,
    padded_networks,
    sliced_networks,
    small_networks,
)
from graphs import KIND_GROUPS, graphs_of_one_of
from hypothesis import given, settings
from hypothesis import strategies as st
from namednets import conv, enlarging_networks
from nativebatch import (
    BATCHES,
    JUNK,
    Change,
    Job,
    Planner,
    Run,
    assert_exact,
    front_point,
    prepare,
    streamed_kinds,
)
from spread import spread

from buildtool.base.errors import UsageError
from buildtool.graph import types as g
from buildtool.graph.macs import pixel_macs
from buildtool.graph.partviews import with_views
from buildtool.graph.secondpass import with_second_passes
from buildtool.graph.types import Graph, OpKind
from buildtool.options.values import PlanOptions
from buildtool.plan.assemble.layerwise import plan as plan_layerwise
from buildtool.plan.place.arena import round_up
from buildtool.plan.schedule.gates import gates
from buildtool.plan.schedule.inner import meets_input
from buildtool.plan.schedule.overlap import IN_PLACE
from buildtool.plan.schedule.viewing import possible_views
from buildtool.plan.search.front import Settings, front
from buildtool.plan.search.paths import Search
from buildtool.plan.types import Plan
from buildtool.target import catalogue
from buildtool.zoo.drawn import NetBuilder, WideNetBuilder

slow = pytest.mark.slow
IMAGES = ("overwritable", "resident", "stream")
ENLARGING = {OpKind.RESIZE_BILINEAR, OpKind.RESIZE_NEAREST_NEIGHBOR, OpKind.TRANSPOSE_CONV}
SQUARES = {OpKind.SPACE_TO_DEPTH, OpKind.DEPTH_TO_SPACE}


def lists(strategy: st.SearchStrategy, count: int) -> st.SearchStrategy[list]:
    return st.lists(strategy, min_size=count, max_size=count)


# Points of the front.

points = st.tuples(
    st.sampled_from(IMAGES),
    st.sampled_from(["rows", "elementwise", "none"]),
    st.sampled_from([0.0, 0.0, 0.5, 1.0]),
)


def at_point(
    name: str, graph: Graph, image: str, in_place: str, part: float, change: Change | None = None
) -> Job:
    planner = front_point(Settings(image=image, in_place=in_place), part)
    return prepare(graph, name, seed=7, planner=planner, change=change)


def jobs_at_points(drawn_ones: list, change: Callable[[str], Change] = lambda image: None) -> list[Job]:
    return [at_point(f"n{i}", graph, *of, change(of[0])) for i, (graph, of) in enumerate(drawn_ones)]


def examples(strategy: st.SearchStrategy, count: int, check: Callable[[list], object], most: int = 1) -> None:
    """Calls `check` with `most` batches of `count` drawn networks, the same every time.

    The batch before them has only the simplest networks.
    """
    settings(BATCHES, max_examples=most + 1)(given(drawn_ones=lists(strategy, count))(check))()


@pytest.mark.slow
@pytest.mark.parametrize(("most", "count"), [(2, 10)])
def test_branching_networks(most, count, tmp_path_factory):
    def check(drawn_ones):
        assert_exact(jobs_at_points(drawn_ones), tmp_path_factory.mktemp("batch"))

    examples(st.tuples(branching_networks(), points), count, check, most)


@slow
@BATCHES
@given(drawn_ones=lists(st.tuples(enlarging_networks(), points), 10))
def test_networks_that_enlarge(drawn_ones, tmp_path_factory):
    """U-Nets, pyramids, decoders and others, with odd sizes and every way of resizing."""
    jobs = jobs_at_points(drawn_ones)
    assert ENLARGING & streamed_kinds(jobs)
    assert_exact(jobs, tmp_path_factory.mktemp("batch"))


@slow
@BATCHES
@given(drawn_ones=lists(st.tuples(gated_networks(), points), 6))
def test_networks_with_second_passes(drawn_ones, tmp_path_factory):
    """A second pass at each gate."""

    def twice(image):
        def change(graph, target):
            streamed = graph.inputs if image == "stream" else ()
            starts = gates(graph, catalogue.select_all(target, graph), streamed)
            return with_second_passes(graph, [among[-1] for among in starts])

        return change

    jobs = jobs_at_points(drawn_ones, twice)
    assert sum(len(job.plan.second_passes) for job in jobs) > 3
    assert_exact(jobs, tmp_path_factory.mktemp("batch"))


# Slices of channels as views: of a front's points, or layer by layer.


def with_all_views(is_joined: bool) -> Change:
    def viewed(graph, target):
        kernels = catalogue.select_all(target, graph)
        return with_views(graph, possible_views(graph, kernels, joined=is_joined))

    return viewed


def view_jobs(drawn_ones: list, is_whole: bool) -> list[Job]:
    jobs = []
    for i, (graph, (image, in_place, part), is_joined) in enumerate(drawn_ones):
        if is_whole:
            planner = functools.partial(plan_layerwise, in_place=in_place, image="resident", enough=0)
            jobs.append(prepare(graph, f"n{i}", seed=7, planner=planner, change=with_all_views(is_joined)))
        else:
            jobs.append(at_point(f"n{i}", graph, image, in_place, part, with_all_views(is_joined=False)))
    assert sum(len(job.plan.views) for job in jobs) > 3
    return jobs


@slow
@pytest.mark.parametrize(("most", "batch", "count", "is_whole"), [(2, 1, 8, False), (1, 2, 8, True)])
def test_networks_with_views(most, batch, count, is_whole, tmp_path_factory):
    def check(drawn_ones):
        assert_exact(view_jobs(drawn_ones, is_whole), tmp_path_factory.mktemp("batch"))

    examples(st.tuples(sliced_networks(batch=batch), points, st.booleans()), count, check, most)


# What planning options make of small networks.


@st.composite
def _options(draw, strategy="layerwise"):
    """Planning options, and the seed of the inputs."""
    best = strategy == "best"
    return PlanOptions(
        strategy=strategy,
        in_place=draw(st.sampled_from(IN_PLACE)),
        image=draw(st.sampled_from(IMAGES if best else IMAGES[:2])),
        objective="ram" if best else "cost",  # the least memory is what is most intricate
        hand_off=draw(st.sampled_from([1, 2, 4, 100])),
    ), draw(st.integers(0, 2**31 - 1))


def _prepare_planned(graph: Graph, name: str, options: PlanOptions, seed: int) -> Job:
    graph = spread(graph, seed) if seed % 2 else graph
    try:
        return prepare(graph, name, options=options, seed=seed)
    except UsageError:
        # one input, one reader, batch 1: what an image needs to be streamed
        assert options.image == "stream"
        return prepare(graph, name, options=dataclasses.replace(options, image="resident"), seed=seed)


def check_planned(drawn_ones: list, folder: Path) -> None:
    jobs = [_prepare_planned(graph, f"n{i}", *chosen) for i, (graph, chosen) in enumerate(drawn_ones)]
    for job, runs in zip(jobs, assert_exact(jobs, folder), strict=True):
        check_image(job, runs)


def check_image(job: Job, runs: list[Run]) -> None:
    """An image that is to stay is as it was."""
    if job.plan.image == "resident":
        left = [one.inputs_after for one in runs]
        assert left == [[array.tobytes() for array in given] for given in job.inputs]


@slow
@pytest.mark.parametrize(
    ("strategy", "most", "count", "blocks"),
    [
        ("best", 1, 8, 4),
        pytest.param("layerwise", 2, 16, 7, marks=slow),
        pytest.param("best", 2, 12, 7, marks=slow),
    ],
)
def test_small_networks(strategy, most, count, blocks, tmp_path_factory):
    drawn = st.tuples(small_networks(max_blocks=blocks), _options(strategy))
    examples(
        drawn, count, lambda drawn_ones: check_planned(drawn_ones, tmp_path_factory.mktemp("batch")), most
    )


def _one_of_each():
    """A network of each sort of operators; uint8 edges are drawn again as others. LiteRT has no ELU."""
    sorts = ([kind for kind in kinds if kind is not OpKind.ELU] for kinds in KIND_GROUPS.values())
    return st.tuples(*(graphs_of_one_of(kinds).filter(_is_int8) for kinds in sorts))


def _is_int8(graph):
    edges = [*graph.inputs, *graph.outputs]
    return all(graph.tensors[t].dtype.value != "uint8" for t in edges)


@slow
@settings(BATCHES, max_examples=2)
@given(graphs=_one_of_each(), options=lists(_options(), len(KIND_GROUPS)))
def test_each_operator_alone_in_many_shapes(graphs, options, tmp_path_factory):
    check_planned(list(zip(graphs, options, strict=True)), tmp_path_factory.mktemp("batch"))


# Points of the front: with the planned work, and nothing written outside of the buffers. Every plan as it is,
# and once more with its buffers side by side, a gap of untouchable bytes around each.

GAP = 64


@st.composite
def chosen_points(draw):
    """Settings of a front, which of its points, by cost or by memory, in lean or cheap forms; a seed."""
    asked = Settings(
        in_place=draw(st.sampled_from(("rows", *IN_PLACE))),
        image=draw(st.sampled_from(IMAGES)),
        hand_off=draw(st.sampled_from([None, 1, 3, 4, 100])),
        max_f=6.0,
    )
    return asked, draw(st.booleans()), draw(st.floats(0, 1)), draw(st.booleans()), draw(st.integers(0, 99))


def planner_of(asked: Settings, by_cost: bool, place: float, lean: bool, apart: bool) -> Planner:
    def plan(graph, target):
        try:
            found = front(graph, target, asked)
        except UsageError:  # an image that cannot be streamed
            found = front(graph, target, dataclasses.replace(asked, image="overwritable"))
        ways = list(Search(found.space.cost_tables).falling()) if by_cost else [p.way for p in found.points]
        way = ways[round(place * (len(ways) - 1))]
        made = found.lean(way) if lean else found.cheap(way)
        return with_gaps(made) if apart else made

    return plan


def with_gaps(plan: Plan) -> Plan:
    """Every buffer alone between guards; behind the last one is the sanitizer's red zone."""
    buffers, at = [], GAP
    for buffer in plan.buffers:
        buffers.append(dataclasses.replace(buffer, offset=at))
        at += round_up(buffer.size, plan.alignment) + GAP
    return dataclasses.replace(plan, buffers=tuple(buffers), overlaps=(), arena_bytes=at - GAP)


def executed_macs(job: Job, one: Run) -> int:
    """Multiply-accumulates of the kernel calls traced."""
    total = 0
    for op in job.graph.ops:
        tensor = job.graph.tensors[op.outputs[0]]
        pixels, rest = divmod(one.computed.get(op.outputs[0], 0), tensor.nhwc[3] * tensor.dtype.size)
        assert not rest
        total += pixel_macs(job.graph, op, pixels)
    return total


def is_untouched(job: Job, one: Run, junk: int) -> bool:
    """Whether the bytes of the arena that belong to no buffer are as they were."""
    owned = bytearray(job.plan.arena_bytes)
    for buffer in job.plan.buffers:
        owned[buffer.offset : buffer.offset + buffer.size] = b"\1" * buffer.size
    assert len(one.arena) == len(owned)
    return all(byte == junk for byte, mine in zip(one.arena, owned, strict=True) if not mine)


@pytest.mark.slow
@pytest.mark.parametrize(("most", "count", "blocks"), [(3, 12, 7)])
def test_points_of_small_networks_run_as_planned(most, count, blocks, tmp_path_factory):
    def check(drawn_ones):
        check_points(drawn_ones, tmp_path_factory.mktemp("points"))

    examples(st.tuples(small_networks(firmware=True, max_blocks=blocks), chosen_points()), count, check, most)


def check_points(drawn_ones: list, folder: Path) -> list[Job]:
    planners = [(g, planner_of(*of, apart), seed) for g, (*of, seed) in drawn_ones for apart in (0, 1)]
    jobs = [prepare(graph, f"n{i}", seed=seed, planner=p) for i, (graph, p, seed) in enumerate(planners)]
    for job, runs in zip(jobs, assert_exact(jobs, folder), strict=True):
        for one, junk in zip(runs, JUNK, strict=True):
            assert executed_macs(job, one) == job.plan.macs, (job.plan, job.source)
            assert is_untouched(job, one, junk), (job.plan, job.source)
        check_image(job, runs)
    return jobs


@slow
def test_points_of_networks_with_pads_of_any_width_and_value(tmp_path_factory):
    """Some groups make rows that read nothing but padding, and not every PAD has its zero point as value."""
    jobs: list[Job] = []

    def check(drawn_ones):
        jobs.extend(check_points(drawn_ones, tmp_path_factory.mktemp("pads")))

    examples(st.tuples(padded_networks(), chosen_points()), 24, check, 2)
    groups = [(job, group) for job in jobs for region in job.plan.regions for group in region.groups]
    assert sum(not meets_input(job.graph, group.ops) for job, group in groups) > 3
    assert sum(op.kind is OpKind.PAD for job in jobs for op in job.graph.ops) > 3


# Shapes that are seldom drawn.


def _boxes(channels_first, anchors):
    """The end of a detector: distances are subtracted from constant anchors, two numbers a box."""
    net = NetBuilder(5)
    x = net.conv(net.input((1, 8, 8, 3)), 4, kernel=(3, 3), stride=(2, 2), same=True)
    x, axis = net.move(OpKind.RESHAPE, x, (1, 16, 4)), 2
    if channels_first:
        x, axis = net.move(OpKind.TRANSPOSE, x, (1, 4, 16), g.TransposeAttrs((0, 2, 1))), 1
    near, far = net.split(x, 2, axis)
    low = net.elementwise(OpKind.SUB, net.constant(anchors), near)
    high = net.elementwise(OpKind.ADD, net.constant(anchors), far)
    middle = net.elementwise(OpKind.MUL, net.constant((1,)), net.elementwise(OpKind.ADD, low, high))
    return net.graph([net.concat([middle, net.elementwise(OpKind.SUB, high, low)], axis)])


@slow
def test_operators_whose_first_operand_is_a_constant_in_streamed_plans(tmp_path):
    anchors = [(False, (1, 16, 2)), (True, (1, 2, 16)), (False, (16, 1)), (True, (2, 1))]
    ram = PlanOptions(objective="ram")
    check_planned([(_boxes(*of), (ram, seed)) for seed, of in enumerate(anchors)], tmp_path)


def stem(net: NetBuilder, square: g.BlockAttrs, rows: int, columns: int) -> int:
    """As detectors begin: the image in squares, then a pyramid."""
    image = net.input((1, rows * square.block, columns * square.block, 3))
    x = net.move(OpKind.SPACE_TO_DEPTH, image, attrs=square)
    return conv(net, conv(net, conv(net, x, 7), 9, 2), 5)


def super_resolution(net: NetBuilder, square: g.BlockAttrs, rows: int, columns: int) -> int:
    """Convolutions, then channels become pixels, and a last convolution of those."""
    x = conv(net, conv(net, net.input((1, rows, columns, 1)), 8), 3 * square.block**2)
    return conv(net, net.move(OpKind.DEPTH_TO_SPACE, x, attrs=square), 2)


def both(net: NetBuilder, square: g.BlockAttrs, rows: int, columns: int) -> int:
    """Into squares and out of them, with the image added."""
    image = net.unary(OpKind.TANH, net.input((1, rows * square.block, columns * square.block, 2)))
    x = conv(net, net.move(OpKind.SPACE_TO_DEPTH, image, attrs=square), 11)
    x = net.move(OpKind.DEPTH_TO_SPACE, conv(net, x, 2 * square.block**2), attrs=square)
    return conv(net, net.elementwise(OpKind.ADD, x, image), 3)


@slow
def test_squares_of_pixels_stream(tmp_path):
    cases = [
        (stem, 2, 13, 11, "stream", 0.0),
        (stem, 3, 8, 11, "overwritable", 0.5),
        (super_resolution, 3, 12, 7, "overwritable", 0.0),
        (super_resolution, 4, 9, 6, "stream", 0.0),
        (both, 2, 11, 9, "resident", 0.0),
        (both, 3, 8, 5, "overwritable", 0.0),
    ]
    drawn = []
    for seed, (make, block, rows, columns, image, part) in enumerate(cases):
        net = NetBuilder(seed)
        last = make(net, g.BlockAttrs(block), rows, columns)
        drawn.append((net.graph([last]), (image, "rows", part)))
    jobs = jobs_at_points(drawn)
    assert streamed_kinds(jobs, groups=2) >= SQUARES
    assert_exact(jobs, tmp_path)


@slow
def test_planes_at_the_end_of_a_region(tmp_path):
    jobs = []
    for seed, (builder, hand_off, apart) in enumerate(
        [
            (NetBuilder, 100, False),
            (NetBuilder, 2, True),
            (WideNetBuilder, 1, False),
            (WideNetBuilder, 100, True),
        ]
    ):
        net = builder(seed)
        x = net.conv(net.input((1, 9, 7, 2)), 6, kernel=(3, 3), same=True)
        x = net.conv(net.conv(x, 12, kernel=(3, 3), same=True), 5)
        planes = net.move(OpKind.TRANSPOSE, x, (1, 5, 9, 7), g.TransposeAttrs((0, 3, 1, 2)))
        asked = Settings(image="stream", hand_off=hand_off, max_f=6.0)
        planner = planner_of(asked, by_cost=False, place=0.0, lean=True, apart=apart)
        graph = net.graph([net.move(OpKind.RESHAPE, planes, (1, 5, 63))])
        jobs.append(prepare(graph, f"n{seed}", seed=seed, planner=planner))
    groups = [job.plan.regions[-1].groups[-1] for job in jobs]
    assert all(job.plan.regions[-1].is_streamed for job in jobs) and any(group.hand_off for group in groups)
    assert_exact(jobs, tmp_path)
