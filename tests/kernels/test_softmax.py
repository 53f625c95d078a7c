"""SOFTMAX where LiteRT gives no answer: rows so even that no probability reaches half a step."""

import subprocess

import numpy as np
import pytest
from buildtool_plugins.tools.find import find_host_compiler
from kernelcases import activation_tensor, case
from paths import KERNELS
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
