"""Packing for RISC-V: lengths, channels that become biases, rows of weights filled up."""

from dataclasses import replace

import numpy as np
import pytest
from extremecases import extreme_sums, squares, unchanging_channels, weighted
from hypothesis import given, settings
from hypothesis import strategies as st
from loaded import load_target
from riscvcases import depthwise_rows
from test_packing_dsp import TAME, with_first_channel

from buildtool.emit.packing import pack
from buildtool.target.catalogue import select

EXAMPLES = settings(max_examples=30, derandomize=True, deadline=None, database=None)
HEAD, CHANNEL = 32, 16  # bytes of nn_riscv_head and nn_riscv_channel
GENERAL = 2  # of nn_riscv_mode
MODE = 4  # word of nn_riscv_head and nn_rvv_head
BOARDS = ("qemu-virt-rv32", "qemu-virt-rv32v")


def block(board, case):
    variant = select(load_target(board), case.graph, case.op)
    return np.frombuffer(pack(case.graph, case.op, variant), np.int8), variant


@EXAMPLES
@given(case=squares(bias=True))
def test_a_channel_whose_output_cannot_change_needs_no_plain_arithmetic(case):
    for board in BOARDS:
        if not block(board, case)[1].sources[0].startswith("riscv"):
            continue  # strides that no kernel of the family has fall to others
        for scale, bias in (*TAME, (2.5, 0)):  # the last one: a factor above 1
            packed, _ = block(board, with_first_channel(case, scale=scale, bias=bias))
            assert (packed.view("<i4")[MODE] == GENERAL) == (scale > 1), (board, scale, bias)


@pytest.mark.parametrize("board", BOARDS)
@EXAMPLES
@given(case=st.one_of(weighted(), unchanging_channels(), extreme_sums()), seed=st.integers(0, 99))
def test_the_length_depends_on_the_topology_alone(board, case, seed):
    packed, variant = block(board, case)
    tensors = list(case.graph.tensors)
    weights = tensors[case.op.inputs[1]]
    data = np.random.default_rng(seed).integers(-127, 128, weights.shape, np.int8)
    tensors[case.op.inputs[1]] = replace(weights, data=data)
    others = replace(case.graph, tensors=tuple(tensors))
    assert len(pack(others, case.op, variant)) == len(packed)


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
