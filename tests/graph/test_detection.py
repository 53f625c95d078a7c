"""TFLite_Detection_PostProcess: read, computed and written as LiteRT's kernel has it, to the bit."""

from dataclasses import replace

import numpy as np
import pytest
from boardruns import file_of, validated
from flatbuffers import flexbuffers
from flatfiles import FileOperator, FileTensor, constant
from flatfiles import write as write_file
from graphs import inputs_for, patterns, seeds
from hypothesis import given, settings
from hypothesis import strategies as st
from litert import check, run

from buildtool.api import handle
from buildtool.base.errors import BuildtoolError, ModelError, UnsupportedError
from buildtool.base.files import Cut, File
from buildtool.graph.ops.detection import CUSTOM
from buildtool.graph.reference import execute
from buildtool.graph.rewrite import rewrite
from buildtool.graph.tflite.reader import read_model
from buildtool.graph.tflite.writer import write_model
from buildtool.graph.types import DetectionAttrs, DType, OpKind
from buildtool.plan.models import load_model
from buildtool.zoo.drawn import NetBuilder, quant

KIND = OpKind.DETECTION_POSTPROCESS
EXAMPLES = settings(derandomize=True, deadline=None, max_examples=50)
SSD = DetectionAttrs(4, 5, 1, 100, False, 0.5, 0.5, (10.0, 10.0, 5.0, 5.0))


def single(low, high):
    return st.floats(low, high, width=32)


@st.composite
def detections(draw):
    """Draws a network of this operator alone, whose inputs are int8."""
    net = NetBuilder(draw(seeds))
    count, size = draw(st.integers(1, 70)), draw(st.sampled_from((4, 4, 5, 9)))
    classes, background = draw(st.sampled_from((1, 2, 3, 7, 20, 33))), draw(st.integers(0, 1))
    attrs = DetectionAttrs(
        classes,
        draw(st.integers(1, 30)),
        draw(st.integers(1, 9)),
        draw(st.sampled_from((1, 3, 100))),
        draw(st.booleans()),
        draw(st.sampled_from((0.0, 0.25, 0.5)) | single(-1, 2)),
        draw(st.sampled_from((0.5, 1.0)) | single(2**-20, 1)),
        tuple(draw(single(0.5, 20)) * draw(st.sampled_from((1, 1, 1, -1))) for _ in range(4)),
    )
    boxes = net.input((1, count, size), q=quant(draw(single(2**-10, 0.125)), draw(st.integers(-128, 127))))
    scores = net.input((1, count, classes + background), q=quant(draw(single(2**-10, 0.125)), -128))
    return net.graph(net.detections(boxes, scores, attrs))


