"""Writes .tflite files field by field, well formed or not, as converters (and attackers) write them.

Unlike the product's writer it knows no graphs: the test chooses masks, axes, signatures and options.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as schema

TYPES = {name.lower(): code for name, code in vars(schema.TensorType).items() if isinstance(code, int)}


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
    data = np.asarray(values, dtype)
    return FileTensor(data.shape, dtype, data, **{"scale": None, **kwargs})


def write(
    tensors, operators, inputs, outputs, *, deprecated=True, version=3, subgraphs=1, others=()
) -> bytes:
    """Returns the file's bytes. `deprecated`: operator codes only in the old field, if they fit; else only in
    the new one.

    `others`: more subgraphs (tensors, operators), such as the one that CALL_ONCE runs.
    """
    parts = [(tensors, operators, inputs, outputs), *((*other, (), ()) for other in others)]
    codes = list(dict.fromkeys((o.kind, o.custom, o.version) for part in parts for o in part[1]))
    buffers, graphs = [schema.BufferT()], []
    for number, (own, ops, sources, results) in enumerate(parts):
        graph = schema.SubGraphT(inputs=list(sources), outputs=list(results))
        graph.name = "NoOp" if number else "main"
        graph.tensors = [_make_tensor(t, f"t{i}", buffers) for i, t in enumerate(own)]
        graph.operators = [_make_operator(o, codes.index((o.kind, o.custom, o.version))) for o in ops]
        graphs.append(graph)
    builder = flatbuffers.Builder(1024)
    model = schema.ModelT(version, [_make_code(*code, deprecated) for code in codes])
    model.subgraphs, model.buffers = [*graphs[:1] * subgraphs, *graphs[1:]], buffers
    builder.Finish(model.Pack(builder), file_identifier=b"TFL3")
    return bytes(builder.Output())


def _make_tensor(t: FileTensor, name: str, buffers: list[schema.BufferT]) -> schema.TensorT:
    """Returns a tensor, after adding the buffer of its data."""
    place = 0 if t.buffer is None else t.buffer
    if t.data is not None or t.buffer_offset:
        place = len(buffers) if t.buffer is None else t.buffer
        data = None if t.data is None else np.frombuffer(t.data.tobytes(), np.uint8)
        buffers.append(schema.BufferT(data, t.buffer_offset, 16 if t.buffer_offset else 0))
    quant = schema.QuantizationParametersT(quantizedDimension=t.axis)
    quant.scale, quant.zeroPoint = (np.atleast_1d(np.asarray(v)).tolist() for v in (t.scale, t.zero))
    made = schema.TensorT(list(t.shape), TYPES[t.dtype], place, t.name or name, isVariable=t.variable)
    made.quantization = None if t.scale is None else quant
    made.shapeSignature = None if t.signature is None else list(t.signature)
    return made


def _make_operator(o: FileOperator, code: int) -> schema.OperatorT:
    made = schema.OperatorT(code, list(o.inputs), list(o.outputs))
    if o.options_class:
        made.builtinOptionsType = getattr(schema.BuiltinOptions, o.options_class)
        made.builtinOptions = getattr(schema, f"{o.options_class}T")()
        for name, value in o.options.items():
            field = name[0].lower() + name[1:]
            assert hasattr(made.builtinOptions, field), (o.options_class, name)
            setattr(made.builtinOptions, field, value)
    made.customOptions = list(o.data) or None
    return made


def _make_code(kind: str, custom: str, version: int, deprecated: bool) -> schema.OperatorCodeT:
    code = getattr(schema.BuiltinOperator, kind)
    made = schema.OperatorCodeT(version=version, customCode=custom or None)
    if deprecated or code > 127:
        made.deprecatedBuiltinCode = min(code, 127)
    if not deprecated or code > 127:
        made.builtinCode = code
    return made
