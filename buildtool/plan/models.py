"""From what a user names (a file or a zoo network) to a graph that is ready to be planned."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property

from buildtool.base.errors import BuildtoolError, UnsupportedError, UsageError, did_you_mean, suggest
from buildtool.base.files import File, Named, to_file
from buildtool.base.session import Level, Session
from buildtool.graph.types import Graph
from buildtool.options import MODEL_SUFFIXES

MOST_MODELS = 8  # of which a session keeps the bytes
MAX_BYTES = 1 << 30  # larger files are refused before they are read


@dataclass(frozen=True)
class Model:
    """A model file's bytes, the name its files get, and the path shown in messages."""

    name: str
    path: str
    data: bytes

    @cached_property
    def digest(self) -> str:
        """SHA-256 (hex) of the bytes."""
        return hashlib.sha256(self.data).hexdigest()


@dataclass(frozen=True)
class Network:
    """A model that was read: `source` as the file has it, `graph` rewritten for planning."""

    model: Model
    source: Graph
    graph: Graph


def load_network(spec: Named, session: Session) -> Network:
    """Reads a model and rewrites its graph."""
    session.tell("reading the network")
    model = load_model(spec, session)
    return Network(model, *read_graph(model, session))


def load_model(spec: Named, session: Session | None = None) -> Model:
    """`spec` is a .tflite or .onnx file (text: its absolute path), or a zoo network ("ds_cnn:seed=1").

    A file whose digest was sent with its name is read once in a session, a network of the zoo made once.
    """
    source = to_file(spec, MODEL_SUFFIXES)
    if session is None or (isinstance(source, File) and not source.sha256):
        return _load(spec)
    if isinstance(source, File):
        key = (source.path, source.sha256)
        return session.remember("models", key, lambda: _load(spec), MOST_MODELS)
    data = session.keep(_NETWORKS, {"name": source}, lambda: _load(spec).data, MOST_MODELS)
    return session.remember("models", source, lambda: Model(model_name(spec), source, data), MOST_MODELS)


_NETWORKS: Level[bytes] = Level("networks", bytes, bytes)  # of the zoo, as files


def _load(spec: Named) -> Model:
    name, source = model_name(spec), to_file(spec, MODEL_SUFFIXES)
    if isinstance(source, File):
        return Model(name, source.path, read_model_file(source))
    from buildtool import zoo

    return Model(name, source, zoo.build(source))


def read_model_file(file: File) -> bytes:
    """A model file's bytes; UsageError if it cannot be read, ModelError above MAX_BYTES."""
    return file.read("the model", MAX_BYTES)


def model_name(spec: Named) -> str:
    """What a model's files are called; UsageError if there is neither such a file nor such a network."""
    source = to_file(spec, MODEL_SUFFIXES)
    if isinstance(source, File):
        if not source.exists():
            text = "cannot read the model: there is no such file"
            raise UsageError(text, path=source.path, hint="check the path")
        return source.stem
    from buildtool import zoo

    known = zoo.names()
    name = source.partition(":")[0]
    if name not in known:
        raise UsageError(
            f"no model file and no zoo network is called '{source}'",
            hint="give the path of a .tflite or .onnx file, or a network of the zoo; "
            + did_you_mean(name, known),
        )
    zoo.choose(source)
    return spec_name(source)


def net_name(spec: Named) -> str:
    """What a model's files are called, whether or not the file is there yet; UsageError as `model_name`."""
    source = to_file(spec, MODEL_SUFFIXES)
    return source.stem if isinstance(source, File) else model_name(source)


def spec_name(spec: str) -> str:
    """The name of a zoo network's files: "mobilenetv2:size=96" -> "mobilenetv2_size96"."""
    return spec.replace(":", "_").replace("=", "").replace(",", "_")


def read_graph(model: Model, session: Session | None = None) -> tuple[Graph, Graph]:
    """The graph as the file has it, and as it will be planned (rewritten)."""
    from buildtool.graph.rewrite import rewrite

    def read() -> tuple[Graph, Graph]:
        graph = _read(model)
        return graph, rewrite(graph)

    try:
        key = (model.digest, is_onnx(model.path))
        return session.remember("graphs", key, read, MOST_MODELS) if session else read()
    except BuildtoolError as error:
        raise error.at(path=model.path) from None


def tflite_file(model: Model, source: Graph | None = None) -> bytes:
    """The model as a .tflite file; one written from `source` (its own graph), tensors by the same numbers.

    UnsupportedError for what that format cannot express (average pools padded otherwise than SAME).
    """
    from buildtool.graph.tflite.writer import write_model

    if not is_onnx(model.path):
        return model.data
    try:
        return write_model(source or _read(model))
    except UnsupportedError as error:
        error.hints = error.hints or (suggest("no .tflite file can express this", reference="numpy"),)
        raise error.at(path=model.path) from None


def is_onnx(path: str) -> bool:
    """Whether a model file is read as ONNX."""
    return path.lower().endswith(".onnx")


def _read(model: Model) -> Graph:
    if is_onnx(model.path):
        from buildtool.graph.onnx.reader import read_qdq

        return read_qdq(model.data, path=model.path)
    from buildtool.graph.tflite.reader import read_model

    return read_model(model.data, path=model.path)
