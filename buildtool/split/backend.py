"""Keras, chosen before its import and repeatable to the bit on one machine, and its networks as .keras files.

A file is written whole or not at all, with the same bytes for the same network.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from buildtool.base import outfiles
from buildtool.base.errors import MachineError, ModelError, ToolError, UsageError
from buildtool.base.locks import scratch

BACKENDS = ("tensorflow", "torch", "jax")
EXTRA = "pip install keras tensorflow-cpu pillow h5py"
_NO_MEMORY = ("RESOURCE_EXHAUSTED", "out of memory", "OOM when allocating")
_SAVE = "save it with Keras 3: model.save('network.keras')"
_TIME = (1980, 1, 1, 0, 0, 0)  # the first one that a .zip file can say


def prepare() -> Any:
    """Keras, with deterministic operators; ToolError where it or its backend is not installed.

    The backend is the one in KERAS_BACKEND, or TensorFlow. It is called before anything else imports Keras.
    """
    wanted = os.environ.get("KERAS_BACKEND") or BACKENDS[0]
    if wanted not in BACKENDS:
        raise UsageError(f"'{wanted}' is no backend of Keras", option="backend", hint=", ".join(BACKENDS))
    if "keras" not in sys.modules:
        os.environ["KERAS_BACKEND"] = wanted
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # else cuBLAS sums in any order
        if wanted == "jax":
            flags = os.environ.get("XLA_FLAGS", "")
            os.environ["XLA_FLAGS"] = f"{flags} --xla_gpu_deterministic_ops=true".strip()
    try:
        import keras
    except ImportError as error:
        package = error.name or wanted
        hint = EXTRA if package in ("keras", "tensorflow") else f"pip install {package}"
        raise ToolError(f"training needs {package}, which is not installed", hint=hint) from None
    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        tf.get_logger().setLevel("ERROR")  # it warns of every network that is new
        tf.config.experimental.enable_op_determinism()  # sums are in a fixed order
    elif keras.backend.backend() == "torch":
        import torch

        torch.use_deterministic_algorithms(True, warn_only=True)  # few have no such twin
        torch.backends.cudnn.benchmark = False
    return keras


def is_out_of_memory(error: BaseException) -> bool:
    """Whether a backend's error says that memory is used up; each backend has an exception of its own."""
    return isinstance(error, MemoryError) or any(words in str(error) for words in _NO_MEMORY)


def array(variable: Any) -> Any:
    """A variable's value as a NumPy array, whatever the backend."""
    import keras

    return np.asarray(keras.ops.convert_to_numpy(variable.value))


def digest(model: Any) -> str:
    """SHA-256 (hex) of a network's structure and weights, the same in every process."""
    total = hashlib.sha256(_config(model.to_json()))
    for variable in model.weights:
        value = array(variable)
        total.update(repr((value.shape, str(value.dtype))).encode())
        total.update(np.ascontiguousarray(value).tobytes())
    return total.hexdigest()


# ---- .keras files ----------------------------------------------------------------------------------


def packed(model: Any) -> bytes:
    """A network as the bytes of a .keras file, without the time it was written at and without optimiser."""
    with scratch() as folder:
        path = Path(folder) / "network.keras"
        try:
            model.save(path, include_optimizer=False)
        except OSError as error:  # of h5py, with its own words for what the system said
            text = f"the network cannot be written to a temporary file: {str(error).splitlines()[0]}"
            hint = "free space there, or name another folder for temporary files (TMPDIR)"
            raise MachineError(text, path=folder, hint=hint) from None
        stream = io.BytesIO()
        with zipfile.ZipFile(path) as given, zipfile.ZipFile(stream, "w") as made:
            for name in sorted(given.namelist()):
                made.writestr(zipfile.ZipInfo(name, _TIME), _undated(name, given.read(name)))
    return stream.getvalue()


def save(model: Any, path: Path) -> None:
    """Writes a network to a .keras file; MachineError or UsageError where that fails."""
    outfiles.write({path.name: packed(model)}, path.parent)


def load(path: Path) -> Any:
    """The network of a .keras file, not compiled; ModelError for a file that is none.

    Code in the file (Lambda layers) is not run: such networks are refused.
    """
    keras = prepare()
    if not path.is_file():
        raise UsageError("there is no such file", path=str(path), option="network")
    if not zipfile.is_zipfile(path):
        raise ModelError("this is no .keras file, or a damaged one", path=str(path), hint=_SAVE)
    try:
        return keras.saving.load_model(path, compile=False, safe_mode=True)
    except Exception as error:  # Keras raises a dozen kinds
        if is_out_of_memory(error):
            raise
        first = (str(error).strip().splitlines() or [type(error).__name__])[0]
        text, hint = f"Keras cannot read this network: {first[:200]}", _SAVE
        if "Lambda" in first:
            text = "the network has a Lambda layer, whose code is not run"
            hint = "put a layer of Keras in its place, such as Rescaling, and save the network again"
        raise ModelError(text, path=str(path), hint=hint) from None


def _undated(name: str, data: bytes) -> bytes:
    """A member of the file without the date it was saved at, and without the settings of a training."""
    if name == "metadata.json":
        return json.dumps({**json.loads(data), "date_saved": ""}, sort_keys=True).encode()
    if name == "config.json":
        return _config(data)
    return _without_optimiser(data) if name == "model.weights.h5" else data


def _config(text: str | bytes) -> bytes:
    """A network's structure as JSON: the same text for the same structure, in every process."""
    config = {**json.loads(text), "compile_config": None}
    return json.dumps(_renumbered(config, {}), sort_keys=True).encode()


def _without_optimiser(data: bytes) -> bytes:
    """The weights' file without the optimiser's variables, which Keras writes even when told not to."""
    import h5py

    stream = io.BytesIO()
    with h5py.File(io.BytesIO(data)) as given, h5py.File(stream, "w") as made:
        for name in sorted(given):
            if name != "optimizer":
                given.copy(name, made)
        made.attrs.update(given.attrs)
    return stream.getvalue()


def _renumbered(value: Any, numbers: dict[int, int]) -> Any:
    """Plain values with shared objects counted from 1; Keras calls them by their address in memory."""
    if isinstance(value, list):
        return [_renumbered(one, numbers) for one in value]
    if not isinstance(value, dict):
        return value
    found = {key: _renumbered(value[key], numbers) for key in sorted(value) if key != "shared_object_id"}
    # A type of numbers is written as shared or not by how the network was made, and means the same.
    if (address := value.get("shared_object_id")) is not None and value.get("class_name") != "DTypePolicy":
        found["shared_object_id"] = numbers.setdefault(address, len(numbers) + 1)
    return found
