"""Loads what a user names (a model file or a zoo network), as a graph that is ready for planning."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from buildtool.base.errors import BuildtoolError, UnsupportedError, UsageError, did_you_mean, suggest
from buildtool.base.files import Cut, File, Named, NetworkSpec, to_file, uncut
from buildtool.base.session import Namespace, Session
from buildtool.graph.types import Graph
from buildtool.options import MODEL_SUFFIXES

MOST_MODELS = 8  # whose bytes a session keeps
MAX_BYTES = 1 << 30  # larger files are refused before they are read


@dataclass(frozen=True)
class Model:
    """A model: the name of its output files, the path shown in messages, and the bytes of its file."""

    name: str
    path: str
    data: bytes

    @cached_property
    def digest(self) -> str:
        """Returns the SHA-256 of the bytes in hexadecimal."""
        return hashlib.sha256(self.data).hexdigest()


@dataclass(frozen=True)
class Network:
    """A model with its graphs: `source` as in the file, `graph` rewritten for planning."""

    model: Model
    source: Graph
    graph: Graph


def load_network(spec: NetworkSpec, session: Session) -> Network:
    """Reads a model and rewrites its graph."""
    session.tell("reading the network")
    model = load_model(spec, session)
    return Network(model, *read_graph(model, session))


def load_model(spec: NetworkSpec, session: Session | None = None) -> Model:
    """Returns the model of a .tflite or .onnx file, or of a zoo network ("ds_cnn:seed=1").

    If `spec` is text, it names a file by its absolute path, or a zoo network. A session reads a file only
    once if `spec` has the file's digest, and builds a zoo network only once. For a `Cut`, the result is the
    file of a part of a network: it ends at the wanted outputs, and has one image instead of a batch, as `Cut`
    says.
    """
    if isinstance(spec, Cut):
        model = load_model(spec.network, session)
        model = _single(model, session) if spec.single and not is_onnx(model.path) else model
        return _cut(model, spec.outputs, session) if spec.outputs else model
    source = to_file(spec, MODEL_SUFFIXES)
    if session is None or (isinstance(source, File) and not source.sha256):
        return _load(spec)
    if isinstance(source, File):
        key = (source.path, source.sha256)
        return session.remember("models", key, lambda: _load(spec), MOST_MODELS)
    data = session.keep(_NETWORKS, {"name": source}, lambda: _load(spec).data, MOST_MODELS)
    return session.remember("models", source, lambda: Model(model_name(spec), source, data), MOST_MODELS)


def _single(model: Model, session: Session | None) -> Model:
    """Returns the model for one image instead of a batch.

    It stays the same if the batch is 1, or if the network mixes the images of a batch.
    """

    def single() -> Model:
        from buildtool.graph.tflite.batches import single_image  # few networks have a batch

        try:
            return replace(model, data=single_image(model.data))
        except BuildtoolError as error:
            raise error.at(path=model.path) from None

    return session.remember("single", model.digest, single, MOST_MODELS) if session else single()


def _cut(model: Model, outputs: tuple[str, ...], session: Session | None) -> Model:
    """Returns the model with a file that ends at `outputs` (names of tensors or layers)."""
    from buildtool.plan.cut import end_at  # few networks are cut

    def planned() -> list[str]:
        _, graph = read_graph(model, session)
        return [graph.op_name(position) for position in range(len(graph.ops))]

    def cut() -> Model:
        try:
            data = end_at(model.data, outputs, planned, onnx=is_onnx(model.path))
        except BuildtoolError as error:
            raise error.at(path=model.path) from None
        return replace(model, data=data)

    key = (model.digest, is_onnx(model.path), outputs)
    return session.remember("cuts", key, cut, MOST_MODELS) if session else cut()


_NETWORKS: Namespace[bytes] = Namespace("networks", bytes, bytes)  # model files of zoo networks


def _load(spec: Named) -> Model:
    name, source = model_name(spec), to_file(spec, MODEL_SUFFIXES)
    if isinstance(source, File):
        return Model(name, source.path, read_model_file(source))
    from buildtool import zoo

    return Model(name, source, zoo.build(source))


def read_model_file(file: File) -> bytes:
    """Returns the bytes of a model file.

    Raises UsageError for a folder and for a file that cannot be read. Raises ModelError for a file of more
    than MAX_BYTES bytes, and for a kind of file that is known not to be a model.
    """
    from buildtool.plan.otherfiles import refuse_folder, refuse_other_file  # only needed to read a model

    folder = Path(file.path)
    if file.data is None and folder.is_dir():
        refuse_folder(file.path, [path.name for path in folder.iterdir()])
    data = file.read("the model", MAX_BYTES)
    refuse_other_file(data, file.path)
    return data


def model_name(spec: NetworkSpec) -> str:
    """Returns the name of a model's output files. Raises UsageError if the file or zoo network is missing."""
    source = to_file(uncut(spec), MODEL_SUFFIXES)
    if isinstance(source, File):
        if not source.exists():
            text = "cannot read the model: there is no such file"
            raise UsageError(text, path=source.path, hint="check the path")
        return source.stem
    from buildtool import zoo

    networks = zoo.names()
    name = source.partition(":")[0]
    if name not in networks:
        raise UsageError(
            f"no model file and no zoo network is called '{source}'",
            hint="give the path of a .tflite or .onnx file, or a network of the zoo; "
            + did_you_mean(name, networks),
        )
    zoo.choose(source)
    return spec_name(source)


def net_name(spec: NetworkSpec) -> str:
    """Returns the name of a model's output files, like `model_name`. A model file need not exist yet."""
    source = to_file(uncut(spec), MODEL_SUFFIXES)
    return source.stem if isinstance(source, File) else model_name(source)


def spec_name(spec: str) -> str:
    """Returns the name of a zoo network's files: "mobilenetv2:size=96" -> "mobilenetv2_size96"."""
    return spec.replace(":", "_").replace("=", "").replace(",", "_")


def read_graph(model: Model, session: Session | None = None) -> tuple[Graph, Graph]:
    """Returns the graph as in the file, and the rewritten graph that is planned."""
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
    """Returns the model as a .tflite file. An ONNX model is converted from `source` (default: its graph).

    Tensors keep their numbers. Raises UnsupportedError for what the format cannot express: average pools
    with a padding other than SAME.
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
    """Returns whether a model file is read as ONNX."""
    return path.lower().endswith(".onnx")


def _read(model: Model) -> Graph:
    if is_onnx(model.path):
        from buildtool.graph.onnx.reader import read_qdq

        return read_qdq(model.data, path=model.path)
    from buildtool.graph.tflite.reader import read_model

    return read_model(model.data, path=model.path)
