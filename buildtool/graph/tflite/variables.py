"""What a .tflite file keeps between invokes: resource variables, and tensors that are marked as variable.

A variable is read as values: READ_VARIABLE is the tensor that was assigned last, or what the variable was
when the invoke began. So the operators that name, read and assign it vanish here (see `graph.states` for what
becomes of them in memory). CALL_ONCE runs a subgraph that gives variables their first values, constants; what
else it might do is refused.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from buildtool.base.errors import BuildtoolError, ModelError, UnsupportedError
from buildtool.graph.ops import STATEFUL
from buildtool.graph.quantrules import same_quantization
from buildtool.graph.states import QUANTISED, STATE_TYPES
from buildtool.graph.tflite.fileops import FileOp, Lowering, OptionValue, Variable
from buildtool.graph.tflite.flat import MAX_NAME, FlatFile, RawOperator, RawTensor, printable
from buildtool.graph.tflite.schema import tflite
from buildtool.graph.tflite.uint8 import ANEW
from buildtool.graph.types import Attrs, DType, Graph, Op, OpKind, State, Tensor

if TYPE_CHECKING:
    from buildtool.graph.tflite.opview import Network

_B = tflite.BuiltinOperator
_INIT = "let the subgraph only assign constants to variables, as TFLite's converter writes it"
Key = tuple[str, str]  # container, shared name


@dataclass
class _Variable:
    """A resource variable: `now` is the tensor with its value at this place of the network."""

    name: str
    initial: RawTensor | None = None
    before: int = -1
    now: int = -1


@dataclass
class _Handles:
    """Which tensors of a subgraph name which variable."""

    file: FlatFile
    keys: dict[int, Key] = field(default_factory=dict)

    def name(self, op: RawOperator) -> Key:
        """Takes in a VAR_HANDLE."""
        options = op.options(tflite.VarHandleOptions)
        if options is None or len(op.outputs) != 1:
            raise ModelError("a variable without a name")
        key = (_text(options.Container()), _text(options.SharedName()))
        self.keys[op.outputs[0]] = key
        return key

    def key(self, op: RawOperator, count: int) -> Key:
        """The variable that an operator of `count` inputs names with its first one."""
        if len(op.inputs) != count or op.inputs[0] not in self.keys:
            raise ModelError("the operator names no variable", hint=_INIT)
        return self.keys[op.inputs[0]]


def _text(value: object) -> str:
    return printable(value[:MAX_NAME]) if isinstance(value, bytes) else ""


class Variables:
    """The variables of a network's file while its operators are read in their order."""

    def __init__(self, network: Network) -> None:
        self._network, self._file = network, network.file
        self._handles = _Handles(network.file)
        self._known: dict[Key, _Variable] = {}
        self._marked: dict[int, State] = {}  # by the file's tensor
        self._initialised: set[int] = set()  # subgraphs

    def read(self, op: RawOperator) -> None:
        """Takes in an operator of VARIABLES."""
        if op.code == _B.CALL_ONCE:
            self._call_once(op)
        elif op.code == _B.VAR_HANDLE:
            key = self._handles.name(op)
            self._known.setdefault(key, _Variable(key[1] or "variable"))
        elif op.code == _B.READ_VARIABLE:
            self._read_variable(op)
        else:
            variable = self._known[self._handles.key(op, 2)]
            source = self._file.tensor(op.inputs[1])
            _check_type(variable, source)
            variable.now = self._network.place(op.inputs[1])

    def _read_variable(self, op: RawOperator) -> None:
        network, variable = self._network, self._known[self._handles.key(op, 1)]
        if len(op.outputs) != 1:
            raise ModelError(f"{len(op.outputs)} outputs, expected 1")
        result = self._file.tensor(op.outputs[0])
        _check_type(variable, result)
        if variable.now < 0:
            variable.now = variable.before = network.place(op.outputs[0])
            return
        known = network.tensors[variable.now]
        if known.elements != result.elements:
            text = f"variable '{variable.name}' has {known.elements} elements, read as {list(result.shape)}"
            raise ModelError(text, tensor=result.name)
        if known.shape == result.shape and same_quantization(known.quant, result.quant):
            network.places[op.outputs[0]] = variable.now
        else:
            made = network.place(op.outputs[0])
            network.ops.append(Op(OpKind.RESHAPE, (variable.now,), (made,), Attrs(), op.index))

    def _call_once(self, op: RawOperator) -> None:
        """Takes the initial values out of the subgraph that CALL_ONCE runs."""
        options = op.options(tflite.CallOnceOptions)
        number = int(options.InitSubgraphIndex()) if options is not None else -1
        if not 0 < number < self._file.subgraphs:
            raise ModelError(f"CALL_ONCE of subgraph {number}; the file has {self._file.subgraphs}")
        if number in self._initialised:
            return
        self._initialised.add(number)
        file = FlatFile(self._file.data, number)
        handles = _Handles(file)
        for inner in file.operators:
            try:
                self._initial(inner, handles)
            except BuildtoolError as error:
                raise error.at(operator=f"subgraph {number}, {inner.place}") from error.__cause__

    def _initial(self, op: RawOperator, handles: _Handles) -> None:
        """One operator of that subgraph."""
        if op.code == _B.VAR_HANDLE:
            handles.name(op)
            return
        if op.code != _B.ASSIGN_VARIABLE:
            raise UnsupportedError("CALL_ONCE runs more than assignments of constants", hint=_INIT)
        key = handles.key(op, 2)
        value = handles.file.tensor(op.inputs[1])
        if not value.is_constant:
            raise UnsupportedError("a variable's first value is computed", tensor=value.name, hint=_INIT)
        variable = self._known.setdefault(key, _Variable(key[1] or "variable"))
        _check_type(variable, value)
        if variable.now >= 0:
            hint = "let CALL_ONCE come before what reads or assigns the variable"
            raise UnsupportedError(f"variable '{variable.name}' has its first value too late", hint=hint)
        variable.initial = value

    def marked(self, raw: RawTensor, number: int) -> int:
        """The tensor with the value of a tensor marked as variable; `number`: where it is taken in first."""
        if raw.index not in self._marked:
            if raw.is_constant:
                text = "a variable tensor with a value in the file, which LiteRT does not load"
                raise UnsupportedError(text, tensor=raw.name)
            self._marked[raw.index] = State(number, number, _zeros(raw), raw.name)
        return self._marked[raw.index].after

    def update(self, raw: RawTensor, number: int) -> None:
        """Lets our tensor `number` be the new value of a tensor that is marked as variable."""
        state = self._marked[raw.index]
        if state.before != state.after:
            hint = "give each operator a variable tensor of its own"
            raise UnsupportedError("state that several operators write", tensor=raw.name, hint=hint)
        self._marked[raw.index] = State(state.before, number, state.initial, state.name)

    def states(self) -> list[State]:
        """What the network keeps; UnsupportedError for a variable that is read before it has a value."""
        found = list(self._marked.values())
        for variable in self._known.values():
            if variable.before < 0:
                continue  # assigned before it is read, in every invoke: nothing is kept
            tensor = self._network.tensors[variable.before]
            if variable.initial is None:
                raise UnsupportedError(
                    f"variable '{variable.name}' is read before it has a value",
                    tensor=tensor.name,
                    hint="initialise it: CALL_ONCE of a subgraph that assigns a constant",
                )
            value = variable.initial.array().reshape(tensor.shape)
            found.append(State(variable.before, variable.now, value, variable.name))
        return found


