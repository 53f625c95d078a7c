"""The network that is read from a .tflite file, and its state: variables, and tensors marked as variable.

A variable is read as values: READ_VARIABLE is the tensor that was assigned last, or the variable's value when
the invoke began. So the operators that name, read and assign it vanish here (see `graph.states` for how state
lies in memory). CALL_ONCE runs a subgraph that assigns constants to variables; all else in it is refused.
"""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from buildtool.base.errors import BuildtoolError, ModelError, UnsupportedError
from buildtool.graph.quantrules import same_quantization
from buildtool.graph.states import QUANTISED, STATE_TYPES
from buildtool.graph.tflite.flat import MAX_NAME, FlatFile, RawOperator, RawTensor, printable
from buildtool.graph.tflite.schema import tflite
from buildtool.graph.tflite.uint8 import ANEW
from buildtool.graph.types import DType, Op, OpKind, Source, State, Tensor

REEXPORT = (
    "re-export with full-integer int8 quantisation: "
    "converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8] "
    "and a representative dataset"
)
_B = tflite.BuiltinOperator
_INIT = "let the subgraph only assign constants to variables, as TFLite's converter writes it"


class Network:
    """The graph's tensors and operators, as far as the file has been read."""

    def __init__(self, file: FlatFile) -> None:
        self.file = file
        self.tensors: list[Tensor] = []
        self.ops: list[Op] = []
        self.places: dict[int, int] = {}  # the file's tensor -> ours
        self.known: dict[
            int, npt.NDArray[np.int64]
        ] = {}  # values that follow from shapes, by the file's tensor
        self.variables = Variables(self)

    def add(self, tensor: Tensor) -> int:
        """A new tensor; its number."""
        self.tensors.append(tensor)
        return len(self.tensors) - 1

    def place(self, index: int) -> int:
        """Our number of the file's tensor `index`, which is taken in at its first use."""
        raw = self.file.tensor(index)
        if index not in self.places:
            self.places[index] = self.add(_tensor(raw))
        return self.variables.read_marked(raw, self.places[index]) if raw.variable else self.places[index]


def _tensor(raw: RawTensor) -> Tensor:
    """`raw` as a tensor of the graph; refuses forms that no static int8 network has."""
    if raw.dtype not in frozenset(DType):
        raise UnsupportedError(f"a tensor of type {raw.dtype}", tensor=raw.name, hint=REEXPORT)
    if raw.sparse:
        raise UnsupportedError("a sparse tensor", tensor=raw.name, hint="re-export without sparse storage")
    if raw.quant_details:
        raise UnsupportedError("a custom or blockwise quantisation", tensor=raw.name, hint=REEXPORT)
    if raw.dynamic and not raw.is_constant:
        hint = "re-export with a fixed input shape"
        raise UnsupportedError("its shape is only known at run time", tensor=raw.name, hint=hint)
    data = raw.array() if raw.is_constant else None
    if data is not None and raw.dtype == "bool":  # every byte but 0 is the truth value 1
        data = np.asarray(data.view(np.uint8) != 0)
    if math.prod(raw.shape) == 0:
        raise UnsupportedError(f"no elements: shape {list(raw.shape)}", tensor=raw.name)
    return Tensor(raw.name, raw.shape, DType(raw.dtype), raw.quant, data, Source(raw.index))


# ---- state -----------------------------------------------------------------------------------------


@dataclass
class _Variable:
    """A resource variable; its value is tensor `before` as the invoke begins, and `now` at this place."""

    name: str
    initial: RawTensor | None = None
    before: int = -1
    now: int = -1


_Handles = dict[int, _Variable]  # which tensor of a subgraph names which variable


