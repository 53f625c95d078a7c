"""Every operator on every kind of core, as `validate` runs it: of int8, int16, uint8, and with state."""

import itertools

import pytest
import recurrentnets
import uint8nets
from boardruns import exact, file_of, validated
from everyop import every_operator, every_wide_operator, wide_audio, wide_image
from graphs import STATE_KINDS

from buildtool.api import handle
from buildtool.graph.ops import DEFS
from buildtool.graph.ops.signal import CUSTOM
from buildtool.graph.rewrite import rewrite
from buildtool.graph.tflite import support
from buildtool.graph.tflite.reader import read_model
from buildtool.graph.tflite.writer import write_model
from buildtool.graph.types import Activation, DType, Graph, OpKind
from buildtool.zoo.drawn import NetBuilder

slow = pytest.mark.slow
LAYERWISE = {"strategy": "layerwise"}
LACKING = {OpKind.ELU, OpKind.SUM}  # LiteRT has no reference kernel of ELU, and a wrong one of SUM
WITHOUT_CODE = {
    OpKind.DEQUANTIZE,
    OpKind.EXPAND_DIMS,
    OpKind.RESHAPE,
    OpKind.SPLIT,  # of channels it becomes slices; with two images in a batch it is one
    OpKind.SQUEEZE,
    OpKind.BATCH_TO_SPACE_ND,  # made of copies, or part of a convolution
    OpKind.SPACE_TO_BATCH_ND,
}


def kinds(graph: Graph) -> set[OpKind]:
    return {op.kind for op in graph.ops}


def test_the_network_has_every_operator():
    source = read_model(write_model(every_operator()))
    expected = {kind for kind in OpKind if DEFS[kind].reference} - LACKING - STATE_KINDS - set(CUSTOM)
    assert kinds(source) == expected  # those of CUSTOM have tests of their own
    assert kinds(source) - kinds(rewrite(source)) <= WITHOUT_CODE
    assert OpKind.LOOKUP in kinds(rewrite(source))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("board", "toolchain", "batch"),
    [
        ("cortex-m4", "gcc", 2),
        ("cortex-m55", "clang", 1),
        ("qemu-virt-rv32v", "clang", 2),
    ],
)
def test_every_operator(board, toolchain, batch, tmp_path):
    model = file_of(every_operator(batch=batch), tmp_path)
    outcome = exact(model, board, LAYERWISE, toolchain=toolchain, inputs=2).outcome
    assert len(outcome.traces[0]) >= 36
    assert sum(len(set(raw)) for raw in outcome.outputs[0].values()) > 80  # of some 130 that there could be


def test_the_network_of_int16_has_every_operator_of_int16():
    """All that the reader takes, except aliases, edges, and operators that LiteRT does not compute."""
    graph = read_model(write_model(every_wide_operator()))
    of_int16 = {str(op.kind) for op in graph.ops if DType.INT16 in _types(graph, op)}
    without = {OpKind.DEQUANTIZE, OpKind.RESHAPE, OpKind.SQUARE, OpKind.SQUARED_DIFFERENCE, OpKind.SUM}
    without |= {OpKind.UNIDIRECTIONAL_SEQUENCE_LSTM, OpKind.POW}
    assert of_int16 >= {support.SPELLINGS[code][0].kind for code in support.INT16} - without


def _types(graph, op):
    return {graph.tensors[t].dtype for t in (*op.inputs, *op.outputs) if t >= 0}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("board", "batch"),
    [("cortex-m55", 2), ("qemu-virt-rv32", 1)],
)
def test_every_operator_of_int16(board, batch, tmp_path):
    graph = every_wide_operator(batch=batch)
    answer = validated(file_of(graph, tmp_path), board, LAYERWISE, toolchain="clang")
    assert answer["tensors_compared"] >= 40
    assert answer["output_values"] > 150  # different bytes, of 256


@slow
@pytest.mark.parametrize(
    ("make", "board"),
    [(wide_image, "host"), (wide_audio, "cortex-m4")],
)
def test_a_streamed_network_of_int16(make, board, tmp_path):
    """The image comes row by row, and the plan is the one of least memory: rings, windows and sums."""
    graph = make()
    answer = validated(file_of(graph, tmp_path), board, {"image": "stream", "objective": "ram"})
    made = rewrite(graph)
    sizes = [made.tensors[t].size for t in made.activations()]
    assert answer["arena_bytes"] < (max(sizes) if make is wide_image else sum(sizes))
    assert answer["output_values"] > 5


