"""Live ranges of a graph's activations in its order of operators, and the most bytes live at one operator."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from buildtool.base.errors import ModelError
from buildtool.graph.ops import ALIAS_KINDS
from buildtool.graph.partviews import tensors_written_in_place
from buildtool.graph.types import Graph, OpKind, cached_on_graph


@dataclass(frozen=True)
class LiveRange:
    """Tensors that share their bytes, and the operators during which these bytes are needed.

    `tensors`: first the one that is computed or fed first, or that contains the others. Its aliases follow in
    operator order.
    `size`: the number of bytes.
    `first`, `last`: positions in Graph.ops, both included. A network input lives from position 0 to the first
    operator that is not an alias, or longer. A network output lives to the last position.
    """

    tensors: tuple[int, ...]
    size: int
    first: int
    last: int
    is_input: bool
    is_output: bool


@dataclass(frozen=True)
class LiveSum:
    """The largest sum of bytes live at once, and the first position that has it."""

    bytes: int
    position: int


@cached_on_graph
def alias_roots(graph: Graph) -> Mapping[int, int]:
    """Maps each activation to the tensor whose bytes it shares, or to itself if it is not an alias.

    Raises ModelError if an operator reads a tensor that no earlier operator writes. Also raises it if an
    alias reshapes a constant, because no code would copy the constant's bytes.
    """
    wider = tensors_written_in_place(graph)
    roots = {t: t for t in (*graph.inputs, *(state.before for state in graph.states))}
    for op in graph.ops:
        for t in op.inputs:
            if t >= 0 and t not in roots and not graph.tensors[t].is_constant:
                text = "reads a tensor that no earlier operator makes"
                raise ModelError(text, operator=op.place, tensor=graph.tensors[t].name)
        if op.kind in ALIAS_KINDS and op.kind is not OpKind.JOINED:
            source = op.inputs[0]
            if source not in roots:
                text = "reshapes a constant; constants have to be folded before planning"
                raise ModelError(text, operator=op.place, tensor=graph.tensors[source].name)
            roots[op.outputs[0]] = roots[source]
        else:
            for t in op.outputs:
                root = t
                while root in wider:  # that tensor may be a part of another one
                    root = wider[root]
                roots[t] = root
    return roots


@cached_on_graph
def state_of(graph: Graph) -> Mapping[int, int]:
    """Maps each tensor that shares a state's bytes to the state's index in Graph.states.

    These tensors are `before`, `after` and their aliases. Their bytes lie outside the arena. Until
    `settle_states` (see `states`) has run, `after` may have bytes of its own.
    """
    roots, states = alias_roots(graph), dict[int, int]()
    for index, state in enumerate(graph.states):
        states |= dict.fromkeys((roots.get(state.before, -1), roots.get(state.after, -1)), index)
    return {t: states[root] for t, root in roots.items() if root in states}


@cached_on_graph
def live_ranges(graph: Graph) -> tuple[LiveRange, ...]:
    """Returns one range for each set of activations that share their bytes, inputs first, in execution order.

    An output that no operator reads is live only at the operator that writes it. An alias is not a reader. A
    state has a size of 0 here and lives to the end.
    """
    roots = alias_roots(graph)
    members: dict[int, list[int]] = {}
    for tensor, root in roots.items():
        members.setdefault(root, [root]).extend([tensor] if tensor != root else [])
    begins = next((i for i, op in enumerate(graph.ops) if op.kind not in ALIAS_KINDS), 0)
    states = state_of(graph)
    first = dict.fromkeys((*graph.inputs, *(state.before for state in graph.states)), 0)
    last = dict.fromkeys(first, begins)
    for position, op in enumerate(graph.ops):
        if op.kind in ALIAS_KINDS:
            continue
        for t in op.outputs:
            first.setdefault(roots[t], position)
            last[roots[t]] = position
        for t in op.inputs:
            if t in roots:
                last[roots[t]] = position
    inputs = set(graph.inputs)
    outputs = {roots[t] for t in (*graph.outputs, *states) if t in roots}
    end = max(len(graph.ops) - 1, 0)
    return tuple(
        LiveRange(
            tensors=tuple(members[root]),
            size=0 if root in states else max(graph.tensors[t].size for t in members[root]),
            first=first[root],
            last=end if root in outputs else last[root],
            is_input=root in inputs,
            is_output=root in outputs,
        )
        for root in members
    )


def live_sums(ranges: Sequence[LiveRange], positions: int, alignment: int = 1) -> list[int]:
    """Returns the bytes live at each of `positions` operators, with sizes rounded up to `alignment`."""
    change = [0] * (positions + 1)
    for r in ranges:
        size = -(-r.size // alignment) * alignment
        change[r.first] += size
        change[min(r.last + 1, positions)] -= size
    sums, live = [], 0
    for delta in change[:positions]:
        live += delta
        sums.append(live)
    return sums


def live_sum_bound(graph: Graph, alignment: int = 1) -> LiveSum:
    """Returns the largest live sum in the given order. Every valid placement needs at least as many bytes."""
    positions = max(len(graph.ops), 1)
    sums = live_sums(live_ranges(graph), positions, alignment)
    largest = max(sums)
    return LiveSum(largest, sums.index(largest))
