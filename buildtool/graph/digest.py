"""The topology's digest: what a plan depends on, and nothing that training changes."""

from __future__ import annotations

import dataclasses
import enum
import hashlib

import msgpack

from buildtool.graph.numbering import numbered
from buildtool.graph.types import Attrs, Graph, LeakyReluAttrs, PadAttrs, SoftmaxAttrs

# Attributes that come out of training or quantisation.
_TRAINED = {(PadAttrs, "value"), (SoftmaxAttrs, "beta"), (LeakyReluAttrs, "alpha")}


def topology_digest(graph: Graph) -> str:
    """SHA-256 (hex) of operators, geometry, shapes, types and connections.

    Tensors have their canonical numbers, so neither names nor numbers, nor weights' values,
    quantisation or the operators' places in the file have any effect.
    """
    graph = numbered(graph)
    document = [
        [[list(t.shape), t.dtype.value, t.is_constant] for t in graph.tensors],
        [[op.kind.value, list(op.inputs), list(op.outputs), _attributes(op.attrs)] for op in graph.ops],
        list(graph.inputs),
        list(graph.outputs),
    ]
    return hashlib.sha256(msgpack.packb(document)).hexdigest()


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
