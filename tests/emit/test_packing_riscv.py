"""Packing for RISC-V: lengths, channels that become biases, rows of weights filled up."""

import numpy as np
import pytest
from extremecases import extreme_sums, squares, unchanging_channels, weighted
from hypothesis import given, settings
from hypothesis import strategies as st
from loaded import load_target
from riscvcases import depthwise_rows
from test_packing_dsp import with_first_channel

from buildtool.emit.packing import pack
from buildtool.target.catalogue import select

EXAMPLES = settings(max_examples=20, derandomize=True, deadline=None, database=None)
HEAD, CHANNEL = 32, 16  # bytes of nn_riscv_head and nn_riscv_channel
GENERAL = 2  # of nn_riscv_mode
MODE = 4  # word of nn_riscv_head and nn_rvv_head
boards = pytest.mark.parametrize("board", ["qemu-virt-rv32", "qemu-virt-rv32v"])


def block(board, case):
    variant = select(load_target(board), case.graph, case.op)
    return np.frombuffer(pack(case.graph, case.op, variant), np.int8), variant


@boards
@EXAMPLES
@given(case=squares().filter(lambda case: len(case.op.inputs) > 2 and case.op.inputs[2] >= 0))
@pytest.mark.parametrize(
    ("scale", "bias", "general"),
    [
        (2.0**-9, 0, False),
        (2.0**-38, (1 << 30) + 1, False),  # as training leaves a channel that is of no use
        (2.0**-38, -(1 << 30) - 1, False),
        (2.0**-9, (1 << 30) + 1, False),  # saturated whatever comes in
        (2.5, 0, True),  # a factor above 1
    ],
)
def test_a_channel_whose_output_cannot_change_needs_no_plain_arithmetic(board, case, scale, bias, general):
    case = with_first_channel(case, scale=scale, bias=bias)
    packed, variant = block(board, case)
    if variant.sources[0].startswith("riscv"):  # strides that no kernel of the family has fall to others
        assert (packed.view("<i4")[MODE] == GENERAL) == general


@boards
@EXAMPLES
@given(case=st.one_of(weighted(), unchanging_channels(), extreme_sums()), seed=st.integers(0, 99))
def test_the_length_depends_on_the_topology_alone(board, case, seed):
    packed, variant = block(board, case)
    index = case.op.inputs[1]
    data = case.graph.tensors[index].data
    kept = data.copy()
    data[...] = np.random.default_rng(seed).integers(-127, 128, data.shape)
    try:
        assert len(pack(case.graph, case.op, variant)) == len(packed)
    finally:
        data[...] = kept


@EXAMPLES
@given(case=depthwise_rows())
def test_a_row_of_weights_has_three_five_or_seven(case):
    packed, variant = block("qemu-virt-rv32", case)
    _, kh, kw, channels = case.graph.tensors[case.op.inputs[1]].shape
    width = int(variant.name.removeprefix("depthwise_w")[0])
    assert width in (3, 5, 7)
    assert kw <= width
    weights = packed[HEAD + CHANNEL * channels :][: channels * kh * width].reshape(channels, kh, width)
    assert not weights[:, :, kw:].any()
    tensor = case.graph.tensors[case.op.inputs[1]].data
    kept = weights[:, :, :kw].any(axis=(1, 2))  # others became biases
    np.testing.assert_array_equal(weights[kept, :, :kw], tensor[0].transpose(2, 0, 1)[kept])
