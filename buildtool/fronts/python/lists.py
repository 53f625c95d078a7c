"""Opens networks, and answers what needs none: boards, operators, the zoo, sizes and arena problems."""

from __future__ import annotations

from collections.abc import Collection
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from buildtool.base.errors import UsageError
from buildtool.fronts.python import answers
from buildtool.fronts.python.network import Network, PathText, Settings, make_request, send
from buildtool.options import MODEL_SUFFIXES, PYTHON

_SETTINGS = Settings()


def open(
    model: PathText | bytes,
    *,
    outputs: str | Collection[str] = (),
    name: str = "network.tflite",
    daemon: str | None = None,
    cache: str = "on",
) -> Network:
    """Returns a network: a .tflite or .onnx file, the bytes of one, or a network of the zoo by its name.

    `outputs` ends it at these tensors or layers. `name` is the file's name of a network given as bytes.
    `daemon` (auto, off, require) and `cache` (on, off, renew) are as on the command line. Raises UsageError
    where a file does not exist.
    """
    ends = (outputs,) if isinstance(outputs, str) else tuple(outputs)
    settings = Settings(daemon, cache)
    if isinstance(model, bytes | bytearray | memoryview):
        return Network({"name": name, "data": bytes(model)}, ends, settings)
    text = fspath(model)
    is_path = isinstance(model, PathLike) or text.lower().endswith(MODEL_SUFFIXES)
    if is_path and not Path(text).exists():
        error = UsageError("cannot read the model: there is no such file", path=text, hint="check the path")
        error.front = PYTHON
        raise error
    return Network(str(Path(text).absolute()) if is_path else text, ends, settings)


def boards() -> answers.Boards:
    """Returns the known boards and their memories."""
    return answers.Boards(send(make_request("boards", {}), _SETTINGS))


def operators() -> answers.Operators:
    """Returns TFLite's operators by data type, and their kernels on every board."""
    return answers.Operators(send(make_request("ops", {}), _SETTINGS))


def networks() -> answers.Networks:
    """Returns the networks that `open` takes by name."""
    return answers.Networks(send(make_request("zoo", {}), _SETTINGS))


def sizes(elf: PathText, board: PathText, **options: Any) -> answers.Sizes:
    """Returns the bytes that a linked firmware image takes in each memory of a board."""
    return answers.Sizes(send(make_request("sizes", {"elf": elf, "board": board, **options}), _SETTINGS))


def arena(file: PathText, **options: Any) -> answers.Arena:
    """Returns the lowest offsets for the buffers of an arena problem (a .csv file)."""
    answer = send(make_request("arena", {"file": file, **options}), _SETTINGS)
    return answers.Arena({**answer, "files": []})
