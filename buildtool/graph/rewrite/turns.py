"""Turns signals: networks of one row and many columns become networks of many rows and one column.

A signal has the same bytes as 1xL and as Lx1, so no input or output changes. But rows are what a plan streams
and keeps in rings. Conv1D of Keras reads its signal as (1, 1, L, C), MaxPooling1D as (1, L, 1, C), and what lies
between them has shape (1, L, C): turned, all of them are (1, L, 1, C), and the RESHAPEs in between are gone.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from buildtool.graph import types as g
from buildtool.graph.consistency import check_graph
from buildtool.graph.numbering import graph_of
from buildtool.graph.ops import ALIAS_KINDS, PIXEL_KINDS, SLIDING_KINDS
from buildtool.graph.quantrules import same_quantization
from buildtool.graph.types import Attrs, DType, Graph, Op, OpKind, Tensor, cached_on_graph

Shape = tuple[int, ...]

# The dimension of a turned signal that each dimension of another one becomes.
_OF_LINES = (0, 1, 3)  # (1, L, C)
_OF_ROWS = (0, 2, 1, 3)  # (1, 1, L, C)
_OF_COLUMNS = (0, 1, 2, 3)  # (1, L, 1, C)


@cached_on_graph
def turn_signals(graph: Graph) -> Graph:
    """Returns the network with its signals as columns; the same graph where that changes nothing.

    Only connected signals that a window moves along are turned. Operators that cannot run on turned signals
    read and write them through RESHAPEs, which run no code.
    """
    turned = _find_turned(graph)
    if not turned:
        return graph
    result = _Turning(graph, turned).result()
    check_graph(result)
    return result


def _turn_shape(shape: Shape) -> Shape | None:
    """The shape of a signal as one column; None if it is no signal."""
    match shape:
        case (1, length, channels) | (1, 1, length, channels) | (1, length, 1, channels):
            return 1, length, 1, channels
    return None


# ---- which signals -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Turned:
    """What may be turned: the operators with their new attributes, and the signals between them."""

    attrs: Mapping[int, Attrs]
    signals: frozenset[int]


def _find_turned(graph: Graph) -> _Turned | None:
    """Finds the operators and signals to turn; None if there are none."""
    fixed = {t for state in graph.states for t in (state.before, state.after)}
    attrs = {p: new for p, op in enumerate(graph.ops) if (new := _turn_attrs(graph, op, fixed)) is not None}
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
        if any(graph.tensors[t].shape != _turn_shape(graph.tensors[t].shape) for t in signals):
            changing.add(groups.find(signals[0]))
    chosen = changing & windowed
    own = {p: a for p, a in attrs.items() if groups.find(_signals_of(graph, graph.ops[p])[0]) in chosen}
    touched = {t for p in own for t in _signals_of(graph, graph.ops[p])}
    aliases = (op for op in graph.ops if op.kind in ALIAS_KINDS and _keeps_signal(graph, op, fixed))
    touched.update(t for op in aliases if groups.find(op.inputs[0]) in chosen for t in _signals_of(graph, op))
    return _Turned(own, frozenset(touched)) if own else None


class _Groups:
    """Sets of connected tensors."""

    def __init__(self) -> None:
        self._parent: dict[int, int] = {}

    def find(self, t: int) -> int:
        """The tensor that stands for all that are connected with `t`."""
        while (parent := self._parent.setdefault(t, t)) != t:
            self._parent[t] = self._parent[parent]
            t = self._parent[t]
        return t

    def join(self, tensors: Sequence[int]) -> None:
        """Connects tensors."""
        for t in tensors[1:]:
            self._parent[self.find(t)] = self.find(tensors[0])


def _signals_of(graph: Graph, op: Op) -> list[int]:
    """The activations of an operator that are signals."""
    activations = (t for t in (*op.inputs, *op.outputs) if t >= 0 and not graph.tensors[t].is_constant)
    return [t for t in dict.fromkeys(activations) if _turn_shape(graph.tensors[t].shape)]


def _keeps_signal(graph: Graph, op: Op, fixed: Iterable[int]) -> bool:
    """Whether a RESHAPE makes a signal of a signal, of the same length."""
    shapes = [_turn_shape(graph.tensors[t].shape) for t in (op.inputs[0], op.outputs[0])]
    free = not graph.tensors[op.inputs[0]].is_constant and not {op.inputs[0], op.outputs[0]}.intersection(fixed)
    return free and shapes[0] is not None and shapes[0] == shapes[1]


def _is_windowed(graph: Graph, op: Op) -> bool:
    """Whether a window moves along the signal, or the signal gets longer or shorter."""
    if op.kind not in SLIDING_KINDS:
        return False
    attrs, kernel = op.attrs, (1, 1)
    if isinstance(attrs, g.PoolAttrs):
        kernel = attrs.kernel
    elif isinstance(attrs, g.ConvAttrs):
        kernel = graph.tensors[op.inputs[1]].shape[1:3]
    return math.prod(kernel) > 1


# ---- operators -----------------------------------------------------------------------------------------


def _turn_attrs(graph: Graph, op: Op, fixed: Iterable[int]) -> Attrs | None:
    """The attributes of an operator on turned signals; None if it cannot run on them."""
    activations = [t for t in (*op.inputs, *op.outputs) if t >= 0 and not graph.tensors[t].is_constant]
    source, result = graph.tensors[op.inputs[0]], graph.tensors[op.outputs[0]]
    if len(op.outputs) != 1 or not set(activations).isdisjoint(fixed) or op.kind in ALIAS_KINDS:
        return None
    if op.kind is OpKind.MEAN:
        return _turn_mean(op, source, result)
    if not all(_turn_shape(graph.tensors[t].shape) for t in activations):
        return None
    if op.kind in PIXEL_KINDS:
        return op.attrs if _broadcasts(graph, op) else None
    order = _order_of(graph, activations)
    if order is None:
        return None
    attrs = op.attrs
    if op.kind is OpKind.CONCATENATION and isinstance(attrs, g.AxisAttrs):
        return g.AxisAttrs(order[attrs.axis])
    if isinstance(attrs, g.PadAttrs):
        return replace(attrs, paddings=_permute(attrs.paddings, order, (0, 0)))
    if isinstance(attrs, g.SliceAttrs) and len(result.shape) == len(source.shape):
        parts = ((attrs.begin, 0), (attrs.stride, 1), (attrs.extent, 1))
        return replace(
            attrs, **dict(zip(("begin", "stride", "extent"), (_permute(v, order, n) for v, n in parts)))
        )
    if op.kind is OpKind.RESIZE_NEAREST_NEIGHBOR:
        return attrs
    if isinstance(attrs, g.ConvAttrs | g.PoolAttrs):
        return _turn_window(graph, op, attrs) if order == _OF_ROWS else attrs
    return None


def _order_of(graph: Graph, activations: Iterable[int]) -> Shape | None:
    """Which dimensions become which: the same for all activations of an operator, or None."""
    shapes = [graph.tensors[t].shape for t in activations]
    if all(len(shape) == 3 for shape in shapes):
        return _OF_LINES
    if any(len(shape) == 3 for shape in shapes):
        return None
    if all(shape[2] == 1 for shape in shapes):
        return _OF_COLUMNS
    return _OF_ROWS if all(shape[1] == 1 for shape in shapes) else None


def _permute(values: Sequence[g.Any], order: Shape, missing: g.Any) -> tuple[g.Any, ...]:
    """One value per dimension, in the order of a turned signal's dimensions."""
    places = dict(zip(order, values, strict=True))
    return tuple(places.get(dimension, missing) for dimension in range(4))


