"""State between invokes: checks states, and makes operators write new values in place.

Readers and rewrites treat states as values: an operator reads the old value, and another one computes the new
value. In a settled graph, the new value is written into the state's own bytes after the last reader of the
old value. Where an order of the operators allows it, the producer writes it there. Otherwise ASSIGN_VARIABLE
copies it. Where even that would come too early (two states that swap their values), READ_VARIABLE first
copies the old value.
"""

import heapq
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from buildtool.base.errors import ModelError, UnsupportedError
from buildtool.graph.liveness import alias_roots
from buildtool.graph.numbering import graph_of
from buildtool.graph.ops import ALIAS_KINDS, STATEFUL
from buildtool.graph.ops.signal import OWNERS
from buildtool.graph.types import AxisAttrs, DType, Graph, Op, OpKind, SliceAttrs, State

QUANTISED = (
    "quantise the variables too: converter._experimental_variable_quantization = True "
    "beside full-integer int8 quantisation"
)
_SLICES = (OpKind.SLICE, OpKind.STRIDED_SLICE)
STATE_TYPES = frozenset({DType.INT8, DType.INT16})  # that a variable can have


def check_states(graph: Graph, available: Iterable[int]) -> None:
    """Raises ModelError or UnsupportedError unless the states are valid.

    `available` are the tensors that have a value after all operators have run.
    """
    seen, computed = set(graph.inputs), set(available)
    any_type = (*OWNERS, OpKind.RING_PUSH)  # kinds whose states can have any type
    owned = {op.inputs[i] for op in graph.ops if op.kind in any_type for i in STATEFUL[op.kind]}
    for state in graph.states:
        before, after = graph.tensors[state.before], graph.tensors[state.after]
        if state.before in seen or before.is_constant:
            raise ModelError("a state that is an input, a constant or another state", tensor=before.name)
        seen.add(state.before)
        if after.is_constant:
            hint = "assign a computed value, or make the constant the variable's initial value"
            raise UnsupportedError("a state is assigned a constant", tensor=after.name, hint=hint)
        if state.after not in computed:
            raise ModelError("a state is assigned a tensor that no operator makes", tensor=after.name)
        if before.dtype not in STATE_TYPES and state.before not in owned:
            raise UnsupportedError(f"state of type {before.dtype}", tensor=before.name, hint=QUANTISED)
        if after.dtype != before.dtype or after.elements != before.elements:
            text = f"a state of {before.dtype} {list(before.shape)} is assigned"
            raise ModelError(f"{text} {after.dtype} {list(after.shape)}", tensor=after.name)
        value = state.initial
        if value.shape != before.shape or value.dtype != np.dtype(before.dtype.value):
            text = f"an initial value of {value.dtype} {list(value.shape)} for a state of"
            raise ModelError(f"{text} {before.dtype} {list(before.shape)}", tensor=before.name)


def settle_states(graph: Graph) -> Graph:
    """Returns the graph with each state written in place: once, and after its old value has been read."""
    if not graph.states:
        return graph
    work = _Settling(join_windows(graph))
    for index in range(len(graph.states)):
        work.settle(index)
    return work.graph()


def join_windows(graph: Graph) -> Graph:
    """Replaces states that are concatenated with new values by states that are the whole concatenation.

    A streaming layer concatenates its state and its input, computes on this window, and uses the end of the
    window as the new state. If the state is the whole window instead, the concatenation needs no copy, and
    one SHIFT updates the state.
    """
    windows = [_find_window(graph, index) for index in range(len(graph.states))]
    if all(position is None for position in windows):
        return graph
    tensors, ops, states = list(graph.tensors), list(graph.ops), list(graph.states)
    for index, position in enumerate(windows):
        if position is None:
            continue
        state, joining = states[index], ops[position]
        axis = _axis(joining)
        whole, new = tensors[joining.outputs[0]], tensors[joining.inputs[1]]
        first = np.repeat(state.initial.take([0], axis=axis), new.shape[axis], axis=axis)
        initial = np.concatenate([first, state.initial], axis=axis)
        tensors[state.before] = replace(tensors[state.before], shape=whole.shape, source=None)
        ops[position] = replace(joining, kind=OpKind.SHIFT)
        states[index] = replace(state, after=joining.outputs[0], initial=initial)
    return replace(graph, tensors=tuple(tensors), ops=tuple(ops), states=tuple(states))


