"""Other strategies on targets with kernels that compute only whole tensors, such as those of a library."""

from dataclasses import replace

import pytest
from paths import TESTS
from plan_nets import make_target, residual_net
from zeronet import SAME_3X3, Net

from buildtool.api import handle
from buildtool.base.errors import UsageError
from buildtool.graph.types import OpKind
from buildtool.options.values import PlanOptions
from buildtool.plan.baselines.strips import parse_segments, plan_strips
from buildtool.plan.check.check import check
from buildtool.plan.choose.choose import make_plan
from buildtool.target.types import Windows


def with_whole(kind):
    """The tests' target, where the kernel of a kind computes only whole tensors."""
    target = make_target()
    kernels = tuple(
        replace(kernel, windows=Windows.WHOLE) if kernel.op == kind else kernel for kernel in target.kernels
    )
    return replace(target, kernels=kernels)


def streamed(graph, plan):
    """The kinds of the operators that run row by row."""
    return {graph.ops[p].kind for region in plan.regions if region.is_streamed for p in region.ops}


@pytest.mark.parametrize("strategy", ["msf-cnn", "xcore-strips"])
def test_what_computes_whole_tensors_runs_alone(strategy):
    net = Net((1, 32, 32, 3))
    x = net.conv(net.inputs[0], 24, (3, 3), (1, 1), SAME_3X3)
    graph = net.graph(net.conv(net.depthwise(x), 4, stride=(2, 2)))
    options = PlanOptions(strategy=strategy)
    assert OpKind.DEPTHWISE_CONV_2D in streamed(graph, make_plan(graph, make_target(), options))
    target = with_whole(OpKind.DEPTHWISE_CONV_2D)
    plan = make_plan(graph, target, options)
    assert OpKind.DEPTHWISE_CONV_2D not in streamed(graph, plan)
    check(plan, graph, target)


def test_segments_with_such_a_kernel_are_refused_by_name():
    graph, target = residual_net(), with_whole(OpKind.DEPTHWISE_CONV_2D)
    with pytest.raises(UsageError, match=r"depthwise_conv_2d_test.*whole tensors only") as caught:
        plan_strips(graph, target, parse_segments("0-3x4"))
    assert caught.value.operator == graph.ops[2].place


@pytest.mark.parametrize("strategy", ["msf-cnn", "xcore-strips"])
def test_a_librarys_kernels_go_with_every_strategy(strategy):
    request = {"kind": "plan", "model": "ds_cnn", "board": "cortex-m4"}
    library = str(TESTS / "support/cmsis_nn")
    answer = handle({**request, "cmsis_nn": library, "options": {"strategy": strategy}})
    assert any("cmsis_nn" in operator["kernel"] for operator in answer["operators"])
