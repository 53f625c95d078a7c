"""Packing for the DSP extension: lengths, and which channels need plain arithmetic."""

import dataclasses

import numpy as np
from extremecases import extreme_sums, squares, unchanging_channels, weighted
from hypothesis import given, settings
from hypothesis import strategies as st

from buildtool.emit.packing import pack
from buildtool.graph.types import OpKind, Quantization
from buildtool.target.catalogue import select
from buildtool.target.registry import load_target
from buildtool.target.types import Target

EXAMPLES = settings(max_examples=60, derandomize=True, deadline=None, database=None)
TARGET: Target = load_target("cortex-m4")


def block(case):
    """The packed constants as words, and the kernel that reads them."""
    variant = select(TARGET, case.graph, case.op)
    return np.frombuffer(pack(case.graph, case.op, variant), "<i4"), variant


def general(case):
    """The channels [first, end) that are computed plainly."""
    first, end = block(case)[0][4:6]
    return int(first), int(end)


@EXAMPLES
@given(case=st.one_of(weighted(), unchanging_channels(), extreme_sums()), seed=st.integers(0, 99))
def test_the_length_depends_on_the_topology_alone(case, seed):
    words, variant = block(case)
    rng = np.random.default_rng(seed)
    tensors = list(case.graph.tensors)
    for place in case.op.inputs[1:]:
        if place >= 0:
            data = tensors[place].data
            info = np.iinfo(data.dtype)
            values = rng.integers(info.min, info.max + 1, data.shape).astype(data.dtype)
            tensors[place] = dataclasses.replace(tensors[place], data=values)
    other = dataclasses.replace(case.graph, tensors=tuple(tensors))
    assert select(TARGET, other, other.ops[0]) == variant
    assert len(pack(other, other.ops[0], variant)) == words.nbytes


def with_first_channel(case, *, scale, bias):
    """`case` with another scale and bias of output channel 0, and tame ones elsewhere."""
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


# Scale and bias of a channel whose output cannot change, or not outside what is computed fast.
TAME = (
    (2.0**-9, 0),
    (2.0**-38, (1 << 30) + 1),  # as training leaves a channel that is of no use
    (2.0**-38, -(1 << 30) - 1),
    (2.0**-9, (1 << 30) + 1),  # saturated whatever comes in
)


@EXAMPLES
@given(case=squares(bias=True))
def test_a_channel_whose_output_cannot_change_needs_no_plain_arithmetic(case):
    for scale, bias in TAME:
        assert general(with_first_channel(case, scale=scale, bias=bias)) == (0, 0), (scale, bias)
    first, end = general(with_first_channel(case, scale=1.5, bias=0))  # a factor above 1/2
    assert first == 0 < end
