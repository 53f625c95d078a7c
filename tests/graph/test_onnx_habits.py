"""What exporters and quantisers write: every habit is read, and computes what onnx.reference computes."""

import numpy as np
import pytest
from graphs import inputs_for
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator
from onnxnets import Qdq, compared, kinds, read

from buildtool.base.errors import UnsupportedError
from buildtool.graph.reference import execute
from buildtool.graph.types import Activation, MeanAttrs, OpKind, Pad


def attrs_of(graph, kind):
    return [op.attrs for op in graph.ops if op.kind == kind]


def check(net, outputs, most=1, equal=0.9, **how):
    """Reads the network; its outputs are within `most` steps of the reference's, mostly equal.

    One step an operator (see test_onnx_operators), which the next one may make two of.
    """
    graph, steps = compared(net.model(outputs), **how)
    assert steps.max() <= most
    assert (steps == 0).mean() >= equal
    return graph


# ---- activations ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("clip", "activation"),
    [(None, Activation.RELU), ((0, 6), Activation.RELU6), ((-1, 1), Activation.RELU_N1_TO_1)],
)
def test_an_activation_before_the_quantisation_is_fused(clip, activation):
    net = Qdq((1, 3, 9, 7))
    y = net.conv(net.x, 3, 8)
    if clip is None:
        y = net.node("Relu", [y])
    else:
        y = net.node("Clip", [y, *(net.const(v, np.float32) for v in clip)])
    graph = check(net, [net.q(y, 0.06, -20)])
    assert kinds(graph) == ["CONV_2D"]
    assert graph.ops[0].attrs.activation == activation


def test_a_clip_that_the_output_s_range_makes_needs_no_clamp():
    net = Qdq((1, 3, 9, 7))
    y = net.node("Clip", [net.conv(net.x, 3, 8), net.const(0, np.float32), net.const(4, np.float32)])
    graph = check(net, [net.q(y, 4 / 255, -128)])
    assert graph.ops[0].attrs.activation == Activation.NONE


@pytest.mark.parametrize(
    ("clip", "bounds"), [((0, 4), ["MINIMUM"]), ((-0.5, 2), ["MAXIMUM", "MINIMUM"]), ((-0.5, 9), ["MAXIMUM"])]
)
def test_a_clip_that_no_activation_makes_is_lookups(clip, bounds):
    net = Qdq((1, 3, 9, 7))
    y = net.node("Clip", [net.conv(net.x, 3, 8), *(net.const(v, np.float32) for v in clip)])
    graph = check(net, [net.q(y, 0.06, -20 if clip != (0, 4) else -100)])
    assert kinds(graph)[-len(bounds) :] == bounds


def test_relu_and_clip_in_a_row_are_one_clamp():
    net = Qdq((1, 3, 9, 7))
    y = net.node("Relu", [net.conv(net.x, 3, 8)])
    y = net.node("Clip", [y, net.const(-3, np.float32), net.const(6, np.float32)])
    graph = check(net, [net.q(y, 0.06, -20)])
    assert graph.ops[0].attrs.activation == Activation.RELU6


def test_a_relu_on_what_others_read_as_well_stays_apart():
    net = Qdq((1, 3, 9, 7))
    y = net.conv(net.x, 3, 8)
    clamped = net.node("Relu", [y])
    graph = check(net, [net.q(clamped, 0.06, -20), net.q(y, 0.06, -20)])
    assert kinds(graph) == ["CONV_2D", "RELU"]


def test_hard_swish_in_parts_is_one_operator():
    net = Qdq((1, 3, 9, 7))
    x = net.q(net.conv(net.x, 3, 8), 0.08, 4)
    gate = net.q(net.node("HardSigmoid", [x], alpha=1 / 6, beta=0.5), 1 / 255, -128)
    graph = check(net, [net.q(net.node("Mul", [x, gate]), 0.07, -100)])
    assert kinds(graph) == ["CONV_2D", "HARD_SWISH"]


@pytest.mark.parametrize(("alpha", "beta"), [(1 / 6, 0.5), (0.2, 0.5), (0.3, 0.1)])
def test_a_hard_sigmoid_is_a_sum_that_saturates(alpha, beta):
    net = Qdq((1, 3, 9, 7))
    y = net.node("HardSigmoid", [net.x], alpha=alpha, beta=beta)
    check(net, [net.q(y, 1 / 255, -128)], equal=0.5)


@pytest.mark.parametrize("kind", ["Sigmoid", "Tanh", "Softmax"])
def test_an_output_in_another_scale_than_the_kernel_s_is_quantised_again(kind):
    net = Qdq((2, 20), scale=0.02)
    scale, zero = (1 / 127, 0) if kind == "Tanh" else (1 / 255, -128)
    graph = check(net, [net.q(net.node(kind, [net.x]), scale, zero)], equal=0.5)
    assert kinds(graph)[-1] == "QUANTIZE"


