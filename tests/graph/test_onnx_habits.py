"""Networks in the forms that exporters and quantisers write compute what onnx.reference computes."""

from fnmatch import fnmatchcase
from functools import partial

import numpy as np
import onnx
import pytest
from graphs import inputs_for
from onnx import TensorProto
from onnx.reference import ReferenceEvaluator
from onnxnets import Qdq, compared, kinds, many_operators, read

from buildtool.base.errors import UnsupportedError
from buildtool.graph.reference import execute
from buildtool.graph.types import Activation, AsUint8, MeanAttrs, OpKind, Pad

IMAGE, CONV, VOLUME = (1, 3, 6, 6), (1, 3, 9, 7), (1, 4, 5, 6)
SCALE_2, SCALE_3 = {"scale": 0.02}, {"scale": 0.03}
EIGHTHS, UINT8, OPSET_21 = {"scale": 0.125, "zero": 0}, {"dtype": "uint8", "zero": 100}, {"opset": 21}
HALVED, PADDED = {"kernel_shape": [2, 2]}, {"kernel_shape": [3, 3], "pads": [1] * 4}
HABITS = {}


def check(net, outputs, operators="*", shows=None, equal=0.9, most=1, dtype="float32", channels_last=True):
    """Returns the network's graph. Its operators match the pattern `operators`, and `shows(graph)` is true.

    Its outputs differ from the reference's by at most `most` steps, and at least the share `equal` is equal.
    An operator rounds within one step (see test_onnx_operators); the next one may turn that into two.
    """
    outputs = [outputs] if isinstance(outputs, str) else outputs
    graph, steps = compared(net.model(outputs, dtype), channels_last=channels_last)
    assert steps.max() <= most
    assert (steps == 0).mean() >= equal
    assert fnmatchcase(" ".join(kinds(graph)), operators), kinds(graph)
    assert shows is None or shows(graph), kinds(graph)
    return graph


def habit(shape, operators="*", shows=None, /, *, net=None, **more):
    """Registers a function that writes a network to a Qdq with an input of `shape`.

    `net` are arguments of the Qdq. `more` are arguments of `check` and of the function.
    """

    def note(write):
        bounds = {name: more[name] for name in more.keys() & {"equal", "most", "dtype", "channels_last"}}
        arguments = {name: value for name, value in more.items() if name not in bounds}
        name = " ".join([write.__name__, *(f"{key}={value}" for key, value in arguments.items())])
        assert name not in HABITS
        HABITS[name] = shape, net or {}, partial(write, **arguments), (operators, shows), bounds
        return write

    return note


def with_constant_nodes(model, shared):
    """Returns the model with its constants as Constant nodes, or `shared` ones that Identities copy."""
    graph, stored = model.graph, {c.name: c for c in model.graph.initializer}
    nodes = list[onnx.NodeProto]()
    for node in graph.node:
        made = [stored.pop(name) for name in dict.fromkeys(node.input) if name in stored]
        for c in made:
            name = f"{c.name}/stored" if shared else c.name
            nodes.append(onnx.helper.make_node("Constant", [], [name], value=c))
            nodes += [onnx.helper.make_node("Identity", [name], [c.name])] if shared else []
        nodes.append(node)
    del graph.initializer[:], graph.node[:]
    graph.node.extend(nodes)
    return model


@pytest.mark.parametrize("shared", [False, True])
def test_constants_are_initialisers_or_nodes(shared):
    """As PyTorch's exporter writes them, the first scale is a node, too."""
    expected, graph = read(many_operators()), read(with_constant_nodes(many_operators(), shared))
    assert kinds(graph) == kinds(expected)
    values = inputs_for(expected, 1)
    ours, theirs = (execute(g, values)[g.outputs[0]] for g in (graph, expected))
    np.testing.assert_array_equal(ours, theirs, strict=True)


def fuses(activation):
    return lambda graph: graph.ops[0].attrs.activation == activation


def pads(*pad):
    return lambda graph: graph.ops[-1].attrs.pad == Pad(*pad)


def gives(*shapes):
    return lambda graph: [graph.tensors[t].shape for t in graph.outputs] == [*shapes]


def counts(kind, number):
    return lambda graph: kinds(graph).count(kind) == number


RELU = fuses(Activation.RELU)

# ---- activations ---------------------------------------------------------------------------------------


@habit(CONV, "CONV_2D", fuses(Activation.RELU6), low=0.0, high=6.0)
@habit(CONV, "CONV_2D", fuses(Activation.RELU_N1_TO_1), low=-1.0, high=1.0)
# A clip to the whole range of its output needs no operator.
@habit(CONV, "CONV_2D", fuses(Activation.NONE), low=0.0, high=4.0, scale=4 / 255, zero=-128)
@habit(CONV, "* MINIMUM", low=0.0, high=4.0, zero=-100)
@habit(CONV, "* MAXIMUM MINIMUM", low=-0.5, high=2.0)
@habit(CONV, "* MAXIMUM", low=-0.5, high=9.0)
def a_clip(n, low, high, scale=0.06, zero=-20):
    return n.q(n.node("Clip", [n.conv(n.x, 3, 8), low, high]), scale, zero)


