"""The reference's values, and how a run differs from them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from buildtool.base.errors import ToolError
from buildtool.base.modes import Reference
from buildtool.graph.types import DType, Graph, Tensor
from buildtool.schema.runs import DifferenceAnswer

Array = npt.NDArray[np.generic]
# Inputs, and whether the state is reset first -> every known tensor of the graph. The state stays with the
# referrer.
Referrer = Callable[[Sequence[Array], bool], dict[int, Array]]
_WHOLE: Mapping[int, bytes] = {}
NOT_INSTALLED = "pip install ai-edge-litert"


@dataclass(frozen=True)
class Difference:
    """A tensor that differs from the reference in one of the input sets."""

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


def referrer(which: Reference, model: bytes, source: Graph, graph: Graph) -> Referrer:
    """Computes the right value of each tensor of `graph`, which is the file's `source` rewritten.

    LiteRT runs in this process, which it ends if a check of its own fails (see `judge`).
    """
    if which == Reference.NUMPY:
        return _numpy(graph)
    places = dict[int, int]()
    if _has_narrow_biases(model, source):
        from buildtool.graph.tflite.writer import write_model

        model = write_model(source)
        places = {t.source.index: i for i, t in enumerate(source.tensors) if t.source is not None}
    interpreter = _open(model, ready=True)

    def refer(inputs: Sequence[Array], reset: bool) -> dict[int, Array]:
        nonlocal interpreter
        if reset and graph.states:
            # nothing else gives variables the values of CALL_ONCE again
            interpreter = _open(model, ready=True)
        return _litert(interpreter, source, graph, inputs, places)

    return refer


def _numpy(graph: Graph) -> Referrer:
    from buildtool.graph.reference import execute, initially, next_held

    held = initially(graph)

    def refer(inputs: Sequence[Array], reset: bool) -> dict[int, Array]:
        nonlocal held
        values = execute(graph, inputs, initially(graph) if reset else held)
        held = next_held(graph, values)
        return dict(values)

    return refer


def _has_narrow_biases(model: bytes, source: Graph) -> bool:
    """Whether int16 layers of the file have int32 biases, which LiteRT refuses or misreads.

    The graph has them as int64, so that LiteRT can run a file written from it.
    """
    wide = [t.source.index for t in source.tensors if t.dtype is DType.INT64 and t.source is not None]
    if not wide:
        return False
    types = {detail["index"]: np.dtype(detail["dtype"]) for detail in _open(model).get_tensor_details()}
    return any(types.get(index) == np.int32 for index in wide)


def _open(model: bytes, *, ready: bool = False) -> Any:
    """LiteRT with its reference kernels, keeping every tensor, `ready` to run; ToolError if it refuses."""
    try:
        from ai_edge_litert.interpreter import Interpreter, OpResolverType
    except ImportError:
        raise ToolError("LiteRT is not installed", hint=NOT_INSTALLED) from None
    try:
        interpreter = Interpreter(
            model_content=model,
            experimental_op_resolver_type=OpResolverType.BUILTIN_REF,
            experimental_preserve_all_tensors=True,
        )
        if ready:
            interpreter.allocate_tensors()
    except (RuntimeError, ValueError) as error:
        raise ToolError(f"LiteRT does not run the network: {' '.join(str(error).split())}") from None
    return interpreter


def _litert(
    interpreter: Any, source: Graph, graph: Graph, inputs: Sequence[Array], places: Mapping[int, int]
) -> dict[int, Array]:
    """Every tensor of the file that `graph` still has; `places`: its index in the interpreter."""
    details = interpreter.get_input_details()
    for detail, index, value in zip(details, source.inputs, inputs, strict=True):
        given: Array = value
        own = graph.tensors[graph.inputs[source.inputs.index(index)]]
        if source.tensors[index].dtype == DType.FLOAT32:
            quant = own.quant
            assert quant is not None  # a network's inputs were checked by the reader
            given = (value.astype(np.float32) - np.float32(quant.zero_point)) * np.float32(quant.scale)
        if own.source is not None and own.source.perm:
            given = np.transpose(given, np.argsort(own.source.perm))
        interpreter.set_tensor(detail["index"], given.reshape(detail["shape"]))
    try:
        interpreter.invoke()
    except RuntimeError as error:  # such as a quotient by 0, or the root of a number below it
        raise ToolError(f"LiteRT stops: {' '.join(str(error).split())}") from None
    found: dict[int, Array] = {}
    for t in graph.activations():
        origin = graph.tensors[t].source
        if origin is None:
            continue
        value = interpreter.get_tensor(places.get(origin.index, origin.index))
        if value.dtype == np.uint8 and graph.tensors[t].dtype == DType.INT8:  # a network of uint8
            value = (value ^ np.uint8(128)).view(np.int8)
        found[t] = np.transpose(value, origin.perm) if origin.perm else value
    return found


def computed(mask: bytes, tensor: Tensor) -> npt.NDArray[np.bool_]:
    """Which elements of a tensor were computed; `mask`: 1 for every byte that was."""
    return np.frombuffer(mask, np.bool_)[:: tensor.dtype.size]


def difference(
    graph: Graph,
    input_set: int,
    got: Mapping[int, bytes],
    expected: Mapping[int, Array],
    partial: Mapping[int, bytes] = _WHOLE,
) -> list[Difference]:
    """Every tensor of `got` (raw bytes by tensor index) that differs, in the plan's order.

    `partial`: for tensors that were not computed as a whole, 1 for every byte that was.
    """
    found = []
    producers = graph.producers()
    for t in (t for t in got if t in expected):
        tensor = graph.tensors[t]
        want = np.ascontiguousarray(expected[t]).reshape(-1).view(tensor.dtype.value)
        have = np.frombuffer(got[t], tensor.dtype.value)
        if have.size != want.size:
            text = f"{have.size} elements were returned, {want.size} were expected"
            raise ToolError(text, tensor=tensor.name)
        unequal = have != want
        if t in partial:
            unequal &= computed(partial[t], tensor)
        wrong = np.flatnonzero(unequal)
        if wrong.size:
            worst = int(np.abs(have[wrong].astype(np.int32) - want[wrong].astype(np.int32)).max())
            maker = graph.ops[producers[t]].place if t in producers else "input"
            found.append(Difference(input_set, t, tensor.name, maker, int(wrong.size), worst, int(wrong[0])))
    return found
