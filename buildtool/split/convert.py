"""A trained Keras model as an int8 .tflite file, by TensorFlow's converter with calibration.

The converter's own words go to nowhere; the same model and images give the same bytes.
"""

from __future__ import annotations

import contextlib
import io
import logging
import os
import struct
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import tflite

from buildtool.base.errors import ToolError
from buildtool.base.locks import scratch
from buildtool.split import backend
from buildtool.split.graphs import each_after

if TYPE_CHECKING:
    import keras

Images = npt.NDArray[np.float32]
_OPERATORS = 10  # place of the field in the vtable of a subgraph: 4 + 2 * 3


def random_images(model: keras.Model, count: int = 2) -> Images:
    """Images of random pixels from 0 to 1 that a model takes: for files of which only the shape counts."""
    shape = [1 if n is None else int(n) for n in model.inputs[0].shape[1:]]
    return np.random.default_rng(0).random((count, *shape), dtype=np.float32)


def int8_model(model: keras.Model, images: Images) -> bytes:
    """The model in int8, inputs and outputs too, calibrated on images [N, height, width, channels].

    Raises ToolError where TensorFlow is not there, or cannot convert the model.
    """
    import keras

    if keras.backend.backend() != "tensorflow":
        return _in_a_child(model, images)
    import tensorflow as tf

    with silenced():
        try:
            converter = tf.lite.TFLiteConverter.from_keras_model(model)
            converter.optimizations = [tf.lite.Optimize.DEFAULT]
            converter.representative_dataset = lambda: ([image[None]] for image in images)
            converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
            converter.inference_input_type = converter.inference_output_type = tf.int8
            return in_order(bytes(converter.convert()))
        except Exception as error:  # of a dozen kinds, with pages of text
            first = str(error).strip().partition("\n")[0]
            raise ToolError(f"TensorFlow's converter refuses the model: {first}") from error


def _in_a_child(model: keras.Model, images: Images) -> bytes:
    """The same in a process of its own, where Keras runs on TensorFlow: the converter knows no other."""
    with scratch() as folder:
        given = Path(folder)
        backend.save(model, given / "model.keras")
        np.save(given / "images.npy", images)
        command = [sys.executable, "-m", "buildtool.split.convert", folder]
        environment = os.environ | {"KERAS_BACKEND": "tensorflow"}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        made = given / "model.tflite"
        if done.returncode or not made.is_file():
            lines = done.stderr.strip().splitlines() or ["it said nothing"]
            hint = f"convert on a machine that has TensorFlow: {backend.EXTRA}"
            raise ToolError(f"TensorFlow's converter failed: {lines[-1]}", hint=hint)
        return made.read_bytes()


@contextlib.contextmanager
def silenced() -> Iterator[None]:
    """Sends what TensorFlow and its C++ write to standard output and error to a file that goes away.

    TensorFlow's warnings on speed are not said any more after that.
    """
    logging.getLogger("tensorflow").setLevel(logging.ERROR)
    with (
        warnings.catch_warnings(action="ignore"),
        tempfile.TemporaryFile() as sink,
        _redirected(sink.fileno()),
        contextlib.redirect_stdout(io.StringIO()),  # what Python has in the place of these two
        contextlib.redirect_stderr(io.StringIO()),
    ):
        yield


@contextlib.contextmanager
def _redirected(to: int) -> Iterator[None]:
    """Standard output and error of the process, C++ included, into another descriptor for a while."""

    def flush() -> None:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(AttributeError, OSError, ValueError):
                stream.flush()

    flush()
    saved = [os.dup(number) for number in (1, 2)]
    try:
        os.dup2(to, 1)
        os.dup2(to, 2)
        yield
    finally:
        flush()
        for number, copy in zip((1, 2), saved, strict=True):
            os.dup2(copy, number)
            os.close(copy)


# ---- the order of operators ------------------------------------------------------------------------


def in_order(data: bytes) -> bytes:
    """A .tflite file with every operator right before what first needs it: branch after branch.

    TensorFlow's converter orders operators that do not depend on each other by their names, so that all
    branches may begin before one of them ends. A plan keeps to the file's order; with the first convolution
    of every branch at the beginning, all their outputs have to be in memory at once.

    Only the offsets in the vector of operators change. A file of several subgraphs, or with operators that no
    output depends on, is left as it is.
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
    made = bytearray(data)
    for slot, index in zip(slots, order, strict=True):
        if tables[index] <= slot:  # a file that was written the other way round
            return data
        struct.pack_into("<I", made, slot, tables[index] - slot)
    return bytes(made)


if __name__ == "__main__":
    folder_ = Path(sys.argv[1])  # of `_in_a_child`
    made_ = int8_model(backend.load(folder_ / "model.keras"), np.load(folder_ / "images.npy"))
    (folder_ / "model.tflite").write_bytes(made_)
