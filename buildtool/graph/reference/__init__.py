"""The reference executor: every operator in numpy, bit for bit as LiteRT's reference kernels."""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from buildtool.base.errors import BuildtoolError, UnsupportedError, UsageError
from buildtool.graph.floats import touches_floats
from buildtool.graph.ops import DEFS, TABLE_KINDS, varying
from buildtool.graph.ops.types import load
from buildtool.graph.quantrules import is_unscaled
from buildtool.graph.reference.activation import table as byte_table
from buildtool.graph.reference.tensors import Rule, Values
from buildtool.graph.types import DType, Graph, Op, OpKind, Tensor, cached_on_graph

_WIDE = {DType.INT16, DType.INT32}


def table(graph: Graph, op: Op) -> npt.NDArray[np.uint8]:
    """Returns the output byte for each input byte: uint8[256].

    `op` is of TABLE_KINDS, or has only one operand that is not a constant (see `varying`). Bytes are bit
    patterns: an int8 element -1 is byte 255. Raises UnsupportedError if the input or output does not have 8
    bits.
    """
    if op.kind in TABLE_KINDS and op.kind is not OpKind.LOGICAL_NOT:
        return byte_table(graph, op)
    position = varying(graph, op)
    if position is None:
        text = f"{op.kind} of several activations is not a function of one byte"
        raise UnsupportedError(text, operator=op.place)
    bytes_, dtype = np.arange(256, dtype=np.uint8), graph.tensors[op.inputs[position]].dtype
    every = bytes_ != 0 if dtype is DType.BOOL else bytes_.view(dtype.value)
    constants = (graph.tensors[t].data for t in op.inputs)
    operands = [every if data is None else data.reshape(1) for data in constants]
    rule: Rule = load("graph.reference", DEFS[op.kind].reference)
    return rule(graph, op, operands)[0].view(np.uint8)


def execute(
    graph: Graph, inputs: Sequence[Values], held: Sequence[Values] | None = None
) -> dict[int, Values]:
    """Runs the graph once; returns the value of every activation tensor (also of inputs) by index.

    `inputs` are in the order of `graph.inputs`. `held` are the states at the start, in the order of
    `graph.states` (default: their initial values). Raises UsageError if a value does not have its tensor's
    type and shape.
    """
    if len(inputs) != len(graph.inputs):
        raise UsageError(f"the network has {len(graph.inputs)} inputs, but got {len(inputs)} values")
    states = [state.before for state in graph.states]
    values: dict[int, Values] = {}
    starts = [*inputs, *(initial_states(graph) if held is None else held)]
    for t, value in zip((*graph.inputs, *states), starts, strict=True):
        values[t] = _check_value(graph.tensors[t], np.asarray(value))
    for op in graph.ops:
        values.update(zip(op.outputs, execute_op(graph, op, values), strict=True))
    return values


def initial_states(graph: Graph) -> list[Values]:
    """Returns the values of the states after init or reset, in the order of Graph.states."""
    return list(_warmed_up(graph)) if graph.window else [np.asarray(s.initial) for s in graph.states]


@cached_on_graph
def _warmed_up(graph: Graph) -> list[Values]:
    """Returns the states after the first runs of a network on a sliding window.

    These runs have zero points as inputs, so that the window is full of zero points (see `Window`).
    """
    held: list[Values] = [np.asarray(state.initial) for state in graph.states]
    inputs = []
    for t in graph.inputs:
        tensor = graph.tensors[t]
        zero_point = tensor.quant.zero_point if tensor.quant else 0
        inputs.append(np.full(tensor.shape, zero_point, tensor.dtype.value))
    for _ in range(graph.window.hops if graph.window else 0):
        held = next_states(graph, execute(graph, inputs, held))
    return held


def next_states(graph: Graph, values: Mapping[int, Values]) -> list[Values]:
    """Returns the values of the states for the next invoke.

    `values` is the result of `execute` for this invoke.
    """
    states = []
    for state in graph.states:
        data = graph.tensors[state.after].data
        value = np.asarray(values[state.after] if data is None else data)
        states.append(value.reshape(graph.tensors[state.before].shape))
    return states


def execute_op(graph: Graph, op: Op, values: dict[int, Values]) -> list[Values]:
    """Returns the outputs of one operator. `values` holds the activations that it reads."""
    op = op.as_seen
    operands = []
    for t in op.inputs:
        if t >= 0:
            data = graph.tensors[t].data
            operands.append(values[t] if data is None else data)
    rule: Rule = load("graph.reference", _find_rule(graph, op))
    try:
        results = rule(graph, op, operands)
    except BuildtoolError as error:
        raise error.at(operator=op.place) from None
    for t, value in zip(op.outputs, results, strict=True):
        _check_value(graph.tensors[t], value)
    return results


def _find_rule(graph: Graph, op: Op) -> str:
    """Returns the name of the function that computes an operator, which may depend on the tensors' types."""
    definition = DEFS[op.kind]
    if definition.floats and touches_floats(graph, op):
        return definition.floats
    if definition.unscaled and is_unscaled(graph, op):
        return definition.unscaled
    source, out = (graph.tensors[t].dtype for t in (op.inputs[0], op.outputs[0]))
    widens = op.kind is OpKind.SOFTMAX and source is DType.INT8
    is_wide = not widens and {source, out} & _WIDE
    return definition.wide if definition.wide and is_wide else definition.reference


def _check_value(tensor: Tensor, value: Values) -> Values:
    """Returns `value`. Raises UsageError if it does not have the tensor's shape and type."""
    if value.shape != tensor.shape or value.dtype != np.dtype(tensor.dtype.value):
        text = f"expected {tensor.dtype} {list(tensor.shape)}, got {value.dtype} {list(value.shape)}"
        raise UsageError(text, tensor=tensor.name)
    return value