def test_an_arena_counts_two_bytes_a_value(tmp_path):
    """Of the same network in int16, layer by layer, twice the bytes of live tensors."""
    graph = wide_audio()
    model = file_of(graph, tmp_path)
    answer = handle({"kind": "plan", "model": model, "board": "host", "options": LAYERWISE})
    sizes = [graph.tensors[t].elements * 2 for t in graph.activations()]
    pairs = [a + b for a, b in itertools.pairwise(sizes)]
    assert max(sizes) <= answer["arena_bytes"] <= max(pairs) + 64


@slow
def test_a_network_of_uint8(tmp_path):
    options = {"image": "stream", "objective": "ram"}
    answer = validated(file_of(uint8nets.small_classifier(), tmp_path), "cortex-m4", options, seed=1)
    assert answer["tensors_compared"] >= 10
    assert answer["output_values"] > 5


@slow
@pytest.mark.parametrize(
    ("make", "board"),
    [
        pytest.param(recurrentnets.every_part, "cortex-m55", marks=slow),
        (recurrentnets.wake_word, "host"),
    ],
)
def test_svdf_and_lstm_over_a_sequence_of_invokes_with_a_reset(make, board, tmp_path):
    answer = validated(file_of(make(), tmp_path), board, LAYERWISE, inputs=4)
    assert (answer["resets"], answer["inputs_equal"]) == (1, 4)
    assert answer["state_bytes"] > 0


SIMD_AT_MOST = 16  # instructions a multiplication; the plain depthwise kernel takes about 36


@slow
@pytest.mark.parametrize("board", ["cortex-m4", "qemu-virt-rv32v"])
def test_a_first_layer_that_multiplies_its_one_channel_runs_on_simd_kernels(board, tmp_path):
    """As 96x96x1 MobileNets begin: a depth multiplier of 8, stride 2, a 1 x 1 convolution."""
    net = NetBuilder(7)
    x = net.input((1, 24, 22, 1))
    relu = Activation.RELU
    y = net.conv(x, 0, kernel=(3, 3), stride=(2, 2), same=True, depth_multiplier=8, activation=relu)
    y = net.conv(y, 16, activation=relu)
    model = file_of(net.graph([net.softmax(net.dense(net.flatten(y), 4))]), tmp_path)
    answer = handle({"kind": "profile", "model": model, "board": board, "options": LAYERWISE})
    assert answer["exact"]
    first = answer["per_operator"][0]
    assert first["operator"] == "CONV_2D"
    assert first["instructions"] < SIMD_AT_MOST * first["macs"]


# A dense layer that reads 4,000 bytes, which have to be there together: no kernel's scratch fills the arena.
# A convolution's last rows stand beside its output.
AUDIO_ARENA = {"cortex-m4": 4720, "cortex-m55": 4368}  # bytes


def spectrogram_network() -> Graph:
    """49 x 40 features, one convolution of 10 x 8 taps, one dense layer, four words."""
    net = NetBuilder(3, "small_audio")
    x = net.move(OpKind.RESHAPE, net.input((1, 49 * 40)), (1, 49, 40, 1))
    x = net.conv(x, 8, kernel=(10, 8), stride=(2, 2), same=True, activation=Activation.RELU)
    return net.graph([net.softmax(net.dense(net.flatten(x), 4))])


@slow
@pytest.mark.parametrize("board", sorted(AUDIO_ARENA))
def test_small_audio_is_exact_in_little_more_than_its_largest_tensor(board, tmp_path):
    options = {"objective": "ram", "simplify": "structure"}
    answer = validated(file_of(spectrogram_network(), tmp_path), board, options)
    assert answer["arena_bytes"] == AUDIO_ARENA[board]


@slow
def test_an_lstm_of_int16_over_a_sequence_of_invokes_with_a_reset(tmp_path):
    """LiteRT has no kernel of it, so our executor judges; the kernel's tests compare that with TFLM."""
    model = file_of(recurrentnets.wide_digit_rows(), tmp_path)
    request = {"kind": "validate", "model": model, "board": "qemu-virt-rv32"}
    answer = handle({**request, "options": LAYERWISE, "inputs": 4, "tensors": True, "seed": 5})
    assert answer["exact"], answer["first_difference"]
    assert answer["reference"]["name"] == "numpy" and "LSTM of int16" in answer["reference"]["why"]
    assert (answer["resets"], answer["inputs_equal"]) == (1, 4) and answer["output_values"] > 5
