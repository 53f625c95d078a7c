"""Writes a graph as a .tflite file. The same graph gives the same bytes."""

import itertools
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import flatbuffers
import numpy as np
import numpy.typing as npt

from buildtool.base.errors import UnsupportedError
from buildtool.graph.geometry import attributes
from buildtool.graph.ops import DEFS, STATEFUL
from buildtool.graph.ops.types import Plain, load
from buildtool.graph.tflite.fileops import ACTIVATIONS, TYPE_CODES, FileOp, Lowering, OptionValue, Variable
from buildtool.graph.tflite.schema import functions, tflite
from buildtool.graph.types import Activation, AsUint8, AxisAttrs, DType, Graph, Op, OpKind, Tensor

BUFFER_ALIGNMENT = 16  # bytes; alignment of constants, as in files of TFLite's own writers

_SCHEMA_VERSION = 3
_LAST_DEPRECATED_CODE = 127  # greater operator codes do not fit the old one-byte field


def write_model(graph: Graph) -> bytes:
    """Returns the graph as a .tflite file. Raises UnsupportedError if the format cannot express it.

    Tensors keep their indices; parameter tensors (axes, paddings, shapes, ...) follow them. Explicit padding
    becomes SAME or VALID if it is equal to one of them, otherwise a PAD operator.
    """
    low = _lower(graph)
    handles = frozenset(variable.handle for variable in low.variables.values())
    parts = [_Part(graph.name, low.tensors, low.ops, graph.inputs, graph.outputs, low.variable, handles)]
    parts += [_make_initialiser(low)] if low.variables else []
    return _File(low).model(parts)


# ---- operators ---------------------------------------------------------------------------------------


def _lower(graph: Graph) -> Lowering:
    """Converts all operators to operators of the file. Raises UnsupportedError if .tflite cannot express one.

    Resource variables are read before all other operators and assigned after them.
    """
    low = Lowering(graph, list(graph.tensors), [])
    _begin_states(low)
    copies: dict[int, int] = {}  # output of an ASSIGN_VARIABLE -> its input
    for op in graph.ops:
        if op.kind is not OpKind.ASSIGN_VARIABLE:
            low.ops.append(_lower_op(low, op))
            continue
        copies[op.outputs[0]] = op.inputs[0]
        if graph.consumers().get(op.outputs[0]) or op.outputs[0] in graph.outputs:
            raise UnsupportedError("a variable is read after it is assigned", operator=op.place)
    for state in graph.states:
        if state.before in low.variables and state.after != state.before:
            low.ops.append(_assign(low.variables[state.before].handle, copies.get(state.after, state.after)))
    return low


def _lower_op(low: Lowering, op: Op) -> FileOp:
    written = DEFS[op.kind].written
    if isinstance(op.attrs, AsUint8):
        text = "it has the arithmetic of a uint8 operator, such as a filter with a zero point: not written"
        raise UnsupportedError(text, operator=op.place)
    if written is None:
        text = f".tflite has no operator for {op.kind}"
        hint = "" if DEFS[op.kind].onnx else "write the network before it is rewritten"
        raise UnsupportedError(text, operator=op.place, hint=hint)
    if isinstance(written, Plain):
        options = {name: getattr(op.attrs, attribute) for name, attribute in written.fields.items()}
        parameters = [low.parameter(op, r, getattr(op.attrs, name)) for r, name in written.parameters.items()]
        inputs = (*op.inputs, *parameters)
        return FileOp(op.kind, written.version, inputs, op.outputs, written.table(op.kind), options)
    file_op: FileOp = load("graph.tflite", written)(low, op)
    return file_op


def _begin_states(low: Lowering) -> None:
    """Adds a VAR_HANDLE and a READ_VARIABLE for each state that becomes a variable.

    The states of SVDF and LSTM become tensors that are marked as variable instead.
    """
    graph, names = low.graph, set[str]()
    operands = {
        op.inputs[operand]
        for op in graph.ops
        if op.kind is not OpKind.SHIFT
        for operand in STATEFUL.get(op.kind, {})
    }
    low.variable = frozenset(operands.intersection(state.before for state in graph.states))
    for index, state in enumerate(graph.states):
        if state.before not in low.variable:
            name = state.name if state.name and state.name not in names else f"state{index}"
            names.add(name)
            before = graph.tensors[state.before]
            low.tensors.append(Tensor(f"{name}/handle", (), DType.INT32))
            initial = replace(before, name=f"{name}/initial", data=state.initial, source=None)
            low.variables[state.before] = Variable(name, initial, len(low.tensors) - 1)
    if low.variables:
        low.ops.append(FileOp("CALL_ONCE", 1, (), (), "CallOnceOptions", {"InitSubgraphIndex": 1}))
    for tensor, variable in low.variables.items():
        low.ops += [_var_handle(variable.name, variable.handle), _read(variable.handle, tensor)]


