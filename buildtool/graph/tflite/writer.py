"""Writes a graph as a .tflite flatbuffer. The same graph gives the same bytes."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import flatbuffers
import numpy as np
import numpy.typing as npt

from buildtool.graph.tflite.fileops import FileOp, OptionValue
from buildtool.graph.tflite.lowering import lower
from buildtool.graph.tflite.schema import tflite
from buildtool.graph.types import DType, Graph, Quantization, Tensor

BUFFER_ALIGNMENT = 16  # bytes; of constants, as TFLite's own writers align them

_SCHEMA_VERSION = 3
_LAST_DEPRECATED_CODE = 127  # greater operator codes do not fit the old one-byte field
_TYPES = {DType.FLOAT32: 0, DType.INT32: 2, DType.UINT8: 3, DType.INT8: 9}


def write_model(graph: Graph) -> bytes:
    """The graph as a .tflite file.

    Tensors keep their indices; parameter tensors (axes, paddings, shapes, ...) follow them.
    Explicit padding becomes SAME or VALID where it means one of them, else a PAD operator.
    Raises UnsupportedError for what the format cannot express.
    """
    low = lower(graph)
    size = sum(t.size for t in low.tensors if t.is_constant)
    builder = flatbuffers.Builder(size + 256 * (len(low.tensors) + len(low.ops)) + 1024)
    buffers, buffer_of = _buffers(builder, low.tensors)
    codes = sorted({(_code(op), op.version) for op in low.ops})
    tensors = [_tensor(builder, t, buffer_of[i]) for i, t in enumerate(low.tensors)]
    operators = [_operator(builder, op, codes.index((_code(op), op.version))) for op in low.ops]
    subgraph = _table(
        builder,
        "SubGraph",
        Tensors=_offsets(builder, tensors),
        Inputs=_ints(builder, graph.inputs),
        Outputs=_ints(builder, graph.outputs),
        Operators=_offsets(builder, operators),
        Name=builder.CreateString(graph.name),
    )
    model = _table(
        builder,
        "Model",
        Version=_SCHEMA_VERSION,
        OperatorCodes=_offsets(builder, [_operator_code(builder, *code) for code in codes]),
        Subgraphs=_offsets(builder, [subgraph]),
        Description=builder.CreateString("buildtool"),
        Buffers=_offsets(builder, buffers),
    )
    builder.Finish(model, file_identifier=b"TFL3")
    return bytes(builder.Output())


def _code(op: FileOp) -> int:
    return int(getattr(tflite.BuiltinOperator, op.builtin))


def _table(builder: flatbuffers.Builder, name: str, **fields: OptionValue | None) -> int:
    """A schema table from its fields (scalars and offsets); None leaves one out."""
    getattr(tflite, f"{name}Start")(builder)
    for key, value in fields.items():
        if value is not None:
            getattr(tflite, f"{name}Add{key}")(builder, value)
    return int(getattr(tflite, f"{name}End")(builder))


def _offsets(builder: flatbuffers.Builder, offsets: Sequence[int]) -> int:
    """A vector of tables."""
    builder.StartVector(4, len(offsets), 4)
    for offset in reversed(offsets):
        builder.PrependUOffsetTRelative(offset)
    return int(builder.EndVector())


def _ints(builder: flatbuffers.Builder, values: Sequence[int]) -> int:
    return _vector(builder, np.asarray(values, np.int32))


def _vector(builder: flatbuffers.Builder, values: npt.NDArray[np.generic], alignment: int = 0) -> int:
    """A vector of scalars, little-endian; CreateNumpyVector knows no alignment, so by hand."""
    data = np.ascontiguousarray(values).reshape(-1)
    if sys.byteorder == "big":
        data = data.byteswap()
    size = data.dtype.itemsize
    builder.StartVector(size, data.size, max(alignment, size))
    builder.head = builder.head - data.nbytes
    builder.Bytes[builder.head : builder.head + data.nbytes] = data.tobytes()
    return int(builder.EndVector())


def _buffers(builder: flatbuffers.Builder, tensors: Sequence[Tensor]) -> tuple[list[int], list[int]]:
    """(buffer tables, buffer number of each tensor); buffer 0 is empty, for activations."""
    tables = [_table(builder, "Buffer")]
    numbers = []
    for tensor in tensors:
        if tensor.data is None:
            numbers.append(0)
            continue
        data = np.asarray(tensor.data, tensor.dtype.value)
        if data.size == 0:  # an empty vector, such as a scalar's shape, still has to be a constant
            data = np.zeros(0, np.uint8)
        numbers.append(len(tables))
        raw = np.frombuffer(np.ascontiguousarray(data).tobytes(), np.uint8)
        tables.append(_table(builder, "Buffer", Data=_vector(builder, raw, BUFFER_ALIGNMENT)))
    return tables, numbers


def _quantization(builder: flatbuffers.Builder, quant: Quantization) -> int:
    scale = _vector(builder, np.asarray(quant.scales, np.float32))
    zero_point = _vector(builder, np.asarray(quant.zero_points, np.int64))
    return _table(
        builder,
        "QuantizationParameters",
        Scale=scale,
        ZeroPoint=zero_point,
        QuantizedDimension=quant.axis,
    )


def _tensor(builder: flatbuffers.Builder, tensor: Tensor, buffer: int) -> int:
    return _table(
        builder,
        "Tensor",
        Shape=_ints(builder, tensor.shape),
        Type=_TYPES[tensor.dtype],
        Buffer=buffer,
        Name=builder.CreateString(tensor.name),
        Quantization=None if tensor.quant is None else _quantization(builder, tensor.quant),
        HasRank=True,
    )


def _operator_code(builder: flatbuffers.Builder, code: int, version: int) -> int:
    return _table(
        builder,
        "OperatorCode",
        DeprecatedBuiltinCode=min(code, _LAST_DEPRECATED_CODE),
        Version=version,
        BuiltinCode=code,
    )


def _operator(builder: flatbuffers.Builder, op: FileOp, code: int) -> int:
    options_type = options = None
    if op.table:
        fields = {
            name: _ints(builder, value) if isinstance(value, tuple) else value
            for name, value in op.options.items()
        }
        options_type = int(getattr(tflite.BuiltinOptions, op.table))
        options = _table(builder, op.table, **fields)
    return _table(
        builder,
        "Operator",
        OpcodeIndex=code,
        Inputs=_ints(builder, op.inputs),
        Outputs=_ints(builder, op.outputs),
        BuiltinOptionsType=options_type,
        BuiltinOptions=options,
    )
