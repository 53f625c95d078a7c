"""Imports Keras on a chosen backend, and reads, writes and converts networks.

On one machine, the same training gives the same bits. A .keras file is written whole or not at all, with the
same bytes for the same network. TensorFlow's converter makes an int8 .tflite file from it, whose bytes depend
only on the network and the calibration images.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import logging
import os
import struct
import subprocess
import sys
import tempfile
import warnings
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import tflite

from buildtool.base import outfiles
from buildtool.base.errors import MachineError, ModelError, ToolError, UsageError
from buildtool.base.locks import scratch
from buildtool.split.graphs import each_after

BACKENDS = ("tensorflow", "torch", "jax")
EXTRA = "pip install keras tensorflow-cpu pillow h5py"
Images = npt.NDArray[np.float32]
_NO_MEMORY = ("RESOURCE_EXHAUSTED", "out of memory", "OOM when allocating")
_SAVE = "save it with Keras 3: model.save('network.keras')"
_TIME = (1980, 1, 1, 0, 0, 0)  # the earliest time that a .zip file can store


def prepare() -> Any:
    """Returns the module keras, with deterministic operators.

    Its backend is the one in KERAS_BACKEND, or TensorFlow if that is not set. Call this function before
    anything else imports Keras. Raises ToolError if a package is not installed.
    """
    name = os.environ.get("KERAS_BACKEND") or BACKENDS[0]
    if name not in BACKENDS:
        raise UsageError(f"'{name}' is not a backend of Keras", option="backend", hint=", ".join(BACKENDS))
    if "keras" not in sys.modules:
        os.environ["KERAS_BACKEND"] = name
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # else cuBLAS sums in any order
        if name == "jax":
            flags = os.environ.get("XLA_FLAGS", "")
            os.environ["XLA_FLAGS"] = f"{flags} --xla_gpu_deterministic_ops=true".strip()
    try:
        import keras
    except ImportError as error:
        package = error.name or name
        hint = EXTRA if package in ("keras", "tensorflow") else f"pip install {package}"
        raise ToolError(f"training needs {package}, which is not installed", hint=hint) from None
    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        tf.get_logger().setLevel("ERROR")  # no warnings for every new network
        tf.config.experimental.enable_op_determinism()  # sums are in a fixed order
    elif keras.backend.backend() == "torch":
        import torch

        torch.use_deterministic_algorithms(True, warn_only=True)  # a few operators have none
        torch.backends.cudnn.benchmark = False
    return keras


def is_out_of_memory(error: BaseException) -> bool:
    """Whether a backend's error means that memory is used up; each backend has its own exception."""
    return isinstance(error, MemoryError) or any(words in str(error) for words in _NO_MEMORY)


def array(variable: Any) -> Any:
    """Returns a variable's value as a NumPy array, whatever the backend."""
    import keras

    tensor = keras.ops.convert_to_tensor(variable.value)  # NumPy 2 warns of TensorFlow's variables
    return np.asarray(keras.ops.convert_to_numpy(tensor))


def digest(model: Any) -> str:
    """Returns the SHA-256 (hex) of a network's structure and weights, the same in every process."""
    total = hashlib.sha256(_dump_config(model.to_json()))
    for variable in model.weights:
        value = array(variable)
        total.update(repr((value.shape, str(value.dtype))).encode())
        total.update(np.ascontiguousarray(value).tobytes())
    return total.hexdigest()


# ---- .keras files ----------------------------------------------------------------------------------


def pack_model(model: Any) -> bytes:
    """Returns a network as a .keras file, without the time of writing and without an optimiser."""
    with scratch() as folder:
        path = Path(folder) / "network.keras"
        try:
            model.save(path, include_optimizer=False)
        except OSError as error:  # from h5py, whose message differs from the system's
            text = f"the network cannot be written to a temporary file: {str(error).splitlines()[0]}"
            hint = "free space there, or name another folder for temporary files (TMPDIR)"
            raise MachineError(text, path=folder, hint=hint) from None
        stream = io.BytesIO()
        with zipfile.ZipFile(path) as archive, zipfile.ZipFile(stream, "w") as repacked:
            for name in sorted(archive.namelist()):
                data = archive.read(name)
                if name == "metadata.json":
                    data = json.dumps({**json.loads(data), "date_saved": ""}, sort_keys=True).encode()
                elif name == "config.json":
                    data = _dump_config(data)
                elif name == "model.weights.h5":
                    data = _strip_optimiser(data)
                repacked.writestr(zipfile.ZipInfo(name, _TIME), data)
    return stream.getvalue()


