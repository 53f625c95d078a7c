"""Computes the reference's values of tensors, and how a run differs from them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from buildtool.base.errors import BuildtoolError, ToolError
from buildtool.base.modes import Reference
from buildtool.graph.floats import touches_floats
from buildtool.graph.types import DType, Graph, OpKind, Source, Tensor
from buildtool.schema.runs import DifferenceAnswer

Array = npt.NDArray[np.generic]
# Inputs, and whether the state is reset first -> every known tensor of the graph. The referrer has the state.
Referrer = Callable[[Sequence[Array], bool], dict[int, Array]]
_WHOLE: Mapping[int, bytes] = {}
_DEFINED = 2**31 - 2**16  # steps of QUANTIZE that fit an int32, also with a zero point
NOT_INSTALLED = "pip install ai-edge-litert"


@dataclass(frozen=True)
class Difference:
    """A tensor that differs from the reference for one set of inputs."""

    input_set: int
    tensor: int
    name: str
    operator: str
    elements: int  # the number that differ
    max_abs: int
    first: int  # flat index of the first element that differs

    def json(self) -> DifferenceAnswer:
        """Returns the difference as part of an answer."""
        return {
            "input": self.input_set,
            "tensor": self.name,
            "operator": self.operator,
            "elements": self.elements,
            "max_abs_diff": self.max_abs,
            "first_element": self.first,
        }


def referrer(which: Reference, model: bytes, source: Graph, graph: Graph) -> Referrer:
    """Returns a function that computes the reference's value of each tensor of `graph`, for a set of inputs.

    `graph` is the file's graph `source` after rewriting. LiteRT runs in this process. If one of LiteRT's own
    checks fails, the process ends (see `judge`).
    """
    if which == Reference.NUMPY:
        return _make_numpy_referrer(source, graph)
    if any(op.kind is OpKind.SUM and not touches_floats(source, op) for op in source.ops):
        raise ToolError("LiteRT's reference kernel of SUM reads int8 and int16 as uint8")
    if any(
        op.kind is OpKind.UNIDIRECTIONAL_SEQUENCE_LSTM and source.tensors[op.inputs[0]].dtype is DType.INT16
        for op in source.ops
    ):
        raise ToolError("LiteRT has no kernel of UNIDIRECTIONAL_SEQUENCE_LSTM of int16")
    if _has_narrow_svdf(model):
        raise ToolError("LiteRT's kernel of SVDF reads an 8-bit state as 16 bits")
    places = dict[int, int]()
    if _has_narrow_biases(model, source):
        from buildtool.graph.tflite.writer import write_model

        model = write_model(source)
        places = {t.source.index: i for i, t in enumerate(source.tensors) if t.source is not None}
    interpreter = _open_litert(model, ready=True)

    def refer(inputs: Sequence[Array], reset: bool) -> dict[int, Array]:
        nonlocal interpreter
        if reset and graph.states:
            # only a new interpreter resets variables to the values of CALL_ONCE
            interpreter = _open_litert(model, ready=True)
        return _run_litert(interpreter, source, graph, inputs, places)

    return refer


def _make_numpy_referrer(source: Graph, graph: Graph) -> Referrer:
    """Returns a function that runs buildtool's own executor, on the network with all channels of the file."""
    from buildtool.graph.reference import execute, initial_states, next_states
    from buildtool.graph.rewrite import rewrite

    narrowed = any(tensor.source is not None and tensor.source.channels for tensor in graph.tensors)
    whole = rewrite(source) if narrowed else graph
    places = {(t.source.index, t.source.perm): i for i, t in enumerate(whole.tensors) if t.source is not None}
    state, own_state = initial_states(whole), initial_states(graph)

    def refer(inputs: Sequence[Array], reset: bool) -> dict[int, Array]:
        nonlocal state, own_state
        values = execute(whole, inputs, initial_states(whole) if reset else state)
        state = next_states(whole, values)
        if not narrowed:
            return dict(values)
        # tensors that are not in the file have no place in the network with all channels
        own = execute(graph, inputs, initial_states(graph) if reset else own_state)
        own_state = next_states(graph, own)
        origins = {t: graph.tensors[t].source for t in graph.activations()}
        found = ((t, o, places.get((o.index, o.perm))) for t, o in origins.items() if o is not None)
        return {**own, **{t: _pick(values[place], o) for t, o, place in found if place in values}}

    return refer


