"""The digest follows the topology and nothing else."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from flatfiles import FileTensor
from samplefiles import Sheet, mixed

from buildtool.graph.rewrite import rewrite
from buildtool.graph.tflite.reader import read_model
from buildtool.graph.topology import topology_digest
from buildtool.graph.types import (
    Activation,
    ConvAttrs,
    Graph,
    LeakyReluAttrs,
    Op,
    OpKind,
    Pad,
    PadAttrs,
    Quantization,
    SoftmaxAttrs,
)


def retrained(graph: Graph) -> Graph:
    """Everything that training or a new export changes: values, quantisation, names, tensor order."""
    rng = np.random.default_rng(3)
    tensors = []
    for t in graph.tensors:
        data = t.data
        if data is not None:
            data = rng.integers(-100, 100, t.shape).astype(data.dtype)
        quant = t.quant and Quantization((0.123,), (0,))
        tensors.append(replace(t, name=t.name + "_v2", data=data, quant=quant, source=None))
    count = len(tensors)
    new = {-1: -1} | {t: count - 1 - t for t in range(count)}
    ops = []
    for op in graph.ops:
        attrs = op.attrs
        if isinstance(attrs, SoftmaxAttrs):
            attrs = replace(attrs, beta=2.0)
        elif isinstance(attrs, LeakyReluAttrs):
            attrs = replace(attrs, alpha=0.5)
        elif isinstance(attrs, PadAttrs):
            attrs = replace(attrs, value=attrs.value + 1)
        ops.append(
            Op(
                op.kind,
                tuple(new[t] for t in op.inputs),
                tuple(new[t] for t in op.outputs),
                attrs,
                op.index + 7,
            )
        )
    return Graph(
        "other",
        tuple(reversed(tensors)),
        tuple(ops),
        tuple(new[t] for t in graph.inputs),
        tuple(new[t] for t in graph.outputs),
    )


@pytest.mark.parametrize("prepare", [lambda g: g, rewrite])
def test_training_names_and_numbering_do_not_matter(prepare) -> None:
    graph = prepare(read_model(mixed()))
    digest = topology_digest(graph)
    assert len(digest) == 64
    assert topology_digest(retrained(graph)) == digest
    assert topology_digest(prepare(read_model(mixed()))) == digest


def small() -> Graph:
    s = Sheet()
    x = s.add(FileTensor((1, 6, 6, 4)))
    options = {"Padding": 0, "StrideH": 1, "StrideW": 1}
    a = s.apply("CONV_2D", [x, s.weights(4, 3, 3, 4), s.bias(4)], (1, 6, 6, 4), "Conv2DOptions", options)
    b = s.apply("ADD", [a, x], (1, 6, 6, 4), "AddOptions")
    return read_model(s.bytes([x], [b]))


def with_op(graph: Graph, position: int, **changes) -> Graph:
    ops = list(graph.ops)
    ops[position] = replace(ops[position], **changes)
    return replace(graph, ops=tuple(ops))


def test_every_part_of_the_topology_matters() -> None:
    graph = small()
    conv, add = graph.ops
    attrs = conv.attrs
    assert isinstance(attrs, ConvAttrs)
    variants = [
        graph,
        with_op(graph, 0, attrs=replace(attrs, stride=(2, 1))),
        with_op(graph, 0, attrs=replace(attrs, stride=(1, 2))),
        with_op(graph, 0, attrs=replace(attrs, dilation=(1, 2))),
        with_op(graph, 0, attrs=replace(attrs, pad=Pad(1, 1, 2, 0))),
        with_op(graph, 0, attrs=replace(attrs, activation=Activation.RELU)),
        with_op(graph, 0, inputs=(*conv.inputs[:2], -1)),
        with_op(graph, 1, kind=OpKind.SUB),
        with_op(graph, 1, inputs=add.inputs[::-1]),
        with_op(graph, 1, inputs=(add.inputs[0], add.inputs[0])),
        replace(graph, outputs=(graph.outputs[0], conv.outputs[0])),
        replace(graph, inputs=(*graph.inputs, conv.inputs[2])),
        replace(graph, tensors=tuple(replace(t, shape=(*t.shape, 1)) for t in graph.tensors)),
        replace(graph, tensors=tuple(replace(t, data=None) for t in graph.tensors)),
    ]
    assert len({topology_digest(v) for v in variants}) == len(variants)
