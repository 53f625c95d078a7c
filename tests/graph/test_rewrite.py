"""Rewrites do not change any byte of the remaining results, and remove the operators that they should."""

from collections import Counter
from dataclasses import replace

import litert
import numpy as np
import pytest
from hypothesis import given, settings
from needs import needs_shared
from randomnets import networks

from buildtool.base.errors import UnsupportedError
from buildtool.graph import types as g
from buildtool.graph.consistency import check_graph
from buildtool.graph.reference import execute
from buildtool.graph.rewrite import rewrite
from buildtool.graph.tflite.reader import read_model
from buildtool.graph.tflite.writer import write_model
from buildtool.graph.types import Activation, DType, Graph, OpKind, Pad
from buildtool.zoo.drawn import NetBuilder, quant


def shared_model(name: str) -> Graph:
    return read_model(needs_shared(f"models/{name}.tflite").read_bytes())


def kinds(graph: Graph) -> Counter[str]:
    return Counter(op.kind.value for op in graph.ops)


def as_float(graph: Graph, t: int, value: np.ndarray) -> np.ndarray:
    """Returns the float32 numbers that quantise to the int8 `value`."""
    quant = graph.tensors[t].quant
    assert quant is not None
    return ((value.astype(np.float32) - quant.zero_point) * np.float32(quant.scale)).astype(np.float32)


def assert_same_results(before: Graph, after: Graph, seed: int = 0) -> int:
    """Runs both graphs, compares every tensor of `after` that comes from the file; returns their number."""
    check_graph(after)
    assert (len(after.inputs), len(after.outputs)) == (len(before.inputs), len(before.outputs))
    rng = np.random.default_rng(seed)
    new_inputs, old_inputs = [], []
    for a, b in zip(before.inputs, after.inputs, strict=True):
        shape = after.tensors[b].shape
        new_inputs.append(rng.integers(0, 256, shape).astype(np.uint8).view(after.tensors[b].dtype.value))
        float_edge = before.tensors[a].dtype == DType.FLOAT32
        old = as_float(after, b, new_inputs[-1]) if float_edge else new_inputs[-1]
        source = after.tensors[b].source
        if source is not None and source.perm:  # a TRANSPOSE at the input has been removed
            old = old.transpose(np.argsort(source.perm))
        old_inputs.append(old.reshape(before.tensors[a].shape))
    old, new = execute(before, old_inputs), execute(after, new_inputs)
    by_source = {before.tensors[t].source.index: v for t, v in old.items() if before.tensors[t].source}
    compared = 0
    for t, value in new.items():
        source = after.tensors[t].source
        if source is not None:
            expected = by_source[source.index]
            if source.perm:
                expected = expected.transpose(source.perm)
            if t in after.inputs:  # a RESHAPE may have been removed
                expected = expected.reshape(value.shape)
            assert value.shape == expected.shape
            assert np.array_equal(value, expected), after.tensors[t].name
            compared += 1
    for a, b in zip(before.outputs, after.outputs, strict=True):
        ours = new[b] if before.tensors[a].dtype != DType.FLOAT32 else as_float(after, b, new[b])
        assert np.array_equal(ours.reshape(-1), old[a].reshape(-1))
    return compared


def rewritten(graph: Graph) -> Graph:
    """Returns the network as it is read and rewritten, and checks that it has the same results."""
    before = read_model(write_model(graph))
    after = rewrite(before)
    assert_same_results(before, after)
    return after


@pytest.mark.slow
@settings(derandomize=True, deadline=None, max_examples=100)
@given(networks())
def test_random_networks_keep_every_byte(graph: Graph) -> None:
    after = rewritten(graph)
    again = rewrite(after)
    assert [(op.kind, op.attrs) for op in again.ops] == [(op.kind, op.attrs) for op in after.ops]


@pytest.mark.parametrize(
    ("name", "operators", "removed"),
    [
        ("mobilenetv2_160", 65, {"PAD"}),
        ("mbv2_w035_144_random", 65, {"PAD"}),
        ("mcunet_320k_imagenet", 68, {"PAD"}),
        ("mcunet_vww5", 56, {"PAD", "TRANSPOSE", "QUANTIZE", "DEQUANTIZE"}),
        ("mlperf_resnet8", 16, set()),
        ("mlperf_kws", 13, set()),
        ("mlperf_ad", 10, set()),
        ("mlperf_vww96", 31, set()),
    ],
)
def test_trained_networks_shrink_and_keep_every_byte(name: str, operators: int, removed: set[str]) -> None:
    before = shared_model(name)
    after = rewrite(before)
    assert len(after.ops) == operators
    assert not removed & kinds(after).keys()
    assert assert_same_results(before, after) == len(list(after.activations()))


# ---- float edges ------------------------------------------------------------------------------------


def float_edges(*quants: g.Quantization, outputs: int = 1) -> Graph:
    net = NetBuilder(1)
    x = net.input((1, 4), DType.FLOAT32)
    y, *rest = (net.unary(OpKind.HARD_SWISH, net.op(OpKind.QUANTIZE, (x,), quant=one)) for one in quants)
    for other in rest:
        y = net.elementwise(OpKind.ADD, y, other)
    return net.graph([net.dequantize(y) for _ in range(outputs)])


