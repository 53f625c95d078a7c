"""Operators whose result follows from one int8 tensor alone, element by element, become one LOOKUP.

Swish as converters write it (MUL of x and LOGISTIC of x), hard swish written out (ADD 3, RELU6, MUL 1/6,
MUL x), squares, lookups one behind the other: each is a function of one byte. Its table is what the
reference executor makes of all 256 of them, so it is exact by construction.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from buildtool.base.errors import UnsupportedError
from buildtool.graph.numbering import graph_of
from buildtool.graph.ops import PAIR_KINDS, TABLE_KINDS
from buildtool.graph.rewrite.draft import Draft, Node
from buildtool.graph.types import (
    Attrs,
    DType,
    OpKind,
    Tensor,
    WidenedAttrs,
)

_KINDS = TABLE_KINDS | PAIR_KINDS | {OpKind.PRELU}
_SUMS = frozenset({OpKind.ADD, OpKind.SUB})  # faster than a lookup where a vector unit makes them
_TYPES = (DType.INT8, DType.BOOL)
_EVERY = (1, 1, 1, 256)
_MOST = 64  # operators of one function


@dataclass(frozen=True)
class _Function:
    """Operators that together are a function of each element of the tensor `source`."""

    source: int
    nodes: tuple[Node, ...]  # the first one writes the result, each other's readers stand before it


def look_up(draft: Draft) -> None:
    """Turns every such function that takes several operators, or one tensor twice, into a LOOKUP.

    What is one operator of one tensor and a constant stays what it is; so do sums alone. Which operators
    these are depends on the network's structure only; the table is a constant as weights are.
    """
    places = {id(node): place for place, node in enumerate(draft.nodes)}
    for node in reversed(draft.nodes):
        if node.dead or not _elementwise(draft, node):
            continue
        found = _function(draft, node, places)
        if found is not None and _worth_it(found):
            _replace(draft, found)
    draft.nodes = [node for node in draft.nodes if not node.dead]


def _elementwise(draft: Draft, node: Node) -> bool:
    """Whether each element of the output follows from those at its place and constants of one element."""
    if node.kind not in _KINDS or isinstance(node.attrs, WidenedAttrs):
        return False
    made = [draft.tensors[t] for t in (*_varying(draft, node), *node.outputs)]
    constants = (draft.tensors[t] for t in node.inputs if draft.tensors[t].is_constant)
    return (
        all(tensor.dtype in _TYPES and tensor.shape == made[-1].shape for tensor in made)
        and all(tensor.elements == 1 for tensor in constants)
        and len(made) > 1
    )


def _varying(draft: Draft, node: Node) -> Iterable[int]:
    return (t for t in dict.fromkeys(node.inputs) if not draft.tensors[t].is_constant)


def _function(draft: Draft, last: Node, places: dict[int, int]) -> _Function | None:
    """The largest function that `last` ends: of one int8 tensor, with nothing in between read elsewhere.

    Of the tensors whose makers are not yet taken in, that of the last maker is next: all its readers have
    been asked by then. `places`: of the nodes in the execution order.
    """
    nodes, open_ = [last], set(_varying(draft, last))
    found = None
    while len(nodes) <= _MOST:
        if len(open_) == 1:
            (source,) = open_
            if draft.tensors[source].dtype is DType.INT8:
                found = _Function(source, tuple(nodes))
        makers = [(t, draft.producer(t)) for t in open_]
        tensor, maker = max(makers, key=lambda pair: -1 if pair[1] is None else places[id(pair[1])])
        if maker is None or not draft.private(tensor) or not _elementwise(draft, maker):
            break
        if any(reader not in nodes for reader in draft.readers(tensor)):
            break
        nodes.append(maker)
        open_ = (open_ - {tensor}) | set(_varying(draft, maker))
    return found


def _worth_it(found: _Function) -> bool:
    """Whether a lookup is never slower, on any board, than what it stands for."""
    if all(node.kind in _SUMS for node in found.nodes):
        return False
    return len(found.nodes) > 1 or found.nodes[0].inputs.count(found.source) > 1


def _replace(draft: Draft, found: _Function) -> None:
    """Makes the last operator a LOOKUP, and takes the others out."""
    last, *others = found.nodes
    try:
        values = _table(draft, found)
    except UnsupportedError:  # whoever computes the operators says so
        return
    name = f"{draft.tensors[last.outputs[0]].name}/table"
    table = draft.add_tensor(Tensor(name, values.shape, DType.INT8, data=values))
    draft.become(last, OpKind.LOOKUP, Attrs())
    draft.set_inputs(last, [found.source, table])
    for node in others:
        draft.remove(node)


def _table(draft: Draft, found: _Function) -> npt.NDArray[np.int8]:
    """The result's bytes by the bit patterns of the source's elements."""
    from buildtool.graph.reference import execute  # deferred: the executor is only needed here

    ops = [node.op() for node in reversed(found.nodes)]
    tensors = {t: _reshaped(draft.tensors[t]) for op in ops for t in (*op.inputs, *op.outputs)}
    graph = graph_of(draft.name, tensors, ops, [found.source], ops[-1].outputs)
    every = np.arange(256, dtype=np.uint8).view(np.int8).reshape(_EVERY)
    values = execute(graph, [every])[graph.outputs[0]].reshape(256).view(np.int8).copy()
    return values


def _reshaped(tensor: Tensor) -> Tensor:
    """The tensor with an element for each of 256 bytes, or a constant that broadcasts to that."""
    if tensor.data is None:
        return replace(tensor, shape=_EVERY)
    return replace(tensor, shape=(1, 1, 1, 1), data=tensor.data.reshape(1, 1, 1, 1))
