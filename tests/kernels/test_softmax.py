"""SOFTMAX where LiteRT gives no answer: rows so even that no probability reaches half a step."""

import numpy as np
import pytest
from kernelcases import activation_tensor, case
from placement import run_whole

from buildtool.graph.reference import execute
from buildtool.graph.types import OpKind, SoftmaxAttrs


def even_row(classes):
    shape = (1, 1, 1, classes)
    x, y = activation_tensor("x", shape, 2.0**-8, 0), activation_tensor("y", shape, 2.0**-8, -128)
    return case(OpKind.SOFTMAX, SoftmaxAttrs(), [x], [], y, [np.full(shape, 5, np.int8)])


@pytest.mark.parametrize("classes", [512, 513, 4095, 4096, 20000])
def test_rows_that_litert_refuses_become_nothing(classes):
    refused = even_row(classes)
    np.testing.assert_array_equal(run_whole(refused), np.full(refused.out_shape, -128, np.int8))
    np.testing.assert_array_equal(execute(refused.graph, refused.inputs)[1], run_whole(refused))


def test_the_last_row_that_litert_accepts_is_rounded_up():
    accepted = even_row(511)
    np.testing.assert_array_equal(run_whole(accepted), np.full(accepted.out_shape, -127, np.int8))
