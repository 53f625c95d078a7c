"""Views of channels in planning: the planner takes the better plan, and nothing else changes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from namednets import taken

from buildtool.api import handle
from buildtool.api.requests import parse
from buildtool.base.session import Session
from buildtool.emit.image import weight_image
from buildtool.firmware.planned import prepare
from buildtool.graph.partviews import views, without_views
from buildtool.graph.tflite.writer import write_model
from buildtool.graph.types import Activation, OpKind
from buildtool.plan.choose import choose
from buildtool.plan.choose.fronts import points
from buildtool.plan.models import load_network
from buildtool.target.choice import choice, load_target
from buildtool.zoo.drawn import NetBuilder

SESSION = Session()


def _branches(net, x, count, channels):
    """Branches that each read some of the channels, joined two at a time."""
    wide = net.shape(x)[3] // count
    ends = []
    for index in range(count):
        part = taken(net, x, index * wide, wide)
        ends.append(net.conv(net.conv(part, channels, kernel=(3, 3), same=True), channels))
    joined = ends[0]
    for end in ends[1:]:
        joined = net.concat([joined, end])
    return net.conv(joined, wide * count, activation=Activation.RELU)


def _split():
    net = NetBuilder(12, "split")
    x = net.conv(net.input((1, 16, 16, 3)), 24, kernel=(3, 3), same=True)
    x = _branches(net, x, 3, 8)
    x = net.pool(OpKind.MAX_POOL_2D, x, (2, 2), (2, 2))
    return net.graph([net.dense(net.mean(_branches(net, x, 2, 16)), 4)])


def _kept_long():
    """A narrow slice of a wide map that is read much later: a view would keep the whole map alive."""
    net = NetBuilder(13, "long")
    x = net.conv(net.input((1, 16, 16, 3)), 32)
    part = taken(net, x, 0, 2)
    y = net.conv(x, 4)
    for _ in range(3):
        y = net.conv(net.conv(y, 24, kernel=(3, 3), same=True), 4)
    return net.graph([net.concat([y, net.conv(part, 4)])])


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "split.tflite"
    path.write_bytes(write_model(_split()))
    return path


def _prepared(path: Path, board: str = "cortex-m4", **options):
    request = parse({"kind": "build", "model": str(path), "board": board, "options": options})
    target = load_target(choice(request.target), SESSION)
    return prepare(load_network(request.model, SESSION), target, request.options, SESSION)


def test_the_network_without_views_is_planned_where_a_copy_needs_less(tmp_path):
    path = tmp_path / "long.tflite"
    path.write_bytes(write_model(_kept_long()))
    prepared = _prepared(path, strategy="layerwise", objective="ram")
    (viewed, *_) = prepared.viewed
    alone = replace(prepared, graphs=(viewed,), varied=False)
    _, plan = choose.choose_plan(prepared)
    assert choose.choose_plan(alone)[1].arena_bytes > plan.arena_bytes
    slices = [p for p in views(viewed) if viewed.ops[p].kind is OpKind.VIEW]
    assert slices and not set(slices).intersection(plan.views)


@pytest.mark.slow
def test_one_weight_image_serves_plans_with_views_and_without(model):
    images = set()
    for options in ({"objective": "ram"}, {"objective": "cost"}, {"strategy": "msf-cnn"}):
        prepared = _prepared(
            model, order="given", **options
        )  # in one order, since a layout depends on the operators' positions
        graph, plan = choose.choose_plan(prepared)
        image = weight_image(graph, prepared.target.kernels_by_name(plan.kernels))
        images.add((image.data, image.layout))
        bare = without_views(graph)
        assert weight_image(bare, prepared.target.kernels_by_name(plan.kernels)).data == image.data
    assert len(images) == 1


def test_the_front_has_plans_with_views(model):
    prepared = _prepared(model)
    result = points(prepared, None)
    without = points(replace(prepared, varied=False), None)
    assert any(point.plan.views for point in result)
    assert all(point.plan.views == views(point.graph) for point in result)
    assert result[0].plan.arena_bytes <= without[0].plan.arena_bytes


@pytest.mark.slow
def test_a_plan_with_views_can_be_locked_and_built_again(model):
    request = {"model": str(model), "board": "cortex-m4", "options": {"objective": "ram"}}
    answer = handle({"kind": "plan", **request}, SESSION)
    assert answer["views"]
    given = {
        "plan": {"name": "net.plan", "data": answer["locked"]},
        "model": str(model),
        "board": "cortex-m4",
    }
    assert (
        handle({"kind": "emit", **given}, SESSION)["files"]
        == handle({"kind": "emit", **request}, SESSION)["files"]
    )
    assert handle({"kind": "plan", **given}, SESSION)["locked"] == answer["locked"]


@pytest.mark.slow
def test_a_refusal_names_the_least_that_would_do(model):
    prepared = _prepared(model, objective="ram")
    least = choose.choose_plan(prepared)[1].arena_bytes
    with pytest.raises(choose.PlanError) as caught:
        choose.choose_plan(_prepared(model, ram=least - 16))
    (ram,) = {value for hint in caught.value.hints for name, value in hint.settings if name == "ram"}
    assert ram == least
    assert choose.choose_plan(_prepared(model, ram=least))[1].arena_bytes == least


def test_a_streamed_image_of_which_several_read_a_part_is_sliced(tmp_path):
    net = NetBuilder(14, "image")
    x = net.input((1, 16, 16, 4))
    y = net.conv(taken(net, x, 0, 2), 4, kernel=(3, 3), same=True)
    path = tmp_path / "image.tflite"
    path.write_bytes(write_model(net.graph([net.conv(y, 4, kernel=(3, 3), same=True)])))
    (graph,) = _prepared(path, image="stream").viewed
    assert views(graph) == (0,)  # its only reader may read the input image as it arrives
    part = taken(net, x, 2, 2)
    both = net.elementwise(OpKind.ADD, net.conv(part, 4), net.unary(OpKind.RELU, net.conv(part, 4)))
    path.write_bytes(write_model(net.graph([both])))
    assert _prepared(path, image="stream").viewed == ()
    assert len(_prepared(path).viewed) == 1
