"""Tensors are numbered by first mention, whichever code makes the graph."""

import numpy as np
from disguise import renumbered
from hypothesis import given, settings
from hypothesis import strategies as st
from randomnets import networks

from buildtool.graph.numbering import number_tensors
from buildtool.graph.rewrite import rewrite
from buildtool.graph.tflite.reader import read_model
from buildtool.graph.tflite.writer import write_model
from buildtool.graph.topology import topology_digest
from buildtool.graph.types import DType, ElementwiseAttrs, Graph, Op, OpKind, Quantization, Tensor

SEEDS = st.integers(0, 1 << 30)


def numbers(graph: Graph) -> list[tuple[int, ...]]:
    """Every mention of a tensor, in order."""
    return [graph.inputs, *(side for op in graph.ops for side in (op.inputs, op.outputs)), graph.outputs]


def assert_counts_up(graph: Graph) -> None:
    """Numbers appear as 0, 1, 2, ... with no tensor left over."""
    mentions = dict.fromkeys(t for mention in numbers(graph) for t in mention if t != -1)
    assert list(mentions) == list(range(len(graph.tensors)))


def test_the_numbers_of_a_small_network():
    """Two inputs in swapped order, a constant that two operators share, an unused tensor, an absent one."""
    q = Quantization((0.5,), (0,))
    shapes = {"out": (1, 2), "spare": (9,), "b": (1, 2), "w": (2, 2), "a": (1, 2), "x": (1, 2), "y": (1, 2)}
    data = np.ones((2, 2), np.int8)
    tensors = tuple(Tensor(n, s, DType.INT8, q, data if n == "w" else None) for n, s in shapes.items())
    out, _, b, w, a, x, y = range(7)
    ops = (
        Op(OpKind.FULLY_CONNECTED, (b, w, -1), (x,)),
        Op(OpKind.FULLY_CONNECTED, (a, w, -1), (y,)),
        Op(OpKind.ADD, (y, x), (out,), ElementwiseAttrs()),
    )
    numbered = number_tensors(Graph("g", tensors, ops, (a, b), (out, x, out)))
    assert [t.name for t in numbered.tensors] == ["a", "b", "w", "x", "y", "out"]
    assert numbers(numbered) == [(0, 1), (1, 2, -1), (3,), (0, 2, -1), (4,), (4, 3), (5,), (5, 3, 5)]
    assert number_tensors(numbered) is numbered


@settings(derandomize=True, deadline=None, max_examples=30)
@given(networks(), SEEDS)
def test_a_rewritten_network_has_the_same_numbers_whatever_it_had_before(drawn, seed):
    graph = read_model(write_model(drawn))
    assert_counts_up(graph)
    after, again = rewrite(graph), rewrite(renumbered(graph, seed))
    assert_counts_up(after)
    assert numbers(again) == numbers(after)
    assert [t.name for t in again.tensors] == [t.name for t in after.tensors]
    assert topology_digest(again) == topology_digest(after)
