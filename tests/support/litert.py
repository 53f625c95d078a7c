"""Runs a .tflite in LiteRT, the reference for every result.

    from litert import run, run_outputs
    tensors = run(model_bytes, [image])          # {tensor index of the file: array}, BUILTIN_REF kernels
    fast = run(model_bytes, [image], reference=False)   # LiteRT's default, optimised kernels

Indices are those of the file; `write_model` keeps a graph's indices. Constants are not returned.
`run_graph(graph, inputs)` writes the graph first. `check` compares our executor's values of a graph with
LiteRT's, `rewritten` its values of the rewritten network.
"""

from collections.abc import Sequence

import numpy as np
from ai_edge_litert.interpreter import Interpreter, OpResolverType
from graphs import inputs_for

from buildtool.graph.ops.detection import CUSTOM
from buildtool.graph.reference import execute
from buildtool.graph.rewrite import rewrite
from buildtool.graph.tflite.reader import read_model
from buildtool.graph.tflite.writer import write_model
from buildtool.graph.types import Graph, OpKind


def interpreter(model: bytes, *, reference: bool = True) -> Interpreter:
    """Returns a LiteRT interpreter that keeps all tensors of an invoke."""
    kind = OpResolverType.BUILTIN_REF if reference else OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    engine = Interpreter(
        model_content=model,
        experimental_op_resolver_type=kind,
        experimental_preserve_all_tensors=True,
        num_threads=1,
    )
    engine.allocate_tensors()
    return engine


def run(model: bytes, inputs: Sequence[np.ndarray], *, reference: bool = True) -> dict[int, np.ndarray]:
    """Returns the inputs and every operator's outputs, by index in the file."""
    engine = interpreter(model, reference=reference)
    indices = []
    for detail, value in zip(engine.get_input_details(), inputs, strict=True):
        engine.set_tensor(detail["index"], value)
        indices.append(detail["index"])
    for op in engine._get_ops_details():
        for index in op["outputs"] if op["op_name"] == CUSTOM else ():  # it does not write all rows
            engine.set_tensor(index, np.zeros_like(engine.get_tensor(index)))
    engine.invoke()
    for op in engine._get_ops_details():
        indices += [int(index) for index in op["outputs"]]
    return {int(index): np.array(engine.get_tensor(index)) for index in indices}


def run_graph(graph: Graph, inputs: Sequence[np.ndarray], *, reference: bool = True) -> dict[int, np.ndarray]:
    """Returns LiteRT's tensors of `graph`, by their index in the graph."""
    reference &= all(op.kind is not OpKind.ELU for op in graph.ops)  # the reference kernels have none
    tensors = run(write_model(graph), inputs, reference=reference)
    return {index: value for index, value in tensors.items() if index < len(graph.tensors)}


def check_file(data: bytes, inputs: Sequence[np.ndarray] | None = None) -> Graph:
    """Returns a file's graph. Each tensor that it shares with the file must equal LiteRT's.

    `inputs`: by default random ones.
    """
    graph, compared = read_model(data), 0
    inputs = inputs_for(graph, 0) if inputs is None else inputs
    expected = run(data, inputs)
    for t, value in execute(graph, inputs).items():
        tensor = graph.tensors[t]
        if tensor.source is not None and tensor.source.index in expected:
            theirs = expected[tensor.source.index].reshape(value.shape)
            shifted = theirs.dtype == np.uint8 and value.dtype == np.int8
            assert np.array_equal(value.view(np.uint8) ^ 128 if shifted else value, theirs), tensor.name
            compared += 1
    assert compared >= len(graph.outputs) + len(graph.inputs)
    return graph


def check(graph: Graph, inputs: Sequence[np.ndarray]) -> None:
    """Fails unless every tensor that our executor computes of a graph equals LiteRT's."""
    expected = run_graph(graph, inputs)
    for index, value in execute(graph, inputs).items():
        np.testing.assert_array_equal(value, expected[index], graph.tensors[index].name, strict=True)


def rewritten(model: Graph | bytes, inputs: Sequence[np.ndarray]) -> Graph:
    """Returns the rewritten network. Its outputs must equal LiteRT's outputs of the file."""
    data = model if isinstance(model, bytes) else write_model(model)
    source = read_model(data)
    graph, expected = rewrite(source), run(data, inputs)
    values = execute(
        graph, [v.reshape(graph.tensors[t].shape) for v, t in zip(inputs, graph.inputs, strict=True)]
    )
    for ours, theirs in zip(graph.outputs, source.outputs, strict=True):
        np.testing.assert_array_equal(
            values[ours], expected[source.tensors[theirs].source.index], strict=True
        )
    return graph
