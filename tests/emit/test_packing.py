"""The layout of constants: it depends on the topology alone, is aligned, and must suit the kernels."""

import dataclasses

import numpy as np
import pytest
from ckernels import catalogue

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