def _axis(op: Op) -> int:
    assert isinstance(op.attrs, AxisAttrs)
    return op.attrs.axis


def _find_window(graph: Graph, index: int) -> int | None:
    """Returns the position of the CONCATENATION of a state and new values, or None.

    The end of its output must be the state's new value. No other operator may read the state.
    """
    state = graph.states[index]
    readers = graph.consumers().get(state.before, ())
    afters = {other.after for i, other in enumerate(graph.states) if i != index}
    if len(readers) != 1 or state.before in (*graph.outputs, *afters):
        return None
    op, maker = graph.ops[readers[0]], graph.producers().get(state.after)
    if op.kind is not OpKind.CONCATENATION or len(op.inputs) != 2 or op.inputs[0] != state.before:
        return None
    ending = graph.ops[maker] if maker is not None else op
    if ending.kind not in _SLICES or ending.inputs[0] != op.outputs[0]:
        return None
    if any(other.after == op.outputs[0] for other in graph.states):
        return None
    shape, axis = graph.tensors[state.before].shape, _axis(op)
    end = _slice_end(graph.tensors[op.outputs[0]].shape, axis, shape[axis])
    same = graph.tensors[state.after].shape == shape and ending.attrs == end
    return readers[0] if same and op.inputs[1] != state.before else None


def _slice_end(shape: Sequence[int], axis: int, count: int) -> SliceAttrs:
    """Returns the attributes of a slice that takes the last `count` elements along an axis."""
    begin = tuple(n - count if d == axis else 0 for d, n in enumerate(shape))
    extent = tuple(count if d == axis else n for d, n in enumerate(shape))
    return SliceAttrs(begin, (1,) * len(shape), extent)


