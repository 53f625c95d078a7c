"""LSTM and SVDF that LiteRT's integer kernels do not run correctly are refused with the reason."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from buildtool.base.errors import BuildtoolError, UnsupportedError
from buildtool.graph.tflite import recurrent as written
from buildtool.graph.tflite.fileops import FileOp
from buildtool.graph.tflite.reader import read_model
from buildtool.graph.tflite.writer import write_model
from buildtool.graph.types import DType, Graph, LstmAttrs, LstmInput, Op, Quantization, SvdfAttrs, Tensor
from buildtool.zoo.drawn import NetBuilder, WideNetBuilder
from buildtool.zoo.drawn_state import lstm, svdf

L = LstmInput


def _lstm() -> Graph:
    net = NetBuilder(1)
    x = net.input((1, 3, 6))
    return net.graph([lstm(net, x, 5, outputs=4, peepholes=True, normed=True)])


def _wide_lstm(**parts: int) -> Graph:
    net = WideNetBuilder(1)
    return net.graph([lstm(net, net.input((1, 3, 6)), 5, **parts)])


def _svdf() -> Graph:
    net = NetBuilder(2)
    return net.graph([svdf(net, net.input((1, 6)), 4, rank=2, memory=3)])


def _change(graph, change):
    """Returns the graph with a change.

    The change is a dict of attributes, a list of operands to remove, or (operand, function of its tensor).
    """
    op, tensors = graph.ops[0], graph.tensors
    if isinstance(change, dict):
        op = replace(op, attrs=replace(op.attrs, **change))
    elif isinstance(change, list):
        op = replace(op, inputs=tuple(-1 if i in change else t for i, t in enumerate(op.inputs)))
    else:
        place, function = change
        tensors = tuple(function(t) if i == op.inputs[place] else t for i, t in enumerate(tensors))
    return replace(graph, ops=(op,), tensors=tensors)


def _set_type(dtype: DType) -> Callable[[Tensor], Tensor]:
    def change(tensor: Tensor) -> Tensor:
        data = None if tensor.data is None else tensor.data.astype(dtype.value)
        return replace(tensor, dtype=dtype, data=data)

    return change


def _drop_row(tensor: Tensor) -> Tensor:
    """Returns the tensor without its last row."""
    data = tensor.data[:-1] if tensor.data is not None else None
    return replace(tensor, shape=(tensor.shape[0] - 1, *tensor.shape[1:]), data=data)


def _set_scale(scale: float, zero_point: int = 0) -> Callable[[Tensor], Tensor]:
    return lambda tensor: replace(tensor, quant=Quantization((scale,), (zero_point,)))


def _make_diagonal(tensor: Tensor) -> Tensor:
    return replace(tensor, shape=tensor.shape[:1], data=np.ascontiguousarray(tensor.data[:, 0]))


def _set_row_scales(tensor: Tensor) -> Tensor:
    count = tensor.shape[0]
    return replace(tensor, quant=Quantization((0.01,) * count, (0,) * count))


LSTM = {
    "forget weights": ([L.INPUT_TO_FORGET], "input_to_forget is missing"),
    "a bias": ([L.CELL_BIAS], "cell_bias is missing"),
    "one peephole": ([L.CELL_TO_FORGET], "cell_to_forget is missing"),
    "one norm": ([L.CELL_NORM], "cell_norm is missing"),
    "half an input gate": ([L.INPUT_TO_INPUT], "recurrent_to_input without weights of the input gate"),
    "no projection": ([L.PROJECTION, L.PROJECTION_BIAS], "without a projection"),
    "no state": ([L.CELL_STATE], "input 19 is missing"),
    "diagonal": ((L.RECURRENT_TO_OUTPUT, _make_diagonal), "diagonal"),
    "short rows": ((L.RECURRENT_TO_CELL, _drop_row), "shape [4, 4], expected [5, 4]"),
    "float": ((L.X, _set_type(DType.FLOAT32)), "hybrid: int8 weights"),
    "16 bits": ((L.X, _set_type(DType.INT16)), "a zero point is outside"),
    "bias of 16 bits": ((L.CELL_BIAS, _set_type(DType.INT16)), "must be an int32"),
    "cell of 8 bits": ((L.CELL_STATE, _set_type(DType.INT8)), "the cell must be a variable tensor of int16"),
    "cell's scale": ((L.CELL_STATE, _set_scale(0.0003)), "not a power of two"),
    "a coarse cell": ((L.CELL_STATE, _set_scale(2.0**-8)), "not a power of two"),
    "cell's zero point": ((L.CELL_STATE, _set_scale(2.0**-11, 3)), "zero point"),
    "weights' zero point": ((L.INPUT_TO_CELL, _set_scale(0.01, 3)), "must be 0"),
    "per row": ((L.INPUT_TO_CELL, _set_row_scales), "expected one for the whole tensor"),
    "huge scale": ((L.INPUT_TO_CELL, _set_scale(1e30)), "is too large"),
    "large sums": ((L.INPUT_TO_CELL, _set_scale(1e3)), "may not fit 32 bits"),
    "endless scale": ((L.INPUT_TO_CELL, _set_scale(float("inf"))), "finite"),
    "huge peephole": ((L.CELL_TO_INPUT, _set_scale(10.0)), "too far apart"),
    "hidden scale": ({"hidden": Quantization((0.0,), (0,))}, "scale of the hidden product is 0.0"),
    "tiny hidden scale": ({"hidden": Quantization((1e-30,), (0,))}, "too far apart"),
    "hidden zero point": ({"hidden": Quantization((0.01,), (900,))}, "scale and zero point"),
    "no gate scales": ({"gates": ()}, "must have one scale"),
    "gate scale": ({"gates": (1.0, float("nan"), 1.0, 1.0)}, "sum is nan"),
    "negative clip": ({"cell_clip": -1.0}, "clip of the cell is -1.0"),
    "clip without a number": ({"projection_clip": float("nan")}, "clip of the projection is nan"),
}
SVDF = {
    "rank": ({"rank": 3}, "do not divide into units of 3"),
    "no rank": ({"rank": 0}, "do not divide into units of 0"),
    "short weights": ((1, _drop_row), "expected [8, 6]"),
    "8-bit state": ((4, _set_type(DType.INT8)), "only one of the weights over time and the state"),
    "8-bit time": ((2, _set_type(DType.INT8)), "only one of the weights over time and the state"),
    "state's zero point": ((4, _set_scale(0.01, 1)), "zero point"),
    "huge scale": ((2, _set_scale(1e20)), "too far apart"),
    "16 bits": ((0, _set_type(DType.INT16)), "only supports int8"),
    "no weights": ([1], "missing"),
}


WIDE = {
    "half an input gate": ([L.INPUT_TO_INPUT], "recurrent_to_input without weights of the input gate"),
    "bias of 32 bits": ((L.CELL_BIAS, _set_type(DType.INT32)), "must be an int64"),
    "state of 8 bits": ((L.HIDDEN_STATE, _set_type(DType.INT8)), "must be a variable tensor of int16"),
    "zero point": ((L.X, _set_scale(0.01, -5)), "the zero point of int16 must be 0"),
    "cell's scale": ((L.CELL_STATE, _set_scale(0.0003)), "not a power of two"),
    "large sums": ((L.INPUT_TO_CELL, _set_scale(1e6)), "too large"),
    "hidden scale": ((L.HIDDEN_STATE, _set_scale(1e-12)), "too far apart"),
}


@pytest.mark.parametrize(
    ("make", "kind", "case"),
    [
        *((_lstm, "LSTM", c) for c in LSTM.values()),
        *((_wide_lstm, "LSTM", c) for c in WIDE.values()),
        *((_svdf, "SVDF", c) for c in SVDF.values()),
    ],
)
def test_tensors_that_do_not_fit_are_refused_with_the_reason(make, kind, case):
    change, text = case
    graph = _change(make(), change)
    with pytest.raises(BuildtoolError) as caught:
        read_model(write_model(graph))
    assert text in str(caught.value) and kind in str(caught.value)


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ({"peepholes": True}, "peepholes"),
        ({"normed": True}, "layer normalisation"),
        ({"outputs": 4}, "a projection"),
        ({"input_gate": False}, "no input gate (CIFG)"),
        (
            {"peepholes": True, "outputs": 4, "input_gate": False},
            "peepholes, a projection, no input gate (CIFG)",
        ),
    ],
)
def test_parts_that_no_kernel_of_int16_has_are_refused_and_the_hint_works(parts, words):
    with pytest.raises(UnsupportedError) as caught:
        read_model(write_model(_wide_lstm(**parts)))
    assert f"an LSTM of int16 with {words}:" in caught.value.text
    assert "TFLITE_BUILTINS_INT8" in caught.value.hint and "LSTM" in caught.value.operator
    net = NetBuilder(1)
    graph = net.graph([lstm(net, net.input((1, 3, 6)), 5, **parts)])
    assert isinstance(read_model(write_model(graph)).ops[0].attrs, LstmAttrs)


def _patch_writer(monkeypatch: pytest.MonkeyPatch, kind: str, **changes: object) -> None:
    rule = getattr(written, f"write_{kind}")

    def changed(low: object, op: Op) -> FileOp:
        file_op = rule(low, op)
        options = {**file_op.options, **changes.pop("options", {})}
        return replace(file_op, options=options, **changes)

    monkeypatch.setattr(written, f"write_{kind}", changed)


@pytest.mark.parametrize(
    ("kind", "changes", "text"),
    [
        ("lstm", {"intermediates": ()}, "0 intermediate tensors, expected 5"),
        ("lstm", {"intermediates": (0,) * 12}, "12 intermediate tensors, expected 5"),
        ("lstm", {"intermediates": (9999,) * 5}, "tensor index 9999 is outside"),
        ("lstm", {"outputs": (0, 1)}, "2 outputs, expected 1"),
        ("svdf", {"outputs": ()}, "the operator has no output"),
        ("svdf", {"inputs": (0, 1, 2, -1)}, "4 inputs, expected 5"),
        ("lstm", {"inputs": tuple(range(22))}, "22 inputs, expected 24"),
        ("lstm", {"table": "", "options": {}}, "has no UnidirectionalSequenceLSTMOptions"),
        ("svdf", {"options": {"FusedActivationFunction": 3}}, "the fused activation must be RELU"),
    ],
)
def test_files_that_no_converter_writes_are_refused(monkeypatch, kind, changes, text):
    _patch_writer(monkeypatch, kind, **changes)
    with pytest.raises(BuildtoolError) as caught:
        read_model(write_model({"lstm": _lstm, "svdf": _svdf}[kind]()))
    assert text in str(caught.value)


def test_the_graphs_that_are_changed_are_read():
    for graph in (_lstm(), _svdf()):
        assert isinstance(read_model(write_model(graph)).ops[0].attrs, LstmAttrs | SvdfAttrs)
