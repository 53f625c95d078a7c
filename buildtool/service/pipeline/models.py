"""From what a user names (a file or a zoo network) to a graph that is ready to be planned."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from buildtool.errors import ModelError, UsageError, did_you_mean
from buildtool.graph.types import Graph

MAX_BYTES = 1 << 30  # larger files are refused before they are read


@dataclass(frozen=True)
class Model:
    """A model file's bytes, the name its files get, and the path shown in messages."""

    name: str
    path: str
    data: bytes


def load_model(spec: str) -> Model:
    """`spec` is a path to a .tflite or .onnx file, or a zoo network ("mobilenetv2:size=96")."""
    from buildtool import zoo

    name = model_name(spec)
    return Model(name, spec, read_bytes(Path(spec)) if _is_path(spec) else zoo.build(spec))


def model_name(spec: str) -> str:
    """What a model's files are called; UsageError if there is neither such a file nor such a network."""
    from buildtool import zoo

    if not _is_path(spec):
        known = zoo.names()
        name = spec.partition(":")[0]
        if name not in known:
            raise UsageError(
                f"no model file and no zoo network is called '{spec}'",
                hint="give the path of a .tflite or .onnx file, or a network of the zoo; "
                + did_you_mean(name, known),
            )
        zoo.choose(spec)
        return spec_name(spec)
    if not Path(spec).is_file():
        raise UsageError("cannot read the model: there is no such file", path=spec, hint="check the path")
    return Path(spec).stem


def net_name(spec: str) -> str:
    """What a model's files are called, whether or not the file is there yet; UsageError as `model_name`."""
    return Path(spec).stem if spec.endswith((".tflite", ".onnx")) else model_name(spec)


def _is_path(spec: str) -> bool:
    return spec.endswith((".tflite", ".onnx")) or Path(spec).is_file()


def spec_name(spec: str) -> str:
    """The name of a zoo network's files: "mobilenetv2:size=96" -> "mobilenetv2_size96"."""
    return spec.replace(":", "_").replace("=", "").replace(",", "_")


def read_bytes(path: Path) -> bytes:
    """A model file's bytes; UsageError if it cannot be read, ModelError above MAX_BYTES."""
    try:
        if path.stat().st_size > MAX_BYTES:
            raise ModelError(f"larger than {MAX_BYTES} bytes", path=str(path))
        return path.read_bytes()
    except OSError as error:
        raise UsageError(
            f"cannot read the model: {error.strerror}", path=str(path), hint="check the path"
        ) from error


def read_graph(model: Model) -> tuple[Graph, Graph]:
    """The graph as the file has it, and as it will be planned (rewritten)."""
    from buildtool.errors import BuildtoolError
    from buildtool.graph.rewrite import rewrite

    try:
        graph = _read(model)
        return graph, rewrite(graph)
    except BuildtoolError as error:
        raise error.at(path=model.path) from None


def tflite_file(model: Model, source: Graph | None = None) -> bytes:
    """The model as a .tflite file; one written from `source` (its own graph), tensors by the same numbers.

    UnsupportedError for what that format cannot express (average pools padded otherwise than SAME).
    """
    from buildtool.errors import UnsupportedError
    from buildtool.graph.tflite.writer import write_model

    if not _is_onnx(model):
        return model.data
    try:
        return write_model(source or _read(model))
    except UnsupportedError as error:
        error.hint = error.hint or "no .tflite file says the same; --reference numpy needs none"
        raise error.at(path=model.path) from None


def _is_onnx(model: Model) -> bool:
    return model.path.lower().endswith(".onnx")


def _read(model: Model) -> Graph:
    if _is_onnx(model):
        from buildtool.graph.onnxqdq.reader import read_qdq

        return read_qdq(model.data, path=model.path)
    from buildtool.graph.tflite.reader import read_model

    return read_model(model.data, path=model.path)
