"""Reads the tables of a .tflite file within bounds, without interpreting them.

Every vector is charged to a budget in proportion to the file's size before it is read, and every table is
read once. So no file makes us allocate more than a constant times its size.
Low-level exceptions of the accessors pass through; `reader.read_model` turns them into ModelError.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from struct import Struct, unpack_from
from struct import error as struct_error
from typing import Any

import numpy as np
import numpy.typing as npt
from flatbuffers.number_types import Int32Flags
from flatbuffers.table import Table

from buildtool.base.errors import ModelError, UnsupportedError
from buildtool.graph.tflite.schema import tflite
from buildtool.graph.types import DType, Quantization

Accessor = Any  # an object of the generated schema package, which has no types
MAX_FILE = 1 << 30  # bytes
MAX_TENSORS = 1 << 16
MAX_OPERATORS = 1 << 14
MAX_INTERFACE = 256  # most network inputs, and most outputs
MAX_NAME = 200  # bytes; longer names are cut
MAX_RAW_RANK = 16
# Damaged bytes raise these in the accessors and in numpy. Other errors are faults of this program.
MALFORMED = (struct_error, IndexError, TypeError, ValueError, OverflowError)
OUTSIDE = "the tensor's value is outside the flatbuffer"
_MODEL_BUFFERS = 12  # the vector of buffers, by its place in the list of the model's fields
_SLACK = 1 << 16  # bytes; every file gets this much budget in addition


class _Slot:
    """The positions of fields in the vtables (lists of fields) of TFLite's schema."""

    GRAPH_TENSORS, GRAPH_INPUTS, GRAPH_OUTPUTS, GRAPH_NAME = 4, 6, 8, 12
    OP_INPUTS, OP_OUTPUTS, INTERMEDIATES = 6, 8, 20
    CUSTOM_CODE, BUILTIN_CODE = 6, 10
    SHAPE, TYPE, BUFFER, NAME, QUANTIZATION, IS_VARIABLE, SPARSITY, SIGNATURE = range(4, 20, 2)
    SCALE, ZERO_POINT, DETAILS_TYPE, QUANTIZED_DIMENSION = 8, 10, 12, 16
    DATA, OFFSET, SIZE = 4, 6, 8


def _names_by_code(table: Accessor) -> dict[int, str]:
    """Returns {code: name} for an enumeration of the schema."""
    return {code: name for name, code in vars(table).items() if isinstance(code, int)}


BUILTIN_NAMES = _names_by_code(tflite.BuiltinOperator)
TYPE_NAMES = {code: name.lower() for code, name in _names_by_code(tflite.TensorType).items()}
HALF_BYTES = "int4"
_NUMPY = {str(dtype): np.dtype(dtype.value).newbyteorder("<") for dtype in DType}