class Variables:
    """The variables of a network's file while its operators are read in their order."""

    def __init__(self, network: Network) -> None:
        self._network, self._file = network, network.file
        self._handles: _Handles = {}
        self._known: dict[tuple[str, str], _Variable] = {}  # by container and shared name
        self._marked: dict[int, State] = {}  # by the file's tensor
        self._initialised: set[int] = set()  # subgraphs

    def _name(self, op: RawOperator, handles: _Handles) -> None:
        """Takes in a VAR_HANDLE."""
        options = op.options(tflite.VarHandleOptions)
        if options is None or len(op.outputs) != 1:
            raise ModelError("a variable without a name")
        raw = options.Container(), options.SharedName()
        container, name = (printable(text[:MAX_NAME]) if isinstance(text, bytes) else "" for text in raw)
        handles[op.outputs[0]] = self._known.setdefault((container, name), _Variable(name or "variable"))

    def _find_variable(self, op: RawOperator, count: int, handles: _Handles) -> _Variable:
        """The variable that an operator of `count` inputs names with its first one."""
        if len(op.inputs) != count or op.inputs[0] not in handles:
            raise ModelError("the operator names no variable", hint=_INIT)
        return handles[op.inputs[0]]

    def read(self, op: RawOperator) -> None:
        """Takes in an operator of VARIABLES."""
        if op.code == _B.CALL_ONCE:
            self._call_once(op)
        elif op.code == _B.VAR_HANDLE:
            self._name(op, self._handles)
        elif op.code == _B.READ_VARIABLE:
            self._read_variable(op)
        else:
            variable = self._find_variable(op, 2, self._handles)
            _check_type(variable, self._file.tensor(op.inputs[1]))
            variable.now = self._network.place(op.inputs[1])

    def _read_variable(self, op: RawOperator) -> None:
        network, variable = self._network, self._find_variable(op, 1, self._handles)
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
            shaped = network.place(op.outputs[0])
            network.ops.append(Op(OpKind.RESHAPE, (variable.now,), (shaped,), index=op.index))

    def _call_once(self, op: RawOperator) -> None:
        """Takes the initial values out of the subgraph that CALL_ONCE runs."""
        options = op.options(tflite.CallOnceOptions)
        number = int(options.InitSubgraphIndex()) if options is not None else -1
        if not 0 < number < self._file.subgraphs:
            raise ModelError(f"CALL_ONCE of subgraph {number}; the file has {self._file.subgraphs}")
        if number in self._initialised:
            return
        self._initialised.add(number)
        file, handles = FlatFile(self._file.data, number), _Handles()
        for inner in file.operators:
            try:
                self._initial(file, inner, handles)
            except BuildtoolError as error:
                raise error.at(operator=f"subgraph {number}, {inner.place}") from error.__cause__

    def _initial(self, file: FlatFile, op: RawOperator, handles: _Handles) -> None:
        """One operator of the subgraph that CALL_ONCE runs."""
        if op.code == _B.VAR_HANDLE:
            self._name(op, handles)
            return
        if op.code != _B.ASSIGN_VARIABLE:
            raise UnsupportedError("CALL_ONCE runs more than assignments of constants", hint=_INIT)
        variable, value = self._find_variable(op, 2, handles), file.tensor(op.inputs[1])
        if not value.is_constant:
            raise UnsupportedError("a variable's first value is computed", tensor=value.name, hint=_INIT)
        _check_type(variable, value)
        if variable.now >= 0:
            hint = "let CALL_ONCE come before what reads or assigns the variable"
            raise UnsupportedError(f"variable '{variable.name}' has its first value too late", hint=hint)
        variable.initial = value

    def read_marked(self, raw: RawTensor, number: int) -> int:
        """The value of a tensor marked as variable, as our tensor; `number`: our tensor for its first use."""
        if raw.index not in self._marked:
            if raw.is_constant:
                text = "a variable tensor with a value in the file, which LiteRT does not load"
                raise UnsupportedError(text, tensor=raw.name)
            _check_kept(raw, "a variable tensor")
            # as LiteRT sets it: int8 to its zero point, everything else to 0
            zero = raw.quant.zero_point if raw.quant and raw.dtype == DType.INT8 else 0
            initial = np.full(raw.shape, zero, raw.dtype)
            self._marked[raw.index] = State(number, number, initial, raw.name)
        return self._marked[raw.index].after

    def update(self, raw: RawTensor, number: int) -> None:
        """Lets our tensor `number` be the new value of a tensor that is marked as variable."""
        state = self._marked[raw.index]
        if state.before != state.after:
            hint = "give each operator a variable tensor of its own"
            raise UnsupportedError("state that several operators write", tensor=raw.name, hint=hint)
        self._marked[raw.index] = State(state.before, number, state.initial, state.name)

    def states(self) -> list[State]:
        """The network's states; UnsupportedError for a variable that is read before it has a value."""
        states = list(self._marked.values())
        for variable in self._known.values():
            if variable.before < 0:
                continue  # assigned before it is read, in every invoke: nothing is kept
            tensor = self._network.tensors[variable.before]
            if variable.initial is None:
                text = f"variable '{variable.name}' is read before it has a value"
                hint = "initialise it: CALL_ONCE of a subgraph that assigns a constant"
                raise UnsupportedError(text, tensor=tensor.name, hint=hint)
            value = variable.initial.array().reshape(tensor.shape)
            states.append(State(variable.before, variable.now, value, variable.name))
        return states


def _check_type(variable: _Variable, raw: RawTensor) -> None:
    """Refuses floats, and a variable that has two types."""
    _check_kept(raw, f"variable '{variable.name}' is")
    first = variable.initial
    if first is not None and (first.dtype != raw.dtype or first.elements != raw.elements):
        types = " and ".join(f"{t.dtype} {list(t.shape)}" for t in (first, raw))
        text = f"variable '{variable.name}' has two types: {types}"
        hint = "give it one shape and one type wherever it is initialised, read and assigned"
        raise UnsupportedError(text, tensor=raw.name, hint=hint)


def _check_kept(raw: RawTensor, what: str) -> None:
    """Refuses a type that no state can have."""
    if raw.dtype not in STATE_TYPES:
        hint = ANEW if raw.dtype == DType.UINT8 else QUANTISED
        raise UnsupportedError(f"{what} of type {raw.dtype}", tensor=raw.name, hint=hint)