@pytest.mark.parametrize(("scale", "zero"), [(1 / 255, -128), (1 / 127, 0)])
def test_a_gate_is_multiplied_in_the_kernel_s_own_scale(scale, zero):
    """As networks with squeeze and excite, or SiLU, have it."""
    net = Qdq((1, 4, 6, 5), scale=0.03)
    gate = net.q(net.node("Sigmoid", [net.x]), scale, zero)
    graph = check(net, [net.q(net.node("Mul", [net.x, gate]), 0.02, -80)], equal=0.7)
    assert kinds(graph) == ["LOGISTIC", "MUL"]


def test_a_gate_that_its_scale_cuts_off_is_rounded_as_the_file_says():
    net = Qdq((1, 4, 6, 5), scale=0.03)
    gate = net.q(net.node("Sigmoid", [net.x]), 0.5 / 255, -128)
    graph = check(net, [net.q(net.node("Mul", [net.x, gate]), 0.02, -20)], equal=0.8)
    assert kinds(graph) == ["LOGISTIC", "QUANTIZE", "MUL"]


def test_a_softmax_at_the_end_may_stay_float():
    net = Qdq((2, 20), scale=0.02)
    graph = check(net, [net.node("Softmax", [net.x], axis=1)])
    assert kinds(graph) == ["SOFTMAX"]
    assert graph.tensors[graph.outputs[0]].quant.scale == 1 / 256


def test_a_softmax_over_channels_runs_over_the_last_dimension():
    net = Qdq((1, 5, 4, 3), scale=0.02)
    graph = check(net, [net.q(net.node("Softmax", [net.x], axis=1), 1 / 256, -128)])
    assert kinds(graph) == ["SOFTMAX"]


def test_a_softmax_over_rows_moves_them_last():
    net = Qdq((1, 5, 4, 3), scale=0.02)
    graph = check(net, [net.q(net.node("Softmax", [net.x], axis=2), 1 / 256, -128)])
    assert [kind for kind in kinds(graph) if kind != "RESHAPE"] == ["TRANSPOSE", "SOFTMAX", "TRANSPOSE"]


def test_float_slopes_are_rounded_to_int8():
    net = Qdq((1, 6, 5, 4))
    y = net.node("PRelu", [net.x, net.const(net.rng.uniform(-0.2, 0.5, (6, 1, 1)), np.float32)])
    graph = check(net, [net.q(y, 0.05, -60)], equal=0.8)
    assert kinds(graph) == ["PRELU"]


# ---- functions of one tensor and of several --------------------------------------------------------------


@pytest.mark.parametrize(("kind", "made"), [("Max", "MAXIMUM"), ("Min", "MINIMUM")])
def test_the_larger_or_smaller_of_several_tensors_and_numbers(kind, made):
    net = Qdq((1, 4, 5, 6))
    other = net.q(net.conv(net.x, 4, 4), 0.08, 11)
    row = net.const(np.linspace(-2, 2, 4).reshape(4, 1, 1), np.float32)
    y = net.node(kind, [net.x, other, row, net.const(0.7, np.float32)])
    assert kinds(check(net, [net.q(y, 0.07, -5)])).count(made) == 3


@pytest.mark.parametrize(
    ("kind", "made", "scale", "zero"),
    [
        ("Neg", "MUL", 0.05, 3),
        ("Sqrt", "SQRT", 0.02, -128),
        ("Elu", "ELU", 0.05, -90),
        ("LogSoftmax", "LOG_SOFTMAX", 1 / 16, 127),
        ("Reciprocal", "DIV", 0.1, -128),
    ],
)
def test_a_function_of_one_tensor(kind, made, scale, zero):
    net = Qdq((1, 4, 5, 6))
    x = net.x
    if kind in ("Sqrt", "Reciprocal"):  # of numbers above 0 alone
        x = net.q(net.node("Max", [x, net.const(0.2, np.float32)]), 0.05, -128)
    y = net.node(kind, [x], **({"axis": 1} if kind == "LogSoftmax" else {}))
    assert made in kinds(check(net, [net.q(y, scale, zero)], equal=0))


def test_a_quotient_of_two_tensors():
    net = Qdq((1, 4, 5, 6))
    divisor = net.q(net.node("Exp", [net.q(net.conv(net.x, 4, 4), 0.03, 0)]), 0.1, -128)
    divisor = net.q(net.node("Max", [divisor, net.const(0.5, np.float32)]), 0.1, -128)
    graph = check(net, [net.q(net.node("Div", [net.x, divisor]), 0.06, -2)], equal=0)
    assert kinds(graph)[-1] == "DIV"


def test_a_sum_of_two_tensors():
    net = Qdq((1, 4, 5, 6))
    other = net.q(net.conv(net.x, 4, 4), 0.08, 11)
    assert "ADD" in kinds(check(net, [net.q(net.node("Sum", [net.x, other]), 0.1, 2)], equal=0))


def test_an_expand_repeats():
    net = Qdq((1, 3, 4, 5), scale=0.125)
    y = net.node("Expand", [net.x, net.const([2, 1, 3, 4, 5])])
    graph = check(net, [net.node("Identity", [net.node("Expand", [y, net.const([1])])])], equal=1)
    assert "TILE" in kinds(graph)


