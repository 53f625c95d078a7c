"""Gates: tensors that a pooling reads before another operator does, so that recomputation may pay.

    before --> operators by rows --> gated --> global pooling --> ... --> gate
                                     gated, gate --> product --> ...

Without a second pass (recomputation), the gated tensor is whole in memory from the pooling to the product.
With a second pass (see `graph.secondpass`) it never is. The operators that make it run by rows twice: first
into the pooling's sums, then into the product.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from buildtool.graph.liveness import alias_roots
from buildtool.graph.ops import ALIAS_KINDS
from buildtool.graph.types import Graph, SecondPass
from buildtool.plan.schedule.receptive import accumulates, by_rows, fed_in_parts, row_inputs
from buildtool.target.types import KernelVariant

MOST_STARTS = 3  # tensors of one gate that a second pass may begin with
MOST_OPERATORS = 48  # operators that one second pass runs again


def may_have_gates(graph: Graph) -> bool:
    """Returns whether a global pooling and another operator read the same tensor. If not, no gate exists."""
    readers = graph.consumers()
    return any(len(readers[op.inputs[0]]) > 1 and accumulates(graph, op) for op in graph.ops if op.inputs)


def gates(
    graph: Graph, kernels: Sequence[KernelVariant | None], streamed: Collection[int] = ()
) -> tuple[tuple[SecondPass, ...], ...]:
    """Returns for each gate the second passes that may save memory, the shortest pass first.

    `kernels`: one per operator, None for aliases. `streamed`: inputs that are delivered row by row. A second
    pass begins with a tensor that is smaller than the gated tensor and than all tensors between the two. This
    tensor has to be in memory a second time, so it cannot be one of the `streamed` tensors. Passes that would
    begin before the end of an earlier gate are left out.
    """
    roots = alias_roots(graph)
    # A second pass does not read streamed tensors, which come once, nor states between invokes.
    lasting = {t for state in graph.states for t in (state.before, state.after)}
    once_there = frozenset(roots[t] for t in (*streamed, *lasting))
    readers, passes, before = graph.consumers(), list[tuple[SecondPass, ...]](), -1
    for position, op in enumerate(graph.ops):
        read = readers.get(op.outputs[0], ())
        if len(op.outputs) != 1 or len(read) < 2 or op.outputs[0] in graph.outputs:
            continue
        *others, last = read
        reader = graph.ops[last]
        summed = any(accumulates(graph, graph.ops[p]) for p in others)
        if not summed or op.outputs[0] not in row_inputs(graph, reader) or accumulates(graph, reader):
            continue
        firsts = _firsts(graph, kernels, position, roots, once_there)
        starts = [SecondPass(first, position, last) for first in firsts if first > before]
        if starts:
            passes.append(tuple(starts[:MOST_STARTS]))
            before = last
    return tuple(passes)


def _firsts(
    graph: Graph,
    kernels: Sequence[KernelVariant | None],
    last: int,
    roots: Mapping[int, int],
    once_there: Collection[int],
) -> list[int]:
    """Returns the operators with which a second pass up to operator `last` may begin, the nearest one first.

    `kernels`: one per operator, None for aliases. `roots`: tensor -> its root (see alias_roots).
    `once_there`: roots of tensors that are in memory only the first time, so that no second pass can read
    them.
    """
    firsts: list[int] = []
    readers, result = graph.consumers(), graph.ops[last].outputs[0]
    least, outside, results = graph.tensors[result].size, set[int](), set[int]()
    for first in range(last, max(-1, last - MOST_OPERATORS), -1):
        op = graph.ops[first]
        if op.kind in ALIAS_KINDS or fed_in_parts(graph, op) or not by_rows(graph, op, kernels[first]):
            break
        results.update(op.outputs)
        if any(roots[t] in once_there for t in op.outputs):
            break
        if not outside.issuperset(op.outputs) and first != last:
            break
        outside.difference_update(op.outputs)
        outside.update(t for t in op.inputs if t >= 0 and not graph.tensors[t].is_constant)
        inside = range(first, last + 1)
        read_elsewhere = any(
            t != result and (t in graph.outputs or any(r not in inside for r in readers.get(t, ())))
            for t in results
        )
        if len(outside) == 1 and not read_elsewhere:
            (source,) = outside
            if graph.tensors[source].size < least and roots[source] not in once_there:
                least = graph.tensors[source].size
                firsts.append(first)
    return firsts