@habit(CONV, "CONV_2D", fuses(Activation.RELU6))
def relu_and_clip_are_one_clamp(n):
    return n.q(n.node("Clip", [n.node("Relu", [n.conv(n.x, 3, 8)]), -3.0, 6.0]), 0.06, -20)


@habit(CONV, "CONV_2D RELU")
def a_relu_on_what_others_read_stays_apart(n):
    y = n.conv(n.x, 3, 8)
    return [n.q(n.node("Relu", [y]), 0.06, -20), n.q(y, 0.06, -20)]


@habit(CONV, "CONV_2D HARD_SWISH")
def hard_swish_in_read_with_opset(n):
    x = n.q(n.conv(n.x, 3, 8), 0.08, 4)
    gate = n.q(n.node("HardSigmoid", [x], alpha=1 / 6, beta=0.5), 1 / 255, -128)
    return n.q(n.node("Mul", [x, gate]), 0.07, -100)


@habit(CONV, equal=0.5, alpha=1 / 6, beta=0.5)
@habit(CONV, equal=0.5, alpha=0.2, beta=0.5)
@habit(CONV, equal=0.5, alpha=0.3, beta=0.1)
def a_hard_sigmoid_is_a_sum_that_saturates(n, alpha, beta):
    return n.q(n.node("HardSigmoid", [n.x], alpha=alpha, beta=beta), 1 / 255, -128)


@habit(VOLUME, "LOGISTIC MUL", net=SCALE_3, equal=0.7, scale=1 / 255, zero=-128, out=-80)
@habit(VOLUME, "LOGISTIC MUL", net=SCALE_3, equal=0.7, scale=1 / 127, zero=0, out=-80)
@habit(VOLUME, "LOGISTIC QUANTIZE MUL", net=SCALE_3, equal=0.8, scale=0.5 / 255, zero=-128, out=-20)
def a_gate_is_multiplied_in_the_kernels_own_scale(n, scale, zero, out):
    """Networks with squeeze and excite, or SiLU, have such gates. A scale that saturates is rounded first."""
    return n.q(n.node("Mul", [n.x, n.q(n.node("Sigmoid", [n.x]), scale, zero)]), 0.02, out)


@habit((2, 20), "SOFTMAX", lambda g: g.tensors[g.outputs[0]].quant.scale == 1 / 256, net=SCALE_2)
def a_softmax_at_the_end_may_stay_float(n):
    return n.node("Softmax", [n.x], axis=1)


@habit((1, 6, 5, 4), "PRELU", equal=0.8)
def float_slopes_are_rounded_to_int8(n):
    return n.q(n.node("PRelu", [n.x, n.rng.uniform(-0.2, 0.5, (6, 1, 1))]), 0.05, -60)


# ---- functions of one or several tensors -----------------------------------------------------------------


def _moves_rows_last(graph):
    return [kind for kind in kinds(graph) if kind != "RESHAPE"] == ["TRANSPOSE", "SOFTMAX", "TRANSPOSE"]


@habit((2, 20), "* QUANTIZE", net=SCALE_2, equal=0.5, kind="Sigmoid", scale=1 / 255, zero=-128)
@habit((2, 20), "* QUANTIZE", net=SCALE_2, equal=0.5, kind="Tanh", scale=1 / 127, zero=0)
@habit((2, 20), "* QUANTIZE", net=SCALE_2, equal=0.5, kind="Softmax", scale=1 / 255, zero=-128)
@habit((1, 5, 4, 3), "SOFTMAX", net=SCALE_2, kind="Softmax", scale=1 / 256, zero=-128, axis=1)
@habit((1, 5, 4, 3), "*", _moves_rows_last, net=SCALE_2, kind="Softmax", scale=1 / 256, zero=-128, axis=2)
@habit(VOLUME, "*MUL*", equal=0, kind="Neg", scale=0.05, zero=3)
@habit(VOLUME, "*SQRT*", equal=0, kind="Sqrt", scale=0.02, zero=-128, least=0.2)
@habit(VOLUME, "*ELU*", equal=0, kind="Elu", scale=0.05, zero=-90)
@habit(VOLUME, "*LOG_SOFTMAX*", equal=0, kind="LogSoftmax", scale=1 / 16, zero=127, axis=1)
@habit(VOLUME, "*DIV*", equal=0, kind="Reciprocal", scale=0.1, zero=-128, least=0.2)
def a_function(n, kind, scale, zero, least=None, **attributes):
    x = n.x if least is None else n.q(n.node("Max", [n.x, least]), 0.05, -128)
    return n.q(n.node(kind, [x], **attributes), scale, zero)


@habit(VOLUME, "*", counts("MAXIMUM", 3), kind="Max")
@habit(VOLUME, "*", counts("MINIMUM", 3), kind="Min")
def the_larger_or_smaller_of_several_tensors_and_numbers(n, kind):
    other, row = n.q(n.conv(n.x, 4, 4), 0.08, 11), np.linspace(-2, 2, 4).reshape(4, 1, 1)
    return n.q(n.node(kind, [n.x, other, row, 0.7]), 0.07, -5)


