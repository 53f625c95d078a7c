"""Rewrites do not change any byte of the remaining results, and remove the operators that they should."""

from collections import Counter

import numpy as np
import pytest
from flatfiles import FileTensor, constant
from hypothesis import given, settings
from litert import run
from needs import needs_shared
from randomnets import Net, networks
from samplefiles import Sheet

from buildtool.base.errors import UnsupportedError
from buildtool.graph import types as g
from buildtool.graph.consistency import check_graph
from buildtool.graph.reference import execute
from buildtool.graph.rewrite import rewrite
from buildtool.graph.tflite.reader import read_model
from buildtool.graph.tflite.writer import write_model
from buildtool.graph.types import Activation, DType, Graph, OpKind, Pad
from buildtool.zoo.drawn import NetBuilder


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


def rewritten(model: bytes | Graph) -> Graph:
    """Returns the rewritten network and checks that it has the same results."""
    before = read_model(model) if isinstance(model, bytes) else model
    after = rewrite(before)
    assert_same_results(before, after)
    return after


@pytest.mark.slow
@settings(derandomize=True, deadline=None, max_examples=100)
@given(networks())
def test_random_networks_keep_every_byte(data: bytes) -> None:
    before = read_model(data)
    after = rewrite(before)
    assert_same_results(before, after)
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


def float_edges(*, quants=((0.5, 3),), outputs: int = 1) -> bytes:
    s = Sheet()
    x = s.add(FileTensor((1, 4), "float32", scale=None))
    qs = [s.apply("QUANTIZE", [x], (1, 4), scale=scale, zero=zero) for scale, zero in quants]
    ys = [s.apply("HARD_SWISH", [q], (1, 4)) for q in qs]
    z = ys[0] if len(ys) == 1 else s.apply("ADD", ys, (1, 4), "AddOptions")
    out = [s.apply("DEQUANTIZE", [z], (1, 4), dtype="float32", scale=None) for _ in range(outputs)]
    return s.bytes([x], out)


def test_an_input_is_quantised_once_and_in_one_way_and_outputs_stay_two() -> None:
    after = rewrite(read_model(float_edges(quants=((0.5, 3), (0.5, 3)))))
    assert kinds(after) == {"LOOKUP": 1} and len(after.inputs) == 1  # it is a function of one tensor
    in_two_ways = rewrite(read_model(float_edges(quants=((0.5, 3), (0.25, 3)))))
    assert in_two_ways.tensors[in_two_ways.inputs[0]].dtype == "float32"  # firmware quantises it, twice
    assert kinds(in_two_ways)["QUANTIZE"] == 2
    assert len(rewrite(read_model(float_edges(outputs=2))).outputs) == 2


def test_a_float_round_trip_inside_with_equal_quantisation_vanishes() -> None:
    s = Sheet()
    x = s.add(FileTensor((1, 256), scale=0.1, zero=-7))
    a = s.apply("HARD_SWISH", [x], (1, 256), scale=0.037, zero=11)
    f = s.apply("DEQUANTIZE", [a], (1, 256), dtype="float32", scale=None)
    q = s.apply("QUANTIZE", [f], (1, 256), scale=0.037, zero=11)
    y = s.apply("HARD_SWISH", [q], (1, 256))
    data = s.bytes([x], [y])
    after = rewrite(read_model(data))
    assert kinds(after) == {"LOOKUP": 1}  # both are one function
    image = np.arange(-128, 128, dtype=np.int8).reshape(1, 256)
    assert np.array_equal(execute(after, [image])[after.outputs[0]], run(data, [image])[y])


def test_an_input_that_nothing_reads_is_refused() -> None:
    s = Sheet()
    x, f = s.add(FileTensor((1, 4))), s.add(FileTensor((1, 4), "float32", scale=None))
    y = s.apply("HARD_SWISH", [x], (1, 4), scale=0.25)
    with pytest.raises(UnsupportedError, match="no operator reads a float32 network input"):
        rewrite(read_model(s.bytes([x, f], [y])))


# ---- pads -------------------------------------------------------------------------------------------


