"""A small audio network whose dense layer reads 4,000 inputs: no kernel's scratch fills the arena."""

import pytest
from topologies import _RELU, _Net

from buildtool.api import handle
from buildtool.graph.tflite.writer import write_model
from buildtool.graph.types import OpKind
from buildtool.target.catalogue import scratch_bytes, select
from buildtool.target.registry import load_target

DENSE_INPUTS = 4000  # bytes, which have to be there together
ARENA = {"cortex-m4": 4720, "cortex-m55": 4368}  # bytes; a convolution's last rows stand beside its output


def spectrogram_network():
    """49 x 40 features, one convolution of 10 x 8 taps, one dense layer, four words."""
    net = _Net(3, "small_audio")
    x = net.move(OpKind.RESHAPE, net.input((1, 49 * 40)), (1, 49, 40, 1))
    x = net.conv(x, 8, kernel=(10, 8), stride=(2, 2), same=True, activation=_RELU)
    return net.graph([net.softmax(net.dense(net.flatten(x), 4))])


@pytest.mark.parametrize("board", sorted(ARENA))
def test_a_dense_layer_of_thousands_of_inputs_takes_no_scratch(board):
    target = load_target(board)
    graph = spectrogram_network()
    dense = next(op for op in graph.ops if op.kind is OpKind.FULLY_CONNECTED)
    assert graph.tensors[dense.inputs[0]].shape[-1] == DENSE_INPUTS
    assert scratch_bytes(select(target, graph, dense), graph, dense) == 0


@pytest.mark.slow
@pytest.mark.parametrize("board", sorted(ARENA))
def test_the_network_is_exact_in_little_more_than_its_largest_tensor(board, tmp_path):
    model = tmp_path / "small_audio.tflite"
    model.write_bytes(write_model(spectrogram_network()))
    options = {"objective": "ram"}
    answer = handle({"kind": "validate", "model": str(model), "board": board, "options": options})
    assert answer["exact"]
    assert answer["arena_bytes"] == ARENA[board]
