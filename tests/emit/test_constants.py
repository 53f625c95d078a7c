"""Lengths of constants by the catalogues, which know the topology alone, equal those of the packed blocks."""

import pytest
import recurrentnets
import widecases
from everyop import every_operator
from hypothesis import given, settings
from kernelcases import Case, means, unary, windowed
from largecases import depthwise_rows, extreme
from signalnets import drawn_signals
from zoo_networks import built

from buildtool.base.expression import evaluate
from buildtool.emit.packing import packings
from buildtool.graph.rewrite import rewrite
from buildtool.graph.types import DType, Graph, MeanAttrs, Op, OpKind
from buildtool.plan.assemble.arrivals import HEAD
from buildtool.plan.choose.hops import list_hoppings
from buildtool.target.catalogue import channel_bytes, constants_bytes, element_types, features, for_core
from buildtool.target.family import load_family, resolve_packings
from buildtool.target.hardware import Core
from buildtool.target.kernels import kernels_root
from buildtool.zoo.drawn_series import SERIES

EXAMPLES = settings(max_examples=6, derandomize=True, deadline=None, database=None)
FOLDERS = sorted(path.parent for path in kernels_root().glob("*/catalogue.toml"))
CATALOGUES = {folder.name: load_family(folder) for folder in FOLDERS}
ALL = [kernel for each in CATALOGUES.values() for kernel in resolve_packings(each, list(CATALOGUES.values()))]
KERNELS = for_core(ALL, Core("any", "any", (), threads=2))


def check(graph: Graph, op: Op) -> set[str]:
    """Compares both lengths for every kernel that serves the operator; returns the kernels' packings."""
    values = features(graph, op)
    serving = [k for k in KERNELS if k.op == op.kind and k.packer and evaluate(k.when, values)]
    wide = graph.tensors[op.inputs[0]].dtype is not DType.INT8
    if wide or op.kind is OpKind.UNIDIRECTIONAL_SEQUENCE_LSTM:  # constants of other types differ
        serving = [kernel for kernel in serving if kernel.types == element_types(graph, op)]
    for kernel in serving:
        block = packings(kernel.packer)[kernel.packing](graph, op)
        rounded = len(block) + -len(block) % 16
        assert constants_bytes(kernel, graph, op) == rounded, (kernel.name, values)
        channel = channel_bytes(kernel, graph, op)
        if channel is not None:
            factors, count = (-(-values["cout"] // n) * n for n in (channel.padded, channel.unit))
            assert channel.group % channel.padded == 0
            parts = (channel.factors * factors, channel.weights * count + channel.tail)
            apart = channel.head + sum(n + -n % HEAD for n in parts)
            assert apart == rounded, kernel.name
    return {kernel.packing for kernel in serving}


@pytest.mark.slow
def test_lengths_are_those_of_the_packed_blocks():
    packing_names: set[str] = set()
    for strategy in (*windowed.values(), means(), depthwise_rows(), *extreme.values()):

        @EXAMPLES
        @given(case=strategy)
        def run(case: Case) -> None:
            packing_names.update(check(case.graph, case.op))

        run()
    for case in (  # strategies seldom draw these: rows of five to eight taps, 3x3, means of many channels
        widecases.depthwise((3, 12), 20, kernel=(1, 5)),
        widecases.depthwise((5, 6), 8, kernel=(3, 3)),
        unary(OpKind.MEAN, MeanAttrs((1, 2), True), (1, 4, 4, 16), 0, out=(1, 1, 1, 16)),
    ):
        packing_names.update(check(case.graph, case.op))
    for batch in (1, 2):  # constant padding has no strategy
        graph = rewrite(every_operator(0, batch))
        for op in graph.ops:
            packing_names.update(check(graph, op))
    # sums in a residual network have a multiple of four channels
    recurrent = (recurrentnets.every_part(), recurrentnets.keyword_svdf(), recurrentnets.wide_digit_rows())
    for graph in map(rewrite, (*recurrent, built("resnet8"))):
        for op in graph.ops:
            packing_names.update(check(graph, op))
    hop = SERIES["ecg"]().hop
    for graph in (
        *(drawn_signals(seed) for seed in range(8)),
        *(one.graph for one in list_hoppings(rewrite(SERIES["ecg"]().graph), hop)[:2]),
        list_hoppings(rewrite(built("ds_cnn")), 2)[0].graph,
    ):
        for op in graph.ops:
            packing_names.update(check(graph, op))
    assert packing_names == {name for each in CATALOGUES.values() for name in each.packings}
    for folder in FOLDERS:
        if CATALOGUES[folder.name].packings:
            assert set(packings(folder / "packing.py")) == set(CATALOGUES[folder.name].packings)
