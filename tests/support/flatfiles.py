"""Writes .tflite files field by field, well formed or not, as converters (and attackers) write them.

Unlike the product's writer it knows no graphs: the test chooses masks, axes, signatures and options.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import flatbuffers
import numpy as np
import tflite

TYPES = {name.lower(): code for name, code in vars(tflite.TensorType).items() if isinstance(code, int)}


@dataclass
class FileTensor:
    """A tensor. `data` makes it a constant. `scale` and `zero` may be lists (per channel)."""

    shape: Sequence[int]
    dtype: str = "int8"
    data: np.ndarray | None = None
    scale: float | Sequence[float] | None = 0.5
    zero: int | Sequence[int] = 0
    axis: int = 0
    signature: Sequence[int] | None = None
    variable: bool = False
    name: str = ""
    buffer: int | None = None
    buffer_offset: int = 0


@dataclass
class FileOperator:
    """An operator. `options`: fields of `options_class`; lists become vectors of int32."""

    kind: str
    inputs: Sequence[int]
    outputs: Sequence[int]
    options_class: str = ""
    options: dict = field(default_factory=dict)
    custom: str = ""
    version: int = 1
    data: bytes = b""  # a custom operator's options


def constant(values, dtype: str = "int32", **kwargs) -> FileTensor:
    """A constant without quantisation."""
    data = np.asarray(values, dtype)
    return FileTensor(data.shape, dtype, data, **{"scale": None, **kwargs})


def write(
    tensors, operators, inputs, outputs, *, deprecated=True, version=3, subgraphs=1, others=()
) -> bytes:
    """Returns the file's bytes. `deprecated`: operator codes only in the old field, if they fit; else only in
    the new one.

    `others`: more subgraphs (tensors, operators), such as the one that CALL_ONCE runs.
    """
    builder = flatbuffers.Builder(1024)
    buffers = [_write_table(builder, "Buffer")]
    parts = [(tensors, operators, inputs, outputs), *((*other, (), ()) for other in others)]
    codes = list(dict.fromkeys((o.kind, o.custom, o.version) for part in parts for o in part[1]))
    names = ["main", *["NoOp"] * len(others)]
    graphs = [
        _write_subgraph(builder, *part, codes, buffers, name) for part, name in zip(parts, names, strict=True)
    ]
    model = _write_table(
        builder,
        "Model",
        Version=version,
        OperatorCodes=_write_offsets(builder, [_write_code(builder, *c, deprecated) for c in codes]),
        Subgraphs=_write_offsets(builder, [*graphs[:1] * subgraphs, *graphs[1:]]),
        Buffers=_write_offsets(builder, buffers),
    )
    builder.Finish(model, file_identifier=b"TFL3")
    return bytes(builder.Output())


def _write_subgraph(builder, tensors, operators, inputs, outputs, codes, buffers, name) -> int:
    places = []
    for t in tensors:
        places.append(0)
        if t.data is not None or t.buffer_offset:
            places[-1] = len(buffers)
            fields = {"Offset": t.buffer_offset, "Size": 16 if t.buffer_offset else 0}
            if t.data is not None:
                fields["Data"] = builder.CreateNumpyVector(np.frombuffer(t.data.tobytes(), np.uint8))
            buffers.append(_write_table(builder, "Buffer", **fields))
    offsets = [_write_tensor(builder, t, i, places[i]) for i, t in enumerate(tensors)]
    ops = [_write_operator(builder, o, codes.index((o.kind, o.custom, o.version))) for o in operators]
    return _write_table(
        builder,
        "SubGraph",
        Tensors=_write_offsets(builder, offsets),
        Inputs=_write_ints(builder, inputs),
        Outputs=_write_ints(builder, outputs),
        Operators=_write_offsets(builder, ops),
        Name=builder.CreateString(name),
    )


def _write_tensor(builder, t: FileTensor, index: int, place: int) -> int:
    fields = {
        "Shape": _write_ints(builder, t.shape),
        "Type": TYPES[t.dtype],
        "Buffer": place if t.buffer is None else t.buffer,
        "Name": builder.CreateString(t.name or f"t{index}"),
        "IsVariable": t.variable,
    }
    if t.signature is not None:
        fields["ShapeSignature"] = _write_ints(builder, t.signature)
    if t.scale is not None:
        scales = np.atleast_1d(np.asarray(t.scale, np.float32))
        zeros = np.atleast_1d(np.asarray(t.zero, np.int64))
        fields["Quantization"] = _write_table(
            builder,
            "QuantizationParameters",
            Scale=builder.CreateNumpyVector(scales),
            ZeroPoint=builder.CreateNumpyVector(zeros),
            QuantizedDimension=t.axis,
        )
    return _write_table(builder, "Tensor", **fields)


def _write_option(builder, value):
    if isinstance(value, str):
        return builder.CreateString(value)
    return _write_ints(builder, value) if isinstance(value, list | tuple) else value


def _write_operator(builder, o: FileOperator, code: int) -> int:
    fields = {
        "OpcodeIndex": code,
        "Inputs": _write_ints(builder, o.inputs),
        "Outputs": _write_ints(builder, o.outputs),
    }
    if o.options_class:
        options = {name: _write_option(builder, value) for name, value in o.options.items()}
        fields["BuiltinOptionsType"] = getattr(tflite.BuiltinOptions, o.options_class)
        fields["BuiltinOptions"] = _write_table(builder, o.options_class, **options)
    if o.data:
        fields["CustomOptions"] = builder.CreateByteVector(o.data)
    return _write_table(builder, "Operator", **fields)


def _write_code(builder, kind: str, custom: str, version: int, deprecated: bool) -> int:
    code = getattr(tflite.BuiltinOperator, kind)
    fields = {"Version": version}
    if deprecated or code > 127:
        fields["DeprecatedBuiltinCode"] = min(code, 127)
    if not deprecated or code > 127:
        fields["BuiltinCode"] = code
    if custom:
        fields["CustomCode"] = builder.CreateString(custom)
    return _write_table(builder, "OperatorCode", **fields)


def _write_table(builder, cls: str, **fields) -> int:
    getattr(tflite, f"{cls}Start")(builder)
    for name, value in fields.items():
        getattr(tflite, f"{cls}Add{name}")(builder, value)
    return getattr(tflite, f"{cls}End")(builder)


def _write_ints(builder, values) -> int:
    return builder.CreateNumpyVector(np.asarray(list(values), np.int32))


def _write_offsets(builder, offsets) -> int:
    builder.StartVector(4, len(offsets), 4)
    for offset in reversed(offsets):
        builder.PrependUOffsetTRelative(offset)
    return builder.EndVector()