@habit(VOLUME, "* DIV", equal=0)
def a_quotient_of_two_tensors(n):
    divisor = n.q(n.node("Exp", [n.q(n.conv(n.x, 4, 4), 0.03, 0)]), 0.1, -128)
    return n.q(n.node("Div", [n.x, n.q(n.node("Max", [divisor, 0.5]), 0.1, -128)]), 0.06, -2)


@habit(VOLUME, "* ADD*", equal=0)
def a_sum_of_two_tensors(n):
    return n.q(n.node("Sum", [n.x, n.q(n.conv(n.x, 4, 4), 0.08, 11)]), 0.1, 2)


@habit((1, 3, 4, 5), "*TILE*", net={"scale": 0.125}, equal=1)
def an_expand_repeats(n):
    return n.node("Identity", [n.node("Expand", [n.node("Expand", [n.x, [2, 1, 3, 4, 5]]), [1]])])


@habit((1, 7, 5), "*FULLY_CONNECTED*", net=EIGHTHS)
def a_product_with_an_asymmetric_constant_is_a_dense_layer_with_its_bias(n):
    w = n.dq(n.const(np.arange(-128, -108, dtype=np.int8).reshape(5, 4)), 0.125, 100)
    return n.q(n.node("Add", [n.node("MatMul", [n.x, w]), [1.0, -200.0, 300.0, 0.5]]), 50.0)


@habit(VOLUME, "SUM", equal=0.8, keepdims=0)
@habit(VOLUME, "SUM", equal=0.8, keepdims=1)
def a_sum_over_dimensions(n, keepdims):
    return n.q(n.node("ReduceSum", [n.x, [2, 3]], keepdims=keepdims), 0.4)


@habit((1, 4, 6, 5), "*", net=EIGHTHS)
def a_product_of_a_tensor_and_its_own_transpose(n):
    return n.q(n.node("MatMul", [n.x, n.node("Transpose", [n.x], perm=[0, 1, 3, 2])]), 5.0)


# ---- where the file quantises ---------------------------------------------------------------------------


@habit((1, 3, 8, 8), "CONV_2D MAX_POOL_2D RESHAPE FULLY_CONNECTED", late=True)
@habit((1, 3, 8, 8), "CONV_2D MAX_POOL_2D RESHAPE FULLY_CONNECTED", late=False)
@habit((1, 3, 8, 8), "*", counts("QUANTIZE", 1), late=False, scale=0.05)
def quantised_behind_each_operator_or_late(n, late, scale=0.06):
    y = n.node("Relu", [n.conv(n.x, 3, 4)])
    y = n.node("MaxPool", [y if late else n.q(y, 0.06, -128)], strides=[2, 2], **HALVED)
    y = n.q(n.node("Flatten", [y if late else n.q(y, scale, -128)]), scale, -128)
    return n.q(n.node("Gemm", [y, n.weights((64, 5))]), 0.2)


@habit(IMAGE, "CONV_2D CONV_2D QUANTIZE CONCATENATION", gives((1, 6, 6, 8)))
def parts_of_a_concatenation_are_brought_to_its_scale(n):
    parts = [n.q(n.conv(n.x, 3, 4), 0.05), n.q(n.conv(n.x, 3, 4), 0.08, 9)]
    return n.q(n.node("Concat", parts, axis=1), 0.08, 9)


@habit(IMAGE, "CONV_2D CONV_2D CONCATENATION")
def parts_that_are_quantised_behind_the_concatenation_need_nothing(n):
    parts = [n.conv(n.x, 3, 4), n.node("Relu", [n.conv(n.x, 3, 4)])]
    return n.q(n.node("Concat", parts, axis=1), 0.08, 9)


@habit((1, 4, 8, 8), "MAX_POOL_2D RESHAPE FULLY_CONNECTED RESHAPE", net=UINT8)
def operators_on_quantised_integers(n):
    y = n.node("MaxPool", ["image"], strides=[2, 2], **HALVED)
    y = n.node("Transpose", [n.node("Reshape", [y, [1, 4, 16]])], perm=[0, 2, 1])
    n.nodes = n.nodes[1:]  # the input's own DequantizeLinear
    return n.q(n.node("MatMul", [n.dq(y, 0.05, 100, "uint8"), n.weights((4, 6))]))


@habit(IMAGE, "QUANTIZE CONV_2D", pads(1, 1, 0, 1))
def a_pad_of_quantised_integers(n):
    y = n.node("Pad", [n.quantize(n.x, 0.07, 100, "uint8"), [0, 0, 1, 0, 0, 0, 1, 1], np.uint8(100)])
    return n.q(n.conv(n.dq(y, 0.07, 100, "uint8"), 3, 4, pads=[0] * 4))


def _is_shifted(graph):
    return [graph.tensors[t].quant.zero_point for t in (*graph.inputs, *graph.outputs)] == [-28, -11]


