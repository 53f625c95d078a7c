"""SUM of int8 computes TensorFlow Lite Micro's integers.

LiteRT's reference kernel reads int8 as uint8, so it cannot judge. Its default kernel rounds a float once. The
kernel of TFLM rounds an integer product twice, so both differ by one step where the quotient is near a half.
"""

import numpy as np
import pytest
from boardruns import file_of
from flatfiles import FileOperator, FileTensor, constant, write
from hypothesis import given, settings
from hypothesis import strategies as st
from litert import run

from buildtool.api import handle
from buildtool.base.errors import ToolError
from buildtool.graph.fixedpoint import quantize_multiplier
from buildtool.graph.reference import execute
from buildtool.graph.tflite.reader import read_model
from buildtool.graph.tflite.writer import write_model
from buildtool.graph.types import OpKind, SumAttrs
from buildtool.zoo.drawn import NetBuilder


@st.composite
def sums(draw):
    """Draws (file, values, axes, scale of the input / scale of the output)."""
    shape = tuple(draw(st.integers(1, 7)) for _ in range(draw(st.integers(1, 4))))
    axes = sorted(draw(st.sets(st.integers(0, len(shape) - 1), min_size=1)))
    keep, count = draw(st.booleans()), int(np.prod([shape[a] for a in axes]))
    out = tuple(1 if d in axes else n for d, n in enumerate(shape) if keep or d not in axes)
    rng = np.random.default_rng(draw(st.integers(0, 999)))
    scale = np.float32(rng.uniform(0.01, 0.1))
    scales = scale, scale * np.float32(draw(st.sampled_from([1, 2, rng.uniform(0.5, 3) * count**0.5])))
    zeros = rng.integers(-128, 128, 2).tolist()
    tensors = [FileTensor(shape, scale=float(scales[0]), zero=zeros[0]), constant(axes)]
    tensors.append(FileTensor(out, scale=float(scales[1]), zero=zeros[1]))
    operator = FileOperator("SUM", [0, 1], [2], "ReducerOptions", {"KeepDims": keep}, version=2)
    values = rng.integers(-128, 128, shape).astype(np.int8)
    return write(tensors, [operator], [0], [2]), values, tuple(axes), zeros, scales


@settings(derandomize=True, deadline=None, max_examples=60)
@given(sums())
def test_sums_are_those_of_litert_s_default_kernels_but_for_halves(case):
    data, x, axes, zeros, scales = case
    graph = read_model(data)
    ours = execute(graph, [x])[graph.outputs[0]].astype(np.int64)
    theirs = run(data, [x], reference=False)[2].astype(np.int64)
    ratio = float(scales[0]) / float(scales[1])
    total = (x.astype(np.int64) - zeros[0]).sum(axis=axes).reshape(ours.shape) * ratio
    # The first rounding, before a right shift, moves the quotient by half of the shift's unit at most.
    near = 2.0 ** (quantize_multiplier(ratio)[1] - 1) + 1e-4
    halves = np.abs(total - np.floor(total) - 0.5) <= near
    assert (np.abs(ours - theirs) <= halves).all()
    copy = read_model(write_model(graph))
    assert (
        [op.attrs for op in copy.ops]
        == [op.attrs for op in graph.ops]
        == [SumAttrs(axes, graph.ops[0].attrs.keep_dims)]
    )


def _network():
    net = NetBuilder(2)
    y = net.conv(net.input((1, 9, 8, 3)), 5, kernel=(3, 3), same=True)
    one = net.op(OpKind.MEAN, (y,), SumAttrs((1, 2)), net.random_quant(net.scale(y) * 12))
    return net.graph(
        [one, net.op(OpKind.MEAN, (y,), SumAttrs((3,), True), net.random_quant(net.scale(y) * 2))]
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("board", "options"), [("host", {}), ("cortex-m4", {"image": "stream", "objective": "ram"})]
)
def test_the_verdict_names_its_reference(board, options, tmp_path):
    request = {"kind": "validate", "model": file_of(_network(), tmp_path), "board": board, "options": options}
    answer = handle({**request, "inputs": 2, "tensors": True})
    assert answer["exact"]
    assert answer["reference"]["name"] == "numpy"
    assert "reads int8 as uint8" in answer["reference"]["why"]
    with pytest.raises(ToolError, match="reads int8 as uint8"):
        handle({**request, "reference": "litert"})