def test_a_product_with_an_asymmetric_constant_is_one_of_two_operands():
    net = Qdq((1, 7, 5), scale=0.125, zero=0)
    w = net.dq(net.const(np.arange(-128, -108, dtype=np.int8).reshape(5, 4)), 0.125, 100)
    graph = check(net, [net.q(net.node("MatMul", [net.x, w]), 50.0)])
    assert kinds(graph) == ["BATCH_MATMUL"]


@pytest.mark.parametrize("kind", ["ArgMax", "ArgMin"])
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("keep", [0, 1])
def test_places_of_extremes_end_a_network(kind, axis, keep):
    net = Qdq((1, 3, 4, 5), scale=0.125, zero=0)
    model = net.model([net.node(kind, [net.x], axis=axis, keepdims=keep)], "int64")
    graph = read(model)
    (values,) = inputs_for(graph, 0)
    real = values.transpose(0, 3, 1, 2).astype(np.float32) * 0.125
    (theirs,), made = ReferenceEvaluator(model).run(None, {"image": real}), execute(graph, [values])
    theirs = theirs.transpose(0, 2, 3, 1) if theirs.ndim == 4 else theirs
    ours = made[graph.outputs[0]]
    np.testing.assert_array_equal(ours, theirs.reshape(ours.shape), strict=True)
    classes = axis == 1  # the dimension that lies last
    assert kinds(graph).count("TRANSPOSE") == (0 if classes or keep else 1)


# ---- where the quantisation stands ----------------------------------------------------------------------


def _pooled(late, scale=0.06):
    """Conv, Relu, MaxPool, Flatten; quantised after each of them, or after the last only."""
    net = Qdq((1, 3, 8, 8))
    y = net.node("Relu", [net.conv(net.x, 3, 4)])
    y = y if late else net.q(y, 0.06, -128)
    y = net.node("MaxPool", [y], kernel_shape=[2, 2], strides=[2, 2])
    y = y if late else net.q(y, scale, -128)
    y = net.q(net.node("Flatten", [y]), scale, -128)
    return net, net.q(net.node("Gemm", [y, net.weights((64, 5))]), 0.2)


def test_a_late_quantisation_is_that_of_the_convolution():
    graph = check(*_unpacked(_pooled(late=True)))
    assert kinds(graph) == kinds(check(*_unpacked(_pooled(late=False))))
    assert kinds(graph) == ["CONV_2D", "MAX_POOL_2D", "RESHAPE", "FULLY_CONNECTED"]


def _unpacked(made):
    return made[0], [made[1]]


def test_a_pair_with_another_scale_is_a_quantize_of_its_own():
    graph = check(*_unpacked(_pooled(late=False, scale=0.05)))
    assert kinds(graph).count("QUANTIZE") == 1


def test_parts_of_a_concatenation_are_brought_to_its_scale():
    net = Qdq((1, 3, 6, 6))
    a, b = net.q(net.conv(net.x, 3, 4), 0.05), net.q(net.conv(net.x, 3, 4), 0.08, 9)
    graph = check(net, [net.q(net.node("Concat", [a, b], axis=1), 0.08, 9)])
    assert kinds(graph) == ["CONV_2D", "CONV_2D", "QUANTIZE", "CONCATENATION"]
    assert graph.tensors[graph.outputs[0]].shape == (1, 6, 6, 8)


def test_parts_that_are_quantised_behind_the_concatenation_need_nothing():
    net = Qdq((1, 3, 6, 6))
    parts = [net.conv(net.x, 3, 4), net.node("Relu", [net.conv(net.x, 3, 4)])]
    graph = check(net, [net.q(net.node("Concat", parts, axis=1), 0.08, 9)])
    assert kinds(graph) == ["CONV_2D", "CONV_2D", "CONCATENATION"]


def test_operators_on_quantised_integers():
    net = Qdq((1, 4, 8, 8), dtype="uint8", zero=100)
    y = net.node("MaxPool", ["image"], kernel_shape=[2, 2], strides=[2, 2])
    y = net.node("Transpose", [net.node("Reshape", [y, net.const([1, 4, 16])])], perm=[0, 2, 1])
    net.nodes = net.nodes[1:]  # the input's own DequantizeLinear
    graph = check(net, [net.q(net.node("MatMul", [net.dq(y, 0.05, 100, "uint8"), net.weights((4, 6))]))])
    assert kinds(graph) == ["MAX_POOL_2D", "RESHAPE", "FULLY_CONNECTED", "RESHAPE"]


def test_a_pad_of_quantised_integers():
    net = Qdq((1, 3, 6, 6))
    stored = net.quantize(net.x, 0.07, 100, "uint8")
    y = net.node("Pad", [stored, net.const([0, 0, 1, 0, 0, 0, 1, 1]), net.const(100, np.uint8)])
    graph = check(net, [net.q(net.conv(net.dq(y, 0.07, 100, "uint8"), 3, 4, pads=[0] * 4))])
    assert kinds(graph) == ["QUANTIZE", "CONV_2D"]
    assert attrs_of(graph, "CONV_2D")[0].pad == Pad(1, 1, 0, 1)


