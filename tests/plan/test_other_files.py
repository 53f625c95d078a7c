"""Files and folders that somebody gives for a model: the error says what they are and what would help."""

import gzip
import io
import zipfile

import pytest

from buildtool.fronts.cli import main as cli

POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a2146\nsize 12345\n"


def archive(*names):
    """Returns a ZIP archive without the time: its bytes are in the names of tests, which workers compare."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as made:
        for name in names:
            made.writestr(zipfile.ZipInfo(name), "{}")
    return file.getvalue()


@pytest.mark.parametrize(
    ("name", "data", "what", "helps"),
    [
        ("net.tflite", POINTER.encode(), "a pointer of git-lfs", "run `git lfs pull`"),
        ("net.onnx", POINTER.encode(), "a pointer of git-lfs", "run `git lfs pull`"),
        ("net.tflite", b"", "an empty file", "convert or download the model again"),
        (
            "net.tflite.gz",
            gzip.compress(b"TFL3", mtime=0),
            "a file compressed with gzip",
            "unpack it with gunzip",
        ),
        ("net.h5", b"\x89HDF\r\n\x1a\n" + bytes(64), "an HDF5 file", "from_keras_model"),
        ("net.tflite", archive("metadata.json", "model.weights.h5"), "a .keras file", "from_keras_model"),
        ("net.pt", archive("net/data.pkl", "net/version"), "a file of PyTorch", "torch.onnx.export"),
        ("net.pth", b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.", "a file of PyTorch", "torch.onnx.export"),
        ("net.pb", b"\x08\x01\x12\x02ab", "a model of TensorFlow", "from_saved_model"),
        ("net.zip", archive("a.txt", "b/net.tflite"), "a ZIP archive", "give 'b/net.tflite'"),
        ("net.zip", archive("a.txt")[:40], "a damaged ZIP archive", "download it again"),
        ("net.tflite", b"<!DOCTYPE html>\n<html>", "a page of HTML", "download the model itself"),
        ("net.tflite", b"\n\n<!doctype html>", "a page of HTML", "download the model itself"),
        ("net.tflite", b"something else", "not a TensorFlow Lite file", "a .tflite file of version 3"),
    ],
)
def test_a_file_that_is_no_model_is_named_as_what_it_is(
    tmp_path, monkeypatch, capsys, name, data, what, helps
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_bytes(data)
    for words in (["analyze", name], ["plan", name, "--board", "cortex-m4"]):
        assert cli.run(words) != 0
        told, hint = capsys.readouterr().err.splitlines()
        assert told.startswith(f"{name}: error: ") and what in told
        assert hint.startswith("  hint: ") and helps in hint


@pytest.mark.parametrize(
    ("name", "files", "what", "helps"),
    [
        ("net.tflite", (), "a folder", "give the file of a model in it"),
        ("saved", ("saved_model.pb", "fingerprint.pb"), "a folder with a model of TensorFlow", "from_saved"),
    ],
)
def test_a_folder_is_named_as_what_it_is(tmp_path, monkeypatch, capsys, name, files, what, helps):
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).mkdir()
    for file in files:
        (tmp_path / name / file).touch()
    assert cli.run(["analyze", name]) != 0
    told, hint = capsys.readouterr().err.splitlines()
    assert told.startswith(f"{name}: error: not a .tflite or .onnx file, but {what}") and helps in hint
