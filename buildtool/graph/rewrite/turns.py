"""Turns signals: images of one row and many columns become images of many rows and one column.

A signal (samples in time) has the same bytes in both forms, so no input or output changes. But plans compute
row by row, and keep rows in rings. Conv1D of Keras reads its signal as (1, 1, L, C), MaxPooling1D as
(1, L, 1, C), and in between tensors have shape (1, L, C). Turned, all are (1, L, 1, C), and the RESHAPEs in
between disappear.

Kernels are often faster along a row. So planning tries both the turned and the given network.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from buildtool.graph import types as g
from buildtool.graph.consistency import check_graph
from buildtool.graph.geometry import attributes
from buildtool.graph.liveness import alias_roots
from buildtool.graph.numbering import graph_of
from buildtool.graph.ops import ALIAS_KINDS, PIXEL_KINDS, SLIDING_KINDS
from buildtool.graph.quantrules import same_quantization
from buildtool.graph.rewrite.turnedops import (
    OF_ROWS,
    Shape,
    operand_shape,
    order_of,
    samples_at_once,
    turned_attrs,
    turned_shape,
)
from buildtool.graph.types import Attrs, Graph, Op, OpKind, cached_on_graph


@cached_on_graph
def turn_signals(graph: Graph) -> Graph:
    """Returns the network with turned signals (time along the rows); `graph` itself if that changes nothing.

    Signals are turned if they are connected by operators that can run on turned signals, and if the windows
    of at least one operator move along them. Other operators read and write them through RESHAPEs, which run
    no code.
    """
    turned = _find_turned(graph)
    if not turned:
        return graph
    result = _join_samples(_Turning(graph, turned).result(), graph)
    check_graph(result)
    return result


def _join_samples(graph: Graph, before: Graph) -> Graph:
    """Makes each row of a network input several samples, if its first convolution allows that.

    The number of samples is such that the convolution's stride is a multiple of it (see `samples_at_once`).
    They become the row's channels. `graph`: the network with turned signals (time along the rows). `before`:
    the same network before its signals were turned.
    """
    tensors, ops, roots = list(graph.tensors), list(graph.ops), alias_roots(graph)
    columns = {
        t for t, old in zip(graph.inputs, before.inputs, strict=True) if before.tensors[old].nhwc[1] > 1
    }
    for position, op in enumerate(graph.ops):
        source, samples = op.inputs[0], samples_at_once(graph, op)
        root = roots.get(source)
        alone = graph.consumers().get(source) == (position,) and source not in graph.outputs
        if samples == 1 or not alone or root not in graph.inputs or root in columns:
            continue
        _, length, _, channels = tensors[source].shape
        tensors[source] = replace(tensors[source], shape=(1, length // samples, 1, channels * samples))
        filters, attrs = tensors[op.inputs[1]], attributes(op, g.ConvAttrs)
        assert filters.data is not None
        data = filters.data.reshape(len(filters.data), -1, 1, channels * samples)
        tensors.append(replace(filters, shape=data.shape, data=data, source=None))
        pad, stride = attrs.pad, attrs.stride[0] // samples
        rows = (tensors[op.outputs[0]].shape[1] - 1) * stride + data.shape[1] - pad.top // samples
        pad = replace(pad, top=pad.top // samples, bottom=max(0, rows - length // samples))
        inputs = (source, len(tensors) - 1, *op.inputs[2:])
        ops[position] = replace(
            op, inputs=inputs, attrs=replace(attrs, stride=(stride, attrs.stride[1]), pad=pad)
        )
    return graph_of(graph.name, tensors, ops, graph.inputs, graph.outputs, graph.states)


# ---- which signals -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Turned:
    """What is turned: the operators' new attributes, by their positions, and the signals that they use."""

    attrs: Mapping[int, Attrs]
    signals: frozenset[int]


