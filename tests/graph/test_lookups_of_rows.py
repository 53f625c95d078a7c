"""GATHER and EMBEDDING_LOOKUP of computed indices: rows of a table for the tokens at a network's input."""

import numpy as np
import pytest
from boardruns import file_of, validated
from flatfiles import FileOperator, FileTensor, constant, write
from hypothesis import given, settings
from hypothesis import strategies as st
from litert import check_file, interpreter

from buildtool.base.errors import UnsupportedError
from buildtool.graph.reference import execute
from buildtool.graph.tflite.reader import read_model
from buildtool.graph.tflite.writer import write_model
from buildtool.graph.types import DType, GatherAttrs, OpKind
from buildtool.zoo.drawn import NetBuilder


def lookup(table, shape, kind="GATHER", dtype="int32", axis=0):
    """A file of one operator that takes rows of a table."""
    rows = FileTensor(table.shape, data=table, scale=0.1, zero=3)
    out = (*shape, *table.shape[1:]) if axis == 0 else (table.shape[0], *shape, *table.shape[2:])
    tensors = [FileTensor(shape, dtype, scale=None), rows, FileTensor(out, scale=0.1, zero=3)]
    if kind == "GATHER":
        operator = FileOperator(kind, [1, 0], [2], "GatherOptions", {"Axis": axis}, version=2)
    else:
        operator = FileOperator(kind, [0, 1], [2])
    return write(tensors, [operator], [0], [2])


@settings(derandomize=True, deadline=None, max_examples=30)
@given(
    st.lists(st.integers(1, 5), min_size=1, max_size=3),
    st.integers(1, 40),
    st.lists(st.integers(1, 6), max_size=2),
    st.integers(0, 99),
)
def test_rows_equal_litert(shape, rows, inner, seed):
    rng = np.random.default_rng(seed)
    table = rng.integers(-128, 128, (rows, *inner)).astype(np.int8)
    indices = rng.integers(0, rows, shape).astype(np.int32)
    graph = check_file(lookup(table, shape), [indices])
    assert graph.ops[0].attrs == read_model(write_model(graph)).ops[0].attrs == GatherAttrs(0, ())
    if len(shape) == 1 and inner:
        assert check_file(lookup(table, shape, "EMBEDDING_LOOKUP"), [indices]).ops[0].kind is OpKind.GATHER


def test_an_index_outside_of_the_table_is_clamped_where_litert_ends_the_invoke():
    table = np.arange(12, dtype=np.int8).reshape(4, 3)
    indices, data = np.array([-1, 4, 2**31 - 1, -(2**31)], np.int32), lookup(table, (4,))
    graph = read_model(data)
    np.testing.assert_array_equal(execute(graph, [indices])[graph.outputs[0]], table[[0, 3, 3, 0]])
    engine = interpreter(data)
    engine.set_tensor(0, indices)
    with pytest.raises(RuntimeError):
        engine.invoke()


TABLE = np.ones((4, 3), np.int8)


def reshaped_integers():
    tensors = [
        FileTensor((4,), "int32", scale=None),
        constant([2, 2]),
        FileTensor((2, 2), "int32", scale=None),
    ]
    return write(tensors, [FileOperator("RESHAPE", [0, 1], [2], "ReshapeOptions")], [0], [2])


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (lookup(TABLE, (2,), axis=1), "of dimension 1"),
        (lookup(TABLE, (2,), dtype="int64"), "of type int64"),
        (reshaped_integers(), "int32"),
    ],
)
def test_other_indices_are_refused(data, text):
    with pytest.raises(UnsupportedError, match=text):
        read_model(data)


def _classifier():
    """Nine tokens of a table of 50 rows, a convolution over them, and a dense layer; and a second input."""
    net = NetBuilder(4, "words")
    tokens, numbers = net.input((1, 9), DType.INT32, None), net.input((1, 6))
    table = net.constant((50, 6))
    quant = net.tensors[table].quant
    rows = net.op(OpKind.GATHER, (table, tokens), GatherAttrs(0, ()), quant, shape=(1, 9, 6))
    x = net.conv(net.move(OpKind.RESHAPE, rows, (1, 9, 1, 6)), 8, kernel=(3, 1), same=True)
    y = net.move(OpKind.RESHAPE, net.dense(numbers, 8), (1, 1, 1, 8))
    return net.graph([net.dense(net.mean(net.elementwise(OpKind.ADD, x, y)), 5)])


@pytest.mark.slow
def test_a_network_of_tokens_on_a_board(tmp_path):
    answer = validated(file_of(_classifier(), tmp_path), "cortex-m4", {}, inputs=4)
    assert answer["tensors_compared"] >= 5
