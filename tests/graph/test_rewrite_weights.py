"""Other weights, same bytes: negative scales, depthwise convolutions of one channel, taps without effect."""

import dataclasses

import ckernels
import litert
import numpy as np
import pytest
from graphs import inputs_for, one_operator_graphs, patterns, seeds
from hypothesis import given, settings
from hypothesis import strategies as st

from buildtool.base.errors import UnsupportedError
from buildtool.emit.packing import pack
from buildtool.graph.rewrite import rewrite
from buildtool.graph.types import Activation, ConvAttrs, DepthwiseAttrs, OpKind, Pad
from buildtool.zoo.drawn import NetBuilder

KINDS = [OpKind.CONV_2D, OpKind.DEPTHWISE_CONV_2D, OpKind.TRANSPOSE_CONV, OpKind.FULLY_CONNECTED]
_quick = settings(derandomize=True, deadline=None, max_examples=25)


def negative_channels(graph, every=2):
    """Returns the graph with a negative scale for every n-th channel of the weights and the bias."""
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
def test_negated_channels_equal_litert(kind):
    @_quick
    @given(graph=one_operator_graphs(kind).filter(_is_per_channel), seed=seeds)
    def check(graph, seed):
        graph = negative_channels(graph)
        inputs = inputs_for(graph, seed)
        litert.check(graph, inputs)
        after = litert.rewritten(graph, inputs)
        weights = next(after.tensors[op.inputs[1]] for op in after.ops if op.kind in KINDS)
        channels = np.moveaxis(weights.data, weights.quant.axis, 0)
        for scale, values in zip(weights.quant.scales, channels, strict=True):
            assert scale >= 0 or (values == -128).any()

    check()


def _with_least_weight(kind):
    net = NetBuilder(5)
    x = net.input((1, 4, 4, 3))
    dense = kind is OpKind.FULLY_CONNECTED
    y = net.dense(net.flatten(x), 4, per_channel=True) if dense else net.conv(x, 4, kernel=(2, 2))
    op = net.ops[-1]
    graph = negative_channels(dataclasses.replace(net.graph([y]), ops=(op,), inputs=op.inputs[:1]), every=1)
    weights = graph.ops[0].inputs[1]
    data = graph.tensors[weights].data.copy()
    data.reshape(4, -1)[1, 3] = -128
    tensors = [dataclasses.replace(t, data=data) if i == weights else t for i, t in enumerate(graph.tensors)]
    return dataclasses.replace(graph, tensors=tuple(tensors))


def test_a_weight_without_opposite_keeps_its_channel_negative():
    graph = _with_least_weight(OpKind.CONV_2D)
    after = rewrite(graph)
    quant = after.tensors[after.ops[0].inputs[1]].quant
    assert [scale < 0 for scale in quant.scales] == [False, True, False, False]
    litert.rewritten(graph, inputs_for(graph, 1))


def test_a_dense_layer_with_a_negative_channel_is_refused():
    after = rewrite(_with_least_weight(OpKind.FULLY_CONNECTED))
    with pytest.raises(UnsupportedError, match="negative scale"):
        pack(after, after.ops[0], ckernels.catalogue()[OpKind.FULLY_CONNECTED])


@st.composite
def one_channel(draw):
    """Draws a DEPTHWISE_CONV_2D of a one-channel input with a depth multiplier above 1."""
    net = NetBuilder(draw(seeds))
    kernel = draw(st.tuples(st.integers(1, 4), st.integers(1, 4)))
    stride, dilation = draw(st.sampled_from([((1, 1), (1, 1)), ((2, 2), (1, 1)), ((1, 1), (2, 1))]))
    extent = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
    pads = [draw(st.integers(0, extent[i // 2] - 1)) for i in range(4)]
    height, width = (draw(st.integers(e, e + 6)) for e in extent)
    y = net.conv(
        net.input((draw(st.sampled_from([1, 1, 2])), height, width, 1)),
        0,
        kernel=kernel,
        stride=stride,
        dilation=dilation,
        pad=Pad(*pads),
        depth_multiplier=draw(st.integers(2, 9)),
        activation=draw(st.sampled_from(list(Activation))),
        per_channel=draw(st.booleans()),
        bias=draw(st.booleans()),
    )
    return net.graph([y])


@settings(derandomize=True, deadline=None, max_examples=30)
@given(graph=one_channel(), seed=seeds, pattern=patterns)
def test_a_convolution_of_one_channel_equals_litert(graph, seed, pattern):
    inputs = inputs_for(graph, seed, pattern)
    after = litert.rewritten(graph, inputs)
    (op,) = after.ops
    assert op.kind is OpKind.CONV_2D
    assert type(op.attrs) is ConvAttrs
    litert.check(after, inputs)  # the rewritten network equals LiteRT, too


def network(seed, channels, depth_multiplier=0):
    """Returns one convolution of a one-channel image. It is depthwise if there is a depth multiplier."""
    net = NetBuilder(seed)
    x = net.input((1, 7, 9, 1))
    return net.graph([net.conv(x, channels, kernel=(3, 2), same=True, depth_multiplier=depth_multiplier)])


def test_other_depthwise_convolutions_stay():
    net = NetBuilder(1)
    x = net.input((1, 6, 6, 2))
    two = net.conv(x, 0, kernel=(3, 3), depth_multiplier=3)
    assert isinstance(rewrite(net.graph([two])).ops[0].attrs, DepthwiseAttrs)
    assert isinstance(rewrite(network(1, 0, depth_multiplier=1)).ops[0].attrs, DepthwiseAttrs)


# ---- taps that meet nothing but padding ---------------------------------------------------------------

UNMET = {  # image, kernel, stride, dilation, padding: the kernel that is left
    "one column": ((9, 1), (3, 3), (1, 1), (1, 1), Pad(1, 1, 1, 1), (3, 1)),
    "a wide kernel": ((3, 3), (7, 7), (1, 1), (1, 1), Pad(3, 3, 3, 3), (5, 5)),
    "an even kernel": ((2, 2), (4, 4), (1, 1), (1, 1), Pad(1, 2, 1, 2), (3, 3)),
    "a stride over the image": ((1, 8), (3, 3), (2, 2), (1, 1), Pad(1, 2, 0, 1), (1, 3)),
    "dilation": ((4, 3), (3, 3), (1, 1), (4, 2), Pad(4, 4, 2, 2), (1, 3)),
    "all taps are met": ((4, 4), (3, 3), (2, 2), (1, 1), Pad(0, 1, 0, 1), (3, 3)),
    "no tap is met": ((1, 4), (2, 1), (4, 1), (3, 1), Pad(2, 4, 0, 0), (2, 1)),
}


@pytest.mark.parametrize("multiplier", [0, 2])
@pytest.mark.parametrize("case", UNMET)
def test_taps_that_meet_only_padding_are_dropped(case, multiplier):
    image, kernel, stride, dilation, pad, left = UNMET[case]
    net = NetBuilder(3)
    more = {"depth_multiplier": multiplier, "pad": pad, "stride": stride, "dilation": dilation}
    graph = net.graph([net.conv(net.input((1, *image, 3)), 4, kernel=kernel, **more)])
    for seed in range(3):
        after = litert.rewritten(graph, inputs_for(graph, seed))
        assert after.tensors[after.ops[0].inputs[1]].shape[1:3] == left