def _find_turned(graph: Graph) -> _Turned | None:
    """Finds the operators and signals to turn; None if no operator is turned."""
    fixed = {t for state in graph.states for t in (state.before, state.after)}
    attrs = {p: new for p, op in enumerate(graph.ops) if (new := turned_attrs(graph, op, fixed)) is not None}
    groups = _Groups()
    for position, op in enumerate(graph.ops):
        if position in attrs or (op.kind in ALIAS_KINDS and _keeps_signal(graph, op, fixed)):
            groups.join(_signals_of(graph, op))
    changing, windowed = set[int](), set[int]()
    for position, op in enumerate(graph.ops):
        if position not in attrs:
            continue
        signals = _signals_of(graph, op)
        if _is_windowed(graph, op):
            windowed.add(groups.find(signals[0]))
        if any(graph.tensors[t].shape != turned_shape(graph.tensors[t].shape) for t in signals):
            changing.add(groups.find(signals[0]))
    chosen = changing & windowed
    own = {p: a for p, a in attrs.items() if groups.find(_signals_of(graph, graph.ops[p])[0]) in chosen}
    touched = {t for p in own for t in _signals_of(graph, graph.ops[p])}
    aliases = (op for op in graph.ops if op.kind in ALIAS_KINDS and _keeps_signal(graph, op, fixed))
    touched.update(t for op in aliases if groups.find(op.inputs[0]) in chosen for t in _signals_of(graph, op))
    return _Turned(own, frozenset(touched)) if own else None


class _Groups:
    """Disjoint sets of connected tensors (union-find)."""

    def __init__(self) -> None:
        self._parent: dict[int, int] = {}

    def find(self, t: int) -> int:
        """Returns the representative of the set that contains `t`."""
        while (parent := self._parent.setdefault(t, t)) != t:
            self._parent[t] = self._parent[parent]
            t = self._parent[t]
        return t

    def join(self, tensors: Sequence[int]) -> None:
        """Unites the sets of these tensors."""
        for t in tensors[1:]:
            self._parent[self.find(t)] = self.find(tensors[0])


def _signals_of(graph: Graph, op: Op) -> list[int]:
    """Returns the activations that an operator reads or writes and that are signals."""
    activations = (t for t in (*op.inputs, *op.outputs) if t >= 0 and not graph.tensors[t].is_constant)
    return [t for t in dict.fromkeys(activations) if turned_shape(graph.tensors[t].shape)]


def _keeps_signal(graph: Graph, op: Op, fixed: Iterable[int]) -> bool:
    """Whether a RESHAPE changes a signal into a signal of the same length and channels.

    Neither may be in `fixed`, the tensors that must keep their shape.
    """
    shapes = [turned_shape(graph.tensors[t].shape) for t in (op.inputs[0], op.outputs[0])]
    free = not graph.tensors[op.inputs[0]].is_constant and {op.inputs[0], op.outputs[0]}.isdisjoint(fixed)
    return free and shapes[0] is not None and shapes[0] == shapes[1]


def _is_windowed(graph: Graph, op: Op) -> bool:
    """Whether the operator has windows of several samples, which move along the signal."""
    if op.kind not in SLIDING_KINDS:
        return False
    if isinstance(op.attrs, g.PoolAttrs):
        return math.prod(op.attrs.kernel) > 1
    return isinstance(op.attrs, g.ConvAttrs) and math.prod(graph.tensors[op.inputs[1]].shape[1:3]) > 1


# ---- the turned network --------------------------------------------------------------------------------


