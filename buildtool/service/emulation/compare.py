"""The reference's answer, and how a run differs from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from buildtool.errors import ToolError
from buildtool.graph.types import DType, Graph, Tensor
from buildtool.modes import Reference

if TYPE_CHECKING:
    from buildtool.schema.runs import DifferenceAnswer

Array = npt.NDArray[np.generic]
_WHOLE: Mapping[int, bytes] = {}
_OWN = "without --reference, for the reference of buildtool itself"


@dataclass(frozen=True)
class Difference:
    """A tensor that is not as it should be, in one of the input sets."""

    input_set: int
    tensor: int
    name: str
    operator: str
    elements: int  # that differ
    max_abs: int
    first: int  # flat index of the first element that differs

    def json(self) -> DifferenceAnswer:
        """For the answer of a request."""
        return {
            "input": self.input_set,
            "tensor": self.name,
            "operator": self.operator,
            "elements": self.elements,
            "max_abs_diff": self.max_abs,
            "first_element": self.first,
        }


def reference(
    which: Reference, model: bytes, source: Graph, graph: Graph, inputs: Sequence[Array]
) -> dict[int, Array]:
    """Tensor index in `graph` (rewritten) -> the value it must have, for one set of inputs."""
    if which == Reference.NUMPY:
        from buildtool.graph.reference import execute

        return dict(execute(graph, inputs))
    return _litert(model, source, graph, inputs)


def _litert(model: bytes, source: Graph, graph: Graph, inputs: Sequence[Array]) -> dict[int, Array]:
    """LiteRT's own reference kernels, every tensor of the file that `graph` still has."""
    try:
        from ai_edge_litert.interpreter import Interpreter, OpResolverType
    except ImportError:
        raise ToolError("LiteRT is not installed", hint="pip install ai-edge-litert") from None
    try:
        interpreter = Interpreter(
            model_content=model,
            experimental_op_resolver_type=OpResolverType.BUILTIN_REF,
            experimental_preserve_all_tensors=True,
        )
        interpreter.allocate_tensors()
    except (RuntimeError, ValueError) as error:
        said = " ".join(str(error).split())
        raise ToolError(f"LiteRT does not run the network: {said}", hint=_OWN) from None
    details = interpreter.get_input_details()
    for detail, index, value in zip(details, source.inputs, inputs, strict=True):
        given = value
        if source.tensors[index].dtype == DType.FLOAT32:
            given = _dequantised(value, graph.tensors[graph.inputs[source.inputs.index(index)]])
        interpreter.set_tensor(detail["index"], given.reshape(detail["shape"]))
    interpreter.invoke()
    found: dict[int, Array] = {}
    for t in graph.activations():
        origin = graph.tensors[t].source
        if origin is None:
            continue
        value = interpreter.get_tensor(origin.index)
        found[t] = np.transpose(value, origin.perm) if origin.perm else value
    return found


def _dequantised(value: Array, tensor: Tensor) -> Array:
    quant = tensor.quant
    assert quant is not None  # a network's inputs were checked by the reader
    real = (value.astype(np.float32) - np.float32(quant.zero_point)) * np.float32(quant.scale)
    return np.asarray(real, np.float32)


def difference(
    graph: Graph,
    input_set: int,
    got: Mapping[int, bytes],
    expected: Mapping[int, Array],
    partial: Mapping[int, bytes] = _WHOLE,
) -> list[Difference]:
    """Every tensor of `got` (raw bytes by tensor index) that differs, in the plan's order.

    `partial`: of tensors that were not computed as a whole, 1 for every byte that was.
    """
    found = []
    producers = graph.producers()
    for t, raw in got.items():
        if t not in expected:
            continue
        tensor = graph.tensors[t]
        want = np.ascontiguousarray(expected[t]).reshape(-1).view(tensor.dtype.value)
        have = np.frombuffer(raw, tensor.dtype.value)
        if have.size != want.size:
            raise ToolError(
                f"{have.size} elements were returned, {want.size} were expected", tensor=tensor.name
            )
        unequal = have != want
        if t in partial:
            unequal &= np.frombuffer(partial[t], np.uint8)[:: tensor.dtype.size] != 0
        wrong = np.flatnonzero(unequal)
        if wrong.size:
            worst = int(np.abs(have[wrong].astype(np.int32) - want[wrong].astype(np.int32)).max())
            maker = graph.ops[producers[t]].place if t in producers else "input"
            found.append(Difference(input_set, t, tensor.name, maker, int(wrong.size), worst, int(wrong[0])))
    return found
