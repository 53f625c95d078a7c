"""LEAKY_RELU with a negative alpha equals LiteRT on every input, exact halves among them."""

import numpy as np
import pytest
from hostcalls import run_plain
from kernelcases import case, quant
from litert import run_graph

from buildtool.graph.reference import execute
from buildtool.graph.types import DType, LeakyReluAttrs, OpKind, Tensor

ALPHAS = (-0.5, -0.125, -0.75, -1.0, -3.0, -0.3, 0.25)
# (input scale, output scale, zero points): powers of two, so that products fall on halves.
SCALES = ((1 / 32, 1 / 4, 105, 0), (1 / 4, 1 / 2, -90, 4), (1 / 16, 1 / 32, -23, -3), (0.11, 0.07, 100, -60))
KINDS = {DType.INT8: np.int8, DType.INT16: np.int16}


def leaky(alpha, scales, dtype):
    """Every value that there is, as one tensor."""
    limits = np.iinfo(KINDS[dtype])
    values = np.arange(limits.min, limits.max + 1).astype(KINDS[dtype]).reshape(1, 1, -1, 256)
    given, made, *zeros = scales
    points = zeros if dtype is DType.INT8 else (0, 0)
    x = Tensor("x", values.shape, dtype, quant(given, points[0]))
    y = Tensor("y", values.shape, dtype, quant(made, points[1]))
    return case(OpKind.LEAKY_RELU, LeakyReluAttrs(float(np.float32(alpha))), [x], [], y, [values])


@pytest.mark.parametrize("dtype", sorted(KINDS))
def test_every_value_is_rounded_as_litert_rounds_it(dtype):
    for alpha in ALPHAS:
        for scales in SCALES:
            made = leaky(alpha, scales, dtype)
            wanted = run_graph(made.graph, made.inputs)[1]
            assert len(np.unique(wanted)) > 3
            results = [execute(made.graph, made.inputs)[1]]
            results += [run_plain(made.graph, made.inputs[0])]
            for result in results:
                np.testing.assert_array_equal(result, wanted, err_msg=f"{alpha} {scales}")