@dataclass(frozen=True, eq=False)
class RawTensor:
    """A tensor of the file. `dtype` is TFLite's name of the type in lower case."""

    index: int
    name: str
    shape: tuple[int, ...]
    dtype: str
    quant: Quantization | None
    quant_details: bool  # whether the quantisation is custom or blockwise
    dynamic: bool  # whether a dimension other than the first is not fixed
    variable: bool
    sparse: bool
    data: npt.NDArray[np.uint8] | None  # the constant's bytes

    @property
    def elements(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def is_constant(self) -> bool:
        """Whether the file contains the tensor's value."""
        return self.data is not None

    def array(self) -> npt.NDArray[np.generic]:
        """Returns the constant's value as a read-only array, which uses the file's bytes without a copy.

        Elements of 4 bits become int8.
        """
        assert self.data is not None
        if self.dtype == HALF_BYTES:
            return self._unpack(self.data)
        if self.dtype not in _NUMPY:
            raise UnsupportedError(f"a constant of type {self.dtype}", tensor=self.name)
        dtype = _NUMPY[self.dtype]
        # before numpy sees the shape: a hostile one overflows numpy's arithmetic
        needed = self.elements * dtype.itemsize
        if len(self.data) != needed:
            shape = f"its shape {list(self.shape)} of {self.dtype} needs {needed}"
            raise ModelError(f"the constant has {len(self.data)} bytes; {shape}", tensor=self.name)
        return self.data.view(dtype).reshape(self.shape)

    def _unpack(self, data: npt.NDArray[np.uint8]) -> npt.NDArray[np.int8]:
        """Returns elements of 4 bits, two in a byte, the first one in its lower half."""
        needed = (self.elements + 1) // 2
        if len(data) != needed:
            shape = f"its shape {list(self.shape)} of {self.dtype} needs {needed}"
            raise ModelError(f"the constant has {len(data)} bytes; {shape}", tensor=self.name)
        halves = np.stack([data << 4, data & 0xF0], axis=1).view(np.int8) >> 4
        values = halves.reshape(-1)[: self.elements].reshape(self.shape)
        values.flags.writeable = False
        return values


@dataclass(frozen=True, eq=False)
class RawOperator:
    """An operator of the file. `name` is TFLite's name, for a custom operator `CUSTOM(...)` with its code."""

    index: int
    code: int
    name: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    table: Accessor
    custom: str = ""

    @property
    def place(self) -> str:
        """The operator's name in error messages, e.g. "#12 CONV_2D"."""
        return f"#{self.index} {self.name}"

    def options(self, cls: type[Accessor]) -> Accessor:
        """Returns the options as an accessor of class `cls`, None if they have another class."""
        is_of_class = self.table.BuiltinOptionsType() == getattr(tflite.BuiltinOptions, cls.__name__)
        union = self.table.BuiltinOptions() if is_of_class else None
        if union is None:
            return None
        options = cls()
        options.Init(union.Bytes, union.Pos)
        return quick(options)


def printable(raw: bytes) -> str:
    """Returns bytes of the file as text. Characters that cannot be printed become '?'."""
    return "".join(c if c.isprintable() else "?" for c in raw.decode("utf-8", errors="replace"))


class FlatFile:
    """One subgraph of a .tflite file, by default the first: its tensors, operators, inputs and outputs."""

    def __init__(self, data: bytes, number: int = 0, *, outside: bool = False) -> None:
        """Reads subgraph `number` of the file `data`.

        With `outside`, constants may also lie behind the flatbuffer.
        """
        self._outside = outside
        if len(data) > MAX_FILE:
            raise ModelError(f"the file has {len(data)} bytes, more than {MAX_FILE}")
        if len(data) < 8 or bytes(data[4:8]) != b"TFL3":
            hint = "use a .tflite file of version 3, or an ONNX file whose name ends in .onnx"
            raise ModelError("not a TensorFlow Lite file (no TFL3 identifier)", hint=hint)
        self.data = data
        self._budget = 2 * len(data) + _SLACK
        self._model = quick(tflite.Model.GetRootAs(data, 0))
        if self._model.Version() != 3:
            raise ModelError(f"schema version {self._model.Version()}, expected 3")
        self.subgraphs: int = self._charge(self._model.SubgraphsLength(), 4)
        if self.subgraphs == 0:
            raise ModelError("the file has no subgraph")
        self._buffers: int = self._charge(self._model.BuffersLength(), 4)
        self._graph = quick(self._model.Subgraphs(number))
        self.tensor_count = self._count_tables("Tensors", MAX_TENSORS)
        self._tensors: dict[int, RawTensor] = {}
        self._quants: dict[int, Quantization | None] = {}
        self.name = self._read_text(self._graph._tab, _Slot.GRAPH_NAME)
        self.inputs = self._read_ints(self._graph._tab, _Slot.GRAPH_INPUTS)
        self.outputs = self._read_ints(self._graph._tab, _Slot.GRAPH_OUTPUTS)
        if max(len(self.inputs), len(self.outputs)) > MAX_INTERFACE:
            sizes = f"{len(self.inputs)} network inputs, {len(self.outputs)} outputs"
            raise ModelError(f"{sizes}: more than {MAX_INTERFACE}")
        self.operators = self._read_operators()

    def tensor(self, index: int) -> RawTensor:
        """Returns the tensor `index`, which is read from the file only once."""
        if not 0 <= index < self.tensor_count:
            raise ModelError(f"tensor index {index} is outside the file's {self.tensor_count} tensors")
        if index not in self._tensors:
            self._tensors[index] = self._read_tensor(index)
        return self._tensors[index]

    def set_shape(self, index: int, shape: tuple[int, ...]) -> None:
        """Replaces the shape of a tensor that is not constant. The new shape is not dynamic."""
        tensor = self.tensor(index)
        if not tensor.is_constant and (tensor.shape != shape or tensor.dynamic):
            self._tensors[index] = replace(tensor, shape=shape, dynamic=False)

    def intermediates(self, op: RawOperator) -> tuple[int, ...]:
        """Returns the tensors that give the quantisation of an operator's intermediate values."""
        return self._read_ints(op.table._tab, _Slot.INTERMEDIATES)

    def custom_options(self, op: RawOperator) -> bytes:
        """Returns the bytes of a custom operator's options."""
        count = self._charge(op.table.CustomOptionsLength(), 1)
        return bytes(op.table.CustomOptionsAsNumpy()) if count else b""

    def _charge(self, count: int, width: int) -> int:
        """Subtracts the bytes of `count` elements of `width` bytes from the budget. Returns `count`.

        Refuses the file if the budget is exceeded.
        """
        if count < 0 or count * width > len(self.data):
            raise ModelError(f"a vector of {count} elements does not fit in the file")
        self._budget -= count * width
        if self._budget < 0:
            raise ModelError("the file's vectors overlap: they are longer in total than the file")
        return int(count)

    def _read_text(self, table: "QuickTable", slot: int) -> str:
        """Returns the string in field `slot` of `table`, cut to MAX_NAME bytes.

        Characters that cannot be printed become '?'.
        """
        start, length = table.vector(slot)
        if start + length > len(self.data):
            raise ModelError("a string reaches beyond the end of the file")
        raw = bytes(self.data[start : start + min(length, MAX_NAME)])
        self._charge(len(raw), 1)
        return printable(raw)

    def _read_ints(self, table: "QuickTable", slot: int) -> tuple[int, ...]:
        """Returns the vector of int32 in field `slot` of `table`."""
        start, count = table.vector(slot)
        return unpack_from(f"<{self._charge(count, 4)}i", self.data, start) if count else ()

    def _count_tables(self, field: str, most: int) -> int:
        """Returns the number of tables in the subgraph's vector `field`. Refuses more than `most`."""
        count = self._charge(getattr(self._graph, f"{field}Length")(), 4)
        if count > most:
            raise ModelError(f"{count} {field.lower()}, more than {most}")
        return count

    def _read_operators(self) -> tuple[RawOperator, ...]:
        codes: list[tuple[int, str, str]] = []  # (code, name, custom code)
        for i in range(self._charge(self._model.OperatorCodesLength(), 4)):
            entry = quick(self._model.OperatorCodes(i))
            # Old files fill only the deprecated field, and some new files only the other one, which the
            # package's accessor then ignores.
            place = entry._tab.Offset(_Slot.BUILTIN_CODE)
            code = int(entry._tab.Get(Int32Flags, entry._tab.Pos + place)) if place else 0
            code = max(code, int(entry.DeprecatedBuiltinCode()))
            name = BUILTIN_NAMES.get(code, f"operator code {code}")
            custom = (
                self._read_text(entry._tab, _Slot.CUSTOM_CODE)
                if code == tflite.BuiltinOperator.CUSTOM
                else ""
            )
            if code == tflite.BuiltinOperator.CUSTOM:
                name = f"CUSTOM({custom})"
            codes.append((code, name, custom))
        operators: list[RawOperator] = []
        for i in range(self._count_tables("Operators", MAX_OPERATORS)):
            table = quick(self._graph.Operators(i))
            opcode = table.OpcodeIndex()
            if opcode >= len(codes):
                raise ModelError(f"operator code index {opcode} is outside the file's {len(codes)} codes")
            inputs, outputs = (
                self._read_ints(table._tab, slot) for slot in (_Slot.OP_INPUTS, _Slot.OP_OUTPUTS)
            )
            code, name, custom = codes[opcode]
            operators.append(RawOperator(i, code, name, inputs, outputs, table, custom))
        return tuple(operators)

    def _read_tensor(self, index: int) -> RawTensor:
        table = self._graph._tab.tables(_Slot.GRAPH_TENSORS, index)
        name = self._read_text(table, _Slot.NAME) or f"tensor{index}"
        shape = self._read_ints(table, _Slot.SHAPE)
        if len(shape) > MAX_RAW_RANK:
            raise ModelError(f"{len(shape)} dimensions, more than {MAX_RAW_RANK}", tensor=name)
        if any(n < 0 for n in shape):
            raise ModelError(f"negative dimension in shape {list(shape)}", tensor=name)
        quantization, quant = table.table(_Slot.QUANTIZATION), None
        details = quantization is not None and quantization.number(_Slot.DETAILS_TYPE, _BYTE) != 0
        if quantization is not None and not details:
            if quantization.Pos not in self._quants:
                self._quants[quantization.Pos] = self._read_quantization(quantization, name)
            quant = self._quants[quantization.Pos]
        signature = self._read_ints(table, _Slot.SIGNATURE)
        if len(signature) > MAX_RAW_RANK:
            raise ModelError(f"a shape signature of {len(signature)} dimensions", tensor=name)
        code = table.number(_Slot.TYPE, _SIGNED)
        return RawTensor(
            index=index,
            name=name,
            shape=shape,
            dtype=TYPE_NAMES.get(code, f"type {code}"),
            quant=quant,
            quant_details=details,
            dynamic=-1 in signature[1:] or (-1 in signature and len(signature) != len(shape)),
            variable=table.number(_Slot.IS_VARIABLE, _BYTE) != 0,
            sparse=table.Offset(_Slot.SPARSITY) != 0,
            data=self._read_buffer(table.number(_Slot.BUFFER, _PLACE), name),
        )

    def _read_quantization(self, entry: "QuickTable", name: str) -> Quantization | None:
        """Returns a tensor's quantisation, None if it has no scale, as in TFLite."""
        first, count = entry.vector(_Slot.SCALE)
        if self._charge(count, 4) == 0:
            return None
        start, zeros = entry.vector(_Slot.ZERO_POINT)
        if self._charge(zeros, 8) not in (1, count):
            raise ModelError(f"{count} scales, but {zeros} zero points", tensor=name)
        scales = unpack_from(f"<{count}f", self.data, first)
        points = unpack_from(f"<{zeros}q", self.data, start)
        points = points if zeros == count else points * count
        return Quantization(scales, points, entry.number(_Slot.QUANTIZED_DIMENSION, _BACK))

    def _read_buffer(self, index: int, name: str) -> npt.NDArray[np.uint8] | None:
        """Returns the bytes of buffer `index` without a copy, None if it is empty, as for activations."""
        if index >= self._buffers:
            raise ModelError(f"buffer {index} is outside the file's {self._buffers} buffers", tensor=name)
        table = self._model._tab.tables(_MODEL_BUFFERS, index)
        begin, size = (table.number(slot, _LONG) for slot in (_Slot.OFFSET, _Slot.SIZE))
        if begin > 1 and self._outside:
            if begin + self._charge(size, 1) > len(self.data):
                raise ModelError("a constant reaches beyond the end of the file", tensor=name)
            return np.frombuffer(self.data, np.uint8, size, begin)
        if begin > 1 or size > 1:
            hint = "convert the model without `experimental_use_buffer_offset`"
            raise UnsupportedError(OUTSIDE, tensor=name, hint=hint)
        start, count = table.vector(_Slot.DATA)
        if count == 0:
            return None
        view = np.frombuffer(self.data, np.uint8, count, start)
        view.flags.writeable = False
        return view


_COUNT, _PLACE, _BACK = (Struct(code).unpack_from for code in ("<H", "<I", "<i"))
_FIELDS = [Struct(f"<{count}H").unpack_from for count in range(65)]  # no table of the schema has more fields
_BYTE, _SIGNED, _LONG = (Struct(code).unpack_from for code in ("<B", "<b", "<Q"))
Reader = Callable[[bytes, int], tuple[Any, ...]]  # reads a number at a place


class QuickTable(Table):  # type: ignore[misc]  # the package has no types
    """A flatbuffer table that reads its list of fields (vtable) only once."""

    __slots__ = ("_fields",)

    def __init__(self, data: bytes, place: int) -> None:
        super().__init__(data, place)
        fields = _check_place(place - _BACK(data, _check_place(place))[0])
        size = min(_COUNT(data, fields)[0] // 2, len(_FIELDS) - 1)
        self._fields: tuple[int, ...] = _FIELDS[size](data, fields)

    def Offset(self, field: int) -> int:
        """Returns the place of a field in the table, 0 if the table does not have it."""
        index = field >> 1
        return self._fields[index] if index < len(self._fields) else 0

    def Get(self, flags: Any, place: int) -> Any:
        """Returns the number of type `flags` at `place`."""
        return flags.packer_type.unpack_from(self.Bytes, _check_place(place))[0]

    def number(self, slot: int, read: Reader) -> int:
        """Returns the number in `slot` as `read` reads it, 0 if the table does not have it."""
        place = self.Offset(slot)
        return int(read(self.Bytes, _check_place(self.Pos + place))[0]) if place else 0

    def vector(self, slot: int) -> tuple[int, int]:
        """Returns the place of the first element of the vector in `slot`, and the number of its elements."""
        place = self.Offset(slot)
        if not place:
            return 0, 0
        start = self.Vector(place)
        return start, int(_PLACE(self.Bytes, start - 4)[0])

    def table(self, slot: int) -> "QuickTable | None":
        """Returns the table in `slot`, None if there is none."""
        place = self.Offset(slot)
        return self._follow(self.Pos + place) if place else None

    def tables(self, slot: int, index: int) -> "QuickTable":
        """Returns the table `index` of the vector in `slot`."""
        return self._follow(self.vector(slot)[0] + 4 * index)

    def _follow(self, place: int) -> "QuickTable":
        return QuickTable(self.Bytes, place + int(_PLACE(self.Bytes, _check_place(place))[0]))

    def VectorLen(self, field: int) -> int:
        """Returns the number of elements in the vector that a field points to."""
        return int(_PLACE(self.Bytes, self.Vector(field) - 4)[0])

    def Vector(self, field: int) -> int:
        """Returns the place of the first element in the vector that a field points to."""
        place = _check_place(self.Pos + field)
        return place + int(_PLACE(self.Bytes, place)[0]) + 4


def _check_place(place: int) -> int:
    """Returns `place`. Raises TypeError if it is negative.

    Python would count a negative place from the end of the file.
    """
    if place < 0:
        raise TypeError("an offset points before the start of the file")
    return place


def quick(accessor: Accessor) -> Accessor:
    """Makes an accessor of the schema package use a QuickTable. Returns the accessor."""
    table = getattr(accessor, "_tab")  # noqa: B009 - the class is not known here
    setattr(accessor, "_tab", QuickTable(table.Bytes, table.Pos))  # noqa: B010
    return accessor
