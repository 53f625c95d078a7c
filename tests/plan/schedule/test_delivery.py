"""An image that comes row by row: which input it is, what reads it, and how many rows are kept."""

import pytest
from deliverednets import NETWORKS, SAME, network
from front_twin import Space, hold_front
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from plan_nets import any_groups, assembled, make_target
from zeronet import Net

from buildtool.base.errors import UsageError
from buildtool.graph.rewrite import rewrite
from buildtool.graph.types import Pad
from buildtool.plan.check.check import check
from buildtool.plan.schedule.delivery import delivered_image
from buildtool.plan.search.front import Settings, front
from buildtool.plan.types import BufferKind
from buildtool.zoo.drawn import NetBuilder

# The input that is delivered, and the rows of it that the plan of least memory keeps (0: all).
KEPT = {
    "fork": (0, 5),
    "residual": (0, 3),
    "late": (0, 0),
    "reshaped": (0, 3),
    "temporal": (0, 0),
    "beside": (1, 3),
    "added": (1, 1),
    "joined": (0, 3),
    "paired": (0, 0),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_the_rows_that_are_still_read_are_kept(name):
    graph = rewrite(network(name))
    pareto = front(graph, make_target(), Settings(image="stream"))
    plan = pareto.plan(0)
    check(plan, graph, pareto.target)
    image = delivered_image(graph).input
    (buffer,) = (b for b in plan.buffers if image in b.tensors)
    assert (graph.inputs.index(image), buffer.rows) == KEPT[name]
    assert (buffer.kind is BufferKind.RING) == (buffer.rows > 0)
    others = {t for t in graph.inputs if t != image}
    assert all(b.first == 0 for b in plan.buffers if others & set(b.tensors))


def _flattened(net, x):
    return [net.dense(net.flatten(x), 4)]


def _flattened_later(net, x):
    return [net.mean(net.conv(x, 4, **SAME)), net.dense(net.flatten(x), 4)]


def _given_back(net, x):
    return [x, net.conv(x, 4)]


@pytest.mark.parametrize(
    ("make", "place", "text"),
    [
        (_flattened, "FULLY_CONNECTED", "reads it in shape .1, 384., not as one image"),
        (_flattened_later, "FULLY_CONNECTED", "in another shape than the operators before it"),
        (_given_back, "", "it is a network output, too"),
    ],
)
def test_an_image_that_cannot_be_streamed_is_refused_by_operator(make, place, text):
    net = NetBuilder(1)
    graph = rewrite(net.graph(make(net, net.input((1, 16, 12, 2)))))
    with pytest.raises(UsageError, match=text) as caught:
        front(graph, make_target(), Settings(image="stream"))
    assert place in caught.value.operator


@st.composite
def _images(draw):
    """Chains and residuals of which several operators read the image; some have another input."""
    side = st.integers(2, 9)
    shape = (1, draw(side), draw(side), draw(st.integers(1, 5)))
    net = Net(shape, *([shape] if draw(st.booleans()) else []))
    made = list(net.inputs)
    for _ in range(draw(st.integers(2, 5))):
        x = draw(st.sampled_from([made[-1], made[-1], *made]))
        _, rows, columns, channels = net.shape(x)
        same = [t for t in made if net.shape(t) == net.shape(x) and t != x]
        kind = draw(st.sampled_from(["conv", "depthwise", *(["add"] * 4 if same else []), "reshape"]))
        kernel = draw(st.sampled_from([1, 3, 5]))
        pad = draw(st.sampled_from([Pad(*[kernel // 2] * 4), Pad(0, kernel - 1, 0, kernel - 1)]))
        if kind == "add":
            made.append(net.add(x, draw(st.sampled_from(same))))
        elif kind == "reshape":
            made.append(net.reshape(x, (1, rows * columns, 1, channels)))
        else:
            window = ((kernel, kernel), draw(st.sampled_from([(1, 1), (1, 1), (2, 2)])), pad)
            made.append(net.depthwise(x, *window) if kind == "depthwise" else net.conv(x, shape[3], *window))
    return net.graph(*{net.relu(made[-1]): None, net.relu(draw(st.sampled_from(made))): None})


_many = settings(derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.mark.slow
@settings(_many, max_examples=30)
@given(st.data(), _images())
def test_rows_are_there_when_they_are_read(data, graph):
    target = make_target()
    plan, _ = assembled(graph, target, any_groups(data.draw, graph), image="stream")
    check(plan, graph, target)


@pytest.mark.slow
@settings(_many, max_examples=14)
@given(_images(), st.sampled_from(["rows", "none"]))
def test_the_front_is_exact(graph, in_place):
    try:
        hold_front(graph, make_target(scratch="5 * cin"), "stream", in_place, Space((1, 2), (1,)))
    except UsageError as error:
        assert "be streamed" in error.text