def _pick(value: Array, origin: Source) -> Array:
    """Returns, of a file's tensor, the channels that the simplified network still has."""
    return value[..., origin.channels] if origin.channels else value


def _has_narrow_svdf(model: bytes) -> bool:
    """Whether an SVDF of the file has an 8-bit state. (`tflite.svdf8` reads such an SVDF as other
    operators.)
    """
    from buildtool.graph.tflite.flat import FlatFile
    from buildtool.graph.tflite.schema import tflite

    try:
        file = FlatFile(model)
    except BuildtoolError:  # LiteRT says why it refuses the file
        return False
    svdfs = [op for op in file.operators if op.code == tflite.BuiltinOperator.SVDF]
    return any(file.tensor(op.inputs[4]).dtype == "int8" for op in svdfs)


def _has_narrow_biases(model: bytes, source: Graph) -> bool:
    """Whether int16 layers of the file have int32 biases, which LiteRT refuses or misreads.

    The graph has these biases as int64, so LiteRT can run a file that is written from the graph.
    """
    wide = [t.source.index for t in source.tensors if t.dtype is DType.INT64 and t.source is not None]
    if not wide:
        return False
    types = {
        detail["index"]: np.dtype(detail["dtype"]) for detail in _open_litert(model).get_tensor_details()
    }
    return any(types.get(index) == np.int32 for index in wide)


def _open_litert(model: bytes, *, ready: bool = False) -> Any:
    """Opens the network in LiteRT with its reference kernels; raises ToolError if LiteRT refuses it.

    LiteRT then keeps the value of every tensor. If `ready` is true, its tensors are allocated, so that it can
    run.
    """
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
        raise ToolError(f"LiteRT cannot run the network: {' '.join(str(error).split())}") from None
    return interpreter


def _run_litert(
    interpreter: Any, source: Graph, graph: Graph, inputs: Sequence[Array], places: Mapping[int, int]
) -> dict[int, Array]:
    """Runs LiteRT and returns the values of those tensors of the file that `graph` still has.

    `places` maps a tensor's index in the file to its index in the interpreter, where they differ.
    """
    details = interpreter.get_input_details()
    for detail, array in zip(details, file_inputs(source, graph, inputs), strict=True):
        interpreter.set_tensor(detail["index"], array.reshape(detail["shape"]))
    _clear_detections(interpreter, source, places)
    try:
        interpreter.invoke()
    except RuntimeError as error:  # such as a division by 0, or the root of a negative number
        raise ToolError(f"LiteRT stops: {' '.join(str(error).split())}") from None
    _refuse_undefined(interpreter, source, places)
    return graph_values(graph, lambda index: interpreter.get_tensor(places.get(index, index)))


def file_inputs(source: Graph, graph: Graph, inputs: Sequence[Array]) -> list[Array]:
    """Returns the inputs of the file's graph `source` that correspond to `inputs` of the rewritten `graph`.

    They may differ in type (float32) and in the order of dimensions.
    """
    arrays = []
    for index, quantised in zip(source.inputs, inputs, strict=True):
        array: Array = quantised
        own = graph.tensors[graph.inputs[source.inputs.index(index)]]
        if source.tensors[index].dtype == DType.FLOAT32 and (quant := own.quant) is not None:
            array = (quantised.astype(np.float32) - np.float32(quant.zero_point)) * np.float32(quant.scale)
        if own.source is not None and own.source.perm:
            array = np.transpose(array, np.argsort(own.source.perm))
        arrays.append(array)
    return arrays


def graph_values(graph: Graph, read: Callable[[int], Array]) -> dict[int, Array]:
    """Returns the values of the tensors of `graph` that come from the file. `read` returns the value of the
    file's tensor with an index.
    """
    values: dict[int, Array] = {}
    for t in graph.activations():
        origin = graph.tensors[t].source
        if origin is None:
            continue
        value: Any = read(origin.index)
        if value.dtype == np.uint8 and graph.tensors[t].dtype == DType.INT8:  # a network of uint8
            value = (value ^ np.uint8(128)).view(np.int8)
        values[t] = _pick(np.transpose(value, origin.perm) if origin.perm else value, origin)
    return values


