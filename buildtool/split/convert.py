"""A trained Keras model as an int8 .tflite file, by TensorFlow's converter with calibration.

The converter's own words go to nowhere; the same model and images give the same bytes.
"""

from __future__ import annotations

import contextlib
import io
import logging
import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from buildtool.base.errors import ToolError
from buildtool.base.scratch import scratch
from buildtool.split import keeping
from buildtool.split.fileorder import in_order

if TYPE_CHECKING:
    import keras

Images = npt.NDArray[np.float32]


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
    try:
        import tensorflow as tf
    except ImportError:
        hint = "convert on a machine that has it: pip install keras tensorflow-cpu pillow h5py"
        raise ToolError(
            "TensorFlow's converter makes .tflite files, and is not installed", hint=hint
        ) from None

    def one_by_one() -> Iterator[list[Images]]:
        for image in images:
            yield [image[None]]

    with silenced():
        try:
            converter = tf.lite.TFLiteConverter.from_keras_model(model)
            converter.optimizations = [tf.lite.Optimize.DEFAULT]
            converter.representative_dataset = one_by_one
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
        keeping.save(model, given / "model.keras")
        np.save(given / "images.npy", images)
        command = [sys.executable, "-m", "buildtool.split.convert", folder]
        environment = os.environ | {"KERAS_BACKEND": "tensorflow"}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        made = given / "model.tflite"
        if done.returncode or not made.is_file():
            lines = done.stderr.strip().splitlines() or ["it said nothing"]
            hint = "convert on a machine that has TensorFlow: pip install keras tensorflow-cpu pillow h5py"
            raise ToolError(f"TensorFlow's converter failed: {lines[-1]}", hint=hint)
        return made.read_bytes()


def _main(folder: Path) -> None:
    """What the child does."""
    images = np.load(folder / "images.npy")
    (folder / "model.tflite").write_bytes(int8_model(keeping.load(folder / "model.keras"), images))


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
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError, OSError, ValueError):
            stream.flush()
    saved = [os.dup(number) for number in (1, 2)]
    try:
        os.dup2(to, 1)
        os.dup2(to, 2)
        yield
    finally:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(AttributeError, OSError, ValueError):
                stream.flush()
        for number, copy in zip((1, 2), saved, strict=True):
            os.dup2(copy, number)
            os.close(copy)


if __name__ == "__main__":
    _main(Path(sys.argv[1]))
