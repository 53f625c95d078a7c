"""Small networks of zeros for planning, plans of groups for them, and a target."""

from hypothesis import strategies as st
from zeronet import SAME_3X3, Net

from buildtool.graph.ops import ALIAS_KINDS
from buildtool.graph.types import DType, OpKind, Pad
from buildtool.plan.assemble.assemble import assemble
from buildtool.plan.schedule.bands import bands_objection
from buildtool.plan.schedule.inner import objection
from buildtool.plan.schedule.timeline import Timeline
from buildtool.plan.types import Group, Region, Scheme, Step
from buildtool.target import catalogue
from buildtool.target.hardware import Core, Memory, MemoryKind
from buildtool.target.types import BYTES, Board, Contract, Costs, KernelVariant, Target

_CONTRACTS = {
    OpKind.CONV_2D: Contract.ROW,
    OpKind.DEPTHWISE_CONV_2D: Contract.ROW,
    OpKind.MAX_POOL_2D: Contract.ROW,
    OpKind.ADD: Contract.PIXEL,
    OpKind.RELU: Contract.PIXEL,
    OpKind.CONCATENATION: Contract.PARTS,
}
_PLACES = tuple((DType.INT8, wide) for wide in (DType.INT32, DType.INT64))
_CASTS = ((DType.INT8, DType.INT16), (DType.INT16, DType.INT8))
_TYPES = {OpKind.ARG_MAX: _PLACES, OpKind.ARG_MIN: _PLACES, OpKind.CAST: _CASTS}
_TYPES[OpKind.DETECTION_POSTPROCESS] = ((DType.INT8, DType.FLOAT32),)

COST = "20 + 10 * outputs + macs + 4 * oh * (ow % 4 > 0) + columns_met - columns_inside"


def plan_steps(regions, graph, image="overwritable"):
    """Returns the steps of regions that run one after the other."""
    return tuple(Step(*line) for line in Timeline.of(graph, regions, image).steps.tolist())


def make_target(*, scratch="0", ram=1 << 24, reserved=0, alignment=16, cost=COST):
    """Returns a target with a kernel for every operator kind. `scratch`: of convolutions, in bytes."""
    kernels = tuple(
        KernelVariant(
            op=str(kind),
            name=f"{kind.lower()}_test" + "_wide" * (types in (_PLACES[1], _CASTS[1])),
            symbol="nn_test",
            sources=(),
            scratch=scratch if kind in (OpKind.CONV_2D, OpKind.DEPTHWISE_CONV_2D) else "0",
            overlap=_CONTRACTS.get(kind, Contract.NONE),
            cost=cost,
            types=types,
        )
        for kind in OpKind
        for types in _TYPES.get(kind, (BYTES,))
    )
    board = Board(
        name="bench",
        family="host",
        title="a board for tests",
        core=Core("core", "none", ("reference",)),
        memories=(
            Memory("flash", MemoryKind.ROM, 0, 1 << 24),
            Memory("ram", MemoryKind.RAM, 0x20000000, ram),
            Memory("tcm", MemoryKind.RAM, 0x10000000, 1 << 16),
        ),
        code="flash",
        data="tcm",
        arena="ram",
        weights="flash",
        stack_bytes=4096,
        reserved_bytes=reserved,
        alignment=alignment,
    )
    costs = Costs("100", "9 + bytes", "7 + 0.75 * bytes", "8 + bytes", "11 + 3 * oh * ow * cin", "5 * cin")
    return Target(board, kernels, costs)


def residual_net():
    """An image, an inverted bottleneck with a residual, a strided one, pooling and a dense layer."""
    net = Net((1, 16, 16, 3))
    x = net.conv(net.inputs[0], 16, (3, 3), (2, 2), Pad(0, 1, 0, 1))
    y = net.conv(net.depthwise(net.conv(x, 64)), 16)
    y = net.add(x, y)
    y = net.conv(net.depthwise(net.conv(y, 96), stride=(2, 2), pad=Pad(0, 1, 0, 1)), 24)
    y = net.reshape(net.mean(y), (1, 24))
    return net.graph(net.dense(y, 10))