@habit(
    IMAGE, "* CONV_2D", lambda g: g.tensors[g.inputs[0]].quant.scale == 1, net={"dtype": "uint8"}, equal=0.8
)
def preprocessing_of_stored_pixels(n):
    n.nodes.clear()
    pixels = n.node("Mul", [n.node("Cast", ["image"], to=TensorProto.FLOAT), 1 / 255])
    means, deviations = (
        [[[v]] for v in numbers] for numbers in ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
    )
    y = n.node("Div", [n.node("Sub", [pixels, means]), deviations])
    return n.q(n.conv(n.q(y, 4.76 / 255, -14), 3, 4), 0.08)


@habit(IMAGE, "*", _is_shifted, net=UINT8, equal=0, dtype="uint8")
def an_integer_output_is_shifted_to_int8(n):
    return n.quantize(n.conv(n.x, 3, 4), 0.05, 117, "uint8")


def _has_zero_point(zero):
    return lambda graph: graph.tensors[graph.outputs[0]].quant.zero_point == zero


@habit((1, 12), "*", _has_zero_point(0), net=OPSET_21, output_dtype=TensorProto.INT8)
@habit((1, 12), "*", _has_zero_point(-128), net=OPSET_21)
def the_type_may_follow_from_an_attribute_alone(n, **more):
    """From opset 21 on, an attribute of QuantizeLinear gives its type. The default is uint8."""
    return n.node("DequantizeLinear", [n.node("QuantizeLinear", [n.x, 0.07], **more), 0.07])


@habit((3, 12), "FULLY_CONNECTED", net=UINT8, equal=0.8, dtype="uint8")
def a_qlinear_matmul(n):
    """The recorded networks have the other operators of the QOperator format."""
    w = n.rng.integers(-127, 128, (12, 5)).astype(np.int8)
    scales = [np.float32(0.02), np.int8(0), np.float32(0.4), np.uint8(120)]
    return n.node("QLinearMatMul", ["image", np.float32(0.05), np.uint8(100), w, *scales])


# ---- constants ------------------------------------------------------------------------------------------


@habit((1, 40), zero=128)
@habit((1, 40), zero=100)
def unsigned_weights_whose_differences_are_int8(n, zero):
    data = n.rng.integers(zero - 100, zero + 100, (40, 6)).astype(np.uint8)
    return n.q(n.node("MatMul", [n.x, n.dq(n.const(data), 0.01, zero, "uint8")]))


def asymmetric(n, shape, zero, scale=0.01):
    """Weights over the whole range of uint8: less their zero point they do not fit int8."""
    return n.dq(n.const(n.rng.integers(0, 256, shape).astype(np.uint8)), scale, zero, "uint8")


def _keeps_the_zero_point(graph):
    filters = [op for op in graph.ops if isinstance(op.attrs, AsUint8)]
    return all(any(graph.tensors[op.inputs[1]].quant.zero_points) for op in filters) and filters


@habit(IMAGE, "CONV_2D", _keeps_the_zero_point, shape=(4, 3, 3, 3))
@habit(IMAGE, "DEPTHWISE_CONV_2D", _keeps_the_zero_point, shape=(6, 1, 3, 3), group=3)
@habit((1, 4, 6, 6), "CONV_2D", _keeps_the_zero_point, shape=(4, 2, 3, 3), group=2)
def asymmetric_weights_keep_their_zero_point(n, shape, group=1):
    y = n.node(
        "Conv",
        [n.x, asymmetric(n, shape, 90), n.const(np.linspace(-1, 1, shape[0]), np.float32)],
        group=group,
    )
    return n.q(n.node("Relu", [y]), 0.02, -120)


@habit(IMAGE, "CONV_2D", _keeps_the_zero_point)
def a_batch_norm_scales_asymmetric_weights(n):
    y = n.node("Conv", [n.x, asymmetric(n, (4, 3, 3, 3), 90)])
    parameters = [[0.5, -1.2, 0.0, 2.0], [0.1, 0.2, -0.3, 0.4], [0.0, 0.1, 0.2, 0.3], [1.0, 0.5, 2.0, 1.5]]
    return n.q(n.node("BatchNormalization", [y, *parameters]), 0.06)


@habit((3, 40), "FULLY_CONNECTED", _keeps_the_zero_point)
def a_gemm_with_asymmetric_weights(n):
    return n.q(n.node("Gemm", [n.x, asymmetric(n, (40, 6), 140), n.const(np.ones(6), np.float32)]), 0.1)


@habit((3, 40), "FULLY_CONNECTED", lambda g: len(g.tensors[g.ops[0].inputs[1]].quant.scales) == 6)
def weights_that_are_transposed_behind_their_dequantisation(n):
    w = n.node("Transpose", [n.weights((6, 40), 0, 0.01)], perm=[1, 0])
    return n.q(n.node("MatMul", [n.x, w]))


@habit(IMAGE, "CONV_2D")
def a_bias_in_another_scale_is_rounded_to_the_products(n):
    bias = n.dq(n.const([100, -200, 300, 50], np.int32), 0.01, 0, "int32")
    return n.q(n.node("Conv", [n.x, n.weights((4, 3, 3, 3), 0, 0.03), bias]), 0.2)


