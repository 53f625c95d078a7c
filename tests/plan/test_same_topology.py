"""Plans and emitted C depend only on the topology, and a plan is valid for every network with it."""

from __future__ import annotations

import re

import pytest
from disguise import disguised, renamed, renumbered, retrained
from drawnnets import small_networks
from everyop import every_operator
from hypothesis import given, settings
from hypothesis import strategies as st
from onnxexport import export
from plan_nets import graphs, make_target
from zeronet import SAME_3X3, Net

from buildtool import zoo
from buildtool.base.errors import BuildtoolError, PlanError
from buildtool.emit.image import weight_image
from buildtool.emit.sources import emit
from buildtool.graph.numbering import number_tensors
from buildtool.graph.onnx.reader import read_qdq
from buildtool.graph.rewrite import rewrite
from buildtool.graph.tflite.reader import read_model
from buildtool.graph.tflite.writer import write_model
from buildtool.options.values import PlanOptions
from buildtool.plan.assemble.layerwise import plan as layerwise
from buildtool.plan.check.check import check
from buildtool.plan.choose.choose import make_plan
from buildtool.plan.choose.limits import Limits
from buildtool.plan.choose.selection import best_plan
from buildtool.plan.codec import to_bytes
from buildtool.plan.search.front import Settings, front
from buildtool.target.registry import load_target

SEEDS = st.integers(0, 1 << 30)


def least_memory(graph, target, image):
    return best_plan(front(graph, target, Settings(image=image, max_f=1.5)), Limits(1 << 40, objective="ram"))


def assert_shared(graph, seed, *planners):
    """Asserts that a planner returns the same plan or refusal for another form of the network."""
    target, other = make_target(), number_tensors(disguised(graph, seed))
    for planner in planners:
        try:
            result = planner(graph, target)
        except BuildtoolError as error:
            with pytest.raises(type(error), match=re.escape(error.text)):
                planner(other, target)
            continue
        again = planner(other, target)
        assert to_bytes(again) == to_bytes(result)
        check(result, other, target)
        check(again, graph, target)


@settings(derandomize=True, deadline=None, max_examples=25)
@given(graph=graphs(most_ops=7), seed=SEEDS)
def test_a_plan_is_the_same_for_another_guise_and_holds_for_it(graph, seed):
    assert_shared(graph, seed, layerwise, lambda g, t: least_memory(g, t, "overwritable"))


def bottlenecks():
    """An image, then wide tensors between narrow ones, so that strips pay."""
    net = Net((1, 24, 24, 3))
    x = net.conv(net.inputs[0], 8, (3, 3), (2, 2), SAME_3X3)
    for _ in range(2):
        x = net.conv(net.depthwise(net.conv(x, 48), stride=(2, 2)), 8)
    return net.graph(net.dense(net.mean(x), 4))


@pytest.mark.parametrize("seed", range(2))
def test_searched_strips_are_the_same_for_another_guise(seed):
    """Users name operators by their numbers in the file, but the search must not depend on these."""
    planner = lambda g, t: make_plan(g, t, PlanOptions(strategy="xcore-strips", max_f=2.0))  # noqa: E731
    assert any(region.is_streamed for region in planner(bottlenecks(), make_target()).regions)
    assert_shared(bottlenecks(), seed, planner)


def test_a_plan_is_checked_against_canonical_numbers_only():
    target, graph = make_target(), rewrite(every_operator())
    result = layerwise(graph, target)
    other = renumbered(graph, 1)
    with pytest.raises(PlanError, match="numbered"):
        check(result, other, target)
    check(result, number_tensors(other), target)


def without_comments(text):
    return re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)


def emitted(graph, target, image):
    plan = layerwise(graph, target) if image == "whole" else least_memory(graph, target, image)
    files = emit(graph, plan, target, "net").files
    return {name: data.decode() for name, data in files.items() if not name.endswith(".bin")}, plan


@pytest.mark.slow
@settings(derandomize=True, deadline=None, max_examples=15)
@given(graph=small_networks(), seed=SEEDS)
def test_the_emitted_c_is_the_same_but_for_names(graph, seed):
    target, graph = load_target("cortex-m4"), rewrite(graph)
    same_names = number_tensors(renumbered(retrained(graph, seed), seed))
    one, plan = emitted(graph, target, "whole")
    other, _ = emitted(same_names, target, "whole")
    assert other == one
    foreign, _ = emitted(number_tensors(renumbered(renamed(graph, seed), seed)), target, "whole")
    assert {n: without_comments(t) for n, t in foreign.items()} == {
        n: without_comments(t) for n, t in one.items()
    }
    kernels = target.kernels_by_name(plan.kernels)
    assert weight_image(same_names, kernels).layout == weight_image(graph, kernels).layout


@pytest.mark.slow
@pytest.mark.parametrize(("spec", "image"), [("ds_cnn", "stream"), ("resnet8", "overwritable")])
def test_every_reader_and_builder_leads_to_the_same_plan(spec, image):
    """Networks from the zoo's builder, a .tflite file, one with other numbers and weights, an .onnx file."""
    target, graph = load_target("cortex-m4"), zoo.graph(spec)
    sources = {
        "builder": graph,
        "tflite": read_model(zoo.build(spec)),
        "other numbers": read_model(write_model(renumbered(graph, 3))),
        "other weights": read_model(zoo.build(f"{spec}:seed=1")),
        "onnx": read_qdq(export(graph).SerializeToString()),
    }
    plans = {name: least_memory(rewrite(made), target, image) for name, made in sources.items()}
    assert len({to_bytes(plan) for plan in plans.values()}) == 1
    for made in sources.values():
        check(plans["builder"], rewrite(made), target)


@pytest.mark.slow
def test_every_operator_of_another_seed_has_the_same_plan_and_c():
    target = load_target("cortex-m4")
    (one, plan), (other, again) = (
        emitted(rewrite(every_operator(seed)), target, "overwritable") for seed in (20, 21)
    )
    assert to_bytes(plan) == to_bytes(again)
    assert one["net.c"] == other["net.c"]