def _var_handle(name: str, handle: int) -> FileOp:
    return FileOp("VAR_HANDLE", 1, (), (handle,), "VarHandleOptions", {"Container": "", "SharedName": name})


def _read(handle: int, result: int) -> FileOp:
    return FileOp("READ_VARIABLE", 1, (handle,), (result,), "ReadVariableOptions")


def _assign(handle: int, source: int) -> FileOp:
    return FileOp("ASSIGN_VARIABLE", 1, (handle, source), (), "AssignVariableOptions")


def write_read_variable(low: Lowering, op: Op) -> FileOp:
    """Writes READ_VARIABLE. It reads the old value, because all assignments come last."""
    if op.inputs[0] not in low.variables:
        raise UnsupportedError("READ_VARIABLE of a tensor that is not a variable", operator=op.place)
    return _read(low.variables[op.inputs[0]].handle, op.outputs[0])


def write_shift(low: Lowering, op: Op) -> FileOp:
    """Writes SHIFT as a SLICE, which takes the end of the old value, and a CONCATENATION with new values."""
    axis = attributes(op, AxisAttrs).axis
    old, new = (low.graph.tensors[t] for t in op.inputs)
    begin = [new.shape[axis] if d == axis else 0 for d in range(len(old.shape))]
    extent = [n - at for n, at in zip(old.shape, begin, strict=True)]
    tail = low.tensor(op, "tail", extent, old)
    inputs = (op.inputs[0], low.parameter(op, "begin", begin), low.parameter(op, "size", extent))
    low.ops.append(FileOp("SLICE", 2, inputs, (tail,), "SliceOptions"))
    return FileOp(
        "CONCATENATION", 2, (tail, op.inputs[1]), op.outputs, "ConcatenationOptions", {"Axis": axis}
    )


# ---- tables ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Part:
    """A subgraph of the file.

    `variable`: tensors that are marked as variable. `handles`: tensors that name variables.
    """

    name: str
    tensors: Sequence[Tensor]
    ops: Sequence[FileOp]
    inputs: Sequence[int] = ()
    outputs: Sequence[int] = ()
    variable: frozenset[int] = frozenset()
    handles: frozenset[int] = frozenset()


def _make_initialiser(low: Lowering) -> _Part:
    """Returns the subgraph that CALL_ONCE runs. Tensor 2i names variable i; tensor 2i + 1 is its value."""
    tensors: list[Tensor] = []
    ops: list[FileOp] = []
    for handle, variable in zip(itertools.count(step=2), low.variables.values(), strict=False):
        tensors += [low.tensors[variable.handle], variable.initial]
        ops += [_var_handle(variable.name, handle), _assign(handle, handle + 1)]
    return _Part("NoOp", tensors, ops, handles=frozenset(range(0, len(tensors), 2)))


Code = tuple[int, int, str]  # number, version, name of a custom operator


def _find_code(op: FileOp) -> Code:
    return int(getattr(tflite.BuiltinOperator, op.builtin)), op.version, op.custom


