"""Random networks: emitted, compiled under sanitizers, run, and equal in every tensor.

Every tensor is compared with LiteRT's reference kernels and with the executor. Arenas are exactly as
large as planned, between the sanitizer's red zones, and full of junk before each run.
"""

import dataclasses

import pytest
from graphs import KIND_GROUPS, graphs_of_one_of, small_networks
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from nativebatch import differences, prepare, run
from spread import spread

from buildtool.base.errors import UsageError
from buildtool.graph import types as g
from buildtool.graph.types import OpKind
from buildtool.options.values import PlanOptions
from buildtool.plan.schedule.overlap import IN_PLACE
from buildtool.zoo.drawn import NetBuilder

_batches = settings(
    derandomize=True,
    deadline=None,
    max_examples=1,
    # a batch is dear: the failure names the network, shrinking is done by hand
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.data_too_large, HealthCheck.too_slow, HealthCheck.large_base_example],
)
IMAGES = ("overwritable", "resident")
_seeds = st.integers(0, 2**31 - 1)


@st.composite
def _options(draw, strategy="layerwise"):
    """Planning options, and the seed of the inputs."""
    best = strategy == "best"
    return PlanOptions(
        strategy=strategy,
        in_place=draw(st.sampled_from(IN_PLACE)),
        image=draw(st.sampled_from(("stream", *IMAGES) if best else IMAGES)),
        objective="ram" if best else "cost",  # the least memory is what is most intricate
        hand_off=draw(st.sampled_from([1, 2, 4, 100])),
    ), draw(_seeds)


def _job(graph, name, options, seed):
    graph = spread(graph, seed) if seed % 2 else graph
    try:
        return prepare(graph, name, options=options, seed=seed)
    except UsageError:
        # one input, one reader, batch 1: what an image needs to be streamed
        assert options.image == "stream"
        return prepare(graph, name, options=dataclasses.replace(options, image="resident"), seed=seed)


def _check(graphs, options, folder):
    jobs = [
        _job(graph, f"n{i}", *given) for i, (graph, given) in enumerate(zip(graphs, options, strict=True))
    ]
    for job, runs in zip(jobs, run(jobs, folder), strict=True):
        assert differences(job, runs) == [], (job.plan, job.source)
        if job.plan.image == "resident":
            left = [one.inputs_after for one in runs]
            assert left == [[array.tobytes() for array in given] for given in job.inputs]


def _networks(count, blocks, strategy="layerwise"):
    return st.lists(
        st.tuples(small_networks(max_blocks=blocks), _options(strategy)), min_size=count, max_size=count
    )


@_batches
@given(drawn=_networks(10, 4))
def test_small_networks_are_exact(drawn, tmp_path_factory):
    _check(*zip(*drawn, strict=True), tmp_path_factory.mktemp("batch"))


@pytest.mark.slow
@settings(_batches, max_examples=5)
@given(drawn=_networks(16, 7))
def test_many_networks_are_exact(drawn, tmp_path_factory):
    _check(*zip(*drawn, strict=True), tmp_path_factory.mktemp("batch"))


@settings(_batches, max_examples=1)
@given(drawn=_networks(8, 4, "best"))
def test_small_networks_are_exact_in_streamed_plans(drawn, tmp_path_factory):
    _check(*zip(*drawn, strict=True), tmp_path_factory.mktemp("batch"))


@pytest.mark.slow
@settings(_batches, max_examples=5)
@given(drawn=_networks(12, 7, "best"))
def test_many_networks_are_exact_in_streamed_plans(drawn, tmp_path_factory):
    _check(*zip(*drawn, strict=True), tmp_path_factory.mktemp("batch"))


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


def test_operators_whose_first_operand_is_a_constant_are_exact_in_streamed_plans(tmp_path):
    graphs = [
        _boxes(False, (1, 16, 2)),
        _boxes(True, (1, 2, 16)),
        _boxes(False, (16, 1)),
        _boxes(True, (2, 1)),
    ]
    ram = PlanOptions(objective="ram")
    _check(graphs, [(ram, seed) for seed in range(len(graphs))], tmp_path)


def _one_of_each():
    """A network of each sort of operators; uint8 edges are drawn again as others. LiteRT has no ELU."""
    sorts = ([kind for kind in kinds if kind is not OpKind.ELU] for kinds in KIND_GROUPS.values())
    return st.tuples(*(graphs_of_one_of(kinds).filter(_is_int8) for kinds in sorts))


def _is_int8(graph):
    edges = [*graph.inputs, *graph.outputs]
    return all(graph.tensors[t].dtype.value != "uint8" for t in edges)


@pytest.mark.slow
@settings(_batches, max_examples=5)
@given(
    graphs=_one_of_each(), options=st.lists(_options(), min_size=len(KIND_GROUPS), max_size=len(KIND_GROUPS))
)
def test_each_operator_alone_is_exact_in_many_shapes(graphs, options, tmp_path_factory):
    _check(graphs, options, tmp_path_factory.mktemp("batch"))
