"""uint8 networks (the scheme before int8) equal LiteRT's uint8 kernels."""

import numpy as np
import pytest
from flatfiles import FileOperator, FileTensor, constant
from graphs import inputs_for
from litert import check_file, run
from uint8nets import Sheet

from buildtool.base.errors import UnsupportedError
from buildtool.graph.fixedpoint import multiply_by_quantized_multiplier, quantize_multiplier
from buildtool.graph.reference import execute
from buildtool.graph.tflite.reader import read_model
from buildtool.graph.types import AsUint8, ConvAttrs, DType, Graph

IMAGE = (1, 8, 9, 4)
MOVE = {"scale": 0.5, "zero": 131}


def assert_equals_litert(data: bytes) -> Graph:
    for seed in range(3):
        graph = check_file(data, inputs_for(read_model(data), seed))
    return graph


def convolution(kind: str, zero: int, least: int = 0, most: int = 255, activation: int = 3) -> bytes:
    s, low, high = Sheet(zero), least, most + 1
    x = s.tensor(IMAGE, 0.5, 7)
    options = {"Padding": 0, "StrideH": 2, "StrideW": 1, "FusedActivationFunction": activation}
    if kind == "CONV_2D":
        w, out, cls = s.weights((8, 3, 3, 4), zero, low, high), (1, 4, 9, 8), "Conv2DOptions"
    elif kind == "DEPTHWISE_CONV_2D":
        w, out, cls = s.weights((1, 3, 3, 8), zero, low, high), (1, 4, 9, 8), "DepthwiseConv2DOptions"
        options["DepthMultiplier"] = 2
    else:
        w, out, cls = s.weights((8, 288), zero, low, high), (1, 8), "FullyConnectedOptions"
        options = {"FusedActivationFunction": activation}
    y = s.apply(kind, [x, w, s.bias(8, x, w)], out, cls, options, scale=0.6, zero=120)
    return s.bytes([x], [y])


@pytest.mark.parametrize("kind", ["CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED"])
@pytest.mark.parametrize("zero", [0, 128, 151, 255])
def test_filters_with_a_zero_point(kind, zero) -> None:
    least = max(zero - 128, 0)
    for most, fits in ((min(zero + 127, 255), True), (255, zero == 128)):
        graph = assert_equals_litert(convolution(kind, zero, least if fits else 0, most))
        marked = [isinstance(op.attrs, AsUint8) for op in graph.ops]
        assert sum(marked) == int(not fits)
    assert [graph.tensors[t].dtype for t in (*graph.inputs, *graph.outputs)] == [DType.UINT8] * 2


def single(kind, shape, cls="", options=None, operands=1, after=None, out=None, version=1) -> bytes:
    s = Sheet()
    inputs = [s.tensor(IMAGE, (0.5, 0.31)[i], (131, 121)[i]) for i in range(operands)]
    more = after(s) if after else []
    y = s.apply(kind, [*inputs, *more], shape, cls, options, version, **(out or {"scale": 0.45, "zero": 90}))
    return s.bytes(inputs, [y])


def pool(kind, **window):
    options = {"Padding": 0, "StrideH": 2, "StrideW": 2, "FilterHeight": 3, "FilterWidth": 2} | window
    return single(kind, (1, 4, 5, 4), "Pool2DOptions", options, out=MOVE)


def pad(s: Sheet) -> list[int]:
    return [s.add(constant([[0, 0], [1, 2], [3, 0], [0, 0]]))]


def filled() -> bytes:
    """Returns an ADD of the input and the constant output of FILL."""
    s = Sheet()
    x, value, y = s.tensor(IMAGE), s.tensor((), data=np.array(77, np.uint8)), s.tensor(IMAGE)
    s.operators.append(FileOperator("FILL", [s.ints(*IMAGE), value], [y], "FillOptions", {}))
    return s.bytes([x], [s.apply("ADD", [x, y], IMAGE, "AddOptions", {}, scale=0.7, zero=9)])