@habit(IMAGE, "CONV_2D")
def a_bias_of_a_channel_of_tiny_weights_is_the_least_int32(n):
    """As onnxruntime's quantiser writes it: the weights have a tiny scale, and the bias saturates."""
    scales = np.array([0.03, 2e-22, 0.02, 0.01], np.float32)
    w = n.dq(n.const(n.rng.integers(-127, 128, (4, 3, 3, 3)), np.int8), scales, np.zeros(4), axis=0)
    bias = n.const([100, -(1 << 31), 300, 50], np.int32)
    bias = n.dq(bias, np.float32(0.05) * scales, np.zeros(4), "int32", axis=0)
    return n.q(n.node("Conv", [n.x, w, bias]), 0.2)


def _has_one_bias(graph):
    biases = [op.inputs[2] >= 0 for op in graph.ops if len(op.inputs) == 3]
    return biases == [True] and OpKind.ADD not in kinds(graph)


@habit(IMAGE, "*", _has_one_bias, kind="MatMul", shape=(5,))
@habit(IMAGE, "*", _has_one_bias, kind="Conv", shape=(4, 1, 1))
def an_addition_of_constants_is_the_bias(n, kind, shape):
    y = n.conv(n.x, 3, 4, bias=False) if kind == "Conv" else n.node(kind, [n.x, n.weights((6, 5))])
    return n.q(n.node("Relu", [n.node("Add", [n.rng.normal(size=shape), y])]))


@habit(IMAGE, "MUL ADD MUL", equal=0.8)
def scalars_are_exact_constants(n):
    y = n.q(n.node("Mul", [n.x, 0.37]), 0.02)
    y = n.q(n.node("Add", [[-1.25], y]), 0.03, 40)
    return n.q(n.node("Div", [y, 2.5]), 0.01, 40)


@habit((2, 3, 6, 5), "*", counts("DEPTHWISE_CONV_2D", 5), equal=0.98, shape=(1, 3, 1, 1))
@habit((2, 3, 6, 5), "*", counts("DEPTHWISE_CONV_2D", 5), equal=0.98, shape=(3, 6, 5))
@habit((2, 3, 6, 5), "*", counts("DEPTHWISE_CONV_2D", 5), equal=0.98, shape=(6, 1))
@habit((1, 7, 5), "*", counts("DEPTHWISE_CONV_2D", 5), equal=0.98, shape=(7, 1))
@habit((4, 9), "*", counts("DEPTHWISE_CONV_2D", 5), equal=0.98, shape=(9,))
def floats_without_a_scale_become_taps(n, shape):
    """Preprocessing in a network writes them: (x - mean) / deviation."""
    offset, factor = n.rng.normal(size=shape), n.rng.normal(size=shape)
    operands = [("Add", n.x, offset), ("Sub", n.x, offset), ("Sub", offset, n.x)]
    operands += [("Mul", factor, n.x), ("Div", n.x, 0.2 + factor**2)]
    return [n.q(n.node(kind, pair), 0.07, 5) for kind, *pair in operands]


@habit((1, 3, 6, 5), "SUB MUL")
def constant_images_follow_the_layout(n):
    whole = n.dq(n.const(n.rng.integers(-128, 128, (1, 3, 6, 5)).astype(np.int8)), 0.05, 5)
    channels = n.dq(n.const(n.rng.integers(-128, 128, (3, 1, 1)).astype(np.int8)), 0.02, 0)
    return n.q(n.node("Mul", [n.q(n.node("Sub", [whole, n.x])), channels]), 0.3)


@habit(IMAGE, "MAX_POOL_2D RESHAPE FULLY_CONNECTED")
def shapes_that_the_file_computes(n):
    """PyTorch exports `x.view(x.size(0), -1)` like this."""
    y = n.q(n.node("MaxPool", [n.x], strides=[2, 2], **HALVED), 0.05, 3)
    batch = n.node("Gather", [n.node("Shape", [y]), 0], axis=0)
    flat = n.node("Reshape", [y, n.node("Concat", [n.node("Unsqueeze", [batch, [0]]), [-1]], axis=0)])
    return n.q(n.node("Gemm", [flat, n.weights((27, 4))]))


# ---- layouts --------------------------------------------------------------------------------------------


@habit((2, 3, 4, 5), "CONV_2D LEAKY_RELU RESHAPE FULLY_CONNECTED", equal=0.8)
def flattened_channels_permute_the_next_weights(n):
    y = n.q(n.node("Flatten", [n.q(n.conv(n.x, 3, 4))]))
    y = n.q(n.node("LeakyRelu", [y], alpha=0.125), 0.1, 5)
    return n.q(n.node("Gemm", [y, n.weights((7, 80), 0)], transB=1), 1.5)


def _keeps_its_order(graph):
    return [graph.tensors[t].shape for t in (*graph.inputs, *graph.outputs)] == [(1, 8, 6, 3), (1, 8, 6, 5)]


@habit((1, 8, 6, 3), "CONV_2D", _keeps_its_order, channels_last=False)
def an_input_that_the_file_transposes_is_channels_last_already(n):
    """tf2onnx writes this."""
    y = n.node("Transpose", [n.x], perm=[0, 3, 1, 2])
    return n.node("Transpose", [n.q(n.conv(y, 3, 5))], perm=[0, 2, 3, 1])