def test_an_input_is_quantised_once_and_in_one_way_and_outputs_stay_two() -> None:
    after = rewritten(float_edges(quant(0.5, 3), quant(0.5, 3)))
    assert kinds(after) == {"LOOKUP": 1} and len(after.inputs) == 1  # it is a function of one tensor
    in_two_ways = rewrite(float_edges(quant(0.5, 3), quant(0.25, 3)))
    assert in_two_ways.tensors[in_two_ways.inputs[0]].dtype == "float32"  # firmware quantises it, twice
    assert kinds(in_two_ways)["QUANTIZE"] == 2
    assert len(rewritten(float_edges(quant(0.5, 3), outputs=2)).outputs) == 2


def test_a_float_round_trip_inside_with_equal_quantisation_vanishes() -> None:
    net = NetBuilder(2)
    y = net.unary(OpKind.HARD_SWISH, net.input((1, 256)))
    again = net.op(OpKind.QUANTIZE, (net.dequantize(y),), quant=net.tensors[y].quant)
    image = np.arange(-128, 128, dtype=np.int8).reshape(1, 256)
    after = litert.rewritten(net.graph([net.unary(OpKind.HARD_SWISH, again)]), [image])
    assert kinds(after) == {"LOOKUP": 1}  # both are one function


# ---- what an operator or some become ---------------------------------------------------------------


def padded(*paddings, shape=(1, 6, 7, 2), value=None, requantised=None, readers=1, also=False):
    """PADs of an image, which are read by convolutions, and maybe by another operator."""

    def build(net):
        x = net.input(shape)
        for sizes in paddings:
            q = net.tensors[x].quant
            attrs = g.PadAttrs(sizes, value=q.zero_point if value is None else value)
            x = net.op(OpKind.PAD, (x,), attrs, requantised or q)
        outputs = [net.conv(x, 4, kernel=(3, 3), stride=(2, 1)) for _ in range(readers)]
        return [*outputs, *([net.unary(OpKind.HARD_SWISH, x)] if also else []), *([x] if not readers else [])]

    return build


def moved(shape, *perms, then=lambda net, x: x):
    """TRANSPOSEs of the input."""

    def build(net):
        x = net.input(shape)
        for perm in perms:
            x = net.move(OpKind.TRANSPOSE, x, attrs=g.TransposeAttrs(perm))
        return [then(net, x)]

    return build


def causal(net):
    """A one-dimensional convolution as Keras exports it."""
    x = net.pad(net.input((1, 9, 2)), ((0, 0), (4, 0), (0, 0)))
    y = net.conv(net.move(OpKind.EXPAND_DIMS, x, (1, 1, 13, 2)), 3, kernel=(1, 3), dilation=(1, 2))
    return [net.move(OpKind.SQUEEZE, y, (1, 9, 3))]


def nothing(net):
    """Operators that do nothing, between two functions."""
    x = net.unary(OpKind.HARD_SWISH, net.input((2, 3, 4)))
    x = net.move(OpKind.RESHAPE, x, (2, 3, 4))
    x = net.op(OpKind.QUANTIZE, (x,), quant=net.tensors[x].quant)
    x = net.move(OpKind.SLICE, x, attrs=g.SliceAttrs((0,) * 3, (1,) * 3, (2, 3, 4)))
    (x,) = net.split(net.concat([x], 1), 1, 0)
    return [net.unary(OpKind.HARD_SWISH, net.move(OpKind.TRANSPOSE, x, attrs=g.TransposeAttrs((0, 1, 2))))]


def of_constants(net):
    c = net.move(OpKind.TRANSPOSE, net.constant((4, 3)), attrs=g.TransposeAttrs((1, 0)))
    c = net.move(OpKind.RESHAPE, net.elementwise(OpKind.ADD, c, c), (1, 3, 4))
    return [net.elementwise(OpKind.ADD, net.input((1, 3, 4)), c)]