class _Turning:
    """The turned network while it is built.

    `turned` maps each signal to the tensor that it becomes.
    """

    def __init__(self, graph: Graph, chosen: _Turned) -> None:
        self.graph, self.chosen = graph, chosen
        self.tensors = list(graph.tensors)
        self.ops: list[Op] = []
        self.turned: dict[int, int] = {}
        self.available = {
            t for t in graph.inputs if t not in chosen.signals
        }  # tensors that have values in their given shape

    def result(self) -> Graph:
        """Returns the turned network."""
        graph = self.graph
        inputs = [self._turn(t) if t in self.chosen.signals else t for t in graph.inputs]
        for position, op in enumerate(graph.ops):
            if position in self.chosen.attrs:
                self._run_turned(op, self.chosen.attrs[position])
            elif op.kind in ALIAS_KINDS:
                self._reshape(op)
            else:
                self._run(op)
        for t in graph.outputs:
            self._restore(t)
        return graph_of(graph.name, self.tensors, self.ops, inputs, graph.outputs, graph.states)

    def _turn(self, t: int) -> int:
        """Returns the tensor that the signal `t` becomes; adds it if it is missing."""
        if t not in self.turned:
            tensor, shape = self.tensors[t], turned_shape(self.tensors[t].shape)
            assert shape is not None
            self.turned[t] = t
            if tensor.shape != shape:
                self.turned[t] = len(self.tensors)
                turned, other = replace(tensor, shape=shape), f"{tensor.name}/reshaped"
                if t in self.graph.outputs:
                    turned = replace(turned, name=other)
                else:
                    self.tensors[t] = replace(tensor, name=other)
                self.tensors.append(turned)
        return self.turned[t]

    def _restore(self, t: int) -> None:
        """Adds a RESHAPE from the turned signal to `t`, its given shape, unless this shape is available."""
        if self.turned.get(t, t) != t and t not in self.available:
            self.available.add(t)
            self.ops.append(Op(OpKind.RESHAPE, (self.turned[t],), (t,)))

    def _run_turned(self, op: Op, attrs: Attrs) -> None:
        inputs = tuple(self._operand(op, t) if t >= 0 else t for t in op.inputs)
        (result,) = op.outputs
        outputs = (self._turn(result) if result in self.chosen.signals else result,)
        self.ops.append(replace(op, inputs=inputs, outputs=outputs, attrs=attrs))

    def _operand(self, op: Op, t: int) -> int:
        """Returns what an operator on turned signals reads instead of `t`: a turned signal, or a constant."""
        tensor = self.graph.tensors[t]
        if tensor.data is None:
            return self._turn(t)
        shape: Shape | None = None
        if op.kind in PIXEL_KINDS:
            shape = operand_shape(tensor, self.graph.tensors[op.outputs[0]].shape)
        elif op.kind is OpKind.CONCATENATION:
            shape = turned_shape(tensor.shape)
        elif t == op.inputs[1] and order_of(self.graph, (op.inputs[0], op.outputs[0])) == OF_ROWS:
            return self._constant(t, np.ascontiguousarray(tensor.data.swapaxes(1, 2)))  # filters
        if shape is None or len(shape) == 1 or shape == tensor.shape:
            return t
        return self._constant(t, tensor.data.reshape(shape))

    def _constant(self, t: int, data: npt.NDArray[np.generic]) -> int:
        self.tensors.append(replace(self.graph.tensors[t], shape=data.shape, data=data, source=None))
        return len(self.tensors) - 1

    def _reshape(self, op: Op) -> None:
        """Adds a RESHAPE that reads or writes signals. It is not needed if both become the same tensor."""
        source, result = op.inputs[0], op.outputs[0]
        if source in self.chosen.signals and result in self.chosen.signals and self._is_same(source, result):
            self.turned[result] = self._turn(source)
            return
        inputs = (self._turn(source) if source in self.chosen.signals else source, *op.inputs[1:])
        outputs = (self._turn(result) if result in self.chosen.signals else result,)
        changed = (inputs, outputs) != (op.inputs, op.outputs)
        self.ops.append(Op(OpKind.RESHAPE, inputs[:1], outputs, Attrs(), op.index) if changed else op)

    def _is_same(self, source: int, result: int) -> bool:
        """Whether two signals have the same shape when turned, the same type and the same quantisation."""
        a, b = self.graph.tensors[source], self.graph.tensors[result]
        return (
            turned_shape(a.shape) == turned_shape(b.shape)
            and a.dtype is b.dtype
            and same_quantization(a.quant, b.quant)
        )

    def _run(self, op: Op) -> None:
        """Adds an operator that is not turned. It reads and writes signals in their given shape."""
        for t in op.inputs:
            if t in self.chosen.signals:
                self._restore(t)
        self.ops.append(op)
        for t in op.outputs:
            if t in self.chosen.signals:
                self.available.add(t)
                if self._turn(t) != t:
                    self.ops.append(Op(OpKind.RESHAPE, (t,), (self.turned[t],)))
