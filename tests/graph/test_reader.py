"""Masks, paddings, axes and shapes are read as in LiteRT; other files are refused with the reason."""

import numpy as np
import pytest
from flatfiles import FileOperator, FileTensor, constant, write
from graphs import inputs_for
from hypothesis import given, settings
from hypothesis import strategies as st
from litert import check_file, run
from samplefiles import Sheet, mixed

from buildtool.base.errors import ModelError, UnsupportedError
from buildtool.graph.reference import execute
from buildtool.graph.tflite.reader import read_model
from buildtool.graph.tflite.writer import write_model
from buildtool.graph.types import SliceAttrs

EXAMPLES = settings(derandomize=True, deadline=None, max_examples=25)


def resized(tensors, operators, inputs, outputs, fill) -> bytes:
    """Returns the file with the output shapes that LiteRT computes."""
    draft = write(tensors, operators, inputs, outputs)
    results = run(draft, fill)
    for operator in operators:
        for t in operator.outputs:
            tensors[t].shape = results[t].shape
    return write(tensors, operators, inputs, outputs)


# ---- whole files ---------------------------------------------------------------------------------


def test_constants_are_read_only_views_of_the_file() -> None:
    data = mixed()
    graph = read_model(data)
    weights = [t.data for t in graph.tensors if t.data is not None]
    file_bytes = np.frombuffer(data, np.uint8)
    assert len(weights) > 8
    for array in weights:
        assert np.shares_memory(array, file_bytes)
        assert not array.flags.writeable


# ---- parameters become attributes ------------------------------------------------------------------


@st.composite
def strided_slices(draw):
    rank = draw(st.integers(1, 4))
    shape = tuple(draw(st.integers(1, 5)) for _ in range(rank))
    count = draw(st.integers(1, rank))
    begin = [draw(st.integers(-6, 6)) for _ in range(count)]
    end = [draw(st.integers(-6, 6)) for _ in range(count)]
    shrink = draw(st.integers(0, (1 << count) - 1))
    stride = [1 if shrink >> i & 1 else draw(st.sampled_from([1, 1, 2, 3, -1, -2])) for i in range(count)]
    for i in range(count):
        if shrink >> i & 1:  # LiteRT is undefined outside the dimension
            begin[i] = begin[i] % shape[i] - draw(st.sampled_from([0, shape[i]]))
    masks = {f"{name}Mask": draw(st.integers(0, (1 << count) - 1)) for name in ("Begin", "End")}
    masks["BeginMask"] &= ~shrink
    return shape, begin, end, stride, {**masks, "ShrinkAxisMask": shrink}


@settings(EXAMPLES, max_examples=40)
@given(strided_slices())
def test_strided_slices_with_masks_and_negative_strides_equal_litert(case) -> None:
    shape, begin, end, stride, options = case
    tensors = [FileTensor(shape), *(constant(v) for v in (begin, end, stride)), FileTensor(shape)]
    operators = [FileOperator("STRIDED_SLICE", [0, 1, 2, 3], [4], "StridedSliceOptions", options)]
    fill = [np.arange(np.prod(shape), dtype=np.int8).reshape(shape)]
    draft = run(write(tensors, operators, [0], [4]), fill)
    if draft[4].size == 0:
        with pytest.raises(ModelError, match="is empty"):
            read_model(write(tensors, operators, [0], [4]))
        return
    check_file(resized(tensors, operators, [0], [4], fill))


@pytest.mark.parametrize(
    ("options", "begin", "shape"),
    [
        ({"EllipsisMask": 1}, [0, 1], (2, 3, 4, 4)),
        ({"EllipsisMask": 2}, [1, 0, 1], (1, 3, 4, 4)),
        ({"NewAxisMask": 1}, [0, 1], (1, 1, 3, 4, 5)),
        ({"NewAxisMask": 2, "ShrinkAxisMask": 1}, [1, 0, 1], (1, 2, 4, 5)),
        ({"EllipsisMask": 1, "NewAxisMask": 2}, [0, 0, 1], (2, 3, 4, 1, 4)),
    ],
)
def test_ellipsis_and_new_axes_are_resolved(options, begin, shape) -> None:
    x = FileTensor((2, 3, 4, 5))
    end = [9] * len(begin)
    tensors = [x, constant(begin), constant(end), constant([1] * len(begin)), FileTensor(shape)]
    operators = [FileOperator("STRIDED_SLICE", [0, 1, 2, 3], [4], "StridedSliceOptions", options)]
    graph = check_file(write(tensors, operators, [0], [4]))
    attrs = graph.ops[0].attrs
    assert isinstance(attrs, SliceAttrs) and len(attrs.extent) == 4


def with_biases(shape: tuple[int, ...], axis: int) -> bytes:
    s = Sheet()
    x = s.add(FileTensor((1, 5, 6, 3), zero=2))
    biases = [
        s.add(constant(np.arange(-2, 2).reshape(shape) * 700, scale=[0.004] * 4, zero=[0] * 4, axis=axis))
        for _ in range(2)
    ]
    c = s.apply("CONV_2D", [x, s.weights(4, 3, 3, 3), biases[0]], (1, 3, 4, 4), "Conv2DOptions",
                {"Padding": 1, "StrideH": 1, "StrideW": 1})  # fmt: skip
    y = s.apply("FULLY_CONNECTED", [c, s.weights(4, 48), biases[1]], (1, 4), "FullyConnectedOptions", {})
    return s.bytes([x], [y])


