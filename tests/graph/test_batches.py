"""A network of a batch whose image comes row by row runs once per image, with the bits of the batch."""

import numpy as np
import pytest
from boardruns import file_of, validated
from graphs import inputs_for
from litert import run

from buildtool.api import handle
from buildtool.base.errors import PlanError, UsageError
from buildtool.fronts.cli.main import run as command
from buildtool.graph import types as g
from buildtool.graph.batches import one_image
from buildtool.graph.reference import execute
from buildtool.graph.tflite.batches import single_image
from buildtool.graph.tflite.reader import read_model
from buildtool.graph.tflite.writer import write_model
from buildtool.graph.types import OpKind
from buildtool.zoo.drawn import NetBuilder

STREAM = {"objective": "ram", "image": "stream"}


def network(batch=3):
    """A residual block, PAD, pooling, slice, concatenation, dense layer and softmax, and a mean."""
    net = NetBuilder(4)
    x = net.conv(net.input((batch, 14, 11, 3)), 8, kernel=(3, 3), stride=(2, 2), same=True)
    y = net.elementwise(OpKind.ADD, x, net.conv(x, 8, kernel=(3, 3), same=True))
    y = net.elementwise(OpKind.MUL, y, net.constant((1, 1, 1, 8)))
    y = net.pool(OpKind.MAX_POOL_2D, net.pad(y, ((0, 0), (1, 1), (1, 1), (0, 0))), (3, 3), (2, 2))
    part = g.SliceAttrs((0, 1, 0, 0), (1, 1, 1, 1), (batch, 2, 3, 8))
    y = net.op(OpKind.SLICE, (y,), part, net.tensors[y].quant, shape=part.extent)
    y = net.concat([y, y])
    return net.graph([net.softmax(net.dense(net.flatten(y), 5)), net.mean(y)])


def test_each_image_has_the_bits_that_litert_computes_in_the_batch():
    batch = network()
    (images,), data = inputs_for(batch, 3), write_model(batch)
    single = read_model(single_image(data))
    of_batch = read_model(data)
    together = run(data, [images])[of_batch.tensors[of_batch.outputs[0]].source.index]
    for image, expected in zip(images, together, strict=True):
        values = execute(single, [image[None]])
        np.testing.assert_array_equal(values[single.outputs[0]], expected[None], strict=True)
    assert len(np.unique(together, axis=0)) == 3


@pytest.mark.slow
def test_a_streamed_batch_runs_once_per_image(tmp_path):
    file = file_of(network(), tmp_path)
    answer, alone = (
        validated(file, "host", STREAM),
        validated(file_of(network(1), tmp_path, "one"), "host", STREAM),
    )
    assert answer["arena_bytes"] == alone["arena_bytes"]
    whole = handle({"kind": "plan", "model": file, "board": "host", "options": {"objective": "ram"}})
    assert answer["arena_bytes"] < whole["arena_bytes"] / 3


def test_a_locked_plan_of_a_streamed_batch_needs_no_option(tmp_path):
    file, plan = file_of(network(), tmp_path), tmp_path / "net.plan.json"
    assert command(["plan", file, "--board", "host", "--image", "stream", "--out", str(plan)]) == 0
    request = {"kind": "emit", "model": file, "board": "host", "plan": str(plan)}
    assert b"#define NET_INPUT0_SHAPE {1, 14, 11, 3}" in handle(request)["files"]["net.h"]


def test_the_hint_to_stream_one_image_of_a_batch(tmp_path):
    request = {"kind": "plan", "model": file_of(network(), tmp_path), "board": "host"}
    with pytest.raises(PlanError) as refused:
        handle({**request, "options": {"ram": 500}})
    (hint,) = (hint for hint in refused.value.hints if hint.settings == (("image", "stream"),))
    answer = handle({**request, "options": {"ram": 500, **dict(hint.settings)}})
    assert hint.text == f"{answer['arena_bytes']:,} bytes for one image of the batch"


def mixed(mix):
    net = NetBuilder(1)
    x = net.conv(net.input((2, 6, 6, 2)), 2)
    return net.graph([mix(net, x)])


MIXES = {
    "a mean over the batch": lambda net, x: net.mean(x, (0,), True),
    "a constant for each image": lambda net, x: net.elementwise(OpKind.ADD, x, net.constant((2, 6, 6, 2))),
    "images side by side": lambda net, x: net.concat([x, x], 0),
    "images as channels": lambda net, x: net.op(
        OpKind.TRANSPOSE, (x,), g.TransposeAttrs((3, 1, 2, 0)), net.tensors[x].quant, shape=(2, 6, 6, 2)
    ),
    "a reshape across images": lambda net, x: net.op(
        OpKind.RESHAPE, (x,), g.Attrs(), net.tensors[x].quant, shape=(1, 12, 6, 2)
    ),
}


@pytest.mark.parametrize("mix", MIXES)
def test_images_that_mix_stay_together(mix, tmp_path):
    graph = mixed(MIXES[mix])
    assert one_image(graph) is None
    assert single_image(write_model(graph)) == write_model(graph)
    request = {"kind": "plan", "model": file_of(graph, tmp_path), "board": "host", "options": STREAM}
    with pytest.raises(UsageError, match="not as one image"):
        handle(request)