def padded_convs(sizes, *, readers=1, quant=None, plain_reader=False) -> bytes:
    net = Net((1, 6, 7, 2))
    shape = [n + a + b for n, (a, b) in zip(net.shape, sizes, strict=True)]
    p = net.then("PAD", [net.add(constant(sizes))], shape, quant=quant)
    outs = []
    for _ in range(readers):
        options = {"Padding": 1, "StrideH": 2, "StrideW": 1}
        out = (shape[0], (shape[1] - 3) // 2 + 1, shape[2] - 2, 4)
        weights = net.weights(4, 3, 3, shape[3])
        outs.append(net.apply("CONV_2D", [p, weights, net.bias(4)], out, "Conv2DOptions", options, zero=2))
    if plain_reader:
        outs.append(net.apply("HARD_SWISH", [p], shape))
    return net.bytes([0], outs)


@pytest.mark.parametrize("readers", [1, 3])
def test_an_asymmetric_pad_moves_into_every_convolution(readers: int) -> None:
    after = rewritten(padded_convs([[0, 0], [1, 0], [0, 3], [0, 0]], readers=readers))
    assert kinds(after) == {"CONV_2D": readers}
    assert {op.attrs.pad for op in after.ops} == {Pad(1, 0, 0, 3)}


@pytest.mark.parametrize(
    ("sizes", "options"),
    [
        ([[0, 0], [1, 1], [1, 1], [0, 0]], {"quant": (0.25, 0)}),
        ([[0, 0], [1, 1], [1, 1], [0, 0]], {"quant": (0.5, 1)}),
        ([[0, 0], [1, 1], [1, 1], [0, 1]], {}),
        ([[1, 0], [1, 1], [1, 1], [0, 0]], {}),
        ([[0, 0], [1, 1], [1, 1], [0, 0]], {"plain_reader": True}),
    ],
)
def test_a_pad_stays_where_folding_would_not_be_exact(sizes, options) -> None:
    after = rewritten(padded_convs(sizes, **options))
    assert kinds(after)["PAD"] == 1


def test_pads_in_a_row_become_one_and_empty_ones_vanish() -> None:
    net = Net((1, 4, 4, 2))
    net.then("PAD", [net.add(constant([[0, 0], [1, 0], [0, 2], [0, 0]]))], (1, 5, 6, 2))
    net.then("PAD", [net.add(constant([[0, 0], [0, 0], [0, 0], [0, 0]]))], (1, 5, 6, 2))
    net.then("PAD", [net.add(constant([[0, 0], [0, 1], [1, 0], [0, 1]]))], (1, 6, 7, 3))
    after = rewritten(net.bytes([0], [net.x]))
    assert [op.attrs for op in after.ops] == [g.PadAttrs(((0, 0), (1, 1), (1, 2), (0, 1)))]


def test_the_pad_of_a_causal_convolution_moves_through_expand_dims() -> None:
    net = Net((1, 9, 2))
    net.then("PAD", [net.add(constant([[0, 0], [4, 0], [0, 0]]))], (1, 13, 2))
    net.then("EXPAND_DIMS", [net.add(constant([-3]))], (1, 1, 13, 2))
    net.then("CONV_2D", [net.weights(3, 1, 3, 2), net.bias(3)], (1, 1, 9, 3), "Conv2DOptions",
             {"Padding": 1, "StrideH": 1, "StrideW": 1, "DilationWFactor": 2})  # fmt: skip
    net.then("SQUEEZE", [], (1, 9, 3), "SqueezeOptions", {"SqueezeDims": [1]})
    after = rewritten(net.bytes([0], [net.x]))
    assert [op.kind for op in after.ops] == [OpKind.RESHAPE, OpKind.CONV_2D, OpKind.SQUEEZE]
    assert after.ops[1].attrs.pad == Pad(0, 0, 4, 0)


# ---- transposes -------------------------------------------------------------------------------------


def transposed(shape, *perms, then=None) -> Graph:
    net = Net(shape)
    for perm in perms:
        net.then("TRANSPOSE", [net.add(constant(perm))], [net.shape[p] for p in perm])
    if then is not None:
        then(net)
    return read_model(net.bytes([0], [net.x]))


def means(*axes):
    def then(net: Net) -> None:
        for axis in axes:
            shape = [n for i, n in enumerate(net.shape) if i != axis]
            net.then("MEAN", [net.add(constant([axis]))], shape, "ReducerOptions", {}, (0.4, 3))

    return then


def test_transposes_become_reshapes_or_one_or_cancel() -> None:
    assert kinds(rewritten(transposed((1, 4, 1, 3), (2, 1, 3, 0)))) == {"RESHAPE": 1}  # moves only ones
    after = rewritten(transposed((1, 4, 2, 3), (0, 3, 1, 2), (0, 3, 1, 2)))
    assert [op.attrs for op in after.ops] == [g.TransposeAttrs((0, 2, 3, 1))]
    inverse = ((0, 3, 1, 2), (0, 2, 3, 1))
    after = rewritten(transposed((1, 4, 2, 3), *inverse, then=lambda net: net.then("RELU", [], net.shape)))
    assert kinds(after) == {"RELU": 1}


def test_a_transpose_vanishes_behind_means_over_its_moved_axes() -> None:
    before = transposed((1, 3, 4, 5), (0, 3, 1, 2), then=means(3, 2))
    after = rewrite(before)
    assert [op.attrs for op in after.ops] == [g.MeanAttrs((2,)), g.MeanAttrs((1,))]
    first, index = (
        after.tensors[after.ops[0].outputs[0]],
        before.tensors[before.ops[1].outputs[0]].source.index,
    )
    assert (first.shape, first.source) == ((1, 3, 5), g.Source(index, (0, 2, 1)))
    assert assert_same_results(before, after) == 3


# ---- no-ops, activations, constants, dead operators -------------------------------------------------


def test_operators_that_do_nothing_vanish() -> None:
    net = Net((2, 3, 4))
    net.then("HARD_SWISH", [], net.shape)
    net.then("RESHAPE", [net.add(constant([2, 3, 4]))], net.shape)
    net.then("QUANTIZE", [], net.shape)
    net.then("SLICE", [net.add(constant([0, 0, 0])), net.add(constant([-1, 3, 4]))], net.shape)
    net.then("CONCATENATION", [], net.shape, "ConcatenationOptions", {"Axis": 1})
    net.x = net.apply("SPLIT", [net.add(constant(0)), net.x], net.shape, "SplitOptions", {"NumSplits": 1})
    net.then("TRANSPOSE", [net.add(constant([0, 1, 2]))], net.shape)
    net.then("HARD_SWISH", [], net.shape)
    data = net.bytes([0], [net.x])
    assert len(read_model(data).ops) == 8
    assert kinds(rewritten(data)) == {"LOOKUP": 1}  # both are one function


@pytest.mark.parametrize("kind", ["RELU", "RELU6", "RELU_N1_TO_1"])
@pytest.mark.parametrize("case", ["clamps", "requantises", "read twice", "an output"])
def test_an_activation_of_its_own_is_fused_where_it_only_clamps(case: str, kind: str) -> None:
    net = Net((1, 4, 4, 2))
    a = net.then("CONV_2D", [net.weights(3, 1, 1, 2), net.bias(3)], (1, 4, 4, 3), "Conv2DOptions",
                 {"Padding": 1, "StrideH": 1, "StrideW": 1}, (0.06, -20))  # fmt: skip
    net.then(kind, [], net.shape, quant=(0.03, -128) if case == "requantises" else None)
    outputs = [net.x, *([a] if case == "an output" else [])]
    outputs += [net.apply("HARD_SWISH", [a], net.shape)] if case == "read twice" else []
    after = rewritten(net.bytes([0], outputs))
    if case == "clamps":
        assert kinds(after) == {"CONV_2D": 1}
        assert after.ops[0].attrs.activation == Activation(kind)
    else:
        assert kinds(after)[kind] == 1


def test_operators_on_constants_are_computed() -> None:
    net = Net((1, 3, 4))
    c = net.apply("TRANSPOSE", [net.weights(4, 3, per_channel=False), net.ints(1, 0)], (3, 4), scale=0.02)
    c = net.apply("ADD", [c, c], (3, 4), "AddOptions", scale=0.05)
    c = net.apply("RESHAPE", [c, net.ints(1, 3, 4)], (1, 3, 4), scale=0.05)
    net.then("ADD", [c], net.shape, "AddOptions")
    after = rewritten(net.bytes([0], [net.x]))
    assert kinds(after) == {"ADD": 1}
    assert after.tensors[after.ops[0].inputs[1]].is_constant


def test_an_output_without_an_input_is_refused() -> None:
    net = Net((1, 4))
    net.then("HARD_SWISH", [], net.shape)
    c = net.apply("HARD_SWISH", [net.weights(1, 4, per_channel=False)], (1, 4))
    with pytest.raises(UnsupportedError, match="does not depend on the input"):
        rewrite(read_model(net.bytes([0], [net.x, c])))


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
