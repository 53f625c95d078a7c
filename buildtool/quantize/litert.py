"""Runs a float .tflite network in LiteRT, and quantises it by ai-edge-quantizer, in the child process."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version
from typing import Any

import ai_edge_litert
import flatbuffers
import numpy as np
import numpy.typing as npt
from ai_edge_litert import schema_py_generated as schema
from ai_edge_litert.interpreter import Interpreter
from ai_edge_quantizer import quantizer, recipe
from ai_edge_quantizer.calibrator import Calibrator
from ai_edge_quantizer.utils.qsv_utils import min_max_update

from buildtool.base.errors import UnsupportedError
from buildtool.graph.tflite.writer import BUFFER_ALIGNMENT

Array = npt.NDArray[np.generic]
_RECIPES = {"int8": recipe.static_wi8_ai8, "int16": recipe.static_wi8_ai16}
_LAST_OLD_CODE = 127
_KEY = b"serving_default"  # of a signature that is added
_TYPE = schema.TensorType
_NARROW = {_TYPE.INT8: np.int8, _TYPE.FLOAT16: np.float16}  # types of weights that become float32


class Network:
    """A network with float32 weights and a signature, which the quantizer needs."""

    def __init__(self, data: bytes, activations: str) -> None:
        model = unpack(data)
        widen_weights(model)
        check_constants(model)
        signature = find_signature(model)
        self._key = _text(signature.signatureKey)
        names = {int(one.tensorIndex): _text(one.name) for one in signature.inputs}
        self._names = [names[int(t)] for t in model.subgraphs[0].inputs]
        self._data = pack(model)
        self._activations = activations
        self._interpreter = Interpreter(model_content=self._data, num_threads=1)
        self._interpreter.allocate_tensors()

    @property
    def versions(self) -> str:
        """The names and versions of the libraries."""
        return f"ai-edge-quantizer {version('ai-edge-quantizer')}, LiteRT {ai_edge_litert.__version__}"

    def run(self, arrays: Sequence[Array]) -> list[Array]:
        """Returns the network's outputs for one input; `arrays` has an array for each network input."""
        interpreter = self._interpreter
        interpreter.reset_all_variables()
        for about, array in zip(interpreter.get_input_details(), arrays, strict=True):
            interpreter.set_tensor(about["index"], array.reshape(about["shape"]))
        interpreter.invoke()
        return [interpreter.get_tensor(about["index"]) for about in interpreter.get_output_details()]

    def quantise(self, samples: Iterable[Sequence[Array]]) -> bytes:
        """Returns the quantised file. A tensor's range is the least and the greatest value in all samples.

        By default, the quantizer would average the ranges, and the result would depend on the samples' order.
        """
        work = quantizer.Quantizer(self._data, _RECIPES[self._activations]())
        calibrator = Calibrator(self._data, num_threads=1, qsv_update_func=min_max_update)
        for arrays in samples:
            sample = dict(zip(self._names, arrays, strict=True))
            calibrator.calibrate({self._key: [sample]}, work._recipe_manager)
        ranges = calibrator.get_model_qsvs()
        check_ranges(ranges)
        result = work.quantize(ranges, enable_progress_report=False)
        return pack(unpack(bytes(result.quantized_model or b"")))


def check_constants(model: Any) -> None:
    """Raises UnsupportedError if a float32 constant of the first subgraph has infinite values or NaN."""
    for tensor in model.subgraphs[0].tensors:
        if tensor.type == _TYPE.FLOAT32 and _is_constant(model, tensor):
            values = np.asarray(model.buffers[tensor.buffer].data, np.uint8).view(np.float32)
            if not np.isfinite(values).all():
                text = f"the constant '{_text(tensor.name)}' has values that are not finite"
                raise UnsupportedError(text)


def check_ranges(ranges: Mapping[str, Mapping[str, Any]]) -> None:
    """Raises UnsupportedError if a tensor's values are too far apart for a float32 scale.

    The quantizer ignores values beyond 3e38. If a tensor has only such values, the least one is above the
    greatest one.
    """
    for name, ends in ranges.items():
        low, high = (np.asarray(ends.get(end, 0), np.float64) for end in ("min", "max"))
        span = high - low
        if not ((span >= 0) & (span <= np.finfo(np.float32).max)).all():
            text = f"the values of '{name}' are too large, or too far apart, for a scale of float32"
            raise UnsupportedError(text)


def unpack(data: bytes) -> Any:
    """Returns a file's tables as objects. Values that lie behind the flatbuffer are moved into it.

    The quantizer writes files of more than 256 KiB with such values.
    """
    model = schema.ModelT.InitFromPackedBuf(data, 0)
    for buffer in model.buffers:
        if buffer.offset > 1:
            buffer.data = np.frombuffer(data, np.uint8, buffer.size, buffer.offset)
        buffer.offset = buffer.size = 0
    return model