def _turn_mean(op: Op, source: Tensor, result: Tensor) -> Attrs | None:
    """The attributes of a mean over all samples; other means are not turned."""
    shape = _turn_shape(source.shape)
    if not isinstance(op.attrs, g.MeanAttrs) or shape is None:
        return None
    kept = [n for axis, n in enumerate(source.shape) if axis not in op.attrs.axes]
    last = len(source.shape) - 1
    if last in op.attrs.axes or math.prod(kept) != shape[3]:
        return None
    return g.MeanAttrs((1, 2), keep_dims=_turn_shape(result.shape) is not None)


def _turn_window(graph: Graph, op: Op, attrs: g.ConvAttrs | g.PoolAttrs) -> Attrs | None:
    """The attributes of a window whose rows become columns."""
    pad = g.Pad(attrs.pad.left, attrs.pad.right, attrs.pad.top, attrs.pad.bottom)
    stride = attrs.stride[::-1]
    if isinstance(attrs, g.PoolAttrs):
        flat, turned = 1 in attrs.kernel, replace(attrs, kernel=attrs.kernel[::-1], stride=stride, pad=pad)
    else:
        weights = graph.tensors[op.inputs[1]]
        flat = 1 in weights.shape[1:3]
        if not weights.is_constant:
            return None
        turned = replace(attrs, stride=stride, dilation=attrs.dilation[::-1], pad=pad)
    # the order of a sum decides how floats are rounded
    return turned if flat or graph.tensors[op.inputs[0]].dtype is not DType.FLOAT32 else None


def _broadcasts(graph: Graph, op: Op) -> bool:
    """Whether the turned operands of a function of elements or pixels have the turned result's shape."""
    result = graph.tensors[op.outputs[0]].shape
    shapes = [_operand_shape(graph.tensors[t], result) for t in op.inputs if t >= 0]
    if any(shape is None for shape in shapes):
        return False
    return np.broadcast_shapes(*(shape for shape in shapes if shape)) == _turn_shape(result)


