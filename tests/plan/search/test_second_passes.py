"""The choice of gates with a second pass is exact: no other choice of passes has a better way."""

from __future__ import annotations

import contextlib
import itertools

import pytest
from front_twin import Space, Twin, undominated
from hypothesis import given, settings
from hypothesis import strategies as st
from namednets import efficient_net
from plan_nets import make_target
from test_front import IMAGES, targets
from zeronet import Net

from buildtool.base.errors import UsageError
from buildtool.base.session import Session
from buildtool.graph.macs import total_macs
from buildtool.graph.rewrite import rewrite
from buildtool.graph.secondpass import with_second_passes
from buildtool.graph.types import ElementwiseAttrs, OpKind, Pad, SecondPass
from buildtool.plan.search.front import front
from buildtool.plan.search.passsearch import PassSearch, networks_with_passes, worthwhile
from buildtool.plan.search.space import Settings, space_of

SPACE = Space(steps=(1,), hand_offs=(1,), most_operators=2)


@st.composite
def gated_networks(draw):
    """One or two gates, each after operators that widen, fork or shrink, sometimes with a residual."""
    side = draw(st.integers(3, 6))
    net = Net((1, side, side, draw(st.integers(1, 4))))
    x = net.inputs[0] if draw(st.booleans()) else net.conv(net.inputs[0], draw(st.integers(1, 4)))
    for _ in range(draw(st.sampled_from([1, 1, 2]))):
        before = x
        kinds = draw(
            st.sampled_from(["conv", "conv depthwise", "depthwise conv", "conv fork", "conv strided"])
        )
        for kind in kinds.split():
            x = _made(net, kind, x, draw(st.integers(3, 9)))
        channels = net.shape(x)[3]
        gate = net.conv(net.reshape(net.mean(x), (1, 1, 1, channels)), channels)
        x = net.add_op(draw(st.sampled_from([OpKind.MUL, OpKind.ADD])), (x, gate), ElementwiseAttrs())
        if draw(st.booleans()):
            x = net.conv(x, draw(st.integers(1, 4)))
        if net.shape(x) == net.shape(before) and draw(st.booleans()):
            x = net.add(x, before)
    return net.graph(x)


def _made(net, kind, x, channels):
    if kind == "depthwise":
        return net.depthwise(x)
    if kind == "strided":
        return net.depthwise(x, stride=(2, 2))
    if kind == "fork":
        return net.add(x, net.relu(x))
    return net.conv(x, channels, (3, 3), pad=Pad(1, 1, 1, 1)) if channels % 2 else net.conv(x, channels)


def every_choice(graph, streamed):
    """All choices of passes: for each gate none, or one from a tensor smaller than those in between."""
    choices = []
    for reader, op in enumerate(graph.ops):
        gated = [t for t in op.inputs if t >= 0 and op.kind in (OpKind.MUL, OpKind.ADD)]
        means = {m.inputs[0] for m in graph.ops[:reader] if m.kind is OpKind.MEAN}
        for t in means.intersection(gated):
            last = graph.producers().get(t)
            if last is not None:
                choices.append([None, *starts(graph, last, reader, streamed)])
    return [tuple(filter(None, some)) for some in itertools.product(*choices)]


def starts(graph, last, reader, streamed):
    least = graph.tensors[graph.ops[last].outputs[0]].size
    for first in range(last, -1, -1):
        inside = graph.ops[first : last + 1]
        outputs = {t for op in inside for t in op.outputs}
        outside = {
            t for op in inside for t in op.inputs if t >= 0 and not graph.tensors[t].is_constant
        } - outputs
        others = [op for op in graph.ops if op not in inside]
        leaks = outputs.intersection(t for op in others for t in op.inputs) - {inside[-1].outputs[0]}
        if any(op.kind in (OpKind.MEAN, OpKind.RESHAPE) for op in inside):
            return
        if len(outside) == 1 and not leaks and not outside & streamed:
            (source,) = outside
            if graph.tensors[source].size < least:
                least = graph.tensors[source].size
                yield SecondPass(first, last, reader)


def compare(graph, target, image, in_place):
    with SPACE.searched():
        own = Settings(in_place, image, max_f=1e9)
        session = Session()
        choices = every_choice(graph, set(graph.inputs) if image == "stream" else set())
        networks = [with_second_passes(graph, passes) for passes in choices]
        searched = networks_with_passes(graph, lambda graph: space_of(graph, target, own, session))
        if len(choices) == 1:
            assert not searched
            return 0
        twins = [Twin(network, target, image, in_place, SPACE) for network in networks]
        for weight in (Twin.work, Twin.cost):
            search = PassSearch(searched, weight is Twin.cost)
            found = undominated((way.bytes, way.weight) for way in search.falling())
            assert found == undominated(point for twin in twins for point in twin.front(weight)), (
                weight.__name__
            )
        # All points are on the fronts of the choices that pay, and F counts second passes.
        paying = [(), *worthwhile(searched, own)]
        made = [front(with_second_passes(graph, passes), target, own, session) for passes in paying]
        points = undominated((p.live_bytes, p.work) for one in made for p in one.points)
        assert points == undominated(point for twin in twins for point in twin.front(Twin.work))
        assert all(p.f == p.work / total_macs(graph) for one in made for p in one.points)
        return sum(map(len, paying))


@pytest.mark.slow
@settings(derandomize=True, deadline=None, max_examples=3)
@given(
    gated_networks(),
    targets,
    st.sampled_from(IMAGES),
    st.sampled_from(["rows", "none"]),
)
def test_the_choice_of_second_passes_is_exact(graph, target, image, in_place):
    with contextlib.suppress(UsageError):  # an image that several operators read
        compare(graph, target, image, in_place)


@pytest.mark.slow
def test_efficient_net_takes_half_the_memory_for_a_seventh_more_work():
    graph, target, own, session = rewrite(efficient_net(96)), make_target(), Settings(), Session()
    once = front(graph, target, own, session).points[-1]
    assert once.f == 1
    searched = networks_with_passes(graph, lambda graph: space_of(graph, target, own, session))
    choices = worthwhile(searched, own)
    points = [p for c in choices for p in front(with_second_passes(graph, c), target, own, session).points]
    assert min(p.f for p in points if p.live_bytes <= once.live_bytes / 2) < 1.14