def save(model: Any, path: Path) -> None:
    """Writes a network to a .keras file. Raises MachineError or UsageError if that fails."""
    outfiles.write({path.name: pack_model(model)}, path.parent)


def load(path: Path) -> Any:
    """Loads the network of a .keras file without compiling it.

    Raises UsageError if the file does not exist, ModelError for other files and for networks with Lambda
    layers.
    """
    keras = prepare()
    if not path.is_file():
        raise UsageError("there is no such file", path=str(path), option="network")
    if not zipfile.is_zipfile(path):
        raise ModelError("this is not a .keras file, or it is damaged", path=str(path), hint=_SAVE)
    try:
        return keras.saving.load_model(path, compile=False, safe_mode=True)
    except Exception as error:  # Keras raises many kinds of errors
        if is_out_of_memory(error):
            raise
        first = (str(error).strip().splitlines() or [type(error).__name__])[0]
        text, hint = f"Keras cannot read this network: {first[:200]}", _SAVE
        if "Lambda" in first:
            text = "the network has a Lambda layer, whose code is not run"
            hint = "put a layer of Keras in its place, such as Rescaling, and save the network again"
        raise ModelError(text, path=str(path), hint=hint) from None


def _dump_config(text: str | bytes) -> bytes:
    """Returns a network's structure as JSON: the same text for the same structure, in every process."""
    config = {**json.loads(text), "compile_config": None}
    return json.dumps(_renumber(config, {}), sort_keys=True).encode()


def _renumber(value: Any, numbers: dict[int, int]) -> Any:
    """Renames the shared objects in plain values to 1, 2 and so on. Keras names them by memory address."""
    if isinstance(value, list):
        return [_renumber(one, numbers) for one in value]
    if not isinstance(value, dict):
        return value
    plain = {key: _renumber(value[key], numbers) for key in sorted(value) if key != "shared_object_id"}
    # Whether a DTypePolicy is written as shared depends on how the network was built, and means the same.
    if (address := value.get("shared_object_id")) is not None and value.get("class_name") != "DTypePolicy":
        plain["shared_object_id"] = numbers.setdefault(address, len(numbers) + 1)
    return plain


def _strip_optimiser(data: bytes) -> bytes:
    """Removes the optimiser's variables from a file of weights. Keras always writes them."""
    import h5py

    stream = io.BytesIO()
    with h5py.File(io.BytesIO(data)) as source, h5py.File(stream, "w") as weights:
        for name in sorted(source):
            if name != "optimizer":
                source.copy(name, weights)
        weights.attrs.update(source.attrs)
    return stream.getvalue()


# ---- .tflite files ---------------------------------------------------------------------------------


_OPERATORS = 10  # offset of the field in the vtable of a subgraph: 4 + 2 * 3


def random_images(model: Any) -> Images:
    """Returns two images of random values from 0 to 1, for converting models whose weights do not matter."""
    shape = [1 if n is None else int(n) for n in model.inputs[0].shape[1:]]
    return np.random.default_rng(0).random((2, *shape), dtype=np.float32)


def int8_model(model: Any, images: Images) -> bytes:
    """Converts a model to an int8 .tflite file, calibrated on images [N, height, width, channels].

    Raises ToolError if TensorFlow is not installed, or cannot convert the model.
    """
    import keras

    if keras.backend.backend() != "tensorflow":
        return _convert_in_child(model, images)
    import tensorflow as tf

    with silence():
        try:
            converter = tf.lite.TFLiteConverter.from_keras_model(model)
            converter.optimizations = [tf.lite.Optimize.DEFAULT]
            converter.representative_dataset = lambda: ([image[None]] for image in images)
            converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
            converter.inference_input_type = converter.inference_output_type = tf.int8
            return in_order(bytes(converter.convert()))
        except Exception as error:  # many kinds, with pages of text
            first = str(error).strip().partition("\n")[0]
            raise ToolError(f"TensorFlow's converter refuses the model: {first}") from error


