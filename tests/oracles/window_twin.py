"""What the steps of a group make and keep, by sets of rows and columns. No formula of the planner is used.

hand_offs(group, graph)            # must equal schedule.hand_offs
windows(group, graph, steps)       # tensor -> (rows, columns): the least that the steps can do with
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from buildtool.graph.types import Graph, Op
from buildtool.plan.schedule.receptive import axes, columns, row_inputs
from buildtool.plan.types import Group, Step

FAR = 100  # columns to the left of an image that are looked at


def reads(graph: Graph, op: Op, side: int, made: Iterable[int]) -> set[int]:
    """The rows (0) or columns (1) that an operator reads for some of its output, beyond its input's start."""
    axis, size = axes(graph, op)[side], graph.tensors[op.inputs[0]].nhwc[1 + side]
    return {n for q in made for n in range(axis.low(q), axis.low(q) + axis.kernel) if n < size}


def wanted(group: Group, graph: Graph, made: set[int]) -> dict[int, set[int]]:
    """Operator -> its columns on which columns `made` of the group's output depend."""
    outputs = {graph.ops[group.ops[-1]].outputs[0]: made}
    for op in (graph.ops[position] for position in reversed(group.ops)):
        for t in row_inputs(graph, op):
            outputs[t] = outputs.get(t, set()) | reads(graph, op, 1, outputs[op.outputs[0]])
    return {position: outputs[graph.ops[position].outputs[0]] for position in group.ops}


def hand_offs(group: Group, graph: Graph) -> list[tuple[int, int, int]]:
    """The calls that make one row: (operator's place in the group, columns from, to).

    An operator makes what this hand-off's pixels need, as if the image went on to the left. It makes a column
    once, and only if a reader in the group reads it or another operator needs the whole tensor.
    """
    width, step = columns(graph, graph.ops[group.ops[-1]]), group.hand_off
    ends = range(step - -(-FAR // step) * step, width + step, step) if step else [width]
    reached = dict.fromkeys(group.ops, 0)
    calls = []
    for end in ends:
        now = wanted(group, graph, set(range(-2 * FAR, min(end, width))))
        through = {p: max([reached[p], *(x + 1 for x in now[p])]) for p in group.ops}
        coming = _coming(group, graph, reached)
        for place, position in enumerate(group.ops):
            new = [x for x in coming[position] if x < through[position]]
            if new:
                calls.append((place, min(new), through[position]))
        reached = through
    return calls


def _coming(group: Group, graph: Graph, reached: Mapping[int, int]) -> dict[int, set[int]]:
    """Operator -> the columns from the reached one on that it has to make."""
    coming: dict[int, set[int]] = {}
    for position in reversed(group.ops):
        result = graph.ops[position].outputs[0]
        coming[position] = set(range(reached[position], columns(graph, graph.ops[position])))
        readers = graph.consumers().get(result, (-1,))
        if position != group.ops[-1] and set(readers) <= set(group.ops) and result not in graph.outputs:
            coming[position] &= set().union(*(reads(graph, graph.ops[p], 1, coming[p]) for p in readers))
    return coming


def windows(group: Group, graph: Graph, steps: Sequence[Step]) -> dict[int, tuple[int, int]]:
    """Inner tensor -> the fewest rows and columns of a window that holds every pixel until its last read.

    `steps`: those of the group, in order. Row y lies at y modulo the window's rows; columns likewise.
    """
    inner = [graph.ops[position].outputs[0] for position in group.ops[:-1]]
    least = dict.fromkeys(inner, (1, 1))
    for one in _advances(steps):
        for t in inner:
            rows, spans = set[int](), [1]
            touched = list(_touched(graph, one, t))
            for number, (y, x, is_made) in enumerate(touched):
                rows |= y
                if is_made:
                    made = set().union(*(x for _, x, of_maker in touched[: number + 1] if of_maker))
                    later = set().union(*(x for _, x, of_maker in touched[number:] if not of_maker))
                    live = x | (made & later)
                    spans.append(max(live) - min(live) + 1)
            tall = max(rows) - min(rows) + 1 if rows else 1
            least[t] = max(least[t][0], tall), max(least[t][1], *spans)
    return least


def _advances(steps: Sequence[Step]) -> Iterator[list[Step]]:
    """Splits steps where an operator begins again with earlier columns."""
    own: list[Step] = []
    for step in steps:
        if any(other.op == step.op and other.x1 > step.x0 for other in own):
            yield own
            own = []
        own.append(step)
    yield own


def _touched(graph: Graph, steps: Sequence[Step], tensor: int) -> Iterator[tuple[set[int], set[int], bool]]:
    """Yields the rows and columns of a tensor that each step makes or reads, and whether it makes them."""
    for step in steps:
        op, made = graph.ops[step.op], (range(step.y0, step.y1), range(step.x0, step.x1))
        if tensor in row_inputs(graph, op):
            y, x = ({n for n in reads(graph, op, side, made[side]) if n >= 0} for side in (0, 1))
            if y and x:
                yield y, x, False
        if tensor in op.outputs:
            yield set(made[0]), set(made[1]), True


def sizes(
    group: Group,
    graph: Graph,
    windows: Mapping[int, tuple[int, int]],
    aligned: Callable[[int], int],
    scratch: Mapping[int, int],
    rewrites: Sequence[int],
) -> Iterator[int]:
    """Yields the bytes of windows and scratch that each operator of a chain needs at once.

    With hand-offs all windows last. In strips a window lasts from its maker to its reader. `rewrites`: the
    tensors that may lie where the maker's input does, if both windows are equal.
    """
    size = {t: aligned(y * x * graph.tensors[t].pixel_bytes) for t, (y, x) in windows.items()}
    for position in group.ops:
        op = graph.ops[position]
        own = [t for t in dict.fromkeys((*op.inputs, *op.outputs)) if t in size]
        if not group.hand_off and len(own) == 2 and own[1] in rewrites and op.inputs.count(own[0]) == 1:
            before, after = ((*windows[t], graph.tensors[t].pixel_bytes) for t in own)
            own = own[:1] if before == after else own
        yield sum(size[t] for t in (size if group.hand_off else own)) + aligned(scratch.get(position, 0))