class _File:
    """A flatbuffer under construction. Methods that add a table or a vector return its offset."""

    def __init__(self, low: Lowering) -> None:
        size = sum(t.size for t in low.tensors if t.is_constant)
        self._builder = flatbuffers.Builder(size + 256 * (len(low.tensors) + len(low.ops)) + 1024)

    def model(self, parts: Sequence[_Part]) -> bytes:
        """Returns the whole file."""
        buffers, buffer_of = self._add_buffers([t for part in parts for t in part.tensors])
        codes = sorted({_find_code(op) for part in parts for op in part.ops})
        numbers = iter(buffer_of)
        subgraphs = [self._add_subgraph(part, codes, numbers) for part in parts]
        tables = []
        for code, version, custom in codes:
            narrow = min(code, _LAST_DEPRECATED_CODE)
            fields = {"DeprecatedBuiltinCode": narrow, "Version": version, "BuiltinCode": code}
            fields |= {"CustomCode": int(self._builder.CreateString(custom))} if custom else {}
            tables.append(self._add_table("OperatorCode", **fields))
        model = self._add_table(
            "Model",
            Version=_SCHEMA_VERSION,
            OperatorCodes=self._add_offsets(tables),
            Subgraphs=self._add_offsets(subgraphs),
            Description=self._builder.CreateString("buildtool"),
            Buffers=self._add_offsets(buffers),
        )
        self._builder.Finish(model, file_identifier=b"TFL3")
        return bytes(self._builder.Output())

    def _add_subgraph(self, part: _Part, codes: Sequence[Code], buffers: Iterator[int]) -> int:
        """Adds a subgraph. `buffers` yields the buffer number of each of its tensors."""
        tensors = []
        for i, t in enumerate(part.tensors):
            dtype = tflite.TensorType.RESOURCE if i in part.handles else TYPE_CODES[t.dtype]
            tensors.append(self._add_tensor(t, dtype, next(buffers), True if i in part.variable else None))
        operators = [self._add_operator(op, codes.index(_find_code(op))) for op in part.ops]
        return self._add_table(
            "SubGraph",
            Tensors=self._add_offsets(tensors),
            Inputs=self._add_ints(part.inputs),
            Outputs=self._add_ints(part.outputs),
            Operators=self._add_offsets(operators),
            Name=self._builder.CreateString(part.name),
        )

    def _add_table(self, name: str, **fields: OptionValue | None) -> int:
        """Adds a table of the schema with these fields (scalars and offsets), except fields that are None."""
        of_table = functions(name)
        getattr(of_table, f"{name}Start")(self._builder)
        for key, value in fields.items():
            if value is not None:
                getattr(of_table, f"{name}Add{key}")(self._builder, value)
        return int(getattr(of_table, f"{name}End")(self._builder))

    def _add_offsets(self, offsets: Sequence[int]) -> int:
        """Adds a vector of the tables at these offsets."""
        self._builder.StartVector(4, len(offsets), 4)
        for offset in reversed(offsets):
            self._builder.PrependUOffsetTRelative(offset)
        return int(self._builder.EndVector())

    def _add_ints(self, values: Sequence[int]) -> int:
        return self._add_vector(np.asarray(values, np.int32))

    def _add_vector(self, values: npt.NDArray[np.generic], alignment: int = 0) -> int:
        """Adds a vector of little-endian scalars. (CreateNumpyVector does not take an alignment.)"""
        data, builder = np.ascontiguousarray(values).reshape(-1), self._builder
        if sys.byteorder == "big":
            data = data.byteswap()
        size = data.dtype.itemsize
        builder.StartVector(size, data.size, max(alignment, size))
        builder.head = builder.head - data.nbytes
        builder.Bytes[builder.head : builder.head + data.nbytes] = data.tobytes()
        return int(builder.EndVector())

    def _add_buffers(self, tensors: Sequence[Tensor]) -> tuple[list[int], list[int]]:
        """Adds all buffers. Returns (tables, each tensor's buffer number). Activations have buffer 0."""
        tables, numbers = [self._add_table("Buffer")], []
        for tensor in tensors:
            numbers.append(0 if tensor.data is None else len(tables))
            if tensor.data is not None:  # an empty vector, such as the shape of a scalar, is also a constant
                raw = np.ascontiguousarray(tensor.data, tensor.dtype.value).tobytes()
                data = self._add_vector(np.frombuffer(raw, np.uint8), BUFFER_ALIGNMENT)
                tables.append(self._add_table("Buffer", Data=data))
        return tables, numbers

    def _add_tensor(self, tensor: Tensor, dtype: int, buffer: int, variable: bool | None) -> int:
        shape, name, quant = self._add_ints(tensor.shape), self._builder.CreateString(tensor.name), None
        if tensor.quant is not None:
            quant = self._add_table(
                "QuantizationParameters",
                Scale=self._add_vector(np.asarray(tensor.quant.scales, np.float32)),
                ZeroPoint=self._add_vector(np.asarray(tensor.quant.zero_points, np.int64)),
                QuantizedDimension=tensor.quant.axis,
            )
        return self._add_table(
            "Tensor",
            Shape=shape,
            Type=dtype,
            Buffer=buffer,
            Name=name,
            Quantization=quant,
            IsVariable=variable,
            HasRank=True,
        )

    def _convert_option(self, value: OptionValue) -> OptionValue:
        """Returns an option's value as its field in the option table: a scalar or an offset."""
        if isinstance(value, tuple):
            return self._add_ints(value)
        if isinstance(value, Activation):
            return ACTIVATIONS[value]
        if isinstance(value, DType):
            return TYPE_CODES[value]
        return int(self._builder.CreateString(value)) if isinstance(value, str) else value

    def _add_operator(self, op: FileOp, code: int) -> int:
        options_type = options = None
        if op.table:
            fields = {name: self._convert_option(value) for name, value in op.options.items()}
            options_type = int(getattr(tflite.BuiltinOptions, op.table))
            options = self._add_table(op.table, **fields)
        return self._add_table(
            "Operator",
            OpcodeIndex=code,
            Inputs=self._add_ints(op.inputs),
            Outputs=self._add_ints(op.outputs),
            BuiltinOptionsType=options_type,
            BuiltinOptions=options,
            CustomOptions=self._add_vector(np.frombuffer(op.data, np.uint8)) if op.data else None,
            Intermediates=self._add_ints(op.intermediates) if op.intermediates else None,
        )