def _operand_shape(tensor: Tensor, result: Shape) -> Shape | None:
    """The shape of an operand that is broadcast to a turned result; None if there is none."""
    if not tensor.is_constant:
        return _turn_shape(tensor.shape)
    if math.prod(tensor.shape[:-1]) == 1:
        return tensor.shape[-1:]
    return _turn_shape((1,) * (len(result) - len(tensor.shape)) + tensor.shape)


# ---- the turned network --------------------------------------------------------------------------------


class _Turning:
    """Builds the turned network; `turned` maps each signal to the tensor that it becomes."""

    def __init__(self, graph: Graph, of: _Turned) -> None:
        self.graph, self.of = graph, of
        self.tensors = list(graph.tensors)
        self.ops: list[Op] = []
        self.turned: dict[int, int] = {}
        self.there = {t for t in graph.inputs if t not in of.signals}  # signals in their first shape, too

    def result(self) -> Graph:
        """Returns the network."""
        graph = self.graph
        inputs = [self._turn(t) if t in self.of.signals else t for t in graph.inputs]
        for position, op in enumerate(graph.ops):
            if position in self.of.attrs:
                self._run_turned(op, self.of.attrs[position])
            elif op.kind in ALIAS_KINDS:
                self._reshape(op)
            else:
                self._run(op)
        for t in graph.outputs:
            self._restore(t)
        return graph_of(graph.name, self.tensors, self.ops, inputs, graph.outputs, graph.states)

    def _turn(self, t: int) -> int:
        """The signal as a column."""
        if t not in self.turned:
            tensor, shape = self.tensors[t], _turn_shape(self.tensors[t].shape)
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
        """Makes a turned signal available in its first shape."""
        if self.turned.get(t, t) != t and t not in self.there:
            self.there.add(t)
            self.ops.append(Op(OpKind.RESHAPE, (self.turned[t],), (t,)))

    def _run_turned(self, op: Op, attrs: Attrs) -> None:
        inputs = tuple(self._operand(op, t) if t >= 0 else t for t in op.inputs)
        (result,) = op.outputs
        outputs = (self._turn(result) if result in self.of.signals else result,)
        self.ops.append(replace(op, inputs=inputs, outputs=outputs, attrs=attrs))

    def _operand(self, op: Op, t: int) -> int:
        """An operand of an operator on turned signals."""
        tensor = self.graph.tensors[t]
        if not tensor.is_constant:
            return self._turn(t)
        shape: Shape | None = tensor.shape
        if op.kind in PIXEL_KINDS:
            shape = _operand_shape(tensor, self.graph.tensors[op.outputs[0]].shape)
            shape = tensor.shape if shape is None or len(shape) == 1 else shape
        elif op.kind is OpKind.CONCATENATION:
            shape = _turn_shape(tensor.shape)
        elif t == op.inputs[1] and _order_of(self.graph, (op.inputs[0], op.outputs[0])) == _OF_ROWS:
            return self._constant(t, np.ascontiguousarray(tensor.data.swapaxes(1, 2)))  # type: ignore[union-attr]
        return t if shape in (tensor.shape, None) else self._constant(t, tensor.data.reshape(shape))  # type: ignore[union-attr, arg-type]

    def _constant(self, t: int, data: g.npt.NDArray[np.generic]) -> int:
        self.tensors.append(replace(self.graph.tensors[t], shape=data.shape, data=data, source=None))
        return len(self.tensors) - 1

    def _reshape(self, op: Op) -> None:
        """A RESHAPE of or to turned signals; none where both sides become the same."""
        source, result = op.inputs[0], op.outputs[0]
        if source in self.of.signals and result in self.of.signals and self._is_same(source, result):
            self.turned[result] = self._turn(source)
            return
        inputs = (self._turn(source) if source in self.of.signals else source, *op.inputs[1:])
        outputs = (self._turn(result) if result in self.of.signals else result,)
        changed = (inputs, outputs) != (op.inputs, op.outputs)
        alias = Op(OpKind.RESHAPE, inputs[:1], outputs, Attrs(), op.index) if changed else op
        self.ops.append(alias)

    def _is_same(self, source: int, result: int) -> bool:
        """Whether two signals of the same bytes also mean the same values."""
        a, b = self.graph.tensors[source], self.graph.tensors[result]
        return a.dtype is b.dtype and same_quantization(a.quant, b.quant)

    def _run(self, op: Op) -> None:
        """An operator on signals in their first shape."""
        for t in op.inputs:
            if t in self.of.signals:
                self._restore(t)
        self.ops.append(op)
        for t in op.outputs:
            if t in self.of.signals:
                self.there.add(t)
                if self._turn(t) != t:
                    self.ops.append(Op(OpKind.RESHAPE, (t,), (self.turned[t],)))


