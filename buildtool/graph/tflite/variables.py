"""State into a .tflite file: resource variables, and tensors that are marked as variable."""

from __future__ import annotations

from dataclasses import replace

from buildtool.base.errors import UnsupportedError
from buildtool.graph.geometry import attributes
from buildtool.graph.ops import STATEFUL
from buildtool.graph.tflite.fileops import FileOp, Lowering, OptionValue, Variable
from buildtool.graph.types import AxisAttrs, DType, Graph, Op, OpKind, Tensor


def marked(graph: Graph) -> frozenset[int]:
    """What states are before an invoke, of those that a file has as tensors marked as variable."""
    befores = {state.before for state in graph.states}
    kept = (
        op.inputs[operand]
        for op in graph.ops
        if op.kind is not OpKind.SHIFT
        for operand in STATEFUL.get(op.kind, {})
    )
    return frozenset(befores.intersection(kept))


def begin_states(low: Lowering) -> None:
    """Names and reads every resource variable, in front of all operators."""
    graph, by_tensor = low.graph, marked(low.graph)
    low.variable = by_tensor
    taken: set[str] = set()
    for index, state in enumerate(graph.states):
        if state.before in by_tensor:
            continue
        name = state.name if state.name and state.name not in taken else f"state{index}"
        taken.add(name)
        before = graph.tensors[state.before]
        low.tensors.append(Tensor(f"{name}/handle", (), DType.INT32))
        initial = replace(before, name=f"{name}/initial", data=state.initial, source=None)
        low.variables[state.before] = Variable(name, initial, len(low.tensors) - 1)
    if low.variables:
        low.ops.append(FileOp("CALL_ONCE", 1, (), (), "CallOnceOptions", {"InitSubgraphIndex": 1}))
    for tensor, variable in low.variables.items():
        low.ops.append(write_var_handle(variable.name, variable.handle))
        low.ops.append(_read(variable.handle, tensor))


def end_states(low: Lowering) -> None:
    """Assigns every resource variable, behind all operators."""
    copied = {op.outputs[0]: op.inputs[0] for op in low.graph.ops if op.kind is OpKind.ASSIGN_VARIABLE}
    for state in low.graph.states:
        if state.before in low.variables and state.after != state.before:
            source = copied.get(state.after, state.after)
            low.ops.append(write_assign(low.variables[state.before].handle, source))


def write_var_handle(name: str, handle: int) -> FileOp:
    """VAR_HANDLE of a variable, which makes tensor `handle`."""
    return FileOp("VAR_HANDLE", 1, (), (handle,), "VarHandleOptions", {"Container": "", "SharedName": name})


def write_assign(handle: int, source: int) -> FileOp:
    """ASSIGN_VARIABLE of a tensor."""
    return FileOp("ASSIGN_VARIABLE", 1, (handle, source), (), "AssignVariableOptions")


def _read(handle: int, result: int) -> FileOp:
    return FileOp("READ_VARIABLE", 1, (handle,), (result,), "ReadVariableOptions")


def write_read_variable(low: Lowering, op: Op) -> FileOp:
    """READ_VARIABLE, of what the variable was before the invoke: it is assigned behind all operators."""
    if op.inputs[0] not in low.variables:
        raise UnsupportedError("a copy of a tensor that is no variable", operator=op.place)
    return _read(low.variables[op.inputs[0]].handle, op.outputs[0])


def check_assignment(low: Lowering, op: Op) -> None:
    """ASSIGN_VARIABLE: all assignments stand behind the other operators (see `end_states`)."""
    if low.graph.consumers().get(op.outputs[0]) or op.outputs[0] in low.graph.outputs:
        raise UnsupportedError("a variable that is read after it is assigned", operator=op.place)


def write_shift(low: Lowering, op: Op) -> FileOp:
    """SHIFT: a SLICE of the old value's end, and a CONCATENATION."""
    axis = attributes(op, AxisAttrs).axis
    old, new = (low.graph.tensors[t] for t in op.inputs)
    begin_at = [new.shape[axis] if d == axis else 0 for d in range(len(old.shape))]
    extent = [n - at for n, at in zip(old.shape, begin_at, strict=True)]
    tail = low.tensor(op, "tail", extent, old)
    inputs = (op.inputs[0], low.parameter(op, "begin", begin_at), low.parameter(op, "size", extent))
    low.ops.append(FileOp("SLICE", 2, inputs, (tail,), "SliceOptions"))
    options: dict[str, OptionValue] = {"Axis": axis}
    return FileOp("CONCATENATION", 2, (tail, op.inputs[1]), op.outputs, "ConcatenationOptions", options)