SINGLE = {
    "average": pool("AVERAGE_POOL_2D"),
    "average, RELU6": pool("AVERAGE_POOL_2D", FusedActivationFunction=3),
    "average, whole": single("AVERAGE_POOL_2D", (1, 1, 1, 4), "Pool2DOptions",
                             {"Padding": 1, "StrideH": 1, "StrideW": 1, "FilterHeight": 8, "FilterWidth": 9},
                             out=MOVE),
    "maximum": pool("MAX_POOL_2D", FusedActivationFunction=1),
    "add": single("ADD", IMAGE, "AddOptions", {"FusedActivationFunction": 1}, 2),
    "sub": single("SUB", IMAGE, "SubOptions", {}, 2),
    "mul": single("MUL", IMAGE, "MulOptions", {}, 2),
    "mean": single("MEAN", (1, 4), "ReducerOptions", {}, after=lambda s: [s.ints(1, 2)]),
    "softmax": single("SOFTMAX", IMAGE, "SoftmaxOptions", {"Beta": 1.0}, out={"scale": 1 / 256, "zero": 0}),
    "logistic": single("LOGISTIC", IMAGE, out={"scale": 1 / 256, "zero": 0}),
    "tanh": single("TANH", IMAGE, out={"scale": 1 / 128, "zero": 128}),
    "hard swish": single("HARD_SWISH", IMAGE),
    "relu": single("RELU", IMAGE),
    "relu6": single("RELU6", IMAGE),
    "leaky": single("LEAKY_RELU", IMAGE, "LeakyReluOptions", {"Alpha": 0.2}),
    "gelu": single("GELU", IMAGE, "GeluOptions", {}),
    "prelu": single("PRELU", IMAGE, after=lambda s: [s.weights((1, 1, 4))]),
    "pad": single("PAD", (1, 11, 12, 4), "PadOptions", after=pad, out=MOVE),
    "mirror": single("MIRROR_PAD", (1, 11, 12, 4), "MirrorPadOptions", {"Mode": 1}, after=pad, out=MOVE),
    "transpose": single("TRANSPOSE", (1, 9, 8, 4), after=lambda s: [s.ints(0, 2, 1, 3)], out=MOVE),
    "reshape": single("RESHAPE", (1, 288), "ReshapeOptions", after=lambda s: [s.ints(1, 288)], out=MOVE),
    "slice": single("SLICE", (1, 4, 9, 2), out=MOVE,
                    after=lambda s: [s.ints(0, 1, 0, 0), s.ints(1, 4, 9, 2)]),
    "nearest": single("RESIZE_NEAREST_NEIGHBOR", (1, 13, 17, 4), "ResizeNearestNeighborOptions", {},
                      after=lambda s: [s.ints(13, 17)], out=MOVE),
    "requantised": single("QUANTIZE", IMAGE),
    "largest": single("REDUCE_MAX", (1, 4), "ReducerOptions", {}, after=lambda s: [s.ints(1, 2)], out=MOVE),
    "divided": single("DIV", IMAGE, "DivOptions", {}, 1, after=lambda s: [s.weights((4,), 9, 40)]),
    "filled": filled(),
    "joined": single("CONCATENATION", (1, 8, 9, 8), "ConcatenationOptions", {"Axis": 3}, 2),
}  # fmt: skip


def resized(rows, columns, version=3, **options) -> bytes:
    return single("RESIZE_BILINEAR", (1, rows, columns, 4), "ResizeBilinearOptions", options, out=MOVE,
                  after=lambda s: [s.ints(rows, columns)], version=version)  # fmt: skip


SINGLE |= {
    "enlarged": resized(13, 17),
    "enlarged to corners": resized(23, 17, AlignCorners=True),
    "enlarged from centres": resized(13, 29, HalfPixelCenters=True),
    "made smaller": resized(3, 5, HalfPixelCenters=True),
    "made one pixel": resized(1, 1, AlignCorners=True),
}


@pytest.mark.parametrize("name", SINGLE)
def test_single_operators(name) -> None:
    assert_equals_litert(SINGLE[name])


@pytest.mark.parametrize("seed", range(6))
def test_joined_tensors_are_rescaled_in_floats(seed) -> None:
    s, rng = Sheet(), np.random.default_rng(seed)
    quants = [(float(np.float32(rng.uniform(0.001, 2))), int(rng.integers(0, 256))) for _ in range(3)]
    inputs = [s.tensor((1, 16, 16, 1), *quant) for quant in quants]
    scale = max(q[0] for q in quants) * 1.01
    y = s.apply("CONCATENATION", inputs, (1, 16, 16, 3), "ConcatenationOptions", {"Axis": 3},
                scale=scale, zero=77)  # fmt: skip
    data, every = s.bytes(inputs, [y]), np.arange(256, dtype=np.uint8).reshape(1, 16, 16, 1)
    graph = read_model(data)
    result = execute(graph, [every] * 3)[graph.outputs[0]]
    assert np.array_equal(result, run(data, [every] * 3)[y])


def transposed(zero: int) -> bytes:
    s = Sheet()
    x, y = s.tensor((1, 4, 5, 4)), s.tensor(IMAGE, 0.6, 120)
    inputs = [s.ints(*IMAGE), s.weights((4, 3, 3, 4), zero), x]
    options = {"Padding": 0, "StrideH": 2, "StrideW": 2}
    s.operators.append(FileOperator("TRANSPOSE_CONV", inputs, [y], "TransposeConvOptions", options))
    return s.bytes([x], [y])


def test_transposed_convolutions() -> None:
    assert_equals_litert(transposed(128))
    with pytest.raises(UnsupportedError, match="a uint8 filter with the zero point 151"):
        read_model(transposed(151))


def test_operators_without_an_int8_form_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="uint8"):
        read_model(single("ABS", IMAGE))
    with pytest.raises(UnsupportedError, match="a uint8 network input or output without scale"):
        read_model(
            single("RESHAPE", IMAGE, "ReshapeOptions", out={"scale": None}, after=lambda s: [s.ints(*IMAGE)])
        )