def _check_type(variable: _Variable, raw: RawTensor) -> None:
    """Refuses floats, and a variable that has two types."""
    if raw.dtype not in STATE_TYPES:
        text = f"variable '{variable.name}' is of type {raw.dtype}"
        hint = ANEW if raw.dtype == DType.UINT8 else QUANTISED
        raise UnsupportedError(text, tensor=raw.name, hint=hint)
    first = variable.initial
    if first is not None and (first.dtype != raw.dtype or first.elements != raw.elements):
        raise UnsupportedError(
            f"variable '{variable.name}' has two types: {first.dtype} {list(first.shape)} and "
            f"{raw.dtype} {list(raw.shape)}",
            tensor=raw.name,
            hint="give it one shape and one type wherever it is initialised, read and assigned",
        )


def _zeros(raw: RawTensor) -> npt.NDArray[np.generic]:
    """What LiteRT sets a variable tensor to: int8 to its zero point, everything else to 0."""
    if raw.dtype not in STATE_TYPES:
        hint = ANEW if raw.dtype == DType.UINT8 else QUANTISED
        raise UnsupportedError(f"a variable tensor of type {raw.dtype}", tensor=raw.name, hint=hint)
    zero = raw.quant.zero_point if raw.quant and raw.dtype == DType.INT8 else 0
    value = np.full(raw.shape, zero, raw.dtype)
    value.flags.writeable = False
    return value


# ---- into a file -------------------------------------------------------------------------------


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
    axis = op.attrs.axis  # type: ignore[attr-defined]
    old, new = (low.graph.tensors[t] for t in op.inputs)
    begin_at = [new.shape[axis] if d == axis else 0 for d in range(len(old.shape))]
    extent = [n - at for n, at in zip(old.shape, begin_at, strict=True)]
    name = f"{low.graph.tensors[op.outputs[0]].name}/tail"
    low.tensors.append(replace(old, name=name, shape=tuple(extent), data=None, source=None))
    tail = len(low.tensors) - 1
    inputs = (op.inputs[0], low.parameter(op, "begin", begin_at), low.parameter(op, "size", extent))
    low.ops.append(FileOp("SLICE", 2, inputs, (tail,), "SliceOptions"))
    options: dict[str, OptionValue] = {"Axis": axis}
    return FileOp("CONCATENATION", 2, (tail, op.inputs[1]), op.outputs, "ConcatenationOptions", options)
