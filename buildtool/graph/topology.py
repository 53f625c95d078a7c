"""A network's topology as a value: operators, geometry, types and connections, and nothing else.

It is plain data (numbers, strings and tuples), which can be compared, hashed, stored and read again. Networks
that differ only in names, weights, quantisation, tensor numbers or the operators' places in their files have
equal topologies.
"""

import dataclasses
import hashlib
import typing
from typing import NamedTuple

import msgpack

from buildtool.base.plain import from_plain, to_tuples
from buildtool.graph import types as g
from buildtool.graph.numbering import number_tensors
from buildtool.graph.types import (
    Attrs,
    DType,
    Graph,
    Op,
    OpKind,
    SecondPass,
    State,
    Tensor,
    Window,
    cached_on_graph,
)

# Attributes that are left out where they have their defaults.
_RARE = {"expanded", "stored"}
Plain = bool | int | float | str | tuple["Plain", ...]

# Attributes that training or quantisation changes.
_TRAINED = {
    (g.PadAttrs, "value"),
    (g.BatchBlockAttrs, "value"),
    (g.FilledPoolAttrs, "value"),
    (g.SoftmaxAttrs, "beta"),
    (g.LeakyReluAttrs, "alpha"),
    (g.PooledAttrs, "source"),
    *((g.DetectionAttrs, name) for name in ("least_score", "most_overlap", "scales")),
    *((g.LstmAttrs, name) for name in ("hidden", "gates", "cell_clip", "projection_clip")),
}


class TensorTopology(NamedTuple):
    """A tensor. `dtype` is numpy's name of its element type."""

    shape: tuple[int, ...]
    dtype: str
    constant: bool


class OpTopology(NamedTuple):
    """An operator: its tensors' canonical numbers (-1: absent), and its attributes' class and values."""

    kind: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    attributes: tuple[str, tuple[tuple[str, Plain], ...]]


class StateTopology(NamedTuple):
    """A state: its tensors' canonical numbers, and whether all bytes of its initial value are equal."""

    before: int
    after: int
    filled: bool


class Topology(NamedTuple):
    """Operators in execution order over tensors with canonical numbers (see `numbering`)."""

    tensors: tuple[TensorTopology, ...]
    ops: tuple[OpTopology, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    states: tuple[StateTopology, ...] = ()
    second_passes: tuple[tuple[int, int, int], ...] = ()  # as in Graph: first, last, reader
    seen: tuple[tuple[int, tuple[int, ...]], ...] = ()  # (position, Op.seen) of operators that read views
    window: tuple[int, ...] = ()  # as in Graph: rows, hops, multiply-accumulates

    @property
    def digest(self) -> str:
        """The topology's SHA-256, in hex."""
        values = tuple(self)
        return hashlib.sha256(msgpack.packb(values if self.window else values[:-1])).hexdigest()

    def bare_graph(self) -> Graph:
        """Returns a network of this topology with empty names, zeros for weights and no quantisation."""
        import numpy as np

        tensors: dict[TensorTopology, Tensor] = {}
        for one in set(self.tensors):
            zeros = np.broadcast_to(np.zeros((), one.dtype), one.shape)  # one element in memory
            tensors[one] = Tensor("", one.shape, DType(one.dtype), data=zeros if one.constant else None)
        attrs = {one: _build_attrs(*one) for one in {op.attributes for op in self.ops}}
        seen = dict(self.seen)
        ops = tuple(
            Op(OpKind(op.kind), op.inputs, op.outputs, attrs[op.attributes], position, seen.get(position, ()))
            for position, op in enumerate(self.ops)
        )
        states = tuple(State(s.before, s.after, np.zeros(0, np.int8)) for s in self.states)
        passes = tuple(SecondPass(*one) for one in self.second_passes)
        pool = tuple(tensors[one] for one in self.tensors)
        return Graph(
            "",
            pool,
            ops,
            self.inputs,
            self.outputs,
            states,
            passes,
            Window(*self.window) if self.window else None,
        )


@cached_on_graph
def topology_digest(graph: Graph) -> str:
    """Returns the topology's SHA-256 in hex. A plan depends on it; training does not change it."""
    return topology(graph).digest


@cached_on_graph
def topology(graph: Graph) -> Topology:
    """Returns a network's topology, which does not depend on the numbers of its tensors."""
    passes, graph = graph.second_passes, number_tensors(graph)
    return Topology(
        tuple(TensorTopology(tuple(t.shape), t.dtype.value, t.is_constant) for t in graph.tensors),
        tuple(
            OpTopology(op.kind.value, op.inputs, op.outputs, _describe_attrs(op.attrs)) for op in graph.ops
        ),
        graph.inputs,
        graph.outputs,
        tuple(StateTopology(s.before, s.after, filling(s) is not None) for s in graph.states),
        tuple((one.first, one.last, one.reader) for one in passes),
        tuple((position, op.seen) for position, op in enumerate(graph.ops) if op.seen),
        dataclasses.astuple(graph.window) if graph.window else (),
    )


def filling(state: State) -> int | None:
    """Returns the byte (0 to 255) that fills a state's initial value, or None if its bytes differ."""
    import numpy as np

    values = state.initial.reshape(-1)
    values = values[:1] if values.strides == (0,) else values  # all are one element in memory
    raw = np.ascontiguousarray(values).view("u1")
    return int(raw[0]) if raw.size and bool((raw == raw[0]).all()) else None


def _describe_attrs(attrs: Attrs) -> tuple[str, tuple[tuple[str, Plain], ...]]:
    """Returns the name of the class, and (name, value) of every field that training does not change."""
    names = [
        f.name
        for f in dataclasses.fields(attrs)
        if (type(attrs), f.name) not in _TRAINED
        and not (f.name in _RARE and getattr(attrs, f.name) == f.default)
    ]
    return type(attrs).__name__, tuple((name, to_tuples(getattr(attrs, name))) for name in names)


def _build_attrs(name: str, values: tuple[tuple[str, Plain], ...]) -> Attrs:
    """Rebuilds attributes. Fields that training changes get their defaults."""
    cls: type[Attrs] = getattr(g, name)
    hints = typing.get_type_hints(cls)
    return cls(**{field: from_plain(value, hints[field], field) for field, value in values})