@habit((1, 6, 5, 4), "CONV_2D TRANSPOSE DEPTHWISE_CONV_2D")
def a_channel_shuffle_is_one_transpose(n):
    y = n.node("Reshape", [n.q(n.conv(n.x, 6, 6)), [0, 2, 3, 5, 4]])
    y = n.node("Reshape", [n.node("Transpose", [y], perm=[0, 2, 1, 3, 4]), [1, 6, 5, 4]])
    return n.q(n.conv(y, 6, 6, group=6))


@habit((1, 8, 4, 6), "*", counts("TRANSPOSE", 1), most=2, kind="DepthToSpace", channels=2, mode="DCR")
@habit((1, 8, 4, 6), "*", counts("TRANSPOSE", 1), most=2, kind="DepthToSpace", channels=2, mode="CRD")
@habit((1, 8, 4, 6), "*", counts("TRANSPOSE", 1), most=2, kind="SpaceToDepth", channels=32)
def depth_and_space(n, kind, channels, **mode):
    return n.q(n.conv(n.node(kind, [n.q(n.conv(n.x, 8, 8))], blocksize=2, **mode), channels, 4), 0.2)


@habit((1, 3, 4, 5), "* TRANSPOSE*", gives((1, 6, 20)))
def a_matrix_output_is_in_the_files_order(n):
    """A detector's boxes have the shape (N, C, H * W)."""
    return n.node("Reshape", [n.q(n.conv(n.x, 3, 6)), [1, 6, -1]])


def _is_an_image_of_one_row(graph):
    (depthwise,) = (op.attrs for op in graph.ops if op.kind == OpKind.DEPTHWISE_CONV_2D)
    shape = graph.tensors[graph.inputs[0]].shape
    return shape == (1, 40, 6) and OpKind.TRANSPOSE not in kinds(graph) and depthwise.dilation == (1, 2)


@habit((1, 6, 40), "*", _is_an_image_of_one_row)
def lines_are_images_of_one_row(n):
    y = n.node("Conv", [n.x, n.weights((8, 6, 5), 0, 0.03)], strides=[2], pads=[2, 2])
    y = n.node("MaxPool", [n.q(n.node("Relu", [y]), 0.06, -128)], kernel_shape=[2], strides=[2])
    y = n.node("Conv", [y, n.weights((8, 1, 3), 0, 0.01)], group=8, dilations=[2], pads=[2, 2])
    return n.q(n.node("Flatten", [n.node("GlobalAveragePool", [n.q(y, 0.05)])]), 0.01)


# ---- windows --------------------------------------------------------------------------------------------


@habit((1, 3, 8, 7), "*", pads(0, 1, 1, 1), mode="SAME_UPPER")
@habit((1, 3, 8, 7), "*", pads(1, 0, 1, 1), mode="SAME_LOWER")
@habit((1, 3, 8, 7), "*", pads(), mode="VALID")
def automatic_padding(n, mode):
    return n.q(n.conv(n.x, 3, 4, strides=[2, 2], auto_pad=mode))


@habit((1, 3, 7, 7), "*", gives((1, 4, 4, 3)), equal=0.6, kind="MaxPool", size=7)
@habit((1, 3, 8, 8), "*", gives((1, 4, 4, 3)), equal=0.6, kind="MaxPool", size=8)
@habit((1, 3, 6, 6), "*", gives((1, 3, 3, 3)), equal=0.6, kind="MaxPool", size=6)
@habit((1, 3, 7, 7), "*", gives((1, 4, 4, 3)), equal=0.6, kind="AveragePool", size=7)
@habit((1, 3, 8, 8), "*", gives((1, 4, 4, 3)), equal=0.6, kind="AveragePool", size=8)
@habit((1, 3, 6, 6), "*", gives((1, 3, 3, 3)), equal=0.6, kind="AveragePool", size=6)
def windows_that_reach_over_the_edge(n, kind, size):
    return n.q(n.node(kind, [n.x], ceil_mode=1, strides=[2, 2], **HALVED), 0.05, 3)


@habit((1, 3, 3, 3), "*", gives((1, 1, 1, 3)))
def a_window_that_starts_behind_the_image_does_not_count(n):
    return n.node("MaxPool", [n.x], kernel_shape=[2, 2], strides=[3, 3], pads=[0, 0, 1, 1], ceil_mode=1)


@habit((1, 3, 8, 8), "*", pads(1, 0, 1, 0))
def a_maximum_is_padded_on_all_sides(n):
    """PyTorch's residual networks begin like this. TFLite has no such padding."""
    return n.node("MaxPool", [n.x], strides=[2, 2], **PADDED)


@habit((1, 3, 9, 9), "AVERAGE_POOL_2D", equal=0.8, include=0)
@habit((1, 3, 9, 9), "AVERAGE_POOL_2D", equal=0.8, include=1)
def padded_elements_count_or_not(n, include):
    return n.q(n.node("AveragePool", [n.x], count_include_pad=include, strides=[2, 2], **PADDED), 0.05, 3)


