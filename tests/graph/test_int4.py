"""Filters of 4 bits: LiteRT's bits, and clear refusals elsewhere."""

import numpy as np
import pytest
from flatfiles import FileTensor
from samplefiles import Sheet

from buildtool.base.errors import ModelError, UnsupportedError
from buildtool.base.modes import Reference
from buildtool.firmware.run.compare import referrer
from buildtool.graph.tflite.reader import read_model

SAME = {"Padding": 0, "StrideH": 1, "StrideW": 1}
KINDS = {  # filter's shape, its axis of channels, output's shape, options
    "CONV_2D": ((3, 3, 3, 5), 0, (1, 7, 6, 3), ("Conv2DOptions", SAME)),
    "DEPTHWISE_CONV_2D": (
        (1, 3, 3, 5),
        3,
        (1, 7, 6, 5),
        ("DepthwiseConv2DOptions", {**SAME, "DepthMultiplier": 1}),
    ),
    "FULLY_CONNECTED": ((3, 5), 0, (1, 7, 6, 3), ("FullyConnectedOptions", {"KeepNumDims": True})),
    "TRANSPOSE_CONV": ((3, 3, 3, 5), 0, (1, 7, 6, 3), ("TransposeConvOptions", SAME)),
}


def halves(values):
    """The bytes of elements of 4 bits, the first one in the lower half."""
    low = np.append(values.reshape(-1), np.zeros(values.size % 2, np.int64)).astype(np.uint8) & 15
    return low[::2] | low[1::2] << 4


def network(kind, dtype="int8", cut=0):
    """A layer whose filter has 4 bits, of odd and even numbers of elements."""
    shape, axis, out, options = KINDS[kind]
    sheet = Sheet(3)
    x = sheet.add(FileTensor((1, 7, 6, 5), dtype, scale=0.05, zero=0))
    data = halves(sheet.rng.integers(-8, 8, shape))
    count = 1 if kind == "FULLY_CONNECTED" else shape[axis]
    scales = sheet.rng.uniform(0.02, 0.1, count).tolist()
    filters = sheet.add(FileTensor(shape, "int4", data[: len(data) - cut], scales, [0] * count, axis))
    inputs = [x, filters, sheet.bias(out[-1])]
    if kind == "TRANSPOSE_CONV":
        inputs = [sheet.ints(*out), filters, x]
    return sheet.bytes([x], [sheet.apply(kind, inputs, out, *options, dtype=dtype, scale=0.3)])


@pytest.mark.parametrize("kind", list(KINDS)[:3])
def test_filters_of_4_bits_have_litert_s_bits(kind):
    model = network(kind)
    graph = read_model(model)
    inputs = np.random.default_rng(1).integers(-128, 128, (1, 7, 6, 5)).astype(np.int8)
    modes = (Reference.LITERT, Reference.NUMPY)
    values = [referrer(mode, model, graph, graph)([inputs], False)[graph.outputs[0]] for mode in modes]
    np.testing.assert_array_equal(*values)
    assert len(np.unique(values[0])) > 20


def test_other_values_of_4_bits_are_refused():
    for model in (network("TRANSPOSE_CONV"), network("CONV_2D", "int16")):
        with pytest.raises(UnsupportedError, match="int4 values") as caught:
            read_model(model)
        assert "4 bits are read for the filters of int8 layers alone" in str(caught.value)
    text = r"the constant has 67 bytes; its shape \[3, 3, 3, 5\] of int4 needs 68"
    with pytest.raises(ModelError, match=text):
        read_model(network("CONV_2D", cut=1))
