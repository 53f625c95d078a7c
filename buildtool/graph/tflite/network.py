"""The network while it is read from a .tflite file, and its state: variables and tensors marked as variable.

A variable's value becomes a tensor: the one that was assigned last, or the value at the start of the invoke.
So the graph has no operators for variables (`graph.states` describes state in memory). CALL_ONCE runs a
subgraph that assigns constants to variables; a subgraph with other operators is refused.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from buildtool.base.errors import BuildtoolError, ModelError, UnsupportedError
from buildtool.graph.quantrules import same_quantization
from buildtool.graph.states import QUANTISED, STATE_TYPES
from buildtool.graph.tflite.flat import HALF_BYTES, MAX_NAME, FlatFile, RawOperator, RawTensor, printable
from buildtool.graph.tflite.schema import tflite
from buildtool.graph.tflite.uint8 import RECONVERT_HINT
from buildtool.graph.types import DType, Op, OpKind, Source, State, Tensor

REEXPORT = (
    "re-export with full-integer int8 quantisation: "
    "converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8] "
    "and a representative dataset"
)
_UNSIGNED = "compute what has this type, such as a signal's features, in the application, before the network"
_B = tflite.BuiltinOperator
TYPES: frozenset[str] = frozenset(DType)  # of a tensor of the graph
_INIT = "the subgraph may only assign constants to variables, as in the files of TFLite's converter"


class Network:
    """The tensors and operators of the graph, as far as they have been read."""

    def __init__(self, file: FlatFile) -> None:
        self.file = file
        self.tensors: list[Tensor] = []
        self.ops: list[Op] = []
        self.places: dict[int, int] = {}  # the file's tensor -> the graph's tensor
        # By the file's tensor: values that are computed from shapes.
        self.known: dict[int, npt.NDArray[np.int64]] = {}
        self.variables = Variables(self)

    @cached_property
    def float_weights(self) -> int:
        """The number of weights (elements of constants) that operators read as float32."""
        weights = dict[int, int]()
        for op in self.file.operators:
            converts = op.name == OpKind.DEQUANTIZE
            for raw in (self.file.tensor(t) for t in op.inputs if t >= 0):
                if raw.is_constant and (converts or raw.dtype == DType.FLOAT32):
                    weights[raw.index] = raw.elements
        return sum(weights.values())

    def add(self, tensor: Tensor) -> int:
        """Adds a tensor; returns its number."""
        self.tensors.append(tensor)
        return len(self.tensors) - 1

    def place(self, index: int) -> int:
        """Returns the graph's tensor for the file's tensor `index`. Adds the tensor at its first use."""
        raw = self.file.tensor(index)
        if index not in self.places:
            self.places[index] = self.add(_convert_tensor(raw))
        return self.variables.read_marked(raw, self.places[index]) if raw.variable else self.places[index]


def hint_for(dtype: str) -> str:
    """Returns a hint for a type that no tensor of the graph may have."""
    return _UNSIGNED if dtype in ("uint16", "uint32", "uint64") else REEXPORT


def _convert_tensor(raw: RawTensor) -> Tensor:
    """Returns `raw` as a tensor of the graph. Refuses what a static integer network cannot have."""
    is_int4 = raw.dtype == HALF_BYTES and raw.is_constant
    dtype = "int8" if is_int4 else raw.dtype
    if dtype not in TYPES:
        raise UnsupportedError(f"a tensor of type {raw.dtype}", tensor=raw.name, hint=hint_for(raw.dtype))
    if raw.sparse:
        raise UnsupportedError("a sparse tensor", tensor=raw.name, hint="re-export without sparse storage")
    if raw.quant_details:
        raise UnsupportedError("a custom or blockwise quantisation", tensor=raw.name, hint=REEXPORT)
    if raw.dynamic and not raw.is_constant:
        hint = "re-export with a fixed input shape"
        raise UnsupportedError("the shape is only known at run time", tensor=raw.name, hint=hint)
    data = raw.array() if raw.is_constant else None
    if data is not None and raw.dtype == "bool":  # every byte except 0 means true
        data = np.asarray(data.view(np.uint8) != 0)
    if math.prod(raw.shape) == 0:
        raise UnsupportedError(f"the tensor has no elements: shape {list(raw.shape)}", tensor=raw.name)
    quant = None if raw.dtype == DType.FLOAT32 else raw.quant  # a file may have the range of a float32
    return Tensor(raw.name, raw.shape, DType(dtype), quant, data, Source(raw.index), is_int4)


# ---- state -----------------------------------------------------------------------------------------


@dataclass
class _Variable:
    """A resource variable.

    Tensor `before` is its value at the start of the invoke, and tensor `now` its present value. Both are -1
    if there is no such tensor.
    """

    name: str
    initial: RawTensor | None = None
    before: int = -1
    now: int = -1


_Handles = dict[int, _Variable]  # by the tensor of a subgraph that names the variable


class Variables:
    """The file's variables, with their values at the operator that is being read."""

    def __init__(self, network: Network) -> None:
        self._network, self._file = network, network.file
        self._handles: _Handles = {}
        self._variables: dict[tuple[str, str], _Variable] = {}  # by container and shared name
        self._marked: dict[int, State] = {}  # by the file's tensor
        self._owned: list[State] = []  # of operators whose state no tensor of the file has
        self._initialised: set[int] = set()  # subgraphs that CALL_ONCE has run

    def _read_handle(self, op: RawOperator, handles: _Handles) -> None:
        """Reads a VAR_HANDLE."""
        options = op.options(tflite.VarHandleOptions)
        if options is None or len(op.outputs) != 1:
            raise ModelError("a variable without a name")
        raw = options.Container(), options.SharedName()
        container, name = (printable(text[:MAX_NAME]) if isinstance(text, bytes) else "" for text in raw)
        handles[op.outputs[0]] = self._variables.setdefault((container, name), _Variable(name or "variable"))

    def _find_variable(self, op: RawOperator, count: int, handles: _Handles) -> _Variable:
        """Returns the variable that an operator's first input names.

        Raises ModelError if that input names no variable, or if the operator does not have `count` inputs.
        """
        if len(op.inputs) != count or op.inputs[0] not in handles:
            raise ModelError("the first input does not name a variable", hint=_INIT)
        return handles[op.inputs[0]]

    def read(self, op: RawOperator) -> None:
        """Reads an operator that initialises, names, reads or assigns variables."""
        if op.code == _B.CALL_ONCE:
            self._call_once(op)
        elif op.code == _B.VAR_HANDLE:
            self._read_handle(op, self._handles)
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
        value = network.tensors[variable.now]
        if value.elements != result.elements:
            text = f"variable '{variable.name}' has {value.elements} elements"
            raise ModelError(f"{text}, but is read as {list(result.shape)}", tensor=result.name)
        if value.shape == result.shape and same_quantization(value.quant, result.quant):
            network.places[op.outputs[0]] = variable.now
        else:
            reshaped = network.place(op.outputs[0])
            network.ops.append(Op(OpKind.RESHAPE, (variable.now,), (reshaped,), index=op.index))

    def _call_once(self, op: RawOperator) -> None:
        """Reads the initial values from the subgraph that CALL_ONCE runs."""
        options = op.options(tflite.CallOnceOptions)
        number = int(options.InitSubgraphIndex()) if options is not None else -1
        if not 0 < number < self._file.subgraphs:
            raise ModelError(f"CALL_ONCE runs subgraph {number}; the file has {self._file.subgraphs}")
        if number in self._initialised:
            return
        self._initialised.add(number)
        file, handles = FlatFile(self._file.data, number), _Handles()
        for inner in file.operators:
            try:
                self._read_initial(file, inner, handles)
            except BuildtoolError as error:
                raise error.at(operator=f"subgraph {number}, {inner.place}") from error.__cause__

    def _read_initial(self, file: FlatFile, op: RawOperator, handles: _Handles) -> None:
        """Reads one operator of the subgraph that CALL_ONCE runs."""
        if op.code == _B.VAR_HANDLE:
            self._read_handle(op, handles)
            return
        if op.code != _B.ASSIGN_VARIABLE:
            raise UnsupportedError("CALL_ONCE does more than assign constants to variables", hint=_INIT)
        variable, value = self._find_variable(op, 2, handles), file.tensor(op.inputs[1])
        if not value.is_constant:
            raise UnsupportedError(
                "the initial value of a variable is not a constant", tensor=value.name, hint=_INIT
            )
        _check_type(variable, value)
        if variable.now >= 0:
            hint = "put CALL_ONCE before the operators that read or assign the variable"
            raise UnsupportedError(f"CALL_ONCE initialises variable '{variable.name}' too late", hint=hint)
        variable.initial = value

    def read_marked(self, raw: RawTensor, number: int) -> int:
        """Returns the tensor with the present value of `raw`, which is marked as variable.

        Its value at the start of the invoke is the graph's tensor `number`.
        """
        if raw.index not in self._marked:
            if raw.is_constant:
                text = "a variable tensor has a value in the file; LiteRT ignores such a value"
                raise UnsupportedError(text, tensor=raw.name)
            _check_state_type(raw, "a variable tensor")
            # LiteRT sets int8 to its zero point, and all other types to 0
            zero = raw.quant.zero_point if raw.quant and raw.dtype == DType.INT8 else 0
            # without a byte per element: the file does not limit the shape
            initial = np.broadcast_to(np.asarray(zero, raw.dtype), raw.shape)
            self._marked[raw.index] = State(number, number, initial, raw.name)
        return self._marked[raw.index].after

    def update(self, raw: RawTensor, number: int) -> None:
        """Makes the graph's tensor `number` the present value of `raw`, which is marked as variable."""
        state = self._marked[raw.index]
        if state.before != state.after:
            hint = "use a separate variable tensor for each operator"
            raise UnsupportedError("several operators write the same state", tensor=raw.name, hint=hint)
        self._marked[raw.index] = State(state.before, number, state.initial, state.name)

    def replace(self, raw: RawTensor, before: int, after: int) -> None:
        """Replaces `raw`, which is marked as variable, by a state: the tensors `before` and `after`."""
        if raw.index in self._marked or not raw.variable or raw.is_constant:
            text = "the operator's state must be a variable tensor that no other operator uses"
            raise UnsupportedError(text, tensor=raw.name)
        tensor = self._network.tensors[before]
        assert tensor.quant is not None
        initial = np.broadcast_to(np.asarray(tensor.quant.zero_point, raw.dtype), tensor.shape)
        self._marked[raw.index] = State(before, after, initial, raw.name)

    def own(self, state: State) -> None:
        """Adds a state that no tensor of the file holds, because its operator keeps it itself."""
        self._owned.append(state)

    def states(self) -> list[State]:
        """Returns the network's states. Refuses a variable that is read before it has a value."""
        states = [*self._marked.values(), *self._owned]
        for variable in self._variables.values():
            if variable.before < 0:
                continue  # every invoke assigns it before it reads it, so it is not state
            tensor = self._network.tensors[variable.before]
            if variable.initial is None:
                text = f"variable '{variable.name}' is read before it has a value"
                hint = "initialise it: let CALL_ONCE run a subgraph that assigns a constant"
                raise UnsupportedError(text, tensor=tensor.name, hint=hint)
            value = variable.initial.array().reshape(tensor.shape)
            states.append(State(variable.before, variable.now, value, variable.name))
        return states


def _check_type(variable: _Variable, raw: RawTensor) -> None:
    """Refuses types that a state cannot have, and a tensor of another type or size than the initial value."""
    _check_state_type(raw, f"variable '{variable.name}' is")
    first = variable.initial
    if first is not None and (first.dtype != raw.dtype or first.elements != raw.elements):
        types = " and ".join(f"{t.dtype} {list(t.shape)}" for t in (first, raw))
        text = f"variable '{variable.name}' has two types: {types}"
        hint = "use one shape and one type to initialise, read and assign it"
        raise UnsupportedError(text, tensor=raw.name, hint=hint)


def _check_state_type(raw: RawTensor, what: str) -> None:
    """Refuses a type that state cannot have. `what` starts the message."""
    if raw.dtype not in STATE_TYPES:
        hint = RECONVERT_HINT if raw.dtype == DType.UINT8 else QUANTISED
        raise UnsupportedError(f"{what} of type {raw.dtype}", tensor=raw.name, hint=hint)
