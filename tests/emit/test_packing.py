"""The constants' layout: fixed by the topology, aligned, refused where the kernels could not use it."""

import dataclasses

import numpy as np
import pytest
from ckernels import catalogue
from hypothesis import given, settings
from hypothesis import strategies as st
from kernelcases import Case, windowed

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


def retrained(case: Case, rng: np.random.Generator) -> Graph:
    """The same topology with other weights, and one scale a filter."""
    tensors = list(case.graph.tensors)
    for index in case.op.inputs[1:]:
        if index >= 0:
            tensor = tensors[index]
            data = rng.integers(-100, 100, tensor.shape).astype(tensor.data.dtype)
            quant = Quantization((0.25,), (0,))
            tensors[index] = dataclasses.replace(tensor, data=data, quant=quant)
    return dataclasses.replace(case.graph, tensors=tuple(tensors))


@pytest.mark.parametrize("kind", ["convolution", "depthwise", "transpose_convolution", "dense"])
@settings(max_examples=25, derandomize=True, deadline=None)
@given(data=st.data())
def test_a_block_is_as_long_as_the_topology_says(kind, data):
    case = data.draw(windowed[kind])
    block = pack(case.graph, case.op, catalogue()[case.op.kind])
    other = retrained(case, np.random.default_rng(0))
    assert len(block) % 16 == 0
    assert len(pack(other, case.op, catalogue()[case.op.kind])) == len(block)


def test_a_packing_that_the_family_has_not_names_the_close_one():
    kernel = dataclasses.replace(catalogue()[OpKind.CONV_2D], packing="conv_plane")
    op = Op(OpKind.CONV_2D, (0, 1, 2), (3,))
    with pytest.raises(TargetError, match="conv_plane") as caught:
        pack(Graph("g", (), (op,), (), ()), op, kernel)
    assert "conv_plain" in caught.value.hint
    assert caught.value.path.endswith("reference/packing.py")


def test_a_kernel_without_constants_gets_none():
    transpose = catalogue()[OpKind.TRANSPOSE]
    assert pack(Graph("g", (), (), (), ()), Op(OpKind.TRANSPOSE, (0,), (1,)), transpose) == b""


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