def _refuse_undefined(interpreter: Any, source: Graph, places: Mapping[int, int]) -> None:
    """Raises ToolError if a QUANTIZE has read NaN or a number beyond int32: its result depends on the
    machine.
    """
    for op in source.ops:
        operand, result = (source.tensors[ts[0]] for ts in (op.inputs, op.outputs))
        if op.kind is not OpKind.QUANTIZE or operand.dtype is not DType.FLOAT32:
            continue
        assert operand.source is not None and result.quant is not None
        value = interpreter.get_tensor(places.get(operand.source.index, operand.source.index))
        with np.errstate(all="ignore"):
            steps = np.abs(value / np.float32(result.quant.scale))
        if not (steps < _DEFINED).all():
            text = "LiteRT leaves undefined what QUANTIZE makes of NaN, and of numbers beyond int32"
            raise ToolError(text, tensor=operand.name)


def _clear_detections(interpreter: Any, source: Graph, places: Mapping[int, int]) -> None:
    """Sets the outputs of DETECTION_POSTPROCESS to 0, because LiteRT does not write all of their rows."""
    for op in source.ops:
        if op.kind is OpKind.DETECTION_POSTPROCESS:
            for tensor in (source.tensors[t] for t in op.outputs):
                assert tensor.source is not None
                place = places.get(tensor.source.index, tensor.source.index)
                interpreter.set_tensor(place, np.zeros(tensor.shape, np.float32))


def computed(mask: bytes, tensor: Tensor) -> npt.NDArray[np.bool_]:
    """Returns the mask of a tensor's elements that were computed, from `mask`, which has a 1 for every
    computed byte.
    """
    return np.frombuffer(mask, np.bool_)[:: tensor.dtype.size]


def distance(actual: Array, expected: Array, least: Array | None = None) -> npt.NDArray[np.int64]:
    """Returns the distance of each element of `actual` from that of `expected`, the correct values.

    For float32 it is in units in the last place, and NaN equals NaN. The unit is that of the correct value,
    or of the number in `least` at the same place if that is larger (see `curve_units`).
    """
    if actual.dtype != np.float32:
        return np.abs(actual.astype(np.int64) - expected.astype(np.int64))
    places = []
    for value in (actual, expected):
        bits = np.ascontiguousarray(value).view(np.int32).astype(np.int64)
        places.append(np.where(bits < 0, -(bits & 0x7FFFFFFF) - 1, bits))  # -0 lies below 0
    both = np.isnan(actual.astype(np.float32)) & np.isnan(expected.astype(np.float32))
    apart = np.where(both, 0, np.abs(places[0] - places[1]))
    if least is not None:
        with np.errstate(all="ignore"):
            a, b, size = (x.astype(np.float32) for x in (actual, expected, least))
            units = np.abs(a.astype(np.float64) - b) / np.spacing(np.maximum(np.abs(b), np.abs(size)))
        apart = np.where(np.isfinite(units), np.minimum(apart, np.ceil(np.nan_to_num(units))), apart)
    return np.asarray(apart, np.int64)


def difference(
    graph: Graph,
    input_set: int,
    tensors: Mapping[int, bytes],
    expected: Mapping[int, Array],
    partial: Mapping[int, bytes] = _WHOLE,
) -> list[Difference]:
    """Returns a Difference for every tensor that differs from `expected`, in the order of `tensors`.

    `tensors` maps a tensor's index to its raw bytes. `partial` has, for tensors that were not computed as a
    whole, a 1 for every computed byte.
    """
    rows = []
    producers = graph.producers()
    for t in (t for t in tensors if t in expected):
        tensor = graph.tensors[t]
        correct = np.ascontiguousarray(expected[t]).reshape(-1).view(tensor.dtype.value)
        actual = np.frombuffer(tensors[t], tensor.dtype.value)
        if actual.size != correct.size:
            text = f"{actual.size} elements were returned, {correct.size} were expected"
            raise ToolError(text, tensor=tensor.name)
        steps = distance(actual, correct)
        unequal = steps != 0
        if t in partial:
            unequal &= computed(partial[t], tensor)
        wrong = np.flatnonzero(unequal)
        if wrong.size:
            worst = int(steps[wrong].max())
            maker = graph.ops[producers[t]].place if t in producers else "input"
            rows.append(Difference(input_set, t, tensor.name, maker, int(wrong.size), worst, int(wrong[0])))
    return rows
