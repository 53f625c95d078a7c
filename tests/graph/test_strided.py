"""Boxes and strides of data movement operators: a walk in Python gives the same as numpy."""

import itertools

import numpy as np
from graphs import inputs_for, one_operator_graphs, seeds
from hypothesis import given, settings
from hypothesis import strategies as st

from buildtool.graph.reference import execute
from buildtool.graph.strided import MAX_RANK, Copy, copies, merge_dims, reduction, row_major
from buildtool.graph.types import OpKind

MOVES = [
    OpKind.TRANSPOSE,
    OpKind.SLICE,
    OpKind.STRIDED_SLICE,
    OpKind.SPLIT,
    OpKind.CONCATENATION,
    OpKind.PAD,
]
_quick = settings(derandomize=True, deadline=None, max_examples=150)


def _walk(copy, source, sink):
    for place in itertools.product(*map(range, copy.size)):
        a = copy.in_offset + sum(i * s for i, s in zip(place, copy.in_stride, strict=True))
        b = copy.out_offset + sum(i * s for i, s in zip(place, copy.out_stride, strict=True))
        assert 0 <= a < source.size and 0 <= b < sink.size
        sink[b] = source[a]


@_quick
@given(data=st.data(), kind=st.sampled_from(MOVES), seed=seeds)
def test_copies_move_as_the_executor_does(data, kind, seed):
    graph = data.draw(one_operator_graphs(kind))
    op = graph.ops[0]
    inputs = inputs_for(graph, seed)
    values = execute(graph, inputs)
    moves = copies(graph, op)
    assert len(moves) == max(len(op.inputs), len(op.outputs))
    fill = op.attrs.value if kind is OpKind.PAD else 99
    sinks = {t: np.full(graph.tensors[t].elements, fill, np.int8) for t in op.outputs}
    for n, copy in enumerate(moves):
        source = values[op.inputs[n if kind is OpKind.CONCATENATION else 0]].reshape(-1)
        _walk(copy, source, sinks[op.outputs[n if kind is OpKind.SPLIT else 0]])
    for t, sink in sinks.items():
        np.testing.assert_array_equal(sink, values[t].reshape(-1))


@_quick
@given(
    st.lists(st.integers(1, 4), min_size=1, max_size=5).flatmap(
        lambda shape: st.tuples(st.just(shape), st.permutations(range(len(shape))))
    )
)
def test_merging_dimensions_moves_the_same_bytes_in_fewer(shape_and_order):
    shape, order = shape_and_order
    strides = row_major(shape)
    out = tuple(shape[p] for p in order)
    plain = Copy(out, tuple(strides[p] for p in order), row_major(out))
    fewer = merge_dims(plain)
    source = np.arange(np.prod(shape))
    one, two = (np.full(source.size, -1) for _ in range(2))
    _walk(plain, source, one)
    _walk(fewer, source, two)
    np.testing.assert_array_equal(one, two)
    assert len(fewer.size) <= len([n for n in out if n > 1]) or fewer.size == (1,)


def test_a_whole_copy_is_one_run():
    assert merge_dims(Copy((2, 3, 4), (12, 4, 1), (12, 4, 1))).size == (24,)
    assert merge_dims(Copy((1, 1), (7, 1), (9, 1))).size == (1,)


@_quick
@given(graph=one_operator_graphs(OpKind.MEAN), seed=seeds)
def test_reductions_visit_the_same_elements_as_numpy(graph, seed):
    op = graph.ops[0]
    shape = graph.tensors[op.inputs[0]].shape
    values = np.random.default_rng(seed).integers(-128, 128, shape)
    walk = reduction(graph, op)
    assert max(len(walk.outer), len(walk.inner)) <= MAX_RANK
    flat = values.reshape(-1)
    sums = [sum(flat[start + inner] for inner in _places(walk.inner)) for start in _places(walk.outer)]
    np.testing.assert_array_equal(sums, values.sum(axis=op.attrs.axes).reshape(-1))


def _places(dims):
    """Yields the offsets of a walk over (size, stride) dimensions, the last one fastest."""
    for place in itertools.product(*(range(size) for size, _ in dims)):
        yield sum(i * stride for i, (_, stride) in zip(place, dims, strict=True))