def test_an_integer_output_is_shifted_to_int8():
    net = Qdq((1, 3, 6, 6), dtype="uint8", zero=100)
    y = net.quantize(net.conv(net.x, 3, 4), 0.05, 117, "uint8")
    graph, steps = compared(net.model([y], "uint8"))
    assert steps.max() <= 1
    assert graph.tensors[graph.inputs[0]].quant.zero_points == (-28,)
    assert graph.tensors[graph.outputs[0]].quant.zero_points == (-11,)


# ---- constants ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("zero", [128, 100])
def test_unsigned_weights_whose_differences_are_int8(zero):
    net = Qdq((1, 40))
    data = net.rng.integers(zero - 100, zero + 100, (40, 6)).astype(np.uint8)
    y = net.node("MatMul", [net.x, net.dq(net.const(data), 0.01, zero, "uint8")])
    check(net, [net.q(y)])


def test_weights_that_are_transposed_behind_their_dequantisation():
    net = Qdq((3, 40))
    w = net.node("Transpose", [net.weights((6, 40), 0, 0.01)], perm=[1, 0])
    graph = check(net, [net.q(net.node("MatMul", [net.x, w]))])
    assert kinds(graph) == ["FULLY_CONNECTED"]
    assert len(graph.tensors[graph.ops[0].inputs[1]].quant.scales) == 6


def test_a_bias_in_another_scale_is_rounded_to_the_product_s():
    net = Qdq((1, 3, 6, 6))
    w = net.weights((4, 3, 3, 3), 0, 0.03)
    bias = net.dq(net.const([100, -200, 300, 50], np.int32), 0.01, 0, "int32")
    graph = check(net, [net.q(net.node("Conv", [net.x, w, bias]), 0.2)])
    assert kinds(graph) == ["CONV_2D"]


@pytest.mark.parametrize("scale", [0.0, 1e-45])
def test_a_bias_in_a_unit_of_nothing_is_refused_without_a_warning(scale, recwarn):
    net = Qdq((1, 3, 6, 6))
    w = net.weights((4, 3, 3, 3), 0, np.array([0.03, 0.02, scale, 0.01], np.float32))
    y = net.node("Conv", [net.x, w, net.const([0.5, -0.25, 0.125, 0.5], np.float32)])
    with pytest.raises(UnsupportedError, match="a bias that does not fit int32"):
        read(net.model([net.q(y, 0.2)]))
    assert not recwarn.list


@pytest.mark.parametrize("kind", ["MatMul", "Conv"])
def test_an_addition_of_constants_is_the_bias(kind):
    net = Qdq((1, 3, 6, 6))
    shape, channels = ((4, 1, 1), 4) if kind == "Conv" else ((5,), 5)
    y = (
        net.conv(net.x, 3, 4, bias=False)
        if kind == "Conv"
        else net.node("MatMul", [net.x, net.weights((6, 5))])
    )
    y = net.node("Add", [net.const(net.rng.normal(size=channels).reshape(shape), np.float32), y])
    graph = check(net, [net.q(net.node("Relu", [y]))])
    assert OpKind.ADD not in kinds(graph)
    assert [op.inputs[2] >= 0 for op in graph.ops if len(op.inputs) == 3] == [True]


def test_scalars_are_exact_constants():
    net = Qdq((1, 3, 6, 6))
    y = net.q(net.node("Mul", [net.x, net.const(0.37, np.float32)]), 0.02)
    y = net.q(net.node("Add", [net.const([-1.25], np.float32), y]), 0.03, 40)
    y = net.q(net.node("Div", [y, net.const(2.5, np.float32)]), 0.01, 40)
    graph = check(net, [y], equal=0.8)
    assert kinds(graph) == ["MUL", "ADD", "MUL"]


def test_constant_images_follow_the_layout():
    net = Qdq((1, 3, 6, 5))
    whole = net.dq(net.const(net.rng.integers(-128, 128, (1, 3, 6, 5)).astype(np.int8)), 0.05, 5)
    channels = net.dq(net.const(net.rng.integers(-128, 128, (3, 1, 1)).astype(np.int8)), 0.02, 0)
    y = net.q(net.node("Mul", [net.q(net.node("Sub", [whole, net.x])), channels]), 0.3)
    graph = check(net, [y])
    assert kinds(graph) == ["SUB", "MUL"]


def test_shapes_that_the_file_computes():
    """As PyTorch writes `x.view(x.size(0), -1)`."""
    net = Qdq((1, 3, 6, 6))
    y = net.q(net.node("MaxPool", [net.x], kernel_shape=[2, 2], strides=[2, 2]), 0.05, 3)
    batch = net.node("Gather", [net.node("Shape", [y]), net.const(0)], axis=0)
    parts = [net.node("Unsqueeze", [batch, net.const([0])]), net.const([-1])]
    flat = net.node("Reshape", [y, net.node("Concat", parts, axis=0)])
    graph = check(net, [net.q(net.node("Gemm", [flat, net.weights((27, 4))]))])
    assert kinds(graph) == ["MAX_POOL_2D", "RESHAPE", "FULLY_CONNECTED"]


