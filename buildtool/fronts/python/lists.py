"""Opens networks, and answers what needs no network: boards, operators, the zoo, sizes and arena problems."""

from __future__ import annotations

import contextlib
from collections.abc import Collection
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from buildtool.base.errors import UsageError, shown
from buildtool.fronts.python import answers
from buildtool.fronts.python.network import Network, PathText, Settings, make_request, send
from buildtool.fronts.python.signatures import offers_options
from buildtool.options import MODEL_SUFFIXES

_SETTINGS = Settings()


def open(
    model: PathText | bytes | bytearray | memoryview,
    *,
    outputs: str | Collection[str] | None = (),
    name: PathText = "network.tflite",
    daemon: str | None = None,
    cache: str = "on",
) -> Network:
    """Returns a network: a .tflite or .onnx file, the bytes of one, or a network of the zoo by its name.

    `outputs` are the tensors or layers at which the network ends (default: its own outputs). `name` is the
    file name of a network given as bytes. `daemon` (auto, off, require) and `cache` (on, off, renew) are as
    on the command line. Raises UsageError if a file does not exist.
    """
    ends = tuple(outputs.split(",") if isinstance(outputs, str) else outputs or ())
    settings = Settings(daemon, cache)
    if isinstance(model, bytes | bytearray | memoryview):
        return Network({"name": fspath(name), "data": bytes(model)}, ends, settings)
    if not isinstance(model, str | PathLike):
        raise UsageError(f"{shown(model)} is not a path, the bytes of a network, or a network's name")
    text = fspath(model)
    is_file = is_there = False
    with contextlib.suppress(OSError):  # a name that is too long
        is_file, is_there = Path(text).is_file(), Path(text).exists()
    is_path = is_file or isinstance(model, PathLike) or text.lower().endswith(MODEL_SUFFIXES)
    if is_path and not is_there:
        hint = f"pathlib.Path({text!r}).expanduser()" if text.startswith("~") else "check the path"
        raise UsageError("cannot read the model: there is no such file", path=text, hint=hint)
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


@offers_options
def sizes(elf: PathText, board: PathText, **options: Any) -> answers.Sizes:
    """Returns the bytes that a linked firmware image takes in each memory of a board."""
    return answers.Sizes(send(make_request("sizes", {"elf": elf, "board": board, **options}), _SETTINGS))


@offers_options
def arena(file: PathText, **options: Any) -> answers.Arena:
    """Returns the lowest offsets for the buffers of an arena problem (a .csv file)."""
    answer = send(make_request("arena", {"file": file, **options}), _SETTINGS)
    return answers.Arena({**answer, "files": []})
