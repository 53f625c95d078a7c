"""Kernels with less scratch are chosen where scratch decides how much memory a plan needs, and only there."""

from dataclasses import replace
from functools import cache

import pytest
from boardruns import exact, file_of
from loaded import load_target

from buildtool.base.errors import PlanError
from buildtool.base.modes import Objective, Strategy
from buildtool.base.session import Session
from buildtool.graph.types import OpKind
from buildtool.options.values import PlanOptions
from buildtool.plan.check.check import check
from buildtool.plan.choose.choose import make_plan
from buildtool.plan.models import load_model, read_graph
from buildtool.target.catalogue import leaner, scratch_bytes, select_all
from buildtool.zoo.drawn import NetBuilder

LEAST, BY_LAYER = {"objective": Objective.RAM}, {"strategy": Strategy.LAYERWISE}


@cache
def head(channels=256, outputs=13):
    """A wide 3 x 3 convolution into a few channels, as detectors have them, on a small map."""
    net = NetBuilder(3)
    x = net.conv(net.input((1, 4, 3, 64)), channels)
    return net.graph([net.conv(x, outputs, kernel=(3, 3), same=True)])


def plan(graph, board, **options):
    target = load_target(board)
    made = make_plan(graph, target, PlanOptions(**options), Session())
    check(made, graph, target)
    return made


@pytest.mark.parametrize("board", ["cortex-m4", "cortex-m55"])
def test_a_limit_below_the_best_kernels_scratch_takes_leaner_ones_and_only_as_far_as_needed(board):
    graph = head()
    free, least = plan(graph, board, **BY_LAYER), plan(graph, board, **BY_LAYER, **LEAST)
    lean = [leaner(load_target(board), graph, op) for op in graph.ops]
    assert [*free.kernels] == [kernels[0].name for kernels in lean]
    assert least.arena_bytes < free.arena_bytes // 2
    assert least.kernels[1] == lean[1][-1].name
    costs = [free.cost]
    for kernel in lean[1][1:]:  # each of the wide convolution's kernels that need less
        saved = scratch_bytes(lean[1][0], graph, graph.ops[1]) - scratch_bytes(kernel, graph, graph.ops[1])
        limited = plan(graph, board, **BY_LAYER, ram=max(free.arena_bytes - saved, least.arena_bytes + 2048))
        assert limited.kernels[0] == free.kernels[0] or limited.kernels[1] == kernel.name
        costs.append(limited.cost)
    assert costs == sorted(costs)
    with pytest.raises(PlanError, match="bytes of scratch"):
        check(replace(least, kernels=free.kernels), graph, load_target(board))
    with pytest.raises(PlanError, match=f"{least.arena_bytes:,} bytes"):
        plan(graph, board, **BY_LAYER, ram=least.arena_bytes - 16)


def test_rows_are_not_repeated_to_avoid_scratch():
    limited = plan(head(), "cortex-m4", ram=9000)
    assert limited.f == 1.0 and limited.arena_bytes <= 9000


@pytest.mark.parametrize("model", ["mobilenetv2:size=64,alpha=0.35,classes=10", "ds_cnn"])
def test_networks_whose_scratch_is_small_keep_the_best_kernels(model):
    graph, target = read_graph(load_model(model))[1], load_target("cortex-m4")
    best = plan(graph, "cortex-m4", **LEAST)
    assert [*best.kernels] == [kernel.name if kernel else "" for kernel in select_all(target, graph)]
    assert any(len(leaner(target, graph, op)) > 1 for op in graph.ops if op.kind == OpKind.CONV_2D)


@pytest.mark.parametrize(
    "board", ["cortex-m4", "cortex-m55", "cortex-m0plus", "hifive1", "qemu-virt-rv32v", "xcore"]
)
def test_a_function_is_not_a_leaner_kernel_than_itself(board):
    """Several entries may name one function: what it needs is what the first one that serves says."""
    target = load_target(board)
    for op in narrow().ops:
        kernels = leaner(target, narrow(), op)
        assert len({(kernel.symbol, kernel.packing) for kernel in kernels}) == len(kernels)


@cache
def narrow():
    """Depthwise convolutions with small windows and few channels: scratch is much of their memory."""
    net = NetBuilder(4)
    x = net.conv(net.input((1, 12, 20, 4)), 16)
    for stride in ((1, 1), (2, 2)):
        x = net.conv(x, 0, kernel=(3, 3), stride=stride, same=True, depth_multiplier=1)
    return net.graph([net.conv(x, 8)])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("board", "ram", "kernel"),
    [
        ("cortex-m4", None, "conv2d_direct_dsp"),
        ("cortex-m55", None, "conv2d_reference"),
        ("cortex-m55", 6000, "conv2d_single_mve"),
        ("qemu-virt-rv32", None, "conv2d_reference"),
    ],
)
def test_leaner_kernels_are_exact(tmp_path, board, ram, kernel):
    options = {"strategy": "layerwise"} | ({"objective": "ram"} if ram is None else {"ram": ram})
    assert exact(file_of(head(), tmp_path), board, options, inputs=2).plan.kernels[1] == kernel