@st.composite
def graphs(draw, most_ops=12):
    """Chains with branches, aliases, reused tensors, several inputs and outputs, odd sizes, batches."""
    batch = draw(st.sampled_from((1, 1, 1, 2)))
    side = st.integers(1, 9)
    shapes = [
        (batch, draw(side), draw(side), draw(st.integers(1, 20))) for _ in range(draw(st.integers(1, 2)))
    ]
    net = Net(*shapes)
    live = list(net.inputs)
    for _ in range(draw(st.integers(1, most_ops))):
        x = draw(st.sampled_from(live[-3:]))
        live.append(_random_op(draw, net, x, live))
    outputs = {live[-1], *draw(st.lists(st.sampled_from(live), max_size=2))}
    return net.graph(*sorted(outputs))


@st.composite
def fed_graphs(draw):
    """Like `graphs`, with one image that one operator reads and that is no output: it can be streamed."""
    net = Net((1, draw(st.integers(1, 9)), draw(st.integers(1, 9)), draw(st.integers(1, 8))))
    live = [net.conv(net.inputs[0], draw(st.integers(1, 20)))]
    for _ in range(draw(st.integers(1, 7))):
        live.append(_random_op(draw, net, draw(st.sampled_from(live[-3:])), live))
    return net.graph(*sorted({live[-1], *draw(st.lists(st.sampled_from(live), max_size=2))}))


def _random_op(draw, net, x, live):
    kind = draw(st.sampled_from(("conv", "depthwise", "pool", "relu", "add", "concat", "reshape", "reshape")))
    _, h, w, c = net.shape(x)
    kernel, stride, dilation, pad = draw(_windows(h, w))
    if kind == "conv":
        return net.conv(x, draw(st.integers(1, 24)), kernel, stride, pad, dilation)
    if kind == "depthwise":
        return net.depthwise(x, kernel, stride, pad, dilation)
    if kind == "pool":
        kernel = (min(h, 2), min(w, 2))
        return net.max_pool(x, kernel, stride)
    if kind == "relu":
        return net.relu(x)
    if kind == "add":
        same = [t for t in live if net.shape(t) == net.shape(x)]
        return net.add(x, draw(st.sampled_from(same)))
    if kind == "concat":
        same = [t for t in live if net.shape(t)[:3] == net.shape(x)[:3]]
        return net.concat([x, draw(st.sampled_from(same))])
    return net.reshape(x, (net.shape(x)[0], h * w, 1, c))


@st.composite
def _windows(draw, h, w):
    """Draws (kernel, stride, dilation, pad) with at least one output pixel."""
    kernel = (draw(st.integers(1, 4)), draw(st.integers(1, 4)))
    stride = (draw(st.integers(1, 3)), draw(st.integers(1, 3)))
    dilation = (draw(st.integers(1, 2)), draw(st.integers(1, 2)))
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
    top, left = draw(st.integers(0, reach[0])), draw(st.integers(0, reach[1]))
    bottom = max(draw(st.integers(0, reach[0])), reach[0] - h - top)
    right = max(draw(st.integers(0, reach[1])), reach[1] - w - left)
    return kernel, stride, dilation, Pad(top, bottom, left, right)


def assembled(graph, target, groups, in_place="rows", image="overwritable"):
    """Returns the plan with these groups and every other operator alone, and its kernels."""
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


def any_group(draw, graph, ops):
    """Draws a group of these operators in one of the schemes."""
    step = draw(st.integers(1, 4))
    if len(ops) == 1:
        return Group(ops, Scheme.OPERATOR, step, draw(st.sampled_from([0, 1, 3])))
    if draw(st.booleans()):
        return Group(ops, Scheme.HALO, step, 0)
    schemes = [Scheme.EDGES, Scheme.H_CACHED, *([] if bands_objection(graph, ops) else [Scheme.BANDS])]
    return Group(ops, draw(st.sampled_from(schemes)), step, draw(st.integers(1, 4)))


def any_groups(draw, graph):
    """Draws groups over some of the graph's operators."""
    running = [p for p, op in enumerate(graph.ops) if op.kind not in ALIAS_KINDS]
    groups, place = [], 0
    while place < len(running):
        ops = tuple(running[place : place + draw(st.integers(1, 6))])
        if draw(st.booleans()) and objection(graph, ops) is None:
            groups.append(any_group(draw, graph, ops))
            place += len(ops)
        else:
            place += 1
    return groups


@st.composite
def residual_nets(draw):
    """A chain of blocks, strided or not, with residuals, some of them over several blocks."""
    net = Net((1, draw(st.integers(3, 14)), draw(st.integers(3, 14)), 3))
    x = net.conv(net.inputs[0], 4, (3, 3), draw(st.sampled_from([(1, 1), (2, 2)])), SAME_3X3)
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
