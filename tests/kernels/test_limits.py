"""Every family at the limits of its kernels and beyond: exact, computed by another kernel, or refused."""

import functools

import numpy as np
import placement
import pytest
from boardcalls import BOARDS, recording
from hostfamily import on_host
from litert import run_graph
from loaded import load_target
from placement import run_parts, run_whole
from recurrentnets import inputs_for_steps
from wholecalls import whole_call
from widecases import (
    LONG,
    WIDE,
    conv,
    dense,
    depthwise,
    elementwise,
    filled_pool,
    pool,
    transposed,
)

from buildtool.graph.types import OpKind
from buildtool.target.catalogue import select
from buildtool.zoo.drawn import NetBuilder, WideNetBuilder
from buildtool.zoo.drawn_state import lstm, svdf

slow = pytest.mark.slow
families = pytest.mark.parametrize("family", sorted(BOARDS.keys() - {"mul32"}))
MORE_THAN_16_BITS = 65600


@functools.cache
def made(name):
    """Returns a case, the same for every family, and LiteRT's output."""
    case = (WIDE | LONG)[name]()
    return case, run_graph(case.graph, case.inputs)[case.op.outputs[0]]


@slow
@families
def test_wide_layers_long_sums_and_large_steps_are_exact(family):
    """Plain kernels equal LiteRT, and the board's kernels the plain ones, on whole tensors."""
    with recording(family) as recorder:
        for name in WIDE | LONG:
            case, expected = made(name)
            np.testing.assert_array_equal(run_whole(case), expected, err_msg=name)
    recorder.check("")
    assert recorder.kernels.total() > 30
    assert family != "cortex_m_mve" or recorder.kernels["conv2d_mve"] >= 2


@slow
@families
def test_narrow_views_of_wide_tensors_are_exact(family, monkeypatch):
    """The output of a small layer may be a part of a joined tensor whose pixels are far apart."""
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
    with recording(family) as recorder:
        for seed, case in enumerate(cases):
            np.testing.assert_array_equal(run_parts(case, seed), run_whole(case))
    recorder.check("")


LONE = {  # layers for the vector unit, which is a C model here that traps undefined behaviour
    **{f"{kind} of 65544": (kind, (1, 2), 65544, None) for kind in ("average", "max")},
    **{
        f"{kind} of {rows} x {columns} times {value}": (kind, (rows, columns), 36, value)
        for kind in ("average", "max")
        for rows, columns in ((15, 17), (16, 16), (300, 300))
        for value in (-128, 127)
    },
}


def test_poolings_of_the_vector_unit_at_its_limits():
    for name, (kind, image, channels, value) in LONE.items():
        op = OpKind.AVERAGE_POOL_2D if kind == "average" else OpKind.MAX_POOL_2D
        with on_host("xcore", "xcore_vpu") as family:
            run_whole(pool(op, image, channels, value))
        assert family.kernels.total() == 1, name


@slow
@pytest.mark.parametrize("family", ["xcore_vpu", "mul32"])
def test_the_same_on_the_vector_unit_and_the_lx106(family):
    """Only a few of them, because the unit's model is slow."""
    cases = [LONG["conv of 512 products, -128"], LONG["conv of all products"], LONG["dense of all products"]]
    cases.append(lambda: elementwise(OpKind.ADD, (1, 2), 65544, 65544))
    if family == "xcore_vpu":
        with on_host("xcore", family) as on_unit:
            for make in cases:
                run_whole(make())
        assert on_unit.kernels.total() == len(cases)
        return
    averages = [LONG[f"average of 90000 times {value}"] for value in (-128, 127)]
    with recording(family) as recorder:
        for make in (*cases, *averages, WIDE["depthwise 9363 by 2"]):
            run_whole(make())
    assert recorder.kernels.total() == 7
    recorder.check("")