@pytest.mark.parametrize("scale", [None, 0.5])
def test_a_cast_of_stored_numbers_to_floats(scale) -> None:
    s = Sheet()
    x, y = s.tensor(IMAGE, scale, 131), s.add(FileTensor(IMAGE, "float32"))
    s.operators.append(FileOperator("CAST", [x], [y], "CastOptions", {"InDataType": 3, "OutDataType": 0}))
    assert_equals_litert(s.bytes([x], [y]))


def test_int8_parts_of_a_network_do_not_change() -> None:
    """After QUANTIZE, an int8 average rounds as in int8 networks, and ABS, which uint8 lacks, is read."""
    s = Sheet()
    x = s.tensor(IMAGE, 0.7, 131)
    y = s.apply("ADD", [x, x], IMAGE, "AddOptions", {}, scale=0.7, zero=100)

    def signed(kind, inputs, shape, cls, **options) -> int:
        out = s.add(FileTensor(shape, "int8", None, 0.7, -28))
        s.operators.append(FileOperator(kind, inputs, [out], cls, options))
        return out

    y = signed("QUANTIZE", [y], IMAGE, "QuantizeOptions")
    y = signed("ABS", [y], IMAGE, "AbsOptions")
    y = signed("PAD", [y, *pad(s)], (1, 11, 12, 4), "PadOptions")
    window = {"StrideH": 1, "StrideW": 1, "FilterHeight": 2, "FilterWidth": 2}
    y = signed("AVERAGE_POOL_2D", [y], (1, 10, 11, 4), "Pool2DOptions", Padding=1, **window)
    assert_equals_litert(s.bytes([x], [y]))


def test_a_filter_of_two_operators_is_stored_once() -> None:
    """Two convolutions and an addition read it."""
    s, options = Sheet(), {"StrideH": 1, "StrideW": 1}
    x, w = s.tensor((1, 1, 5, 4), 0.05, 131), s.weights((4, 1, 1, 4), 131, 40)
    y, quant = x, {"scale": 0.05, "zero": 120}
    for _ in range(2):
        y = s.apply("CONV_2D", [y, w, s.bias(4, y, w)], (1, 1, 5, 4), "Conv2DOptions", options, **quant)
    flat = s.apply("RESHAPE", [y, s.ints(5, 1, 1, 4)], (5, 1, 1, 4), "ReshapeOptions", **quant)
    part = s.apply("SLICE", [flat, s.ints(1, 0, 0, 0), s.ints(4, 1, 1, 4)], (4, 1, 1, 4), **quant)
    graph = assert_equals_litert(
        s.bytes([x], [s.apply("ADD", [part, w], (4, 1, 1, 4), "AddOptions", **quant)])
    )
    assert len({op.inputs[1] for op in graph.ops if isinstance(op.attrs, ConvAttrs)}) == 1


def edges(x: float, w: float, y: float) -> np.ndarray:
    """Returns sums whose result depends on the precision of the scales' product: float32 or double."""
    sums = np.arange(-int(100 * y / (x * w)), int(100 * y / (x * w)))
    products = float(np.float32(x) * np.float32(w)), x * w
    results = (multiply_by_quantized_multiplier(sums, *quantize_multiplier(p / y)) for p in products)
    return sums[np.not_equal(*results)]


@pytest.mark.parametrize("wide", [False, True], ids=["a filter that fits int8", "one that does not"])
@pytest.mark.parametrize("kind", ["CONV_2D", "DEPTHWISE_CONV_2D"])
def test_scales_of_input_and_filter_are_multiplied_in_floats(kind, wide) -> None:
    """The biases are sums with different results, for scales of a public network and drawn scales."""
    rng, cases = np.random.default_rng(1), 0
    for scales in ((0.023528477, 0.006837657, 0.023528477), *rng.uniform(0.002, 0.03, (2000, 3))):
        if cases == 6:
            break
        x_scale, w_scale, y_scale = map(float, np.float32(scales))
        sums = edges(x_scale, w_scale, y_scale)[:7]
        if not len(sums):
            continue
        s, zero = Sheet(), 200 if wide else 131
        x = s.tensor((1, 2, 2, 8), x_scale, 128)
        depthwise = kind == "DEPTHWISE_CONV_2D"
        filters = np.full((1, 1, 1, 8) if depthwise else (8, 1, 1, 8), zero, np.uint8)
        filters.reshape(-1)[[7, -1]] = 0 if wide else zero  # only in the last channel, which has another bias
        w = s.tensor(filters.shape, w_scale, zero, filters)
        bias = np.zeros(8, np.int32)
        bias[: len(sums)] = sums
        b = s.add(constant(bias, scale=float(np.float32(x_scale) * np.float32(w_scale)), zero=0))
        options = {"Padding": 1, "StrideH": 1, "StrideW": 1} | ({"DepthMultiplier": 1} if depthwise else {})
        table = "DepthwiseConv2DOptions" if depthwise else "Conv2DOptions"
        y = s.apply(kind, [x, w, b], (1, 2, 2, 8), table, options, scale=y_scale, zero=128)
        graph = assert_equals_litert(s.bytes([x], [y]))
        assert any(isinstance(op.attrs, AsUint8) for op in graph.ops) == wide
        cases += 1
    assert cases == 6
