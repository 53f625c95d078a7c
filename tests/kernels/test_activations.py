"""Activations on inputs that networks seldom have: negative slopes with exact halves, rows all but even."""

import subprocess

import numpy as np
import pytest
from buildtool_plugins.tools.find import find_host_compiler
from ckernels import run_plain
from kernelcases import unary
from litert import run_graph
from paths import KERNELS
from placement import run_whole

from buildtool.graph.reference import execute
from buildtool.graph.types import DType, LeakyReluAttrs, OpKind, SoftmaxAttrs

ALPHAS = (-0.5, -0.125, -0.75, -1.0, -3.0, -0.3, 0.25)
# (input scale, output scale, zero points): powers of two, so that products fall on halves.
SCALES = ((1 / 32, 1 / 4, 105, 0), (1 / 4, 1 / 2, -90, 4), (1 / 16, 1 / 32, -23, -3), (0.11, 0.07, 100, -60))
KINDS = {DType.INT8: np.int8, DType.INT16: np.int16}


def leaky(alpha, scales, dtype):
    """Every value that there is, as one tensor."""
    limits = np.iinfo(KINDS[dtype])
    values = np.arange(limits.min, limits.max + 1).astype(KINDS[dtype]).reshape(1, 1, -1, 256)
    points, attrs = scales[2:] if dtype is DType.INT8 else (0, 0), LeakyReluAttrs(float(np.float32(alpha)))
    return unary(
        OpKind.LEAKY_RELU, attrs, values.shape, values, scales=scales[:2], points=points, dtype=dtype
    )


@pytest.mark.parametrize("dtype", sorted(KINDS))
def test_every_value_is_rounded_as_litert_rounds_it(dtype):
    for alpha in ALPHAS:
        for scales in SCALES:
            made = leaky(alpha, scales, dtype)
            wanted = run_graph(made.graph, made.inputs)[1]
            assert len(np.unique(wanted)) > 3
            for result in (execute(made.graph, made.inputs)[1], run_plain(made.graph, made.inputs[0])):
                np.testing.assert_array_equal(result, wanted, err_msg=f"{alpha} {scales}")


def even_row(classes):
    scales, points = (2.0**-8, 2.0**-8), (0, -128)
    return unary(OpKind.SOFTMAX, SoftmaxAttrs(), (1, 1, 1, classes), 5, scales=scales, points=points)


@pytest.mark.parametrize("classes", [512, 513, 4095, 4096, 20000])
def test_rows_that_litert_refuses_become_nothing(classes):
    refused = even_row(classes)
    np.testing.assert_array_equal(run_whole(refused), np.full(refused.out_shape, -128, np.int8))
    np.testing.assert_array_equal(execute(refused.graph, refused.inputs)[1], run_whole(refused))


def test_the_last_row_that_litert_accepts_is_rounded_up():
    accepted = even_row(511)
    np.testing.assert_array_equal(run_whole(accepted), np.full(accepted.out_shape, -127, np.int8))


NO_EXPONENTIALS = """
#include "nn.h"
int main(void) {
    static nn_softmax_constants constants;
    static int8_t in[8], out[8];
    const nn_view from = {in, 8, 8, 1, 1, 0, 1, 1, 8}, to = {out, 8, 8, 1, 1, 0, 1, 1, 8};
    const nn_window all = {0, 1, 0, 1};
    for (int i = 0; i < 256; i++)
        constants.exponentials[i] = INT32_MIN >> (i % 12);
    nn_softmax_s8(&constants, &from, &to, &all);
    return 0;
}
"""


def test_a_damaged_table_of_exponentials_does_not_hang_it(tmp_path):
    (tmp_path / "main.c").write_text(NO_EXPONENTIALS)
    kernel, program = KERNELS / "reference" / "nn_softmax_s8.c", tmp_path / "program"
    command = [find_host_compiler(), "-O1", f"-I{KERNELS / 'include'}", "main.c", kernel, "-o", program]
    subprocess.run(command, cwd=tmp_path, check=True)
    subprocess.run([program], check=True, timeout=60)