@habit(IMAGE, "*", lambda g: g.ops[0].attrs == MeanAttrs((1, 2), True), equal=0.6)
def a_pool_over_everything_in_another_scale_is_a_mean(n):
    return n.q(n.node("AveragePool", [n.x], kernel_shape=[6, 6]), 0.004, 50)


@habit(IMAGE, "AVERAGE_POOL_2D")
def a_pool_of_the_images_size_over_padding_that_counts_is_no_mean(n):
    more = {"kernel_shape": [6, 6], "strides": [2, 2], "pads": [1, 1, 0, 0], "count_include_pad": 1}
    return n.q(n.node("AveragePool", [n.x], **more), 0.05, 3)


@habit((1, 6, 5, 4), "CONV_2D SLICE SLICE", gives((1, 5, 4, 2), (1, 5, 4, 4)))
def parts_of_unequal_size_are_slices(n):
    return n.node("Split", [n.q(n.conv(n.x, 6, 6)), [2, 4]], 2, axis=1)


@habit((1, 3, 5, 4), "PAD", mode="constant")
@habit((1, 3, 5, 4), "PAD", mode="constant", value=1.5)
@habit((1, 3, 5, 4), "MIRROR_PAD", mode="reflect")
@habit((1, 3, 5, 4), "MIRROR_PAD", mode="edge")
def a_pad(n, mode, **value):
    return n.node("Pad", [n.x, [0, 0, 1, 0, 0, 0, 1, 1], *value.values()], mode=mode)


# ---- batch normalisation --------------------------------------------------------------------------------


def _normalise(n, x, channels, quantised=False):
    """Adds a normalisation with negative factors and one of 0. onnxruntime leaves them `quantised`."""
    scale = n.rng.normal(size=channels)
    scale[1] = 0
    more = [n.rng.normal(size=channels), n.rng.normal(size=channels) * 0.1, n.rng.uniform(0.5, 2, channels)]
    if quantised:
        scale = n.dq(n.const(np.rint(scale / 0.03).astype(np.int8)), 0.03, 0)
    return n.node("BatchNormalization", [x, scale, *more])


@habit((2, 6, 5, 4), "CONV_2D", RELU, form="Conv")
@habit((2, 6, 5, 4), "CONV_2D", RELU, form="Conv without bias")
@habit((2, 6, 5, 4), "DEPTHWISE_CONV_2D", RELU, form="depthwise")
@habit((2, 6, 5, 4), "TRANSPOSE_CONV", RELU, form="ConvTranspose")
@habit((4, 6), "FULLY_CONNECTED", RELU, form="MatMul")
def a_normalisation_is_part_of_the_weights(n, form):
    """Exporters leave a normalisation behind quantised weights."""
    channels = 6 if form == "depthwise" else 5
    if form == "MatMul":
        y = n.node("Add", [n.node("MatMul", [n.x, n.weights((6, 5), 1)]), n.rng.normal(size=5)])
    elif form == "ConvTranspose":
        y = n.node("ConvTranspose", [n.x, n.weights((6, 5, 2, 2), 1)], strides=[2, 2])
    else:
        y = n.conv(n.x, 6, channels, group=6 if form == "depthwise" else 1, bias="without" not in form)
    return n.q(n.node("Relu", [_normalise(n, y, channels)]), 0.06, -100)


def _is_depthwise(graph):
    return [k for k in kinds(graph) if k not in ("RESHAPE", "TRANSPOSE")] == ["DEPTHWISE_CONV_2D"]


@habit((1, 6, 5, 4), "*", _is_depthwise, quantised=False)
@habit((1, 6, 5, 4), "*", _is_depthwise, quantised=True)
@habit((1, 6, 20), "*", _is_depthwise)
def a_normalisation_alone_is_a_depthwise_convolution_of_one_tap(n, quantised=False):
    return n.q(_normalise(n, n.x, 6, quantised), 0.06, -10)


# ---- Brevitas -------------------------------------------------------------------------------------------


def _clips_the_weights(graph):
    data = graph.tensors[graph.ops[1].inputs[1]].data
    return (data.min(), data.max()) == (-127, 100)


@habit((1, 12), "QUANTIZE FULLY_CONNECTED", _clips_the_weights)
def clipped_integers_of_weights_and_of_activations(n):
    params = [0.02, np.int8(0)]
    w = n.node("QuantizeLinear", [n.rng.normal(size=(12, 5)), *params])
    w = n.node("Clip", [n.node("Clip", [w, np.int8(-127), np.int8(127)]), "", np.int8(100)])
    x = n.node("Clip", [n.quantize(n.x, 0.05, 0), np.int8(-128), np.int8(127)])
    return n.q(n.node("MatMul", [n.dq(x, 0.05, 0), n.node("DequantizeLinear", [w, *params])]))


# ---- tests ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", HABITS)
def test_a_habit_is_read_and_computes_what_the_reference_computes(name):
    shape, options, write, expected, bounds = HABITS[name]
    net = Qdq(shape, **options)
    check(net, write(net), *expected, **bounds)


