"""Keras and what it computes with: chosen before its import, repeatable to the bit on one machine."""

from __future__ import annotations

import os
import sys
from typing import Any

from buildtool.base.errors import MachineError, ToolError, UsageError, suggest

BACKENDS = ("tensorflow", "torch", "jax")
_EXTRA = "pip install keras tensorflow-cpu pillow h5py"
_NO_MEMORY = ("RESOURCE_EXHAUSTED", "out of memory", "OOM when allocating")


def prepare(name: str = "", *, threads: int = 0) -> Any:
    """Keras, with deterministic operators; ToolError where it or its backend is not installed.

    `name`: the backend, if not the one in KERAS_BACKEND, or TensorFlow. `threads`: of an operator on the
    processor (0: as many as there are cores). It is called before anything else imports Keras.
    """
    wanted = name or os.environ.get("KERAS_BACKEND") or BACKENDS[0]
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
        hint = _EXTRA if package in ("keras", "tensorflow") else f"pip install {package}"
        raise ToolError(f"training needs {package}, which is not installed", hint=hint) from None
    if keras.backend.backend() != wanted:
        text = f"Keras was imported with the backend {keras.backend.backend()} already"
        raise UsageError(text, option="backend", hint=f"KERAS_BACKEND={wanted} in the environment")
    _determine(wanted, threads)
    return keras


def _determine(name: str, threads: int) -> None:
    """Has the backend add in a fixed order, on a number of threads."""
    if name == "tensorflow":
        import tensorflow as tf

        tf.get_logger().setLevel("ERROR")  # it warns of every network that is new
        tf.config.experimental.enable_op_determinism()
        if threads and tf.config.threading.get_intra_op_parallelism_threads() != threads:
            tf.config.threading.set_intra_op_parallelism_threads(threads)
            tf.config.threading.set_inter_op_parallelism_threads(1)
    elif name == "torch":
        import torch

        torch.use_deterministic_algorithms(True, warn_only=True)  # few have no such twin
        torch.backends.cudnn.benchmark = False
        if threads:
            torch.set_num_threads(threads)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether a backend's error says that memory is used up; each backend has an exception of its own."""
    return isinstance(error, MemoryError) or any(words in str(error) for words in _NO_MEMORY)


def out_of_memory(batch: int) -> MachineError:
    """The error for that, and what would help; nothing that was trained is lost."""
    smaller = max(1, batch // 2)
    return MachineError(
        f"training with batches of {batch} images takes more memory than there is",
        hint=[
            suggest("smaller batches give other results, so all networks are trained anew", batch=smaller),
            suggest("or free memory and run the same again: it goes on from the last epoch that ended"),
        ],
    )
