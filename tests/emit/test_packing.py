"""The layout of constants: it depends on the topology alone, is aligned, and must suit the kernels."""

import dataclasses

import numpy as np
import pytest
from ckernels import catalogue
from hypothesis import given, settings
from largecases import depthwise_rows, squares
from loaded import load_target

from buildtool.base.errors import TargetError, UnsupportedError
from buildtool.emit.packing import pack
from buildtool.graph.limits import MAX_TAPS
from buildtool.graph.types import (
    DType,
    FullyConnectedAttrs,
    Graph,
    Op,
    OpKind,
    Quantization,
    Tensor,
)
from buildtool.target.catalogue import select

EXAMPLES = settings(max_examples=20, derandomize=True, deadline=None, database=None)
HEAD, CHANNEL = 32, 16  # bytes of nn_riscv_head and nn_riscv_channel
GENERAL = 2  # a value of nn_riscv_mode
MODE = 4  # the mode's word in nn_riscv_head and nn_rvv_head
PLAINLY = slice(4, 6)  # words of nn_dsp_head: the channels [first, end) with plain arithmetic
RISCV = ("qemu-virt-rv32", "qemu-virt-rv32v")
# Scale and bias of a channel that needs no plain arithmetic, such as one whose output cannot change.
TAME = (
    (2.0**-9, 0),
    (2.0**-38, (1 << 30) + 1),  # as in a channel that training has made useless
    (2.0**-38, -(1 << 30) - 1),
    (2.0**-9, (1 << 30) + 1),  # saturated for any input
)


def block(board, case):
    """Returns the packed constants as words, and the kernel that reads them."""
    variant = select(load_target(board), case.graph, case.op)
    return np.frombuffer(pack(case.graph, case.op, variant), "<i4"), variant


def with_first_channel(case, *, scale, bias):
    """Returns `case` with this scale and bias for output channel 0, and tame ones for the others."""
    tensors = list(case.graph.tensors)
    index, place = case.op.inputs[1:3]
    shape = tensors[index].shape
    count = shape[3] if case.op.kind is OpKind.DEPTHWISE_CONV_2D else shape[0]
    scales = [2.0**-9] * count
    scales[0] = scale
    axis = tensors[index].quant.axis
    quant = Quantization(tuple(scales), (0,) * count, axis)
    tensors[index] = dataclasses.replace(tensors[index], quant=quant)
    data = np.zeros(count, np.int32)
    data[0] = bias
    tensors[place] = dataclasses.replace(tensors[place], data=data)
    x, out = case.op.inputs[0], case.op.outputs[0]
    tensors[x] = dataclasses.replace(tensors[x], quant=Quantization((2.0**-4,), (0,)))
    tensors[out] = dataclasses.replace(tensors[out], quant=Quantization((2.0**-4,), (0,)))
    return dataclasses.replace(case, graph=dataclasses.replace(case.graph, tensors=tuple(tensors)))


@EXAMPLES
@given(case=squares(bias=True))
def test_a_channel_whose_output_cannot_change_needs_no_plain_arithmetic(case):
    def plain(board, scale, bias):
        words, variant = block(board, with_first_channel(case, scale=scale, bias=bias))
        if board == "cortex-m4":
            first, end = words[PLAINLY].tolist()
            assert first == 0
            return end > 0
        # kernels of other families compute strides that this family does not have
        return words[MODE] == GENERAL if variant.sources[0].startswith("riscv") else scale > 1

    for board in ("cortex-m4", *RISCV):
        for scale, bias in TAME:
            assert not plain(board, scale, bias), (board, scale, bias)
        assert plain(board, 2.5, 0)  # a factor above 1
    assert plain("cortex-m4", 1.5, 0)  # a factor above 1/2


@EXAMPLES
@given(case=depthwise_rows())
def test_a_row_of_weights_has_three_five_or_seven(case):
    words, variant = block("qemu-virt-rv32", case)
    packed = words.view(np.int8)
    _, kh, kw, channels = case.graph.tensors[case.op.inputs[1]].shape
    width = int(variant.name.removeprefix("depthwise_w")[0])
    assert width in (3, 5, 7)
    assert kw <= width
    weights = packed[HEAD + CHANNEL * channels :][: channels * kh * width].reshape(channels, kh, width)
    assert not weights[:, :, kw:].any()
    tensor = case.graph.tensors[case.op.inputs[1]].data
    has_weights = weights[:, :, :kw].any(axis=(1, 2))  # the others are now biases
    np.testing.assert_array_equal(weights[has_weights, :, :kw], tensor[0].transpose(2, 0, 1)[has_weights])


def test_a_packing_that_the_family_has_not_names_the_close_one():
    kernel = dataclasses.replace(catalogue()[OpKind.CONV_2D], packing="conv_plane")
    op = Op(OpKind.CONV_2D, (0, 1, 2), (3,))
    with pytest.raises(TargetError, match="conv_plane") as caught:
        pack(Graph("g", (), (op,), (), ()), op, kernel)
    assert "conv_plain" in caught.value.hint
    assert caught.value.path.endswith("reference/packing.py")


def test_a_sum_that_may_not_fit_32_bits_is_refused():
    one = Quantization((1.0,), (0,))
    inputs = MAX_TAPS + 1
    filter_ = Tensor("f", (1, inputs), DType.INT8, one, np.zeros((1, inputs), np.int8))
    tensors = (Tensor("x", (1, inputs), DType.INT8, one), filter_, Tensor("y", (1, 1), DType.INT8, one))
    op = Op(OpKind.FULLY_CONNECTED, (0, 1, -1), (2,), FullyConnectedAttrs(), 7)
    with pytest.raises(UnsupportedError) as caught:
        pack(Graph("g", tensors, (op,), (0,), (2,)), op, catalogue()[OpKind.FULLY_CONNECTED])
    assert caught.value.operator == "#7 FULLY_CONNECTED"
    assert caught.value.tensor == "f"