# ---- layouts --------------------------------------------------------------------------------------------


def test_flattened_channels_permute_the_next_weights():
    net = Qdq((2, 3, 4, 5))
    y = net.q(net.node("Flatten", [net.q(net.conv(net.x, 3, 4))]))
    y = net.q(net.node("LeakyRelu", [y], alpha=0.125), 0.1, 5)
    graph = check(net, [net.q(net.node("Gemm", [y, net.weights((7, 80), 0)], transB=1), 1.5)], equal=0.8)
    assert kinds(graph) == ["CONV_2D", "LEAKY_RELU", "RESHAPE", "FULLY_CONNECTED"]


def test_an_input_that_the_file_transposes_is_channels_last_already():
    """As tf2onnx writes it."""
    net = Qdq((1, 8, 6, 3))
    y = net.node("Transpose", [net.x], perm=[0, 3, 1, 2])
    y = net.node("Transpose", [net.q(net.conv(y, 3, 5))], perm=[0, 2, 3, 1])
    graph = check(net, [y], channels_last=False)
    assert kinds(graph) == ["CONV_2D"]
    assert graph.tensors[graph.inputs[0]].shape == (1, 8, 6, 3)
    assert graph.tensors[graph.outputs[0]].shape == (1, 8, 6, 5)


def test_a_channel_shuffle_is_one_transpose():
    net = Qdq((1, 6, 5, 4))
    y = net.node("Reshape", [net.q(net.conv(net.x, 6, 6)), net.const([0, 2, 3, 5, 4])])
    y = net.node("Reshape", [net.node("Transpose", [y], perm=[0, 2, 1, 3, 4]), net.const([1, 6, 5, 4])])
    graph = check(net, [net.q(net.conv(y, 6, 6, group=6))])
    assert kinds(graph) == ["CONV_2D", "TRANSPOSE", "DEPTHWISE_CONV_2D"]


@pytest.mark.parametrize(
    ("kind", "more"),
    [("DepthToSpace", {"mode": "DCR"}), ("DepthToSpace", {"mode": "CRD"}), ("SpaceToDepth", {})],
)
def test_depth_and_space(kind, more):
    net = Qdq((1, 8, 4, 6))
    y = net.node(kind, [net.q(net.conv(net.x, 8, 8))], blocksize=2, **more)
    graph = check(net, [net.q(net.conv(y, 2 if kind == "DepthToSpace" else 32, 4), 0.2)], most=2)
    assert kinds(graph).count("TRANSPOSE") == 1


def test_a_matrix_output_is_in_the_file_s_order():
    """Boxes of a detector: (N, C, H * W)."""
    net = Qdq((1, 3, 4, 5))
    y = net.node("Reshape", [net.q(net.conv(net.x, 3, 6)), net.const([1, 6, -1])])
    graph = check(net, [y])
    assert kinds(graph)[-2:] == ["TRANSPOSE", "RESHAPE"] or kinds(graph)[-1] == "TRANSPOSE"
    assert graph.tensors[graph.outputs[0]].shape == (1, 6, 20)


def test_lines_are_images_of_one_row():
    net = Qdq((1, 6, 40))
    y = net.node("Conv", [net.x, net.weights((8, 6, 5), 0, 0.03)], strides=[2], pads=[2, 2])
    y = net.q(net.node("Relu", [y]), 0.06, -128)
    y = net.node("MaxPool", [y], kernel_shape=[2], strides=[2])
    y = net.node("Conv", [y, net.weights((8, 1, 3), 0, 0.01)], group=8, dilations=[2], pads=[2, 2])
    y = net.node("GlobalAveragePool", [net.q(y, 0.05)])
    graph = check(net, [net.q(net.node("Flatten", [y]), 0.01)])
    assert graph.tensors[graph.inputs[0]].shape == (1, 40, 6)
    assert OpKind.TRANSPOSE not in kinds(graph)
    assert attrs_of(graph, OpKind.DEPTHWISE_CONV_2D)[0].dilation == (1, 2)


# ---- windows --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mode", "pad"),
    [("SAME_UPPER", Pad(0, 1, 1, 1)), ("SAME_LOWER", Pad(1, 0, 1, 1)), ("VALID", Pad())],
)
def test_automatic_padding(mode, pad):
    net = Qdq((1, 3, 8, 7))
    y = net.conv(net.x, 3, 4, strides=[2, 2], auto_pad=mode)
    graph = check(net, [net.q(y)])
    assert graph.ops[0].attrs.pad == pad


