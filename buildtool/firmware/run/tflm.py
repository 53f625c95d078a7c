"""Runs TensorFlow Lite Micro's interpreter as the reference, in a child process that runs this module.

The interpreter is set to keep the value of every tensor. Its own reset sets variables to 0, so instead a new
interpreter is made, whose state is that before the first invoke.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version
from typing import IO, Any

import numpy as np

from buildtool.base.child import answer, serve
from buildtool.base.errors import ToolError
from buildtool.firmware.run.compare import Array, Referrer, file_inputs, graph_values
from buildtool.firmware.run.judge import TFLM, answer_inputs
from buildtool.graph.types import Graph

_ROOM = 1 << 20  # bytes for the interpreter's own structures
_TIMES = 8  # times the bytes of all tensors: room for the kernels' tables and scratch


def referrer(model: bytes, source: Graph, graph: Graph) -> Referrer:
    """Returns a function that computes the reference's value of each tensor of `graph` (see `compare`)."""
    interpreter = _open(model, source)

    def refer(inputs: Sequence[Array], reset: bool) -> dict[int, Array]:
        nonlocal interpreter
        if reset and graph.states:
            interpreter = _open(model, source)
        for number, array in enumerate(file_inputs(source, graph, inputs)):
            shape = source.tensors[source.inputs[number]].shape
            interpreter.set_input(np.ascontiguousarray(array).reshape(shape), number)
        try:
            interpreter.invoke()
        except RuntimeError as error:
            raise ToolError(f"{TFLM.title} stops: {' '.join(str(error).split())}") from None
        return graph_values(graph, lambda index: _read(interpreter, index))

    return refer


def _read(interpreter: Any, index: int) -> Array:
    tensor = interpreter.GetTensor(index, 0)
    value: Array = tensor["tensor_data"].reshape(tensor["shape"])
    return value


def _open(model: bytes, source: Graph) -> Any:
    """Returns an interpreter for the network. Raises ToolError if TensorFlow Lite Micro refuses it."""
    from tflite_micro.python.tflite_micro import runtime

    room = _ROOM + _TIMES * sum(tensor.size for tensor in source.tensors)
    keeping = runtime.InterpreterConfig.kPreserveAllTensors
    try:
        return runtime.Interpreter.from_bytes(model, arena_size=room, intrepreter_config=keeping)
    except (RuntimeError, ValueError) as error:
        text = " ".join(str(error).split())
        raise ToolError(f"{TFLM.title} cannot run the network: {text}") from None


def _serve(source: IO[bytes], sink: IO[bytes]) -> None:
    """Runs in the child process. It sends the package's version to the parent, and then answers for each
    input.
    """
    try:
        import tflite_micro.python.tflite_micro.runtime
    except ImportError as error:
        return answer(sink, False, f"{TFLM.title} cannot be loaded: {' '.join(str(error).split())}")
    answer(sink, True, version(tflite_micro.__name__.replace("_", "-")))
    return answer_inputs(source, sink, referrer)


if __name__ == "__main__":
    serve(_serve)