@pytest.mark.parametrize(("shape", "axis"), [((4,), 3), ((4,), 7), ((1, 1, 1, 4), 0), ((1, 1, 1, 4), 3)])
def test_a_bias_is_per_channel_whatever_axis_its_file_names(shape, axis) -> None:
    expected = check_file(with_biases((4,), 0))
    graph = read_model(
        with_biases(shape, axis)
    )  # LiteRT only loads the first, but its kernels ignore the axis
    assert read_model(write_model(graph)).tensors[1].quant.axis == 0
    values = (execute(one, inputs_for(graph, 0)).values() for one in (graph, expected))
    assert all(np.array_equal(a, b) for a, b in zip(*values, strict=True))
    assert [graph.tensors[op.inputs[2]].shape for op in graph.ops if len(op.inputs) == 3] == [(4,), (4,)]


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("per_channel", [False, True])
@pytest.mark.parametrize("shape", [(1, 6), (3, 6), (2, 4, 6), (1, 2, 3, 4)])
def test_dense_layers_flatten_as_litert_does(shape, keep: bool, per_channel: bool) -> None:
    s = Sheet()
    x = s.add(FileTensor(shape))
    width = 12 if shape == (1, 2, 3, 4) else 6
    rows = int(np.prod(shape)) // width
    out = (*shape[:-1], 5) if keep and width == 6 else (rows, 5)
    options = {"KeepNumDims": keep and width == 6}
    y = s.apply("FULLY_CONNECTED", [x, s.weights(5, width, per_channel=per_channel)], out,
                "FullyConnectedOptions", options)  # fmt: skip
    graph = check_file(s.bytes([x], [y]))
    dense = graph.ops[-1]
    assert graph.tensors[dense.inputs[0]].shape[-1] == width
    assert graph.tensors[dense.inputs[0]].nhwc[1:3] == graph.tensors[dense.outputs[0]].nhwc[1:3]


def placeholders(*, by_option: bool) -> bytes:
    """Returns a file with RESHAPEs whose outputs have placeholders as shapes."""
    s = Sheet()
    x = s.add(FileTensor((1, 6, 7, 4)))
    shapes = iter([(2, 3, 7, 4), (-1, 12), (42, 4)])

    def reshape(x: int, parameter: int | None, *shape: int, **kwargs) -> int:
        target = next(shapes)
        options = {"NewShape": list(target)} if by_option else {}
        parameter = s.ints(*target) if parameter is None and not by_option else parameter
        inputs = [x] if parameter is None else [x, parameter]
        return s.apply("RESHAPE", inputs, shape, "ReshapeOptions", options, **kwargs)

    y = s.apply("RELU", [reshape(x, None, 1, 1, 1, 1)], (2, 3, 7, 4))
    flat = reshape(y, None, 1, 1, signature=(-1, -1))
    sizes = s.apply("SHAPE", [flat], (2,), "ShapeOptions", {"OutType": 2}, dtype="int32", scale=None)
    z = s.apply("RESHAPE", [s.apply("RELU6", [y], (2, 3, 7, 4)), sizes], (1, 1))
    both = s.apply("ADD", [flat, z], (14, 12), "AddOptions")
    return s.bytes([x], [both, reshape(flat, None, 7)])


@pytest.mark.parametrize("by_option", [False, True])
def test_a_reshapes_parameter_counts_and_not_the_shape_that_is_stored(by_option) -> None:
    graph = check_file(placeholders(by_option=by_option))
    assert [graph.tensors[t].shape for t in graph.outputs] == [(14, 12), (42, 4)]


# ---- refusals ---------------------------------------------------------------------------------------


def chain(kind: str, **kwargs) -> bytes:
    tensors = [FileTensor((1, 4), **kwargs), FileTensor((1, 4), **kwargs)]
    return write(tensors, [FileOperator(kind, [0], [1])], [0], [1])


def fused(code: int = 0, **second) -> bytes:
    """Returns a file of one ADD with a fused activation and two operands."""
    tensors = [FileTensor((1, 4)), FileTensor((1, 4), **second), FileTensor((1, 4))]
    add = FileOperator("ADD", [0, 1], [2], "AddOptions", {"FusedActivationFunction": code})
    return write(tensors, [add], [0] if second else [0, 1], [2])


def custom(name: str) -> bytes:
    operators = [FileOperator("CUSTOM", [0], [1], custom=name)]
    return write([FileTensor((1, 4)), FileTensor((1, 4))], operators, [0], [1])


def hybrid() -> bytes:
    s, real = Sheet(), {"dtype": "float32", "scale": None}
    x = s.add(FileTensor((1, 6), **real))
    y = s.apply("FULLY_CONNECTED", [x, s.weights(5, 6)], (1, 5), "FullyConnectedOptions", **real)
    return s.bytes([x], [y])