@pytest.mark.parametrize("kind", ["MaxPool", "AveragePool"])
@pytest.mark.parametrize(("size", "rows"), [(7, 4), (8, 4), (6, 3)])
def test_windows_that_reach_over_the_edge(kind, size, rows):
    net = Qdq((1, 3, size, size))
    y = net.node(kind, [net.x], kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1)
    graph = check(net, [net.q(y, 0.05, 3)], equal=0.6)
    assert graph.tensors[graph.outputs[0]].shape == (1, rows, rows, 3)


def test_a_maximum_is_padded_on_all_sides():
    """As PyTorch's residual networks begin; TFLite has no such padding."""
    net = Qdq((1, 3, 8, 8))
    graph = check(net, [net.node("MaxPool", [net.x], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])])
    assert graph.ops[0].attrs.pad == Pad(1, 0, 1, 0)


@pytest.mark.parametrize("include", [0, 1])
def test_padded_elements_count_or_not(include):
    net = Qdq((1, 3, 9, 9))
    pads = {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}
    y = net.node("AveragePool", [net.x], count_include_pad=include, **pads)
    graph = check(net, [net.q(y, 0.05, 3)], equal=0.8)
    assert kinds(graph) == (["PAD"] if include else []) + ["AVERAGE_POOL_2D"]


def test_a_pool_over_everything_in_another_scale_is_a_mean():
    net = Qdq((1, 3, 6, 6))
    y = net.node("AveragePool", [net.x], kernel_shape=[6, 6])
    graph = check(net, [net.q(y, 0.004, 50)], equal=0.6)
    assert graph.ops[0].attrs == MeanAttrs((1, 2), True)


def test_a_pool_of_the_image_s_size_over_padding_that_counts_is_no_mean():
    net = Qdq((1, 3, 6, 6))
    y = net.node(
        "AveragePool", [net.x], kernel_shape=[6, 6], strides=[2, 2], pads=[1, 1, 0, 0], count_include_pad=1
    )
    assert kinds(check(net, [net.q(y, 0.05, 3)])) == ["PAD", "AVERAGE_POOL_2D"]


def test_a_global_maximum():
    net = Qdq((1, 3, 6, 5))
    assert kinds(check(net, [net.node("GlobalMaxPool", [net.x])])) == ["MAX_POOL_2D"]


@pytest.mark.parametrize(
    ("how", "pick"),
    [("asymmetric", "floor"), ("half_pixel", "round_prefer_floor"), ("align_corners", "round_prefer_ceil")],
)
def test_nearest_pixels(how, pick):
    net = Qdq((1, 3, 5, 4))
    more = {"mode": "nearest", "coordinate_transformation_mode": how, "nearest_mode": pick}
    y = net.node("Resize", [net.x, "", net.const([1, 1, 2, 2], np.float32)], **more)
    assert kinds(check(net, [y])) == ["RESIZE_NEAREST_NEIGHBOR"]


def test_parts_of_unequal_size_are_slices():
    net = Qdq((1, 6, 5, 4))
    a, b = net.node("Split", [net.q(net.conv(net.x, 6, 6)), net.const([2, 4])], 2, axis=1)
    graph = check(net, [a, b])
    assert kinds(graph) == ["CONV_2D", "SLICE", "SLICE"]
    assert [graph.tensors[t].shape for t in graph.outputs] == [(1, 5, 4, 2), (1, 5, 4, 4)]


def test_a_slice_backwards():
    net = Qdq((1, 6, 5, 4))
    lists = ([5, -1], [-100, 0], [1, 2], [-2, -1])
    y = net.node("Slice", [net.x, *(net.const(values) for values in lists)])
    graph = check(net, [y])
    assert kinds(graph) == ["STRIDED_SLICE"]
    assert graph.tensors[graph.outputs[0]].shape == (1, 4, 4, 3)


@pytest.mark.parametrize(
    ("mode", "value"), [("constant", None), ("constant", 1.5), ("reflect", None), ("edge", None)]
)
def test_pads(mode, value):
    net = Qdq((1, 3, 5, 4))
    inputs = [net.x, net.const([0, 0, 1, 0, 0, 0, 1, 1])]
    inputs += [net.const(value, np.float32)] if value is not None else []
    graph = check(net, [net.node("Pad", inputs, mode=mode)])
    assert kinds(graph) == ["PAD" if mode == "constant" else "MIRROR_PAD"]


# ---- QOperator format -----------------------------------------------------------------------------------


def _qlinear(net, kind, *operands, scale, zero, domain="com.microsoft", bias=None, **attributes):
    """A QLinear operator on (integers, scale, zero point) triples; uint8 activations."""
    inputs = []
    for name, s, z, dtype in operands:
        inputs += [name, net.const(s, np.float32), net.const(z, dtype)]
    inputs += [bias] if bias and kind == "QGemm" else []
    inputs += [net.const(scale, np.float32), net.const(zero, np.uint8)]
    inputs += [bias] if bias and kind == "QLinearConv" else []
    return net.node(kind, inputs, domain=domain, **attributes)


