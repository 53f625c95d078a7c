"""The reference executor: every operator in numpy, equal to the bit to LiteRT's reference kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from buildtool.base.errors import BuildtoolError, UnsupportedError, UsageError
from buildtool.graph.ops import DEFS, TABLE_KINDS, varying
from buildtool.graph.ops.types import load
from buildtool.graph.reference.activation import table as byte_table
from buildtool.graph.reference.tensors import Rule, Values
from buildtool.graph.types import DType, Graph, Op, OpKind, Tensor

__all__ = ["execute", "initially", "next_held", "table"]


def table(graph: Graph, op: Op) -> npt.NDArray[np.uint8]:
    """The output byte of each input byte (uint8[256]) of an operator of TABLE_KINDS, or of one `varying`.

    Bytes are the elements' bit patterns: an int8 element -1 is byte 255. UnsupportedError where the
    input or output is not 8 bits wide.
    """
    if op.kind in TABLE_KINDS and op.kind is not OpKind.LOGICAL_NOT:
        return byte_table(graph, op)
    position = varying(graph, op)
    if position is None:
        raise UnsupportedError(f"{op.kind} of several tensors is not a table", operator=op.place)
    dtype = graph.tensors[op.inputs[position]].dtype
    every = np.arange(256, dtype=np.uint8)
    values: list[Values] = []
    for t in op.inputs:
        data = graph.tensors[t].data
        if data is not None:
            values.append(data.reshape(1))
        else:
            values.append(every != 0 if dtype is DType.BOOL else every.view(dtype.value))
    return _named(DEFS[op.kind].reference)(graph, op, values)[0].view(np.uint8)


def execute(
    graph: Graph, inputs: Sequence[Values], held: Sequence[Values] | None = None
) -> dict[int, Values]:
    """Runs the graph once: the value of every activation tensor (inputs too) by index.

    `held`: what the states are as the invoke begins, by default their initial values (see `next_held`).

    `inputs` in the order of `graph.inputs`, of the tensors' own types and shapes; UsageError
    otherwise.
    """
    if len(inputs) != len(graph.inputs):
        raise UsageError(f"the network has {len(graph.inputs)} inputs, {len(inputs)} were given")
    values: dict[int, Values] = {}
    for index, value in zip(graph.inputs, inputs, strict=True):
        values[index] = _checked(graph.tensors[index], np.asarray(value))
    for state, value in zip(graph.states, initially(graph) if held is None else held, strict=True):
        values[state.before] = _checked(graph.tensors[state.before], np.asarray(value))
    for op in graph.ops:
        values.update(zip(op.outputs, execute_op(graph, op, values), strict=True))
    return values


def initially(graph: Graph) -> list[Values]:
    """What the states are after init and reset."""
    return [np.asarray(state.initial) for state in graph.states]


def next_held(graph: Graph, values: Mapping[int, Values]) -> list[Values]:
    """What the states are for the next invoke; `values`: what `execute` has returned for this one."""
    found = []
    for state in graph.states:
        data = graph.tensors[state.after].data
        value = np.asarray(values[state.after] if data is None else data)
        found.append(value.reshape(graph.tensors[state.before].shape))
    return found


def execute_op(graph: Graph, op: Op, values: dict[int, Values]) -> list[Values]:
    """The outputs of one operator; `values` holds the activations it reads."""
    op = op.as_seen
    operands = []
    for index in op.inputs:
        if index >= 0:
            data = graph.tensors[index].data
            operands.append(values[index] if data is None else data)
    try:
        made = _rule(graph, op)(graph, op, operands)
    except BuildtoolError as error:
        raise error.at(operator=op.place) from None
    for index, value in zip(op.outputs, made, strict=True):
        _checked(graph.tensors[index], value)
    return made


def _rule(graph: Graph, op: Op) -> Rule:
    """What computes an operator: of wide integers some kinds have other arithmetic."""
    found = DEFS[op.kind]
    types = {graph.tensors[t].dtype for t in (op.inputs[0], op.outputs[0])}
    shares = op.kind is OpKind.SOFTMAX and graph.tensors[op.inputs[0]].dtype is DType.INT8
    if found.wide and types & _WIDE and DType.FLOAT32 not in types and not shares:
        return _named(found.wide)
    return _named(found.reference)


def _named(name: str) -> Rule:
    rule: Rule = load("graph.reference", name)
    return rule


_WIDE = {DType.INT16, DType.INT32}


def _checked(tensor: Tensor, value: Values) -> Values:
    """The value, if it has the tensor's shape and type."""
    if value.shape != tensor.shape or value.dtype != np.dtype(tensor.dtype.value):
        raise UsageError(
            f"expected {tensor.dtype} {list(tensor.shape)}, got {value.dtype} {list(value.shape)}",
            tensor=tensor.name,
        )
    return value