def few_levels(values, levels):
    """Scores with many ties."""
    return values & np.int8(-(256 // levels) if levels > 2 else -128)


@pytest.mark.slow
@EXAMPLES
@given(graph=detections(), seed=seeds, pattern=patterns, levels=st.sampled_from((2, 8, 256)))
def test_detections_equal_litert(graph, seed, pattern, levels):
    boxes, scores = inputs_for(graph, seed, pattern)
    inputs = [boxes, few_levels(scores, levels)]
    check(graph, inputs)
    # what is planned reads the bytes before the DEQUANTIZEs
    planned = rewrite(read_model(write_model(graph)))
    assert [op.kind for op in planned.ops] == [KIND]
    whole, ours = execute(graph, inputs), execute(planned, inputs)
    for before, after in zip(graph.outputs, planned.outputs, strict=True):
        assert whole[before].tobytes() == ours[after].tobytes()


def test_a_box_that_overlaps_by_exactly_the_limit_stays():
    for limit, found in ((0.5, 2), (1.0, 3), (0.49, 1)):
        net = NetBuilder(1)
        boxes, scores = net.input((1, 3, 4), q=quant(0.1)), net.input((1, 3, 1), q=quant(1 / 256, -128))
        attrs = replace(SSD, classes=1, least_score=0.0, most_overlap=float(np.float32(limit)))
        graph = net.graph(net.detections(boxes, scores, attrs))
        places = np.array([[0.5, 0.5, 1, 1], [0.5, 0.5, 1, 1], [0.5, 0.25, 1, 0.5]], np.float32)
        tensors = [replace(t, data=places) if t.shape == (3, 4) else t for t in graph.tensors]
        graph = replace(graph, tensors=tuple(tensors))
        inputs = [np.zeros((1, 3, 4), np.int8), np.array([[[9], [8], [7]]], np.int8)]
        check(graph, inputs)
        assert execute(graph, inputs)[graph.outputs[3]] == [found]


# ---- files -------------------------------------------------------------------------------------------


def flexbuffer(**changed):
    values = {
        **{"max_detections": 5, "max_classes_per_detection": 1, "num_classes": 4},
        **{"nms_score_threshold": 0.5, "nms_iou_threshold": 0.5, "y_scale": 10.0, "x_scale": 10.0},
        **{"h_scale": 5.0, "w_scale": 5.0},
    } | changed
    builder = flexbuffers.Builder()
    with builder.Map():
        for name, value in values.items():
            if value is not None:
                builder.Add(name, value)
    return bytes(builder.Finish())


def file(data=None, *, dtype="int8", anchors=None, shapes=((),) * 4, reads=False):
    """A file with the operator, as converters write it: without shapes of outputs."""
    rng = np.random.default_rng(8)
    places = rng.uniform(0.1, 0.9, (9, 4)).astype(np.float32) if anchors is None else anchors
    quantised = dtype == "uint8"
    if quantised:
        places = constant(rng.integers(20, 255, (9, 4)), "uint8", scale=1 / 256, zero=10)
    else:
        places = constant(places, "float32")
    zero = 128 if quantised else 0
    tensors = [
        FileTensor((1, 9, 4), dtype, scale=0.05, zero=zero),
        FileTensor((1, 9, 5), dtype, scale=1 / 256, zero=zero - 128),
        *(FileTensor((1, 9, n), "float32", scale=None) for n in (4, 5)),
        places,
        *(FileTensor(shape, "float32", scale=None) for shape in shapes),
        FileTensor((1, 5), scale=0.1),
    ]
    options = flexbuffer() if data is None else data
    sources = [0, 1] if quantised else [2, 3]
    operators = [FileOperator("DEQUANTIZE", [n], [2 + n]) for n in (0, 1)] * (not quantised)
    operators.append(FileOperator("CUSTOM", [*sources, 4], [5, 6, 7, 8], custom=CUSTOM, data=options))
    operators += [FileOperator("QUANTIZE", [6], [9])] * reads
    return write_file(tensors, operators, [0, 1], [9] if reads else [5, 6, 7, 8])


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("regular", [None, False, True])
def test_a_file_without_shapes_of_outputs_is_read(dtype, regular):
    data = file(flexbuffer(use_regular_nms=regular), dtype=dtype)
    graph = rewrite(read_model(data))
    assert [graph.tensors[t].shape for t in graph.outputs] == [(1, 5, 4), (1, 5), (1, 5), (1,)]
    for seed in range(6):
        rng = np.random.default_rng(seed)
        given = [rng.integers(0, 256, shape).astype(np.uint8) for shape in ((1, 9, 4), (1, 9, 5))]
        theirs = run(data, given if dtype == "uint8" else [(v ^ 128).view(np.int8) for v in given])
        as_read = dtype == "uint8" and graph.tensors[graph.inputs[0]].dtype is DType.UINT8
        values = execute(graph, given if as_read else [(v ^ 128).view(np.int8) for v in given])
        for ours, index in zip(graph.outputs, (5, 6, 7, 8), strict=True):
            assert values[ours].tobytes() == theirs[index].tobytes()


REFUSED = [
    (flexbuffer(num_classes=7), "7 classes, but scores for 5"),
    (flexbuffer(num_classes=3), "3 classes, but scores for 5"),
    (flexbuffer(max_detections=0), "0 detections"),
    (flexbuffer(max_detections=1 << 30), "detections"),
    (flexbuffer(max_classes_per_detection=None), "detections of 0 classes"),
    (flexbuffer(use_regular_nms=True, detections_per_class=0), "0 detections for each class"),
    (flexbuffer(nms_iou_threshold=0.0), "an overlap of 0"),
    (flexbuffer(nms_iou_threshold=1.5), "an overlap of 1.5"),
    (flexbuffer(nms_score_threshold=float("nan")), "not a finite number"),
    (flexbuffer(h_scale=0.0), "a scale of the operator is 0"),
    (flexbuffer(h_scale=None), "a scale of the operator is 0"),
    (flexbuffer(h_scale=1e-4), "may be infinite"),
    (flexbuffer(y_scale="ten"), "not a FlexBuffer of numbers"),
    (b"", "not a FlexBuffer"),
    (b"\x01\x02\x03", "FlexBuffer|scale"),
]


@pytest.mark.parametrize(("options", "text"), REFUSED)
def test_options_with_which_litert_stops_or_that_are_damaged_are_refused(options, text):
    with pytest.raises((ModelError, UnsupportedError), match=text):
        read_model(file(options))
        rewrite(read_model(file(options)))


@EXAMPLES
@given(data=st.binary(max_size=80) | st.tuples(st.integers(0, 10**6), st.integers(0, 255)))
def test_damaged_options_give_an_error_or_a_sound_network(data):
    if isinstance(data, tuple):
        place, byte = data
        whole = bytearray(flexbuffer())
        whole[place % len(whole)] = byte
        data = bytes(whole)
    try:
        rewrite(read_model(file(data or b"\0")))
    except BuildtoolError as error:
        assert error.text


def test_what_the_operator_cannot_take_is_refused():
    places = np.full((9, 4), 0.5, np.float32)
    places[3, 2] = -0.1
    with pytest.raises(UnsupportedError, match="height or width is negative"):
        read_model(file(anchors=places))
    with pytest.raises(UnsupportedError, match="a custom operator"):
        read_model(file().replace(CUSTOM.encode(), CUSTOM.replace("Post", "Past").encode()))


# ---- firmware ----------------------------------------------------------------------------------------


def ssd(seed, **changed):
    """A small SSD: convolutions, boxes at two scales, and this operator."""
    net = NetBuilder(seed, "ssd")
    x = net.conv(net.input((1, 24, 24, 3)), 8, kernel=(3, 3), stride=(2, 2), same=True)
    boxes, scores = [], []
    for stride in (2, 3):
        x = net.conv(x, 12, kernel=(3, 3), stride=(stride, stride), same=True)
        _, rows, columns, _ = net.shape(x)
        boxes.append(net.move(OpKind.RESHAPE, net.conv(x, 12), (1, rows * columns * 3, 4)))
        scores.append(net.move(OpKind.RESHAPE, net.conv(x, 15), (1, rows * columns * 3, 5)))
    encoded = net.concat(boxes, 1)
    spread = net.scale(encoded) * 60
    attrs = replace(SSD, scales=(spread, spread, spread / 2, spread / 2), **changed)
    return net.graph(net.detections(encoded, net.unary(OpKind.LOGISTIC, net.concat(scores, 1)), attrs))


@pytest.mark.slow
def test_firmware_of_an_ssd_equals_litert(tmp_path):
    least = {"objective": "ram", "image": "stream"}
    for seed, changed, options in (
        (2, {"classes_each": 3, "detections": 40}, {}),
        (3, {"regular": True}, least),
    ):
        validated(file_of(ssd(seed, **changed), tmp_path), "cortex-m4", options, inputs=3)


@pytest.mark.slow
def test_firmware_may_have_some_of_the_outputs(tmp_path):
    whole = ssd(4)
    data = write_model(whole)
    names = tuple(whole.tensors[t].name for t in whole.outputs[2:0:-1])
    end = load_model(Cut(File("/ssd.tflite", data=data), names)).data
    assert len(read_model(end).outputs) == 2
    asked = {"kind": "validate", "board": "host", "model": {"name": "ssd.tflite", "data": data}}
    assert handle({**asked, "options": {"outputs": ",".join(names)}})["exact"]
