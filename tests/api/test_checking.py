"""The random networks of `target check`."""

from types import SimpleNamespace

from loaded import load_target

from buildtool.api.checking.check import _draw_cases
from buildtool.graph.floats import touches_floats
from buildtool.graph.ops import moving
from buildtool.graph.rewrite import rewrite
from buildtool.graph.tflite.reader import read_model
from buildtool.graph.types import DType, OpKind
from buildtool.target.catalogue import select_all

# Kinds whose float32 form no random network has: conversions, and what has no form of int8.
_WITHOUT = {
    OpKind.QUANTIZE,
    OpKind.DEQUANTIZE,
    OpKind.CAST,
    OpKind.SQUARE,
    OpKind.ERF,
    OpKind.POW,
} | {definition.kind for definition in moving.DEFS}


def test_a_network_is_drawn_for_each_kernel_of_float32():
    target, asked, drawn = load_target("host"), SimpleNamespace(seed=1, cases=2), 0
    for kernel in target.kernels:
        if DType.FLOAT32 not in kernel.types:
            continue
        cases = list(_draw_cases(kernel, target, asked))
        assert len(cases) == (0 if kernel.op in _WITHOUT else 2), kernel.name
        for case in cases:
            graph = rewrite(read_model(case.file.data))
            of_kernel = [
                op for op, k in zip(graph.ops, select_all(target, graph), strict=True) if k == kernel
            ]
            assert of_kernel or kernel.op == OpKind.GATHER, kernel.name  # it may be read as a slice
            assert all(touches_floats(graph, op) for op in of_kernel)
            drawn += 1
    assert drawn > 60