class _Settling:
    """Reorders operators, and adds copies, until each state can be written in place."""

    def __init__(self, graph: Graph) -> None:
        self._source = graph
        self._tensors = list(graph.tensors)
        self._ops = list(graph.ops)
        self._states = list(graph.states)
        self._outputs = list(graph.outputs)
        self._writers: dict[int, int] = {}  # a state's old value (a root) -> its new value

    def graph(self) -> Graph:
        """Returns the current graph, its operators in order."""
        source, order = self._source, self._sort(self._ops, self._writers)
        assert order is not None
        return graph_of(source.name, self._tensors, order, source.inputs, self._outputs, self._states)

    def _sort(self, ops: Sequence[Op], writers: Mapping[int, int]) -> list[Op] | None:
        """Sorts operators so that each state is written after all readers of its old value.

        Returns None if there is no such order.
        """
        roots = alias_roots(self._current_graph())
        running = [op for op in ops if op.kind not in ALIAS_KINDS]
        makers = {t: op for op in running for t in op.outputs}
        after = [
            (op, makers[new])
            for old, new in writers.items()
            for op in running
            if op is not makers[new] and any(roots.get(t) == old for t in op.inputs)
        ]
        return _sort_ops(ops, after)

    def _current_graph(self) -> Graph:
        tensors, ops, outputs = tuple(self._tensors), tuple(self._ops), tuple(self._outputs)
        return replace(self._source, tensors=tensors, ops=ops, outputs=outputs, states=tuple(self._states))

    def settle(self, index: int) -> None:
        """Makes an operator write one state in place. If no order allows it, copies the new value.

        If even this copy would overwrite the old value too early, the old value is copied first.
        """
        state = self._states[index]
        roots = alias_roots(self._current_graph())
        old, new = roots[state.before], roots.get(state.after, -1)
        if old == new:
            return
        if any(roots.get(t) == old for t in self._outputs):  # the old value is needed after the invoke
            self._copy_old_value(state)
            roots = alias_roots(self._current_graph())
        writer = next((op for op in self._ops if new in op.outputs and op.kind not in ALIAS_KINDS), None)
        if writer is not None and new not in self._writers.values():
            for candidate in (self._make_shift(writer, old, roots), writer):
                if candidate is not None and self._write_in_place(writer, candidate, old, new, roots):
                    return
            if writer.kind in STATEFUL:
                raise UnsupportedError("its state is read after it is updated", operator=writer.place)
        source = self._tensors[state.after]
        self._tensors.append(replace(source, name=f"{source.name}/state", data=None, source=None))
        copy = len(self._tensors) - 1
        self._ops.append(Op(OpKind.ASSIGN_VARIABLE, (state.after,), (copy,)))
        self._states[index] = replace(state, after=copy)
        self._writers[old] = copy
        if self._sort(self._ops, self._writers) is None:
            self._copy_old_value(state)

    def _write_in_place(self, writer: Op, new_op: Op, old: int, new: int, roots: Mapping[int, int]) -> bool:
        """Replaces `writer` by `new_op`, which writes the state in place.

        Returns False if no order of the operators allows it.
        """
        allowed = STATEFUL.get(new_op.kind, {})
        for number, t in enumerate(new_op.inputs):
            if roots.get(t) == old and allowed.get(number) != new_op.outputs.index(new):
                return False
        ops = [new_op if op is writer else op for op in self._ops]
        if self._sort(ops, {**self._writers, old: new}) is None:
            return False
        self._ops, self._writers[old] = ops, new
        return True

    def _copy_old_value(self, state: State) -> None:
        """Makes all readers of a state's old value read a copy of it."""
        before = self._tensors[state.before]
        self._tensors.append(replace(before, name=f"{before.name}/kept"))
        copy = len(self._tensors) - 1
        self._outputs = [copy if t == state.before else t for t in self._outputs]
        ops = [Op(OpKind.READ_VARIABLE, (state.before,), (copy,))]
        for op in self._ops:
            inputs = tuple(copy if t == state.before else t for t in op.inputs)
            ops.append(replace(op, inputs=inputs) if state.before in op.inputs else op)
        self._ops = ops

    def _make_shift(self, writer: Op, old: int, roots: Mapping[int, int]) -> Op | None:
        """Returns a SHIFT that can replace `writer`, or None.

        `writer` must concatenate the end of the old value and new values.
        """
        if writer.kind is not OpKind.CONCATENATION or len(writer.inputs) != 2:
            return None
        tail = next((op for op in self._ops if writer.inputs[0] in op.outputs), None)
        if tail is None or tail.kind not in _SLICES or roots.get(tail.inputs[0]) != old:
            return None
        shape, axis = self._tensors[tail.inputs[0]].shape, _axis(writer)
        rest, whole = (self._tensors[op.outputs[0]].shape for op in (tail, writer))
        if whole != shape or len(rest) != len(shape) or tail.attrs != _slice_end(shape, axis, rest[axis]):
            return None
        inputs = (tail.inputs[0], writer.inputs[1])
        return Op(OpKind.SHIFT, inputs, writer.outputs, writer.attrs, writer.index)


def _sort_ops(ops: Sequence[Op], after: Sequence[tuple[Op, Op]]) -> list[Op] | None:
    """Sorts operators so that each follows its producers.

    In each pair in `after`, the second operator follows the first. Returns None if there is no such order.
    Copies into states come as early as possible. Otherwise the given order decides which operator comes next.
    """
    place = {id(op): i for i, op in enumerate(ops)}
    maker = {t: i for i, op in enumerate(ops) for t in op.outputs}
    needs: list[set[int]] = [{maker[t] for t in op.inputs if t in maker} for op in ops]
    for first, then in after:
        needs[place[id(then)]].add(place[id(first)])
    followers: list[list[int]] = [[] for _ in ops]
    for i, before in enumerate(needs):
        for j in before:
            followers[j].append(i)
    waiting = [len(before) for before in needs]
    rank = [(op.kind is not OpKind.ASSIGN_VARIABLE, i) for i, op in enumerate(ops)]  # these free memory
    ready = [rank[i] for i, count in enumerate(waiting) if not count]
    heapq.heapify(ready)
    order = []
    while ready:
        _, i = heapq.heappop(ready)
        order.append(ops[i])
        for j in followers[i]:
            waiting[j] -= 1
            if not waiting[j]:
                heapq.heappush(ready, rank[j])
    return order if len(order) == len(ops) else None