@pytest.mark.parametrize(
    ("data", "place", "words", "hint"),
    [
        (custom("FlexErf"), "#0 CUSTOM(FlexErf)", "TensorFlow .flex. operator", "SELECT_TF_OPS"),
        (custom("Mine"), "#0 CUSTOM(Mine)", "custom operator", "built-in operators"),
        (custom("XC_conv2d_v2"), "#0 CUSTOM(XC_conv2d_v2)", "xcore-opt", "file from before xcore-opt"),
        (custom("ethos-u"), "#0 CUSTOM(ethos-u)", "made by Vela", "file from before Vela"),
        (custom("edgetpu-custom-op"), "#0 CUSTOM(edgetpu-custom-op)", "Edge TPU compiler", "from before the"),
        (custom("NeutronGraph"), "#0 CUSTOM(NeutronGraph)", "Neutron converter", "file from before NXP's"),
        (hybrid(), "#0 FULLY_CONNECTED", "hybrid", "buildtool quantize"),
        (fused(4), "#0 ADD", "fused activation TANH", "separate operator"),
        (fused(5), "#0 ADD", "fused activation SIGN_BIT", "separate operator"),
        (fused(buffer_offset=4096), "#0 ADD", "outside the flatbuffer", "experimental_use_buffer_offset"),
        (chain("HARD_SWISH", dtype="int16"), "#0 HARD_SWISH", "16x8", "TFLITE_BUILTINS_INT8 in place of"),
        (chain("RELU", dtype="float16", scale=None), "#0 RELU", "float16", "buildtool quantize"),
        (chain("ATAN2"), "#0 ATAN2", "not supported", "CONV_2D"),
        (chain("IF"), "#0 IF", "control flow", "remove conditions"),
        (chain("BIDIRECTIONAL_SEQUENCE_LSTM"), "#0 BIDIRECTIONAL_SEQUENCE_LSTM", "state", "unroll"),
        (chain("RELU", variable=True), "#0 RELU", "variable", "as the state of an operator"),
        (chain("RELU", signature=(1, -1)), "#0 RELU", "run time", "fixed input shape"),
        (chain("RELU", scale=None), "#0 RELU", "without a scale", "quantised"),
        (chain("RELU", scale=[0.5] * 4, zero=[0] * 4, axis=1), "#0 RELU", "per channel", "quantised"),
    ],
)
def test_unsupported_operators_are_refused_by_name(data: bytes, place: str, words: str, hint: str) -> None:
    with pytest.raises(UnsupportedError, match=words) as caught:
        read_model(data)
    assert caught.value.operator == place
    assert hint in caught.value.hint


def dense_with(filter_tensor: FileTensor, bias: FileTensor | None = None, out=(1, 5)) -> bytes:
    tensors = [FileTensor((1, 6)), filter_tensor, FileTensor(out)] + ([bias] if bias else [])
    inputs = [0, 1] + ([3] if bias else [])
    return write(tensors, [FileOperator("FULLY_CONNECTED", inputs, [2], "FullyConnectedOptions")], [0], [2])


WEIGHTS = np.ones((5, 6), np.int8)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (dense_with(FileTensor((5, 6), data=WEIGHTS, zero=3)), "zero points must be 0"),
        (dense_with(FileTensor((5, 6), data=WEIGHTS, scale=float("nan"))), "finite"),
        (dense_with(FileTensor((5, 6), data=WEIGHTS, scale=[1.0] * 4, zero=[0] * 4)), "4 scales for 5"),
        (dense_with(FileTensor((5, 6), data=WEIGHTS, scale=[1.0] * 6, zero=[0] * 6, axis=1)), "axis 1"),
        (dense_with(FileTensor((5, 6), data=WEIGHTS), constant(np.ones(4, np.int32))), "bias has shape"),
        (dense_with(FileTensor((5, 6), data=WEIGHTS), constant(np.ones(5, np.int8), "int8")), "int32 const"),
        (dense_with(FileTensor((5, 6))), "is read before an operator makes it|must be an int8 constant"),
        (dense_with(FileTensor((5, 6), data=WEIGHTS), out=(1, 4)), "output shape"),
        (
            dense_with(FileTensor((5, 7), data=np.ones((5, 7), np.int8))),
            "6 input elements do not fit a filter",
        ),
    ],
)
def test_weights_that_do_not_fit_are_refused(data: bytes, words: str) -> None:
    with pytest.raises((ModelError, UnsupportedError), match=words) as caught:
        read_model(data)
    assert "FULLY_CONNECTED" in caught.value.operator


def test_activations_must_be_made_once_and_before_use() -> None:
    tensors = [FileTensor((1, 4)) for _ in range(3)]
    late = [FileOperator("RELU", [1], [2]), FileOperator("RELU", [0], [1])]
    with pytest.raises(ModelError, match="before an operator makes it"):
        read_model(write(tensors, late, [0], [2]))
    twice = [FileOperator("RELU", [0], [1]), FileOperator("RELU6", [0], [1])]
    with pytest.raises(ModelError, match="made twice"):
        read_model(write(tensors, twice, [0], [1]))
