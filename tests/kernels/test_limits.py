"""Every family at the limits of its kernels and beyond: exact, served by another kernel, or refused."""

import numpy as np
import placement
import pytest
from boardcalls import recording
from litert import run_graph
from loaded import load_target
from placement import run_parts, run_whole
from widecases import LONG, WIDE, conv, dense, depthwise, elementwise, pool

from buildtool.graph.types import OpKind
from buildtool.target.catalogue import select

BOARDS = {
    "cortex_m_dsp": "cortex-m4",
    "cortex_m_mve": "cortex-m55",
    "riscv": "qemu-virt-rv32",
    "riscv_v": "qemu-virt-rv32v",
}
slow = pytest.mark.slow
families = pytest.mark.parametrize("family", sorted(BOARDS))
MORE_THAN_16_BITS = 65600


def check(family, cases):
    """Whole tensors: plain kernels against LiteRT, and the board's against the plain ones."""
    with recording(BOARDS[family], family) as recorder:
        for name, make in cases.items():
            case = make()
            wanted = run_graph(case.graph, case.inputs)[case.op.outputs[0]]
            np.testing.assert_array_equal(run_whole(case), wanted, err_msg=name)
    recorder.check("")
    return recorder


@slow
def test_a_helium_convolution_is_exact_where_its_offsets_end():
    names = ("conv 65532 outputs", "conv 65533 outputs")  # the others are wide layers, below
    recorder = check("cortex_m_mve", {name: WIDE[name] for name in names})
    assert recorder.kernels == {"conv2d_mve": len(names)}


@slow
@families
def test_wide_layers_are_exact(family):
    assert check(family, WIDE).kernels.total() > 10


@slow
@families
def test_long_sums_and_large_steps_are_exact(family):
    assert check(family, LONG).kernels.total() > 20


@slow
@families
def test_narrow_views_of_wide_tensors_are_exact(family, monkeypatch):
    """The output of a small layer may be a part of a joined tensor whose pixels lie far apart."""
    monkeypatch.setattr(placement, "MARGINS", (MORE_THAN_16_BITS,))
    cases = (
        conv((2, 3), 3, 7),
        conv((2, 4), 3, 7, (2, 2)),
        depthwise((3, 5), 20, (3, 3), pad=1),
        depthwise((1, 5), 9, (1, 5), pad=2),
        elementwise(OpKind.ADD, (1, 3), 9, 9),
        elementwise(OpKind.MUL, (1, 3), 9, 9),
        pool(OpKind.AVERAGE_POOL_2D, (2, 3), 9),
        pool(OpKind.MAX_POOL_2D, (2, 3), 9),
        dense(17, 9),
    )
    with recording(BOARDS[family], family) as recorder:
        for seed, case in enumerate(cases):
            np.testing.assert_array_equal(run_parts(case, seed), run_whole(case))
    recorder.check("")


# (family, what is asked for, the kernel that serves it): at a limit, and just beyond it.
CHOICES = [
    ("cortex_m_mve", lambda: depthwise((4, 3), 4, (4, 3)), "depthwise_3_columns_mve"),
    ("cortex_m_mve", lambda: depthwise((5, 3), 4, (5, 3)), "depthwise_conv2d_mve"),
    ("cortex_m_mve", lambda: depthwise((8, 8), 4, (8, 8)), "depthwise_conv2d_mve"),
    ("cortex_m_mve", lambda: depthwise((9, 8), 4, (9, 8)), "depthwise_conv2d_reference"),
    ("cortex_m_mve", lambda: depthwise((8, 9), 4, (8, 9)), "depthwise_conv2d_reference"),
    ("cortex_m_mve", lambda: depthwise((4, 16), 4, (4, 16)), "depthwise_conv2d_mve"),
    ("cortex_m_mve", lambda: depthwise((4, 17), 4, (4, 17)), "depthwise_conv2d_reference"),
    ("cortex_m_mve", lambda: depthwise((3, 5), 4, (3, 3), dilation=(1, 2)), "depthwise_3_columns_mve"),
    (
        "cortex_m_mve",
        lambda: depthwise((3, 5), 4, (3, 3), (1, 2), dilation=(1, 2)),
        "depthwise_conv2d_reference",
    ),
    ("cortex_m_mve", lambda: depthwise((1, 5), 4, (1, 4)), "depthwise_conv2d_mve"),
    ("cortex_m_mve", lambda: depthwise((1, 5), 4, (1, 5)), "depthwise_1_row_mve"),
    ("cortex_m_mve", lambda: depthwise((1, 8), 4, (1, 8)), "depthwise_1_row_mve"),
    ("cortex_m_mve", lambda: depthwise((1, 9), 4, (1, 9)), "depthwise_conv2d_mve"),
    ("cortex_m_dsp", lambda: depthwise((3, 5), 4, (3, 3), dilation=(1, 2)), "depthwise_3x3_dsp"),
    ("cortex_m_dsp", lambda: depthwise((3, 3), 4, (3, 3)), "depthwise_3x3_dsp"),
    ("cortex_m_dsp", lambda: depthwise((3, 3), 3, (3, 3)), "depthwise_conv2d_reference"),
    ("cortex_m_dsp", lambda: depthwise((7, 7), 4, (7, 7)), "depthwise_7x7_dsp"),
    ("cortex_m_dsp", lambda: depthwise((8, 8), 4, (8, 8)), "depthwise_conv2d_reference"),
    ("cortex_m_dsp", lambda: pool(OpKind.AVERAGE_POOL_2D, (2, 2), 4), "avg_pool_dsp"),
    ("cortex_m_dsp", lambda: pool(OpKind.AVERAGE_POOL_2D, (2, 2), 3), "avg_pool_reference"),
    ("riscv", lambda: depthwise((9, 7), 4, (9, 7)), "depthwise_w7_riscv"),
    ("riscv", lambda: depthwise((9, 8), 4, (9, 8)), "depthwise_conv2d_reference"),
    ("riscv", lambda: depthwise((3, 9), 4, (3, 3), (1, 2)), "depthwise_w3_by2_riscv"),
    ("riscv", lambda: depthwise((3, 9), 4, (3, 3), (1, 3)), "depthwise_conv2d_reference"),
    ("riscv_v", lambda: depthwise((9, 17), 4, (9, 17)), "depthwise_conv2d_rvv"),
]


@pytest.mark.parametrize(("family", "make", "kernel"), CHOICES)
def test_the_catalogue_s_limits_are_where_they_should_be(family, make, kernel):
    case = make()
    assert select(load_target(BOARDS[family]), case.graph, case.op).name == kernel