def _convert_in_child(model: Any, images: Images) -> bytes:
    """Converts in a child process where Keras runs on TensorFlow: the converter supports no other backend."""
    with scratch() as folder:
        root = Path(folder)
        save(model, root / "model.keras")
        np.save(root / "images.npy", images)
        command = [sys.executable, "-m", "buildtool.split.backend", folder]
        environment = os.environ | {"KERAS_BACKEND": "tensorflow"}
        process = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        file = root / "model.tflite"
        if process.returncode or not file.is_file():
            lines = process.stderr.strip().splitlines() or ["it printed no error"]
            hint = f"convert on a machine that has TensorFlow: {EXTRA}"
            raise ToolError(f"TensorFlow's converter failed: {lines[-1]}", hint=hint)
        return file.read_bytes()


@contextlib.contextmanager
def silence() -> Iterator[None]:
    """Discards what TensorFlow and its C++ code write to standard output and standard error.

    It also turns off TensorFlow's warnings about speed for the rest of the process.
    """

    def flush() -> None:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(AttributeError, OSError, ValueError):
                stream.flush()

    logging.getLogger("tensorflow").setLevel(logging.ERROR)
    flush()
    with (
        warnings.catch_warnings(action="ignore"),
        tempfile.TemporaryFile() as sink,
        contextlib.ExitStack() as stack,
        contextlib.redirect_stdout(io.StringIO()),  # Python's own streams
        contextlib.redirect_stderr(io.StringIO()),
    ):
        for number in (1, 2):
            copy = os.dup(number)
            stack.callback(os.close, copy)
            stack.callback(os.dup2, copy, number)
            os.dup2(sink.fileno(), number)
        stack.callback(flush)
        yield


def in_order(data: bytes) -> bytes:
    """Moves every operator of a .tflite file right before the first operator that needs it.

    Then branches run one after the other. TensorFlow's converter orders independent operators by their names,
    and a plan keeps the file's order. If the first convolutions of all branches came first, all their outputs
    would be in memory at once. Only the offsets in the vector of operators change. A file with several
    subgraphs, or with operators that no output depends on, stays as it is.
    """
    model = tflite.Model.GetRootAs(data, 0)
    if model.SubgraphsLength() != 1:
        return data
    graph = model.Subgraphs(0)
    operators = [graph.Operators(index) for index in range(graph.OperatorsLength())]
    makers = {one.Outputs(i): at for at, one in enumerate(operators) for i in range(one.OutputsLength())}

    def reads(at: int) -> list[int]:
        tensors = [operators[at].Inputs(i) for i in range(operators[at].InputsLength())]
        return [makers[tensor] for tensor in tensors if tensor in makers]

    outputs = [graph.Outputs(i) for i in range(graph.OutputsLength())]
    order = each_after([makers[tensor] for tensor in outputs if tensor in makers], reads)
    if len(order) != len(operators):
        return data
    first = graph._tab.Vector(graph._tab.Offset(_OPERATORS))
    slots = [first + 4 * index for index in range(len(order))]
    tables = [slot + struct.unpack_from("<I", data, slot)[0] for slot in slots]
    ordered = bytearray(data)
    for slot, index in zip(slots, order, strict=True):
        if tables[index] <= slot:  # the offset is unsigned, but this file has its tables before the vector
            return data
        struct.pack_into("<I", ordered, slot, tables[index] - slot)
    return bytes(ordered)


if __name__ == "__main__":  # the child process of `_convert_in_child`
    folder_ = Path(sys.argv[1])
    file_ = int8_model(load(folder_ / "model.keras"), np.load(folder_ / "images.npy"))
    (folder_ / "model.tflite").write_bytes(file_)
