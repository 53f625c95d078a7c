"""The reference executor: every operator in numpy, equal to the bit to LiteRT's reference kernels."""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from buildtool.base.errors import BuildtoolError, UnsupportedError, UsageError
from buildtool.graph.ops import DEFS, TABLE_KINDS, varying
from buildtool.graph.ops.types import load
from buildtool.graph.reference.activation import table as byte_table
from buildtool.graph.reference.tensors import Rule, Values
from buildtool.graph.types import DType, Graph, Op, OpKind, Tensor

_WIDE = {DType.INT16, DType.INT32}


def table(graph: Graph, op: Op) -> npt.NDArray[np.uint8]:
    """The output byte of each input byte (uint8[256]) of an operator of TABLE_KINDS, or of one `varying`.

    Bytes are bit patterns: an int8 element -1 is byte 255. UnsupportedError where the input or output is not
    8 bits wide.
    """
    if op.kind in TABLE_KINDS and op.kind is not OpKind.LOGICAL_NOT:
        return byte_table(graph, op)
    position = varying(graph, op)
    if position is None:
        raise UnsupportedError(f"{op.kind} of several tensors is not a table", operator=op.place)
    bytes_, dtype = np.arange(256, dtype=np.uint8), graph.tensors[op.inputs[position]].dtype
    every = bytes_ != 0 if dtype is DType.BOOL else bytes_.view(dtype.value)
    constants = (graph.tensors[t].data for t in op.inputs)
    operands = [every if data is None else data.reshape(1) for data in constants]
    rule: Rule = load("graph.reference", DEFS[op.kind].reference)
    return rule(graph, op, operands)[0].view(np.uint8)


def execute(
    graph: Graph, inputs: Sequence[Values], held: Sequence[Values] | None = None
) -> dict[int, Values]:
    """Runs the graph once: the value of every activation tensor (inputs too) by index.

    `inputs` in the order of `graph.inputs`, `held` (the states as the invoke begins, by default their initial
    values) in that of `graph.states`. UsageError unless they have the tensors' types and shapes.
    """
    if len(inputs) != len(graph.inputs):
        raise UsageError(f"the network has {len(graph.inputs)} inputs, {len(inputs)} were given")
    states = [state.before for state in graph.states]
    values: dict[int, Values] = {}
    given = [*inputs, *(initially(graph) if held is None else held)]
    for t, value in zip((*graph.inputs, *states), given, strict=True):
        values[t] = _check_value(graph.tensors[t], np.asarray(value))
    for op in graph.ops:
        values.update(zip(op.outputs, execute_op(graph, op, values), strict=True))
    return values


def initially(graph: Graph) -> list[Values]:
    """The states after init and reset."""
    return [np.asarray(state.initial) for state in graph.states]


def next_held(graph: Graph, values: Mapping[int, Values]) -> list[Values]:
    """The states for the next invoke; `values`: what `execute` has returned for this one."""
    states = []
    for state in graph.states:
        data = graph.tensors[state.after].data
        value = np.asarray(values[state.after] if data is None else data)
        states.append(value.reshape(graph.tensors[state.before].shape))
    return states


def execute_op(graph: Graph, op: Op, values: dict[int, Values]) -> list[Values]:
    """The outputs of one operator; `values` holds the activations it reads."""
    op = op.as_seen
    operands = []
    for t in op.inputs:
        if t >= 0:
            data = graph.tensors[t].data
            operands.append(values[t] if data is None else data)
    rule: Rule = load("graph.reference", _rule(graph, op))
    try:
        results = rule(graph, op, operands)
    except BuildtoolError as error:
        raise error.at(operator=op.place) from None
    for t, value in zip(op.outputs, results, strict=True):
        _check_value(graph.tensors[t], value)
    return results


def _rule(graph: Graph, op: Op) -> str:
    """The name of an operator's arithmetic: some kinds have another one for wide integers."""
    definition = DEFS[op.kind]
    source, out = (graph.tensors[t].dtype for t in (op.inputs[0], op.outputs[0]))
    widens = op.kind is OpKind.SOFTMAX and source is DType.INT8
    is_wide = not widens and {source, out} & _WIDE and DType.FLOAT32 not in (source, out)
    return definition.wide if definition.wide and is_wide else definition.reference


def _check_value(tensor: Tensor, value: Values) -> Values:
    """The value, if it has the tensor's shape and type."""
    if value.shape != tensor.shape or value.dtype != np.dtype(tensor.dtype.value):
        text = f"expected {tensor.dtype} {list(tensor.shape)}, got {value.dtype} {list(value.shape)}"
        raise UsageError(text, tensor=tensor.name)
    return value
