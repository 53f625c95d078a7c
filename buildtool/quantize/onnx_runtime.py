"""Runs a float ONNX network in onnxruntime, and quantises it by onnxruntime, in the child process."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnxruntime
from onnxruntime import quantization
from onnxruntime.quantization.shape_inference import quant_pre_process

from buildtool.graph.onnx.file import fix_input, parse_model

Array = npt.NDArray[np.generic]


class Network:
    """A float network that is run for one input at a time."""

    def __init__(self, data: bytes, activations: str) -> None:
        model = parse_model(data)
        constants = {tensor.name for tensor in model.graph.initializer}
        inputs = [value for value in model.graph.input if value.name not in constants]
        for value in inputs:
            fix_input(value, "")
        del model.graph.value_info[:]  # shapes for other batches
        self._names = [str(value.name) for value in inputs]
        self._data = model.SerializeToString()
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.log_severity_level = 1, 3
        self._session = onnxruntime.InferenceSession(self._data, options, ["CPUExecutionProvider"])

    @property
    def versions(self) -> str:
        """The name and version of the library."""
        return f"onnxruntime {onnxruntime.__version__}"

    def run(self, arrays: Sequence[Array]) -> list[Array]:
        """Returns the network's outputs for one input; `arrays` has an array for each network input."""
        return list(self._session.run(None, dict(zip(self._names, arrays, strict=True))))

    def quantise(self, samples: Iterable[Sequence[Array]]) -> bytes:
        """Returns the quantised file (QDQ).

        A tensor's range is from the least to the greatest value in all samples.
        """
        with tempfile.TemporaryDirectory() as name:
            float_file, prepared, result = (
                Path(name, f"{step}.onnx") for step in ("float", "prepared", "int8")
            )
            float_file.write_bytes(self._data)
            quant_pre_process(str(float_file), str(prepared), skip_symbolic_shape=True)
            quantization.quantize_static(
                str(prepared),
                str(result),
                _Reader(dict(zip(self._names, arrays, strict=True)) for arrays in samples),
                quant_format=quantization.QuantFormat.QDQ,
                per_channel=True,
                activation_type=quantization.QuantType.QInt8,
                weight_type=quantization.QuantType.QInt8,
            )
            return result.read_bytes()


class _Reader(quantization.CalibrationDataReader):  # type: ignore[misc]  # the package has no types
    """Gives onnxruntime the samples one by one."""

    def __init__(self, samples: Iterator[dict[str, Array]]) -> None:
        self._samples = samples

    def get_next(self) -> Any:
        """Returns the next sample, None after the last one."""
        return next(self._samples, None)
