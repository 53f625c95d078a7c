"""Recognises by its first bytes a file that is given as a model but is of another kind; says what helps."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Collection
from typing import NamedTuple, NoReturn

from buildtool.base.errors import ModelError, UsageError, shown


class Kind(NamedTuple):
    """A kind of file: what the file is, and what the user can do about it, in words."""

    what: str
    help: str


_LINE = "buildtool quantize FLOAT{0} --data DATA -o INT8{0}"
_TO_TFLITE = f"and quantise the file: {_LINE.format('.tflite')}"
_KERAS = f"load it in Keras, convert it with tf.lite.TFLiteConverter.from_keras_model, {_TO_TFLITE}"
_TORCH = Kind(
    "a file of PyTorch",
    f"export the model with torch.onnx.export, and quantise the file: {_LINE.format('.onnx')}",
)
_TENSORFLOW = Kind(
    "a model of TensorFlow", f"convert it with tf.lite.TFLiteConverter.from_saved_model, {_TO_TFLITE}"
)
_PAGE = Kind("a page of HTML", "download the model itself, not the page about it")
_ZIP = b"PK\x03\x04"
# By the first bytes. No .tflite, .onnx or .cfg file starts like these.
_STARTS = {
    b"version https://git-lfs": Kind("a pointer of git-lfs", "run `git lfs pull`"),
    b"\x1f\x8b": Kind(
        "a file compressed with gzip", "unpack it with gunzip, and give the file that comes out"
    ),
    b"\x89HDF": Kind("an HDF5 file, as Keras saves models", _KERAS),
    b"\x80\x02\x8a\x0a\x6c\xfc\x9c\x46": _TORCH,  # the magic number of PyTorch before 1.6
}


def refuse_other_file(data: bytes, path: str) -> None:
    """Raises ModelError if the bytes of a file are known to be of another kind than a model."""
    kind = _kind(data, path.lower())
    if kind is not None:
        raise ModelError(f"not a .tflite or .onnx file, but {kind.what}", path=path, hint=kind.help)


def refuse_folder(path: str, names: Collection[str]) -> NoReturn:
    """Raises UsageError about a folder that is given as a model. `names`: of the files in it."""
    kind = Kind("a folder", "give the file of a model in it")
    if "saved_model.pb" in names:
        kind = Kind(f"a folder with {_TENSORFLOW.what} (SavedModel)", _TENSORFLOW.help)
    raise UsageError(f"not a .tflite or .onnx file, but {kind.what}", path=path, hint=kind.help)


def _kind(data: bytes, path: str) -> Kind | None:
    """Returns the kind of a file's bytes; None for a model, and if nothing is known about them."""
    if not data:
        return Kind("an empty file", "convert or download the model again")
    if data.startswith(_ZIP):
        return _kind_of_archive(data)
    if data[:64].lstrip().lower().startswith((b"<!doctype html", b"<html")):
        return _PAGE
    for start, kind in _STARTS.items():
        if data.startswith(start):
            return kind
    return _TENSORFLOW if path.endswith(".pb") else None


def _kind_of_archive(data: bytes) -> Kind:
    """Returns the kind of a ZIP archive, by the names of the files in it."""
    try:
        names = zipfile.ZipFile(io.BytesIO(data)).namelist()
    except (zipfile.BadZipFile, NotImplementedError, ValueError, OverflowError):
        return Kind("a damaged ZIP archive", "download it again, unpack it, and give a file of it")
    if any(name.rpartition("/")[2] == "data.pkl" for name in names):
        return _TORCH
    if "model.weights.h5" in names:
        return Kind("a .keras file", _KERAS)
    models = [name for name in names if name.lower().endswith((".tflite", ".onnx"))]
    return Kind("a ZIP archive", f"unpack it, and give {shown(models[0]) if models else 'a model in it'}")