def test_qoperator_format_gives_the_graph_of_qdq_format():
    """The same network in both formats."""
    qop, qdq = (Qdq((1, 3, 8, 8), dtype="uint8", zero=100) for _ in range(2))
    rng = np.random.default_rng(5)
    filters = rng.integers(-127, 128, (4, 3, 3, 3)).astype(np.int8)
    matrix, bias = (
        rng.integers(-127, 128, (4, 5)).astype(np.int8),
        rng.integers(-999, 999, 4).astype(np.int32),
    )
    scales = np.array([0.01, 0.02, 0.005, 0.03], np.float32)
    u8, s8 = np.uint8, np.int8
    y = _qlinear(
        qop,
        "QLinearConv",
        ("image", 0.05, 100, u8),
        (qop.const(filters), scales, np.zeros(4), s8),
        scale=0.1,
        zero=90,
        domain="",
        bias=qop.const(bias),
        pads=[1, 1, 1, 1],
    )
    z = _qlinear(qop, "QLinearSigmoid", (y, 0.1, 90, u8), scale=1 / 256, zero=0)
    y = _qlinear(qop, "QLinearMul", (y, 0.1, 90, u8), (z, 1 / 256, 0, u8), scale=0.09, zero=20)
    y = _qlinear(qop, "QLinearGlobalAveragePool", (y, 0.09, 20, u8), scale=0.05, zero=10, channels_last=0)
    y = qop.node("Flatten", [y])
    y = _qlinear(
        qop,
        "QLinearMatMul",
        (y, 0.05, 10, u8),
        (qop.const(matrix), 0.02, 0, s8),
        scale=0.1,
        zero=128,
        domain="",
    )
    first = read(qop.model([y], "uint8"))

    w = qdq.dq(qdq.const(filters), scales, np.zeros(4), axis=0)
    b = qdq.dq(qdq.const(bias), np.float32(0.05) * scales, np.zeros(4), "int32", axis=0)
    y = qdq.q(qdq.node("Conv", [qdq.x, w, b], pads=[1, 1, 1, 1]), 0.1, 90, "uint8")
    z = qdq.q(qdq.node("Sigmoid", [y]), 1 / 256, 0, "uint8")
    y = qdq.q(qdq.node("Mul", [y, z]), 0.09, 20, "uint8")
    y = qdq.q(qdq.node("GlobalAveragePool", [y]), 0.05, 10, "uint8")
    y = qdq.node("MatMul", [qdq.node("Flatten", [y]), qdq.dq(qdq.const(matrix), 0.02, 0)])
    second = check(qdq, [qdq.q(y, 0.1, 128, "uint8")])

    assert kinds(first) == kinds(second)
    for a, b in zip(first.ops, second.ops, strict=True):
        assert a.attrs == b.attrs
        for s, t in zip((*a.inputs, *a.outputs), (*b.inputs, *b.outputs), strict=True):
            one, other = first.tensors[s], second.tensors[t]
            assert (one.shape, one.quant) == (other.shape, other.quant)
            np.testing.assert_array_equal(one.data, other.data)


def test_a_qgemm_and_a_qlinear_concat():
    net = Qdq((2, 12), dtype="uint8", zero=100)
    rng = np.random.default_rng(5)
    outs = []
    for turned in (0, 1):
        w = rng.integers(-127, 128, (5, 12) if turned else (12, 5)).astype(np.int8)
        operands = [("image", 0.05, 100, np.uint8), (net.const(w), np.full(5, 0.02), np.zeros(5), np.int8)]
        bias = net.const(rng.integers(-999, 999, 5).astype(np.int32))
        outs.append(_qlinear(net, "QGemm", *operands, scale=0.1, zero=120, bias=bias, transB=turned))
    part = [net.const(0.1, np.float32), net.const(120, np.uint8)]
    y = net.node("QLinearConcat", [*part, outs[0], *part, outs[1], *part], domain="com.microsoft", axis=1)
    graph = read(net.model([y], "uint8"))
    assert kinds(graph) == ["FULLY_CONNECTED", "FULLY_CONNECTED", "CONCATENATION"]
    assert graph.tensors[graph.outputs[0]].shape == (2, 10)
    assert [graph.tensors[op.inputs[1]].shape for op in graph.ops[:2]] == [(5, 12), (5, 12)]


# ---- types ----------------------------------------------------------------------------------------------


def test_the_type_may_follow_from_an_attribute_alone():
    """From opset 21 on QuantizeLinear names its type, or it is uint8."""
    for output_dtype, zero in ((TensorProto.INT8, 0), (0, -128)):
        net = Qdq((1, 12), opset=21)
        more = {"output_dtype": output_dtype} if output_dtype else {}
        node = helper.make_node("QuantizeLinear", [net.x, net.const(0.07, np.float32)], ["stored"], **more)
        back = helper.make_node("DequantizeLinear", ["stored", net.const(0.07, np.float32)], ["again"])
        net.nodes += [node, back]
        graph = check(net, ["again"])
        assert graph.tensors[graph.outputs[0]].quant.zero_points == (zero,)


# ---- batch normalisation --------------------------------------------------------------------------------


