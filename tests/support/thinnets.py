"""Networks whose weights leave channels that are constant, and channels that nothing reads."""

from dataclasses import replace

import numpy as np

from buildtool import zoo
from buildtool.graph.numbering import graph_of
from buildtool.graph.tflite.reader import read_model
from buildtool.graph.tflite.writer import write_model
from buildtool.graph.types import OpKind

ENDS = {"int32": 1 << 22, "int64": 1 << 30}


def thinned(graph, rng):
    """The network with filters and inputs of zeros, equal filters, and biases that saturate."""
    tensors = list(graph.tensors)
    for op in graph.ops:
        if len(op.inputs) < 3 or not tensors[op.inputs[1]].is_constant or op.kind is OpKind.LOOKUP:
            continue
        weights = tensors[op.inputs[1]].data.copy()
        axis = 3 if op.kind is OpKind.DEPTHWISE_CONV_2D else 0
        by_output = np.moveaxis(weights, axis, 0)
        by_output[rng.random(len(by_output)) < 0.4] = 0
        if rng.integers(3) == 0:
            by_output[-1] = by_output[0]
        if axis == 0:
            weights[..., rng.random(weights.shape[-1]) < 0.2] = 0
        tensors[op.inputs[1]] = replace(tensors[op.inputs[1]], data=weights)
        if op.inputs[2] >= 0:
            bias = tensors[op.inputs[2]].data.copy()
            largest = ENDS[str(bias.dtype)]
            extreme = rng.random(len(bias)) < 0.3
            bias[extreme] = rng.choice([-largest, largest, 0], extreme.sum())
            tensors[op.inputs[2]] = replace(tensors[op.inputs[2]], data=bias)
    return graph_of(graph.name, tensors, graph.ops, graph.inputs, graph.outputs, graph.states)


def thin_model(name: str, seed: int = 0) -> bytes:
    """A network of the zoo as a .tflite file, with such channels in its layers."""
    return write_model(thinned(read_model(zoo.build(name)), np.random.default_rng(seed)))