def wide_layers():
    """Yields int16 layers, means and layers with state: channels, outputs, taps and steps above 16 bits."""

    def int16(shape, make):
        net = WideNetBuilder(1)
        graph = net.graph([make(net, net.input(shape))])
        return graph, [np.random.default_rng(1).integers(-32768, 32768, shape).astype(np.int16)]

    def int8(shape, value, axes):
        net = NetBuilder(1)
        return net.graph([net.mean(net.input(shape), axes)]), [np.full(shape, value, np.int8)]

    def state(shape, layer):
        net = NetBuilder(1)
        graph = net.graph([layer(net, net.input(shape))])
        return graph, inputs_for_steps(graph, 1, 0)

    yield int16((1, 2, 3, 1), lambda net, x: net.conv(x, 65543, kernel=(2, 2)))
    yield int16((1, 1, 2, 65543), lambda net, x: net.conv(x, 3, kernel=(1, 1)))
    yield int16((1, 4), lambda net, x: net.dense(x, 65543))
    yield int16((1, 1, 3, 32771), lambda net, x: net.conv(x, 0, kernel=(1, 3), depth_multiplier=1))
    yield int16((1, 512, 2, 9), lambda net, x: net.conv(x, 0, kernel=(511, 1), depth_multiplier=1))
    yield int16((1, 33, 17, 9), lambda net, x: net.conv(x, 0, kernel=(32, 16), depth_multiplier=1))
    yield int8((1, 2, 3, 65543), 1, (1, 2))
    yield int8((1, 300, 300, 5), -128, (1, 2))
    yield int8((1, 300, 300, 5), 127, (1, 2))
    yield state((1, 3), lambda net, x: svdf(net, x, 2, rank=2, memory=33000))
    yield state((1, 66000), lambda net, x: svdf(net, x, 2, rank=1, memory=3))
    yield state((1, 1, 66000), lambda net, x: lstm(net, x, 2))


@slow
@pytest.mark.parametrize("family", ["cortex_m_dsp", "cortex_m_mve"])
def test_wide_layers_of_other_kinds_are_exact(family):
    target, calls = load_target(BOARDS[family]), []
    for graph, inputs in wide_layers():
        whole = whole_call(target, graph, inputs)
        calls += [whole] if whole.kernel.sources[0].startswith(family + "/") else []
    assert len(calls) == 11  # the depthwise layer of 512 taps uses plain C: its sums may not fit in 32 bits
    with recording(family) as recorder:
        firmware = recorder.firmware("")
    for whole, result in zip(calls, firmware.run([whole.call for whole in calls]), strict=True):
        assert whole.left(result) == whole.wanted, whole.kernel.name


