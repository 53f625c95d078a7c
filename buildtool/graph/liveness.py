"""Live ranges of a graph's activations in its given operator order, and the largest live sum."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from buildtool.base.errors import ModelError
from buildtool.graph.ops import ALIAS_KINDS
from buildtool.graph.partviews import written_in_place
from buildtool.graph.types import Graph, OpKind, of_graph


@dataclass(frozen=True)
class LiveRange:
    """Tensors that share their bytes, and how long those must be kept.

    `tensors`: the one that is computed (or fed) first, or that the others are parts of, then its aliases in
    operator order.
    `first` to `last`: positions in Graph.ops, both included; network inputs are there from
    position 0 to the first operator that is not an alias at least, network outputs until the last
    position. `size` in bytes.
    """

    tensors: tuple[int, ...]
    size: int
    first: int
    last: int
    is_input: bool
    is_output: bool


@dataclass(frozen=True)
class LiveSum:
    """The largest sum of bytes live at once, and the first position where it is reached."""

    bytes: int
    position: int


@of_graph
def alias_roots(graph: Graph) -> Mapping[int, int]:
    """Activation tensor -> the tensor whose bytes it shares (itself where it is not an alias).

    Raises ModelError where an operator reads a tensor that nothing made, and where an alias of a
    constant would have to become an activation without any code to copy it.
    """
    wider = written_in_place(graph)
    roots = {t: t for t in (*graph.inputs, *(state.before for state in graph.states))}
    for op in graph.ops:
        for t in op.inputs:
            if t >= 0 and t not in roots and not graph.tensors[t].is_constant:
                raise ModelError(
                    "reads a tensor that no earlier operator makes",
                    operator=op.place,
                    tensor=graph.tensors[t].name,
                )
        if op.kind in ALIAS_KINDS and op.kind is not OpKind.JOINED:
            source = op.inputs[0]
            if source not in roots:
                raise ModelError(
                    "reshapes a constant; constants have to be folded before planning",
                    operator=op.place,
                    tensor=graph.tensors[source].name,
                )
            roots[op.outputs[0]] = roots[source]
        else:
            for t in op.outputs:
                root = t
                while root in wider:  # what it is written into, as a part, perhaps of a part
                    root = wider[root]
                roots[t] = root
    return roots


@of_graph
def state_of(graph: Graph) -> Mapping[int, int]:
    """Tensors whose bytes are those of a state -> which of Graph.states: before and after, aliases.

    They lie in memory of their own, which no arena counts. Of a graph that is not settled (see `states`) what
    is assigned may be elsewhere still.
    """
    roots, found = alias_roots(graph), dict[int, int]()
    for index, state in enumerate(graph.states):
        found |= dict.fromkeys((roots.get(state.before, -1), roots.get(state.after, -1)), index)
    return {t: found[root] for t, root in roots.items() if root in found}


@of_graph
def live_ranges(graph: Graph) -> tuple[LiveRange, ...]:
    """One range for each set of activations that share their bytes: inputs first, then as produced.

    An output that nothing reads is live at its operator alone; an alias is not a read. What is state takes
    no bytes here, and is there to the end.
    """
    roots = alias_roots(graph)
    members: dict[int, list[int]] = {}
    for tensor, root in roots.items():
        among = members.setdefault(root, [root])
        if tensor != root:
            among.append(tensor)
    begins = next((i for i, op in enumerate(graph.ops) if op.kind not in ALIAS_KINDS), 0)
    elsewhere = state_of(graph)
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
    fed = set(graph.inputs)
    kept = {roots[t] for t in (*graph.outputs, *elsewhere) if t in roots}
    end = max(len(graph.ops) - 1, 0)
    return tuple(
        LiveRange(
            tensors=tuple(members[root]),
            size=0 if root in elsewhere else max(graph.tensors[t].size for t in members[root]),
            first=first[root],
            last=end if root in kept else last[root],
            is_input=root in fed,
            is_output=root in kept,
        )
        for root in members
    )


def live_sums(ranges: Sequence[LiveRange], positions: int, alignment: int = 1) -> list[int]:
    """Bytes live at each of `positions` operators, every size rounded up to `alignment`."""
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
    """The largest live sum in the given order: no placement without overlaps needs less."""
    positions = max(len(graph.ops), 1)
    sums = live_sums(live_ranges(graph), positions, alignment)
    most = max(sums)
    return LiveSum(most, sums.index(most))