def _normalised(net, x, channels, quantised=False):
    """With a factor of 0, and negative ones; `quantised`: the factors are, as onnxruntime does it."""
    scale = net.rng.normal(size=channels)
    scale[1] = 0
    parameters = [scale, net.rng.normal(size=channels), net.rng.normal(size=channels) * 0.1]
    parameters.append(net.rng.uniform(0.5, 2, channels))
    names = [net.const(p, np.float32) for p in parameters]
    if quantised:
        steps = np.rint(scale / 0.03).astype(np.int8)
        names[0] = net.dq(net.const(steps), 0.03, 0)
    return net.node("BatchNormalization", [x, *names])


@pytest.mark.parametrize("form", ["Conv", "depthwise", "Conv without bias", "MatMul", "ConvTranspose"])
def test_a_normalisation_is_part_of_the_weights(form):
    """As exporters leave it behind quantised weights."""
    net = Qdq((2, 6, 5, 4) if form != "MatMul" else (4, 6))
    if form == "MatMul":
        y = net.node("MatMul", [net.x, net.weights((6, 5), 1)])
        y = net.node("Add", [y, net.const(net.rng.normal(size=5), np.float32)])
    elif form == "ConvTranspose":
        y = net.node("ConvTranspose", [net.x, net.weights((6, 5, 2, 2), 1)], strides=[2, 2])
    else:
        group = 6 if form == "depthwise" else 1
        y = net.conv(net.x, 6, 6 if group > 1 else 5, group=group, bias="without" not in form)
    y = _normalised(net, y, 6 if form == "depthwise" else 5)
    graph = check(net, [net.q(net.node("Relu", [y]), 0.06, -100)])
    assert len(graph.ops) == 1
    assert graph.ops[0].attrs.activation == Activation.RELU


@pytest.mark.parametrize(
    ("shape", "quantised"), [((1, 6, 5, 4), False), ((1, 6, 5, 4), True), ((1, 6, 20), False)]
)
def test_a_normalisation_alone_is_a_depthwise_convolution_of_one_tap(shape, quantised):
    net = Qdq(shape)
    graph = check(net, [net.q(_normalised(net, net.x, 6, quantised), 0.06, -10)])
    assert [kind for kind in kinds(graph) if kind not in ("RESHAPE", "TRANSPOSE")] == ["DEPTHWISE_CONV_2D"]


# ---- Brevitas -------------------------------------------------------------------------------------------


def test_clipped_integers_of_weights_and_of_activations():
    net = Qdq((1, 12))
    w = net.node("QuantizeLinear", [net.const(net.rng.normal(size=(12, 5)), np.float32), *_params(net)])
    w = net.node("Clip", [w, net.const(-127, np.int8), net.const(127, np.int8)])
    w = net.node("Clip", [w, "", net.const(100, np.int8)])
    x = net.node("Clip", [net.quantize(net.x, 0.05, 0), net.const(-128, np.int8), net.const(127, np.int8)])
    y = net.node("MatMul", [net.dq(x, 0.05, 0), net.node("DequantizeLinear", [w, *_params(net)])])
    graph = check(net, [net.q(y)])
    assert kinds(graph) == ["QUANTIZE", "FULLY_CONNECTED"]
    data = graph.tensors[graph.ops[1].inputs[1]].data
    assert (data.min(), data.max()) == (-127, 100)


def _params(net):
    return [net.const(0.02, np.float32), net.const(0, np.int8)]


# ---- older opsets -----------------------------------------------------------------------------------------


def _parts(opset):
    """Operators whose parameters were attributes before opset 13."""
    net = Qdq((1, 6, 5), scale=0.02, opset=opset)
    old = opset < 13

    def parameter(name, values):
        return ([], {name: values}) if old else ([net.const(values)], {})

    inputs, more = parameter("split", [2, 4])
    a, b = net.node("Split", [net.x, *inputs], 2, axis=1, **more)
    inputs, more = parameter("axes", [1])
    wide = net.node("Unsqueeze", [b, *inputs], **more)
    inputs, more = parameter("axes", [0, 1])
    flat = net.node("Squeeze", [wide, *inputs], **more)
    y = net.q(net.node("Softmax", [flat], **({} if old else {"axis": 1})), 1 / 256, -128)
    return read(net.model([a, y]))


@pytest.mark.parametrize("opset", [11, 12])
def test_parameters_that_are_attributes(opset):
    old, new = _parts(opset), _parts(13)
    assert kinds(old) == kinds(new) == ["SLICE", "SLICE", "RESHAPE", "SOFTMAX"]
    assert [op.attrs for op in old.ops] == [op.attrs for op in new.ops]
    shapes = [[graph.tensors[t].shape for t in graph.outputs] for graph in (old, new)]
    assert shapes[0] == shapes[1] == [(1, 2, 5), (4, 5)]


def test_an_old_softmax_over_several_dimensions_is_refused():
    net = Qdq((1, 6, 5), scale=0.02, opset=12)
    with pytest.raises(UnsupportedError, match="several dimensions"):
        read(net.model([net.q(net.node("Softmax", [net.x]), 1 / 256, -128)]))
