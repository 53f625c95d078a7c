"""The topology's digest: what a plan depends on, and nothing that training changes."""

from __future__ import annotations

import dataclasses
import enum
import hashlib

import msgpack

from buildtool.graph.types import Attrs, Graph, LeakyReluAttrs, Op, PadAttrs, SoftmaxAttrs

# Attributes that come out of training or quantisation.
_TRAINED = {(PadAttrs, "value"), (SoftmaxAttrs, "beta"), (LeakyReluAttrs, "alpha")}


def topology_digest(graph: Graph) -> str:
    """SHA-256 (hex) of operators, geometry, shapes, types and connections.

    Tensors count in the order in which operators mention them, so neither names nor indices, nor
    weights' values, quantisation or the operators' places in the file have any effect.
    """
    places: dict[int, int] = {-1: -1}
    for t in (*graph.inputs, *(t for op in graph.ops for t in (*op.inputs, *op.outputs)), *graph.outputs):
        places.setdefault(t, len(places) - 1)
    order = sorted((place, t) for t, place in places.items() if t >= 0)
    tensors = [
        [list(graph.tensors[t].shape), graph.tensors[t].dtype.value, graph.tensors[t].is_constant]
        for _, t in order
    ]
    document = [
        tensors,
        [_operator(op, places) for op in graph.ops],
        [places[t] for t in graph.inputs],
        [places[t] for t in graph.outputs],
    ]
    return hashlib.sha256(msgpack.packb(document)).hexdigest()


def _operator(op: Op, places: dict[int, int]) -> list[object]:
    inputs = [places[t] for t in op.inputs]
    outputs = [places[t] for t in op.outputs]
    return [op.kind.value, inputs, outputs, _attributes(op.attrs)]


def _attributes(attrs: Attrs) -> list[object]:
    """[class, then name and value of every field that geometry depends on]."""
    names = [f.name for f in dataclasses.fields(attrs) if (type(attrs), f.name) not in _TRAINED]
    return [type(attrs).__name__, [[name, _plain(getattr(attrs, name))] for name in names]]


def _plain(value: object) -> object:
    """`value` as msgpack has it: lists, strings and numbers."""
    if isinstance(value, enum.Enum):
        return value.value
    if dataclasses.is_dataclass(value):
        return [_plain(getattr(value, f.name)) for f in dataclasses.fields(value)]
    if isinstance(value, tuple):
        return [_plain(v) for v in value]
    return value