PLAIN = "depthwise_conv2d_reference"
CHOICES = [  # at a limit, and just beyond it
    ("cortex_m_mve", depthwise((4, 3), 4, (4, 3)), "depthwise_3_columns_mve"),
    ("cortex_m_mve", depthwise((5, 3), 4, (5, 3)), "depthwise_conv2d_mve"),
    ("cortex_m_mve", depthwise((8, 8), 4, (8, 8)), "depthwise_conv2d_mve"),
    ("cortex_m_mve", depthwise((9, 8), 4, (9, 8)), "depthwise_any_mve"),
    ("cortex_m_mve", depthwise((8, 9), 4, (8, 9)), "depthwise_any_mve"),
    ("cortex_m_mve", depthwise((4, 16), 4, (4, 16)), "depthwise_conv2d_mve"),
    ("cortex_m_mve", depthwise((4, 17), 4, (4, 17)), "depthwise_any_mve"),
    ("cortex_m_mve", depthwise((3, 3), 4, (3, 3), multiplier=2), "depthwise_any_mve"),
    ("cortex_m_mve", depthwise((3, 5), 4, (3, 3), dilation=(1, 2)), "depthwise_3_columns_mve"),
    ("cortex_m_mve", depthwise((3, 5), 4, (3, 3), (1, 2), dilation=(1, 2)), PLAIN),
    ("cortex_m_mve", depthwise((1, 5), 4, (1, 3)), "depthwise_3_columns_mve"),
    ("cortex_m_mve", depthwise((1, 5), 4, (1, 4)), "depthwise_1_row_mve"),
    ("cortex_m_mve", depthwise((1, 30), 4, (1, 4), (1, 4)), "depthwise_1_row_mve"),
    ("cortex_m_mve", depthwise((1, 30), 4, (1, 4), (1, 3)), "depthwise_conv2d_mve"),
    ("cortex_m_mve", depthwise((1, 16), 4, (1, 16)), "depthwise_1_row_mve"),
    ("cortex_m_mve", depthwise((1, 17), 4, (1, 17)), "depthwise_any_mve"),
    ("cortex_m_mve", depthwise((18, 1), 4, (16, 1)), "depthwise_1_column_mve"),
    ("cortex_m_mve", depthwise((18, 1), 4, (17, 1)), "depthwise_any_mve"),
    ("cortex_m_mve", depthwise((30, 1), 4, (5, 1), (4, 1)), "depthwise_1_column_mve"),
    ("cortex_m_mve", depthwise((30, 1), 4, (5, 1), (3, 1)), "depthwise_conv2d_mve"),
    ("cortex_m_mve", transposed((2, 2), 3, 4, (1, 2), (2, 4)), "transpose_conv2d_mve"),
    ("cortex_m_mve", transposed((2, 2), 3, 4, (1, 2), (3, 4)), "transpose_conv2d_reference"),
    ("cortex_m_dsp", depthwise((3, 5), 4, (3, 3), dilation=(1, 2)), "depthwise_3x3_dsp"),
    ("cortex_m_dsp", depthwise((3, 3), 4, (3, 3)), "depthwise_3x3_dsp"),
    ("cortex_m_dsp", depthwise((3, 5), 4, (3, 3), (1, 2), dilation=(1, 2)), "depthwise_conv2d_dsp"),
    ("cortex_m_dsp", depthwise((3, 5), 3, (3, 3)), "depthwise_as_conv2d_dsp"),
    ("cortex_m_dsp", depthwise((3, 6), 3, (3, 3)), "depthwise_narrow_dsp"),
    ("cortex_m_dsp", depthwise((7, 7), 4, (7, 7)), "depthwise_7x7_dsp"),
    ("cortex_m_dsp", depthwise((8, 8), 4, (8, 8)), "depthwise_conv2d_dsp"),
    ("cortex_m_dsp", pool(OpKind.AVERAGE_POOL_2D, (2, 2), 4), "avg_pool_dsp"),
    ("cortex_m_dsp", pool(OpKind.AVERAGE_POOL_2D, (2, 2), 3), "avg_pool_dsp"),
    ("riscv", depthwise((9, 7), 4, (9, 7)), "depthwise_w7_riscv"),
    ("riscv", depthwise((9, 8), 4, (9, 8)), "depthwise_w9_riscv"),
    ("riscv", depthwise((9, 19), 4, (9, 9), (1, 2)), "depthwise_w9_by2_riscv"),
    ("riscv", depthwise((9, 10), 4, (9, 10)), PLAIN),
    ("riscv", depthwise((3, 9), 4, (3, 3), (1, 2)), "depthwise_w3_by2_riscv"),
    ("riscv", depthwise((3, 9), 4, (3, 3), (1, 3)), PLAIN),
    ("riscv_v", depthwise((9, 17), 4, (9, 17)), "depthwise_conv2d_rvv"),
    ("cortex_m_dsp", filled_pool((5, 37), 4), "avg_pool_filled_dsp"),
    ("cortex_m_dsp", filled_pool((2, 2), 3), "avg_pool_filled_reference"),
    ("cortex_m_mve", filled_pool((5, 37), 1), "avg_pool_filled_mve"),
    ("cortex_m_mve", filled_pool((6, 31), 1), "avg_pool_filled_reference"),
    ("riscv", filled_pool((6, 31), 1), "avg_pool_filled_riscv"),
]


@pytest.mark.parametrize(("family", "case", "kernel"), CHOICES, ids=str)
def test_the_catalogue_s_limits_are_where_they_should_be(family, case, kernel):
    assert select(load_target(BOARDS[family]), case.graph, case.op).name == kernel