@pytest.mark.parametrize("kind", ["ArgMax", "ArgMin"])
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("keep", [0, 1])
def test_places_of_extremes_end_a_network(kind, axis, keep):
    net = Qdq((1, 3, 4, 5), scale=0.125, zero=0)
    model = net.model([net.node(kind, [net.x], axis=axis, keepdims=keep)], "int64")
    graph = read(model)
    (values,) = inputs_for(graph, 0)
    real = values.transpose(0, 3, 1, 2).astype(np.float32) * 0.125
    (theirs,) = ReferenceEvaluator(model).run(None, {"image": real})
    theirs = theirs.transpose(0, 2, 3, 1) if theirs.ndim == 4 else theirs
    ours = execute(graph, [values])[graph.outputs[0]]
    np.testing.assert_array_equal(ours, theirs.reshape(ours.shape), strict=True)
    classes = axis == 1  # the dimension that lies last
    assert kinds(graph).count("TRANSPOSE") == (0 if classes or keep else 1)


@pytest.mark.parametrize("scale", [0.0, 1e-45])
def test_a_bias_of_scale_0_is_refused_without_a_warning(scale, recwarn):
    net = Qdq((1, 3, 6, 6))
    w = net.weights((4, 3, 3, 3), 0, np.array([0.03, 0.02, scale, 0.01], np.float32))
    y = net.node("Conv", [net.x, w, net.const([0.5, -0.25, 0.125, 0.5], np.float32)])
    with pytest.raises(UnsupportedError, match="a bias that does not fit int32"):
        read(net.model([net.q(y, 0.2)]))
    assert not recwarn.list


# ---- older opsets -----------------------------------------------------------------------------------------


def _read_with_opset(opset):
    """Returns the graph of operators whose parameters are attributes, or have defaults, in older opsets."""
    net = Qdq((1, 3, 6, 5), opset=opset)
    old = opset == 10

    def parameter(name, values):  # it is an input from opset 13 on
        return ([], {name: values}) if opset < 13 else ([net.const(values)], {})

    def resized(x, mode, *factors):
        scales = np.array([1, 1, *factors], np.float32)
        simple = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
        return net.node(
            "Resize", [x, scales] if old else [x, "", scales], mode=mode, **({} if old else simple)
        )

    def clipped(x, low, high):
        if old:
            return net.node("Clip", [x], **({} if low is None else {"min": low}), max=high)
        return net.node("Clip", [x, "" if low is None else low, high])

    sides = [0, 0, 1, 0, 0, 0, 0, 2]
    padded = net.node("Pad", [net.x], pads=sides, value=0.5) if old else net.node("Pad", [net.x, sides, 0.5])
    y = net.q(clipped(net.conv(padded, 3, 4), 0.0, 6.0), 0.05, -128)
    y = net.node("Slice", [y, [1, 6], [7, 0], [2, 3], [1, -2]])
    y = net.q(resized(resized(y, "nearest", 2, 0.5), "linear", 2, 3), 0.05, -128)
    inputs, more = parameter("split", [1, 3])
    part, y = net.node("Split", [net.q(clipped(y, None, 1.5), 0.05, -128), *inputs], 2, axis=1, **more)
    inputs, more = parameter("axes", [0])
    flat = net.node("Squeeze", [y, *inputs], **more)
    inputs, more = parameter("axes", [1])
    flat = net.node("Unsqueeze", [net.node("Reshape", [flat, [-1, 6]]), *inputs], **more)
    last = {} if opset < 13 else {"axis": 1}
    flat = net.node("Softmax", [net.node("Squeeze", [flat, *inputs], **more)], **last)
    return read(net.model([part, net.q(flat, 1 / 256, -128)]))


@pytest.mark.parametrize("opset", [10, 11, 12])
def test_older_opsets_give_the_same_graph(opset):
    old, new = _read_with_opset(opset), _read_with_opset(13)
    assert kinds(old) == kinds(new)
    assert kinds(old)[2:5] == ["STRIDED_SLICE", "RESIZE_NEAREST_NEIGHBOR", "RESIZE_BILINEAR"]
    assert [op.attrs for op in old.ops] == [op.attrs for op in new.ops]
    for a, b in zip(old.tensors, new.tensors, strict=True):
        assert (a.shape, a.quant) == (b.shape, b.quant)
        np.testing.assert_array_equal(a.data, b.data)


@pytest.mark.parametrize(
    ("shape", "floats", "text"),
    [
        ((1, 3, 1, 5), (1, 3, 4, 5), "shape .1, 3, 4, 5. and a tensor"),
        ((1, 80, 80), (80, 80), "6400 numbers"),
    ],
)
def test_floats_that_do_not_become_taps_are_refused(shape, floats, text):
    net = Qdq(shape)
    with pytest.raises(UnsupportedError, match=text) as caught:
        read(net.model([net.q(net.node("Add", [net.x, net.rng.normal(size=floats)]))]))
    assert "put a DequantizeLinear between" in caught.value.hint


def test_an_old_softmax_over_several_dimensions_is_refused():
    net = Qdq((1, 6, 5), scale=0.02, opset=12)
    with pytest.raises(UnsupportedError, match="several dimensions"):
        read(net.model([net.q(net.node("Softmax", [net.x]), 1 / 256, -128)]))
