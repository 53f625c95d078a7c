"""Operators in QDQ form compute the integers of the graph they were written from, and nearly ONNX's floats.

The float reference (onnx.reference) dequantises, computes and rounds halves to even. The integer kernels
round once or twice with a 31-bit multiplier, and halves away from zero. So an operator differs by at most one
step, and seldom.
"""

import collections
import dataclasses

import numpy as np
import pytest
from drawnnets import small_networks
from graphs import KIND_GROUPS, inputs_for, one_operator_graphs, seeds
from hypothesis import HealthCheck, Phase, given, reject, settings
from hypothesis import strategies as st
from onnxexport import WRITTEN, NotExpressible, Style, evaluate, export

from buildtool.graph.onnx.reader import read_qdq
from buildtool.graph.reference import execute
from buildtool.graph.rewrite import rewrite
from buildtool.graph.tflite.reader import read_model
from buildtool.graph.tflite.writer import write_model
from buildtool.graph.types import DType, OpKind

# Every network here has float inputs and outputs. The ONNX reader knows no quantised form of CAST.
EDGES = {OpKind.QUANTIZE, OpKind.DEQUANTIZE, OpKind.CAST}
PLACES = {OpKind.ARG_MAX, OpKind.ARG_MIN}  # results are not quantised: see test_onnx_habits.py
KINDS = [kind for kind in OpKind if kind in KIND_GROUPS and kind in WRITTEN and kind not in EDGES | PLACES]
# onnx.reference converts infinite values and NaN to the smallest int32, not to the nearest byte.
WITHOUT_VALUES = (OpKind.EXP, OpKind.LOG)
STEPS = {OpKind.RESIZE_BILINEAR: 3}  # TFLite's positions have 10 fractional bits
# Where few small numbers are averaged, one sum in four is a tie.
LEAST_EQUAL = {OpKind.AVERAGE_POOL_2D: 0.7, OpKind.MEAN: 0.7, OpKind.RESIZE_BILINEAR: 0.7}
REFERENCE_OPSETS = (19, 21)  # onnx.reference does not support an older QuantizeLinear

styles = st.builds(
    Style,
    opset=st.sampled_from([13, 14, 17, 18, 19, 21]),
    **dict.fromkeys(
        ["unsigned", "quantised_edges", "float_bias", "float_weights", "matmul", "flat"], st.booleans()
    ),
)


def fixed(examples):
    return settings(
        derandomize=True,
        deadline=None,
        max_examples=examples,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )


def as_read(graph):
    """Returns the graph as read from a .tflite file, which has explicit reshapes."""
    return rewrite(read_model(write_model(graph)), lookups=False)


def is_int8(graph):
    return DType.UINT8 not in {t.dtype for t in graph.tensors}


def write(graph, style):
    if not all(op.kind in WRITTEN for op in graph.ops):
        reject()
    if any(op.kind is OpKind.HARD_SWISH for op in graph.ops):  # new in opset 14
        style = dataclasses.replace(style, opset=max(style.opset, 14))
    if any(op.kind is OpKind.GELU for op in graph.ops):  # new in opset 20
        style = dataclasses.replace(style, opset=max(style.opset, 20))
    try:
        return export(graph, style)
    except NotExpressible:
        reject()


def check_same_bytes(graph, style, seed):
    """Checks that the network read from the file computes the graph's bytes. Returns those."""
    copy = rewrite(read_qdq(write(graph, style).SerializeToString()), lookups=False)
    inputs = inputs_for(graph, seed)
    ours, theirs = execute(graph, inputs), execute(copy, in_its_order(copy, inputs))
    assert len(copy.outputs) == len(graph.outputs)
    for a, b in zip(graph.outputs, copy.outputs, strict=True):
        np.testing.assert_array_equal(ours[a], theirs[b])
        assert graph.tensors[a].quant == dataclasses.replace(copy.tensors[b].quant, axis=0)
    return ours


def in_its_order(graph, inputs):
    """Returns the inputs transposed as the network needs them after a leading TRANSPOSE was removed."""
    sources = [graph.tensors[t].source for t in graph.inputs]
    return [
        (np.transpose(value, source.perm) if source is not None and source.perm else value).reshape(
            graph.tensors[t].shape
        )
        for value, source, t in zip(inputs, sources, graph.inputs, strict=True)
    ]


def reference_pads_right(graph):
    """Returns False where onnx.reference pads wrongly: it swaps a pool's pads if the strides are 1."""
    pools = [op.attrs for op in graph.ops if op.kind in (OpKind.MAX_POOL_2D, OpKind.AVERAGE_POOL_2D)]
    return all(a.stride != (1, 1) or len(set(dataclasses.astuple(a.pad))) == 1 for a in pools)


@pytest.mark.parametrize("kind", KINDS)
def test_an_operator_is_read_as_it_was_and_is_within_a_step_of_onnx_s_floats(kind):
    counted = collections.Counter()

    @fixed(20)
    @given(graph=one_operator_graphs(kind).filter(is_int8), style=styles, seed=seeds)
    def check(graph, style, seed):
        graph = as_read(graph)
        ours = check_same_bytes(graph, style, seed)
        if kind in WITHOUT_VALUES or not reference_pads_right(graph):
            return
        model = write(graph, dataclasses.replace(style, opset=REFERENCE_OPSETS[seed % 2]))
        for t, theirs in zip(graph.outputs, evaluate(model, graph, inputs_for(graph, seed)), strict=True):
            steps = np.abs(ours[t].astype(int) - theirs.astype(int))
            assert steps.max() <= STEPS.get(kind, 1)
            counted.update(all=steps.size, equal=int((steps == 0).sum()))

    check()
    least = LEAST_EQUAL.get(kind, 0.95) * counted["all"]
    assert kind in WITHOUT_VALUES or counted["equal"] >= least > 0


@pytest.mark.slow
@fixed(12)
@given(graph=small_networks(max_blocks=8).filter(is_int8), style=styles, seed=seeds)
def test_a_network_is_read_as_it_was(graph, style, seed):
    check_same_bytes(as_read(graph), style, seed)
