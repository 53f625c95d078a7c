"""Operators of TFLM's signal library: equal to its interpreter to the bit, over many invokes and a reset."""

from dataclasses import replace

import numpy as np
import pytest
from needs import needs_package
from signalnets import drawn_signals, sounds

from buildtool.base.errors import BuildtoolError, ModelError, UnsupportedError
from buildtool.firmware.run.tflm import referrer
from buildtool.firmware.run.undefined import replace_undefined
from buildtool.graph import types as g
from buildtool.graph.ops.signal import CUSTOM, OWNERS
from buildtool.graph.reference import execute, initial_states, next_states
from buildtool.graph.tflite.reader import read_model
from buildtool.graph.tflite.writer import write_model
from buildtool.graph.types import DType, OpKind
from buildtool.zoo.drawn import NetBuilder

INVOKES, RESET = 12, 8


@pytest.mark.parametrize("kind", list(CUSTOM))
def test_an_operator_equals_tflm_s(kind):
    needs_package("tflite_micro")
    varied = set()
    for seed in range(25):
        drawn = drawn_signals(seed, (kind,))
        data = write_model(drawn)
        graph = read_model(data)
        assert [op.attrs for op in graph.ops] == [op.attrs for op in drawn.ops]
        assert bool(graph.states) == (kind in OWNERS)
        refer, states = referrer(data, graph, graph), initial_states(graph)
        for number, inputs in enumerate(sounds(graph, INVOKES, seed)):
            states = initial_states(graph) if number == RESET else states
            values = execute(graph, inputs, states)
            states = next_states(graph, values)
            right = replace_undefined(graph, refer(inputs, number == RESET), values)
            for t in graph.outputs:
                wanted = right[t].reshape(values[t].shape)
                assert values[t].tobytes() == wanted.tobytes(), (seed, number, graph.ops[0].attrs)
                varied.add(values[t].tobytes())
    assert len(varied) > 50


@pytest.mark.parametrize("kind", ["ADD", "SUB", "MUL", "DIV", "MAXIMUM", "MINIMUM"])
def test_numbers_without_a_scale_equal_tflm_s(kind):
    needs_package("tflite_micro")
    net = NetBuilder(3)
    x = net.feed((2, 90), None, DType.INT32)
    attrs = g.QuotientAttrs() if kind == "DIV" else g.ElementwiseAttrs() if len(kind) == 3 else g.Attrs()
    values = net.rng.integers(1, 1 << 20, 90).astype(np.int32) * np.where(np.arange(90) % 2, 1, -1)
    constants = [values.astype(np.int32), np.array(-7, np.int32)]
    outputs = []
    for constant in constants:
        other = net.tensor(constant.shape, None, DType.INT32, constant)
        outputs.append(net.op(OpKind(kind), (x, other), attrs, None, DType.INT32, shape=(2, 90)))
    data = write_model(net.graph(outputs))
    graph = read_model(data)
    refer = referrer(data, graph, graph)
    for inputs in sounds(graph, 4, 1):
        right, ours = refer(inputs, False), execute(graph, inputs)
        assert all(np.array_equal(right[t], ours[t]) for t in graph.outputs)


def test_a_rewrite_makes_no_code_of_a_cast_from_uint32_to_int32():
    from buildtool.graph.rewrite import rewrite

    net = NetBuilder(1)
    x = net.feed((9,), None, DType.UINT32)
    number = net.op(OpKind.CAST, (x,), g.Attrs(), None, DType.INT32)
    part = net.move(OpKind.SLICE, number, (4,), g.SliceAttrs((2,), (1,), (4,)))
    graph = read_model(write_model(net.graph([net.op(OpKind.CAST, (part,), g.Attrs(), None, DType.UINT32)])))
    short = rewrite(graph)
    assert [op.kind for op in short.ops] == [OpKind.RESHAPE, OpKind.SLICE, OpKind.RESHAPE]
    value = np.arange(9, dtype=np.uint32) * 500_000_000
    for one in (graph, short):
        assert np.array_equal(execute(one, [value])[one.outputs[0]], value[2:6])


def changed(kind, **changes):
    """The error that the file of an operator with other attributes gives."""
    graph = drawn_signals(1, (kind,))
    op = graph.ops[0]
    broken = replace(graph, ops=(replace(op, attrs=replace(op.attrs, **changes)),))
    with pytest.raises(BuildtoolError) as caught:
        read_model(write_model(broken))
    return caught.value


@pytest.mark.parametrize(
    ("kind", "changes", "text"),
    [
        ("SIGNAL_WINDOW", {"shift": 40}, "shift is 40, expected 0 to 31"),
        ("SIGNAL_RFFT", {"points": 14}, "14 points: expected an even number from 4 to 32768, without prime"),
        ("SIGNAL_ENERGY", {"end": 5000}, "5000 of"),
        ("SIGNAL_FRAMER", {"step": 0}, "0 apart"),
        ("SIGNAL_STACKER", {"step": 9}, "by 9"),
        ("SIGNAL_DELAY", {"length": -1}, "a delay of -1 samples"),
    ],
)
def test_numbers_that_tflm_would_fail_with_are_refused(kind, changes, text):
    error = changed(OpKind(kind), **changes)
    assert isinstance(error, ModelError) and text in error.text and error.operator.startswith("#0 ")


def test_options_that_tflm_would_misread_are_refused(monkeypatch):
    from buildtool.graph.tflite import signal

    graph = drawn_signals(1, (OpKind.SIGNAL_DELAY,))
    for name in ("length", "a_delay"):
        options = {OpKind.SIGNAL_DELAY: (g.DelayAttrs, (name,))}
        with monkeypatch.context() as patch:
            patch.setattr(signal, "_OPTIONS", options)
            data = write_model(graph)
        with pytest.raises(ModelError, match=r"options .* expected whole numbers for \['delay_length'\]"):
            read_model(data)


def test_a_channel_beyond_the_spectrum_and_a_divisor_of_0_are_refused():
    graph = drawn_signals(1, (OpKind.SIGNAL_FILTER_BANK,))
    place = graph.ops[0].inputs[3]
    tensors = list(graph.tensors)
    tensors[place] = replace(tensors[place], data=tensors[place].data + np.int16(500))
    with pytest.raises(UnsupportedError, match="a channel lies beyond the spectrum"):
        read_model(write_model(replace(graph, tensors=tuple(tensors))))
    net = NetBuilder(3)
    x, zero = net.feed((4,), None, DType.INT32), net.tensor((1,), None, DType.INT32, np.zeros(1, np.int32))
    y = net.op(OpKind.DIV, (x, zero), g.QuotientAttrs(), None, DType.INT32)
    with pytest.raises(UnsupportedError, match="divisor of int32 numbers must be a constant other than 0"):
        read_model(write_model(net.graph([y])))
