"""SVDF with an 8-bit state computes TensorFlow Lite Micro's integers, with other networks' operators."""

from dataclasses import dataclass

import numpy as np
import pytest
from flatfiles import FileOperator, FileTensor, constant, write
from hypothesis import given, settings
from hypothesis import strategies as st
from recurrentnets import sequence

from buildtool.api import handle
from buildtool.base.errors import ToolError
from buildtool.graph.fixedpoint import multiply_by_quantized_multiplier, quantize_multiplier
from buildtool.graph.reference import execute, initial_states, next_states
from buildtool.graph.rewrite import rewrite
from buildtool.graph.tflite.reader import read_model
from buildtool.graph.types import OpKind

EXAMPLES = settings(derandomize=True, deadline=None, max_examples=25)
SEEDS = st.integers(0, 10_000)


@dataclass(frozen=True)
class Drawn:
    """An SVDF. Scales: of the input, the two filters, the state, the output."""

    rank: int
    feature: np.ndarray
    time: np.ndarray
    bias: np.ndarray | None
    scales: tuple[float, ...]
    zeros: tuple[int, int, int]  # of the input, the state, the output
    batch: int

    def file(self, *, bits=8):
        """The file, with 8 or 16 bits of the weights over time and of the state."""
        x, feature, time, state, out = self.scales
        (features, memory), (_, inputs) = self.time.shape, self.feature.shape
        kind = f"int{bits}"
        tensors = [
            FileTensor((self.batch, inputs), scale=x, zero=self.zeros[0]),
            FileTensor(self.feature.shape, data=self.feature, scale=feature),
            FileTensor(self.time.shape, kind, self.time.astype(kind), time),
            FileTensor((self.batch, features * memory), kind, None, state, self.zeros[1], variable=True),
            FileTensor((self.batch, features // self.rank), scale=out, zero=self.zeros[2]),
        ]
        inputs_ = [0, 1, 2, -1, 3]
        if self.bias is not None:
            tensors.append(constant(self.bias, scale=state * time, zero=0))
            inputs_[3] = 5
        options = {"Rank": self.rank, "FusedActivationFunction": 1}
        return write(
            tensors, [FileOperator("SVDF", inputs_, [4], "SVDFOptions", options, version=3)], [0], [4]
        )


def drawn(seed, *, zero=None, quiet=False):
    """Draws an SVDF. `quiet`: no value of the state is clamped. `zero`: the state's zero point."""
    rng = np.random.default_rng(seed)
    batch, rank, units, memory, inputs = (int(rng.integers(1, n)) for n in (4, 4, 7, 9, 30))
    features = units * rank
    feature = rng.integers(-127, 128, (features, inputs)).astype(np.int8)
    time = rng.integers(-127, 128, (features, memory)).astype(np.int8)
    x, first, second = (float(np.float32(rng.uniform(0.005, 0.1))) for _ in range(3))
    spread = x * first * 5000 * np.sqrt(inputs)  # of the real sums
    most = x * first * 255 * float(np.abs(feature.astype(int)).sum(1).max())
    state = float(np.float32(most / 120 if quiet else spread / rng.uniform(20, 300)))
    out = float(np.float32(state * second * 3000 * np.sqrt(memory * rank) / rng.uniform(30, 90)))
    bias = rng.integers(-20000, 20000, units).astype(np.int32) if seed % 4 else None
    zeros = [int(rng.integers(-128, 128)) for _ in range(3)]
    zeros[1] = zeros[1] if zero is None else zero
    return Drawn(rank, feature, time, bias, (x, first, second, state, out), tuple(zeros), batch)


def steps_of(net, count, seed):
    rng = np.random.default_rng(seed)
    return [rng.integers(-128, 128, (net.batch, net.feature.shape[1])).astype(np.int8) for _ in range(count)]


def outputs(net, steps):
    graph = rewrite(read_model(net.file()))
    state, results = initial_states(graph), []
    for x in steps:
        values = execute(graph, [x.reshape(graph.tensors[graph.inputs[0]].shape)], state)
        state = next_states(graph, values)
        results.append(values[graph.outputs[0]].reshape(len(x), -1))
    return graph, results


def _factor(*scales, over):
    product = np.float32(scales[0]) * np.float32(scales[1])
    return quantize_multiplier(float(np.float32(product / np.float32(over))))


def _defined(net, steps):
    """Yields what TFLM computes: it adds the state's zero point to a value, and clamps the sum to 8 bits."""
    x_scale, feature, time, of_state, out = net.scales
    x_zero, zero, out_zero = net.zeros
    state = np.full((net.batch, *net.time.shape), zero, np.int64)
    for x in steps:
        sums = (x.astype(np.int64) - x_zero) @ net.feature.T.astype(np.int64)
        newest = multiply_by_quantized_multiplier(sums, *_factor(x_scale, feature, over=of_state)) + zero
        state = np.concatenate([state[:, :, 1:], np.clip(newest, -128, 127)[:, :, np.newaxis]], 2)
        units = ((state - zero) * net.time).sum(2).reshape(net.batch, -1, net.rank).sum(2)
        units += 0 if net.bias is None else net.bias
        y = multiply_by_quantized_multiplier(units, *_factor(of_state, time, over=out)) + out_zero
        yield np.clip(y, -128, 127)


@EXAMPLES
@given(SEEDS)
def test_steps_are_those_of_the_definition(seed):
    net = drawn(seed)
    steps = steps_of(net, 12, seed)
    graph, ours = outputs(net, steps)
    for a, b in zip(ours, _defined(net, steps), strict=True):
        np.testing.assert_array_equal(a, b)
    assert {op.kind for op in graph.ops} <= {
        *(OpKind.RESHAPE, OpKind.CONV_2D, OpKind.DEPTHWISE_CONV_2D, OpKind.SHIFT)
    }


@EXAMPLES
@given(SEEDS)
def test_where_nothing_is_clamped_16_bits_compute_the_same_in_litert(seed):
    net = drawn(seed, zero=0, quiet=True)
    steps = steps_of(net, 8, seed)
    _, ours = outputs(net, steps)
    theirs = sequence(net.file(bits=16), steps)
    for a, (b,) in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.slow
def test_firmware_keeps_the_state_in_8_bits(tmp_path):
    net = drawn(13)
    (path := tmp_path / "net.tflite").write_bytes(net.file())
    request = {"kind": "validate", "model": str(path), "board": "cortex-m4", "options": {}, "inputs": 8}
    answer = handle({**request, "tensors": True})
    assert answer["exact"]
    assert "reads an 8-bit state as 16 bits" in answer["reference"]["why"]
    with pytest.raises(ToolError, match="8-bit state"):
        handle({**request, "reference": "litert"})
    (state,) = rewrite(read_model(net.file())).states
    assert state.initial.nbytes == net.batch * net.time.size