def pack(model: Any) -> bytes:
    """Returns the file of a model. Values that no tensor or metadata uses any more are left out."""
    tensors = [tensor for graph in model.subgraphs for tensor in graph.tensors]
    used = {one.buffer for one in (*tensors, *(model.metadata or []))}
    for number, buffer in enumerate(model.buffers):
        buffer.data = buffer.data if number in used else None
    for code in model.operatorCodes:  # also where old programs look for it
        code.deprecatedBuiltinCode = min(code.builtinCode, _LAST_OLD_CODE)
    builder = _Builder(1 << 16)
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())


class _Builder(flatbuffers.Builder):  # type: ignore[misc]  # the package has no types
    """A builder that aligns the values of constants, as the schema demands. The generated code does not."""

    def StartVector(self, size: int, count: int, alignment: int) -> int:
        """Begins a vector. A vector of bytes is aligned, as it may be a constant."""
        return int(super().StartVector(size, count, BUFFER_ALIGNMENT if size == 1 else alignment))


def _text(name: bytes | str) -> str:
    return name.decode() if isinstance(name, bytes) else name


def find_signature(model: Any) -> Any:
    """Returns a signature of the first subgraph that names all its inputs; adds one if there is none."""
    graph = model.subgraphs[0]
    inputs = {int(t) for t in graph.inputs}
    for signature in model.signatureDefs or []:
        if not signature.subgraphIndex and {int(one.tensorIndex) for one in signature.inputs or []} == inputs:
            return signature
    added = schema.SignatureDefT()
    added.signatureKey, added.subgraphIndex = _KEY, 0
    added.inputs = [_name_tensor(f"input{i}", t) for i, t in enumerate(graph.inputs)]
    added.outputs = [_name_tensor(f"output{i}", t) for i, t in enumerate(graph.outputs)]
    model.signatureDefs = [added]
    return added


def _name_tensor(name: str, tensor: int) -> Any:
    named = schema.TensorMapT()
    named.name, named.tensorIndex = name, int(tensor)
    return named


def widen_weights(model: Any) -> None:
    """Converts int8 and float16 weights of the first subgraph to the float32 values that they represent.

    DEQUANTIZEs of such weights are removed.
    """
    graph = model.subgraphs[0]
    for one in model.operatorCodes:  # old files fill only the deprecated field
        one.builtinCode = max(one.builtinCode, one.deprecatedBuiltinCode)
    replaced: dict[int, int] = {}  # the result of a DEQUANTIZE -> its constant
    kept = []
    for op in _list(graph.operators):
        code = model.operatorCodes[op.opcodeIndex].builtinCode
        source = int(op.inputs[0]) if code == schema.BuiltinOperator.DEQUANTIZE else -1
        if source >= 0 and _is_constant(model, graph.tensors[source]):
            replaced[int(op.outputs[0])] = source
        else:
            kept.append(op)
    graph.operators = kept
    for op in kept:
        op.inputs = np.array([replaced.get(int(t), int(t)) for t in _list(op.inputs)], np.int32)
        for t in {int(t) for t in op.inputs if t >= 0}:
            _widen(model, graph.tensors[t])


def _list(vector: Any) -> Any:
    return [] if vector is None else vector


def _is_constant(model: Any, tensor: Any) -> bool:
    data = model.buffers[tensor.buffer].data
    return data is not None and len(data) > 0


def _widen(model: Any, tensor: Any) -> None:
    """Converts a constant to float32 if its type is in _NARROW."""
    if tensor.type not in _NARROW or not _is_constant(model, tensor):
        return
    quant = tensor.quantization
    raw = np.asarray(model.buffers[tensor.buffer].data, np.uint8).view(_NARROW[tensor.type])
    values = raw.reshape(tensor.shape).astype(np.float32)
    if tensor.type == _TYPE.INT8:
        if quant is None or quant.scale is None or quant.details is not None:
            raise UnsupportedError(f"the weights '{_text(tensor.name)}' are integers without a scale")
        shape = [1] * values.ndim
        if len(quant.scale) > 1:
            shape[quant.quantizedDimension] = -1
        points = np.asarray(quant.zeroPoint, np.float32).reshape(shape)
        values = (values - points) * np.asarray(quant.scale, np.float32).reshape(shape)
    buffer = schema.BufferT()
    buffer.data = np.frombuffer(values.astype("<f4").tobytes(), np.uint8)
    model.buffers.append(buffer)
    tensor.buffer, tensor.type, tensor.quantization = len(model.buffers) - 1, _TYPE.FLOAT32, None
