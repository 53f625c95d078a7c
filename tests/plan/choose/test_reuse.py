"""What an edited network finds of the one before it: the tables of blocks that the edit has no part in."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from buildtool import zoo
from buildtool.api import handle
from buildtool.base.modes import Image, Objective
from buildtool.base.session import Session
from buildtool.base.store.cache import Cache
from buildtool.graph.rewrite import rewrite
from buildtool.graph.tflite.reader import read_model
from buildtool.graph.tflite.writer import write_model
from buildtool.graph.types import Graph, OpKind, Quantization, Tensor
from buildtool.options.values import PlanOptions
from buildtool.plan.choose.choose import make_plan
from buildtool.target.registry import load_target
from buildtool.zoo.drawn import NetBuilder


def _longer(tensor: Tensor, axis: int, size: int) -> Tensor:
    """The tensor with another number of channels; values and scales are repeated."""
    shape = tuple(size if a == axis else n for a, n in enumerate(tensor.shape))
    data, quant = tensor.data, tensor.quant
    if data is not None:
        data = np.take(data, np.arange(size) % tensor.shape[axis], axis)
    if quant is not None and len(quant.scales) > 1 and quant.axis == axis:
        scales = tuple(quant.scales[i % len(quant.scales)] for i in range(size))
        quant = Quantization(scales, (0,) * size, axis)
    return replace(tensor, shape=shape, data=data, quant=quant)


def widened(graph: Graph, which: int) -> Graph:
    """The network whose `which`-th expanded block has 8 channels more inside."""
    readers = {t: op for op in graph.ops for t in op.inputs[:1]}
    found = [
        (op, depthwise, readers[depthwise.outputs[0]])
        for op in graph.ops
        if op.kind is OpKind.CONV_2D
        and (depthwise := readers.get(op.outputs[0])) is not None
        and depthwise.kind is OpKind.DEPTHWISE_CONV_2D
    ]
    first, depthwise, last = found[which]
    size = graph.tensors[first.outputs[0]].shape[3] + 8
    axes = {first.inputs[1]: 0, first.inputs[2]: 0, first.outputs[0]: 3, depthwise.inputs[1]: 3}
    axes |= {depthwise.inputs[2]: 0, depthwise.outputs[0]: 3, last.inputs[1]: 3}
    tensors = list(graph.tensors)
    for index, axis in axes.items():
        tensors[index] = _longer(tensors[index], axis, size)
    return replace(graph, tensors=tuple(tensors))


def branched(split: bool) -> bytes:
    """Two blocks of two convolutions and a pooling; the first in two branches, or both."""
    net = NetBuilder(0)
    x = net.input((1, 8, 8, 3))
    for block in range(2):
        branches = 2 if block == 0 or split else 1
        ends = net.split(x, branches) if block and split else (x,) * branches
        made = []
        for end in ends:
            y = net.conv(end, 4 // branches, kernel=(3, 3), same=True)
            y = net.conv(y, 4 // branches, kernel=(3, 3), same=True)
            made.append(net.pool(OpKind.MAX_POOL_2D, y, (2, 2), (2, 2), False))
        x = net.conv(net.concat(made), 4) if len(made) > 1 else made[0]
    return write_model(net.graph([net.dense(net.flatten(x), 2)]))


def test_the_front_of_a_network_is_the_same_whatever_another_one_left_in_the_cache(tmp_path: Path) -> None:
    def points(data: bytes, session: Session) -> list[object]:
        request = {"kind": "front", "model": {"name": "net.tflite", "data": data}, "board": "cortex-m4"}
        found: list[object] = handle(request, session)["points"]
        return found

    first = Cache(tmp_path / "cache", "code")
    points(branched(False), Session(keeper=first))
    first.flush()
    warm = points(branched(True), Session(keeper=Cache(tmp_path / "cache", "code")))
    assert warm == points(branched(True), Session())


@pytest.mark.slow
def test_a_layer_with_other_channels_needs_new_tables_of_its_own_chains_alone(tmp_path: Path) -> None:
    model = zoo.build("mobilenetv2:size=160")
    other = write_model(widened(read_model(model), 9))

    def planned(data: bytes, session: Session) -> bytes:
        request = {
            "kind": "plan",
            "model": {"name": "net.tflite", "data": data},
            "board": "cortex-m4",
            "options": {"ram": 150_000},
        }
        plan: bytes = handle(request, session)["plan"]
        return plan

    cache = Cache(tmp_path / "cache", "code")
    planned(model, Session(keeper=cache))
    first = cache.counts()["tables"]
    cache.flush()
    warm = planned(other, Session(keeper=cache))  # a session of its own: what is reused was kept
    second = cache.counts()["tables"]
    assert first["misses"] >= 90
    assert second["hits"] >= 0.8 * (second["hits"] + second["misses"])
    assert 0 < second["misses"] <= 14
    assert warm == planned(other, Session())


def test_a_way_of_an_earlier_search_does_not_stand_for_one_of_the_same_bytes_and_work() -> None:
    """Ways are values: which of two equal ones a session has met first must not decide how it is planned."""
    graph = rewrite(read_model(zoo.build("mcunet_vww5")))
    target = load_target("cortex-m4")
    asked = PlanOptions(image=Image.STREAM, objective=Objective.RAM, max_f=1.09)
    session = Session()
    make_plan(graph, target, replace(asked, max_f=1.48), session, every_kind=True)
    again = make_plan(graph, target, asked, session, every_kind=True)
    assert again == make_plan(graph, target, asked, Session(), every_kind=True)
