"""Plans with groups of several operators, drawn by hypothesis, and networks of blocks with residuals."""

from __future__ import annotations

from hypothesis import strategies as st
from zeronet import Net

from buildtool.graph.ops import ALIAS_KINDS
from buildtool.graph.types import Pad
from buildtool.plan.assemble.assemble import assemble
from buildtool.plan.schedule.inner import objection
from buildtool.plan.schedule.timeline import Timeline
from buildtool.plan.types import Group, Region, Scheme
from buildtool.target import catalogue

SAME = Pad(1, 1, 1, 1)


def assembled(graph, target, groups, in_place="rows", image="overwritable"):
    """The plan with these groups, every other operator alone."""
    by_first = {group.ops[0]: group for group in groups}
    covered = {p for group in groups for p in group.ops[1:]}
    kernels = tuple(
        None if op.kind in ALIAS_KINDS else catalogue.select(target, graph, op) for op in graph.ops
    )
    regions = tuple(
        Region((by_first.get(p, Group((p,))),))
        for p, kernel in enumerate(kernels)
        if kernel is not None and p not in covered
    )
    timeline = Timeline.of(graph, regions, image)
    plan = assemble(timeline, target, kernels, strategy="test", in_place=in_place)
    return plan, kernels


def any_group(draw, ops):
    """One of the two schemes for these operators."""
    step = draw(st.integers(1, 4))
    if len(ops) == 1:
        return Group(ops, Scheme.OPERATOR, step, draw(st.sampled_from([0, 1, 3])))
    if draw(st.booleans()):
        return Group(ops, Scheme.HALO, step, 0)
    return Group(ops, Scheme.H_CACHED, step, draw(st.integers(1, 4)))


def any_groups(draw, graph):
    """Groups over some of the graph's operators."""
    running = [p for p, op in enumerate(graph.ops) if op.kind not in ALIAS_KINDS]
    groups, place = [], 0
    while place < len(running):
        ops = tuple(running[place : place + draw(st.integers(1, 6))])
        if draw(st.booleans()) and objection(graph, ops) is None:
            groups.append(any_group(draw, ops))
            place += len(ops)
        else:
            place += 1
    return groups


@st.composite
def residual_nets(draw):
    """Blocks one after the other: strided or not, with residuals, some of them over several blocks."""
    net = Net((1, draw(st.integers(3, 14)), draw(st.integers(3, 14)), 3))
    x = net.conv(net.inputs[0], 4, (3, 3), draw(st.sampled_from([(1, 1), (2, 2)])), SAME)
    earlier = [x]
    for _ in range(draw(st.integers(1, 4))):
        kernel = draw(st.sampled_from([1, 3, 5]))
        stride = draw(st.sampled_from([1, 1, 1, 2]))
        pad = draw(st.sampled_from([Pad(*[kernel // 2] * 4), Pad(0, kernel // 2 * 2, 0, kernel // 2 * 2)]))
        y = net.conv(x, draw(st.integers(1, 8)))
        y = net.depthwise(y, (kernel, kernel), (stride, stride), pad)
        y = net.conv(y, 4)
        if draw(st.booleans()):
            y = net.relu(y)
        same = [t for t in earlier if net.shape(t) == net.shape(y)]
        x = net.add(y, draw(st.sampled_from(same[-2:]))) if same and draw(st.booleans()) else y
        earlier.append(x)
    if draw(st.booleans()):
        x = net.mean(x)
    return net.graph(x, *draw(st.sets(st.sampled_from(earlier), max_size=1)) - {x})
