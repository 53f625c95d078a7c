"""A network's topology as a value: operators, geometry, types and connections, and nothing else.

It is plain data (numbers, strings and tuples of them), so that it can be compared, hashed, stored and
read again, by whoever keeps what was computed from it: two networks that differ in names, weights,
quantisation, tensors' numbers or the operators' places in their files have equal topologies.
"""

from __future__ import annotations

import dataclasses
import enum
import hashlib
import typing
from typing import NamedTuple

import msgpack

from buildtool.graph import types
from buildtool.graph.numbering import numbered
from buildtool.graph.types import (
    Attrs,
    DType,
    Graph,
    LeakyReluAttrs,
    Op,
    OpKind,
    PadAttrs,
    SoftmaxAttrs,
    Tensor,
)

Plain = bool | int | float | str | tuple["Plain", ...]

# Attributes that come out of training or quantisation.
_TRAINED = {(PadAttrs, "value"), (SoftmaxAttrs, "beta"), (LeakyReluAttrs, "alpha")}


class TensorTopology(NamedTuple):
    """What of a tensor counts; `dtype`: numpy's name of its elements."""

    shape: tuple[int, ...]
    dtype: str
    constant: bool


class OpTopology(NamedTuple):
    """An operator: its tensors' canonical numbers (-1: absent), the class of its attributes and these."""

    kind: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    attributes: tuple[str, tuple[tuple[str, Plain], ...]]


class Topology(NamedTuple):
    """Operators in execution order over tensors with canonical numbers (see `numbering`)."""

    tensors: tuple[TensorTopology, ...]
    ops: tuple[OpTopology, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]

    @property
    def digest(self) -> str:
        """SHA-256 (hex)."""
        return hashlib.sha256(msgpack.packb(self)).hexdigest()

    def bare_graph(self) -> Graph:
        """The network without what does not count: no names, zeros for weights, no quantisation."""
        import numpy as np

        def tensor(of: TensorTopology) -> Tensor:
            zeros = np.broadcast_to(np.zeros((), of.dtype), of.shape)  # of one element in memory
            return Tensor("", of.shape, DType(of.dtype), data=zeros if of.constant else None)

        attrs = {attributes: _attrs(*attributes) for attributes in {op.attributes for op in self.ops}}
        ops = (
            Op(OpKind(op.kind), op.inputs, op.outputs, attrs[op.attributes], position)
            for position, op in enumerate(self.ops)
        )
        tensors = {of: tensor(of) for of in set(self.tensors)}
        return Graph("", tuple(tensors[of] for of in self.tensors), tuple(ops), self.inputs, self.outputs)


def topology(graph: Graph) -> Topology:
    """The topology of a network, whatever numbers its tensors have; it stays with the graph."""
    if "topology" not in graph.facts:
        graph.facts["topology"] = _topology(numbered(graph))
    found: Topology = graph.facts["topology"]
    return found


def _topology(graph: Graph) -> Topology:
    return Topology(
        tuple(TensorTopology(tuple(t.shape), t.dtype.value, t.is_constant) for t in graph.tensors),
        tuple(OpTopology(op.kind.value, op.inputs, op.outputs, _attributes(op.attrs)) for op in graph.ops),
        graph.inputs,
        graph.outputs,
    )


def _attributes(attrs: Attrs) -> tuple[str, tuple[tuple[str, Plain], ...]]:
    """Class, then name and value of every field that geometry depends on."""
    names = [f.name for f in dataclasses.fields(attrs) if (type(attrs), f.name) not in _TRAINED]
    return type(attrs).__name__, tuple((name, _plain(getattr(attrs, name))) for name in names)


def _plain(value: object) -> Plain:
    """A value without classes of its own."""
    if isinstance(value, enum.Enum):
        return _plain(value.value)
    if dataclasses.is_dataclass(value):
        return tuple(_plain(getattr(value, f.name)) for f in dataclasses.fields(value))
    if isinstance(value, tuple):
        return tuple(map(_plain, value))
    assert isinstance(value, bool | int | float | str)
    return value


def _attrs(name: str, values: tuple[tuple[str, Plain], ...]) -> Attrs:
    """The attributes again; those that are trained have their defaults."""
    kind = getattr(types, name)
    hints = typing.get_type_hints(kind)
    made = kind(**{field: _valued(hints[field], value) for field, value in values})
    assert isinstance(made, Attrs)
    return made


def _valued(hint: type, value: Plain) -> object:
    """A plain value as a field of the class `hint` has it."""
    if isinstance(hint, type) and dataclasses.is_dataclass(hint) and isinstance(value, tuple):
        return hint(*value)
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return hint(value)
    return value
