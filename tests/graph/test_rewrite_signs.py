"""Channels of negative scale: turned where they can be, and no byte changes."""

import dataclasses

import ckernels
import litert
import numpy as np
import pytest
from graphs import inputs_for, one_operator_graphs, seeds
from hypothesis import given, settings

from buildtool.base.errors import UnsupportedError
from buildtool.emit.packing import pack
from buildtool.graph.rewrite import rewrite
from buildtool.graph.types import OpKind
from buildtool.zoo.drawn import NetBuilder

KINDS = [OpKind.CONV_2D, OpKind.DEPTHWISE_CONV_2D, OpKind.TRANSPOSE_CONV, OpKind.FULLY_CONNECTED]
_quick = settings(derandomize=True, deadline=None, max_examples=25)


def negative_channels(graph, every=2):
    """The graph with every n-th channel's scale negative, bias and all."""
    op = graph.ops[0]
    tensors = list(graph.tensors)
    for t in (op.inputs[1], op.inputs[2]):
        if t >= 0:
            quant = tensors[t].quant
            scales = tuple(-s if i % every == 0 else s for i, s in enumerate(quant.scales))
            tensors[t] = dataclasses.replace(tensors[t], quant=dataclasses.replace(quant, scales=scales))
    return dataclasses.replace(graph, tensors=tuple(tensors))


def _is_per_channel(graph):
    return len(graph.tensors[graph.ops[0].inputs[1]].quant.scales) > 1


@pytest.mark.parametrize("kind", KINDS)
def test_the_results_are_those_of_litert(kind):
    @_quick
    @given(graph=one_operator_graphs(kind).filter(_is_per_channel), seed=seeds)
    def check(graph, seed):
        graph = negative_channels(graph)
        inputs = inputs_for(graph, seed)
        litert.check(graph, inputs)
        turned = litert.rewritten(graph, inputs)
        weights = next(turned.tensors[op.inputs[1]] for op in turned.ops if op.kind in KINDS)
        channels = np.moveaxis(weights.data, weights.quant.axis, 0)
        for scale, values in zip(weights.quant.scales, channels, strict=True):
            assert scale >= 0 or (values == -128).any()

    check()


def _with_least_weight(kind):
    net = NetBuilder(5)
    x = net.input((1, 4, 4, 3))
    if kind is OpKind.FULLY_CONNECTED:
        y = net.dense(net.flatten(x), 4, per_channel=True)
    else:
        y = net.conv(x, 4, kernel=(2, 2))
    graph = negative_channels(
        dataclasses.replace(net.graph([y]), ops=(net.ops[-1],), inputs=(net.ops[-1].inputs[0],)), every=1
    )
    weights = graph.ops[0].inputs[1]
    data = graph.tensors[weights].data.copy()
    data.reshape(4, -1)[1, 3] = -128
    tensors = [dataclasses.replace(t, data=data) if i == weights else t for i, t in enumerate(graph.tensors)]
    return dataclasses.replace(graph, tensors=tuple(tensors))


def test_a_weight_without_opposite_keeps_its_channel_negative():
    graph = _with_least_weight(OpKind.CONV_2D)
    turned = rewrite(graph)
    quant = turned.tensors[turned.ops[0].inputs[1]].quant
    assert [scale < 0 for scale in quant.scales] == [False, True, False, False]
    litert.rewritten(graph, inputs_for(graph, 1))


def test_a_dense_layer_with_such_a_channel_is_refused():
    turned = rewrite(_with_least_weight(OpKind.FULLY_CONNECTED))
    with pytest.raises(UnsupportedError, match="negative scale"):
        pack(turned, turned.ops[0], ckernels.catalogue()[OpKind.FULLY_CONNECTED])