ALL_ROUND = ((0, 0), (1, 1), (1, 1), (0, 0))
BECOMES = {  # name -> (what adds the outputs, the operators as (kind, pads or attributes or nothing))
    "an asymmetric pad is the convolution's": (
        padded(((0, 0), (1, 0), (0, 3), (0, 0))), [("CONV_2D", Pad(1, 0, 0, 3))],
    ),
    "a pad is that of every convolution": (
        padded(((0, 0), (1, 0), (0, 3), (0, 0)), readers=3), [("CONV_2D", Pad(1, 0, 0, 3))] * 3,
    ),
    "a pad that requantises stays": (padded(ALL_ROUND, requantised=quant(0.7)), ["PAD", "CONV_2D"]),
    "a pad of another value stays": (padded(ALL_ROUND, value=99), ["PAD", "CONV_2D"]),
    "a pad of channels stays": (padded(((0, 0), (1, 1), (1, 1), (0, 1))), ["PAD", "CONV_2D"]),
    "a pad of the batch stays": (padded(((1, 0), (1, 1), (1, 1), (0, 0))), ["PAD", "CONV_2D"]),
    "a pad that others read stays": (padded(ALL_ROUND, also=True), ["PAD", "CONV_2D", "HARD_SWISH"]),
    "pads in a row are one": (
        padded(((0, 0), (1, 0), (0, 2), (0, 0)), ((0, 0),) * 4, ((0, 0), (0, 1), (1, 0), (0, 1)), readers=0),
        [("PAD", ((0, 0), (1, 1), (1, 2), (0, 1)))],
    ),
    "a pad moves through EXPAND_DIMS": (causal, ["RESHAPE", ("CONV_2D", Pad(0, 0, 4, 0)), "SQUEEZE"]),
    "a transpose that moves only ones is a reshape": (moved((1, 4, 1, 3), (2, 1, 3, 0)), ["RESHAPE"]),
    "transposes in a row are one": (
        moved((1, 4, 2, 3), (0, 3, 1, 2), (0, 3, 1, 2)), [("TRANSPOSE", (0, 2, 3, 1))],
    ),
    "inverse transposes cancel": (
        moved((1, 4, 2, 3), (0, 3, 1, 2), (0, 2, 3, 1), then=lambda net, x: net.unary(OpKind.RELU, x)),
        ["RELU"],
    ),
    "operators that do nothing vanish": (nothing, ["LOOKUP"]),
    "operators on constants are computed": (of_constants, ["ADD"]),
}  # fmt: skip


@pytest.mark.parametrize("name", BECOMES)
def test_a_network_becomes_one_of_these_operators(name: str) -> None:
    build, expected = BECOMES[name]
    net = NetBuilder(3)
    after = rewritten(net.graph(build(net)))
    assert [str(op.kind) for op in after.ops] == [one if isinstance(one, str) else one[0] for one in expected]
    for op, one in zip(after.ops, expected, strict=True):
        values = (getattr(op.attrs, field, None) for field in ("pad", "paddings", "perm"))
        assert isinstance(one, str) or one[1] in values


def test_a_transpose_vanishes_behind_means_over_its_moved_axes() -> None:
    net = NetBuilder(3)
    means = moved((1, 3, 4, 5), (0, 3, 1, 2), then=lambda net, x: net.mean(net.mean(x, (3,)), (2,)))
    before = read_model(write_model(net.graph(means(net))))
    after = rewrite(before)
    assert [op.attrs for op in after.ops] == [g.MeanAttrs((2,)), g.MeanAttrs((1,))]
    first = after.tensors[after.ops[0].outputs[0]]
    index = before.tensors[before.ops[1].outputs[0]].source.index
    assert (first.shape, first.source) == ((1, 3, 5), g.Source(index, (0, 2, 1)))
    assert assert_same_results(before, after) == 3


@pytest.mark.parametrize("kind", [OpKind.RELU, OpKind.RELU6, OpKind.RELU_N1_TO_1])
@pytest.mark.parametrize("case", ["clamps", "requantises", "read twice", "an output"])
def test_an_activation_of_its_own_is_fused_where_it_only_clamps(case: str, kind: OpKind) -> None:
    net = NetBuilder(4)
    a = net.conv(net.input((1, 4, 4, 2)), 3)
    same = net.tensors[a] = replace(net.tensors[a], quant=quant(0.06, -20))
    b = net.op(kind, (a,), quant=quant(0.03, -128) if case == "requantises" else same.quant)
    others = {"an output": lambda: [a], "read twice": lambda: [net.unary(OpKind.HARD_SWISH, a)]}
    after = rewritten(net.graph([b, *others.get(case, list)()]))
    if case == "clamps":
        assert kinds(after) == {"CONV_2D": 1}
        assert after.ops[0].attrs.activation == Activation(kind)
    else:
        assert kinds(after)[kind] == 1


def _of_a_constant(net):
    x = net.input((1, 4))
    return [net.unary(OpKind.HARD_SWISH, one) for one in (x, net.constant((1, 4)))]


def _beside_floats(net):
    net.input((1, 4), DType.FLOAT32)
    return [net.unary(OpKind.HARD_SWISH, net.input((1, 4)))]


@pytest.mark.parametrize(
    ("build", "text"),
    [
        (_of_a_constant, "does not depend on the input"),
        (_beside_floats, "no operator reads a float32 network input"),
    ],
)
def test_inputs_and_outputs_that_are_of_no_use_are_refused(build, text) -> None:
    net = NetBuilder(5)
    with pytest.raises(UnsupportedError, match=text):
        rewrite(read_model(write_model(net.graph(build(net)))))


def test_a_tensor_of_a_rewrite_has_its_source_in_the_file():
    """A product with a constant becomes a convolution between two RESHAPEs; one of them changes nothing."""
    convolutions = 0
    for seed in range(60):
        net = NetBuilder(seed)
        product = net.matmul(net.input((1, 1, 4)), net.constant((1, 1, 9, 4)), False, True)
        graph = rewrite(read_model(write_model(net.graph([product]))))
        convolutions += any(op.kind is OpKind.CONV_2D for op in graph.ops)
        assert graph.tensors[graph.outputs[0]].source is not None
    assert convolutions > 5
