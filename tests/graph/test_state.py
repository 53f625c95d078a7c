"""State between invokes: reading and settling; sequences of invokes equal LiteRT's."""

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
import statenets
from flatfiles import FileOperator, FileTensor, write
from graphs import inputs_for
from recurrentnets import expected, sequence
from statenets import ONCE, RING_OPS, first_value, initialising, ring_file, ring_tensors

from buildtool.base.errors import ModelError, UnsupportedError
from buildtool.firmware.run.compare import referrer
from buildtool.graph.flow import flow_of
from buildtool.graph.liveness import alias_roots, live_ranges, state_of
from buildtool.graph.numbering import is_numbered, number_tensors
from buildtool.graph.order import in_order, is_order, least_peak_order
from buildtool.graph.rewrite import rewrite
from buildtool.graph.states import settle_states
from buildtool.graph.tflite.reader import read_model
from buildtool.graph.tflite.writer import write_model
from buildtool.graph.topology import topology, topology_digest
from buildtool.graph.types import OpKind

MODELS = {graph.name: graph for graph in (make(7) for make in statenets.MAKERS)}


def _assert_equal(ours, theirs):
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs, strict=True):
        assert all(np.array_equal(x, y) for x, y in zip(a, b, strict=True))


@pytest.mark.parametrize("name", MODELS)
def test_sequences_of_invokes_equal_litert_before_and_after_rewriting(name):
    graph = MODELS[name]
    model = write_model(graph)
    inputs = [inputs_for(graph, seed, "random")[0] for seed in range(4)]
    theirs = sequence(model, inputs)
    alone = sequence(model, inputs[3:])[0]
    assert any(not np.array_equal(a, b) for a, b in zip(alone, theirs[3], strict=True))
    source = read_model(model)
    after = rewrite(source)
    for one in (graph, source, after):
        _assert_equal(expected(one, inputs), theirs)
    _assert_equal(sequence(write_model(after), inputs), theirs)  # a settled graph can be written


@pytest.mark.parametrize("name", MODELS)
def test_settled_graphs_write_each_state_once_after_its_readers_in_any_order_of_least_memory(name):
    settled = rewrite(read_model(write_model(MODELS[name])))
    assert is_numbered(settled) and settle_states(settled) is not None
    order = least_peak_order(flow_of(settled))
    assert is_order(settled, order)
    reordered = in_order(settled, order)
    inputs = [inputs_for(settled, seed, "random")[0] for seed in range(3)]
    for graph in (settled, reordered, rewrite(settled)):
        assert {t for s in graph.states for t in (s.before, s.after)} <= set(state_of(graph))
        assert all(r.size == 0 for r in live_ranges(graph) if r.tensors[0] in state_of(graph))
        for state in graph.states:
            if state.after == state.before:
                continue
            writer = next(
                i for i, op in enumerate(graph.ops) if alias_roots(graph)[state.after] in op.outputs
            )
            reads = [i for i, op in enumerate(graph.ops) if state.before in op.inputs]
            assert all(i <= writer for i in reads)
        _assert_equal(expected(graph, inputs), expected(settled, inputs))


def test_rings_are_shifted_in_place_and_windows_are_stored_whole():
    kinds = [op.kind for op in rewrite(MODELS["stream"]).ops]
    assert kinds.count(OpKind.SHIFT) == 3
    assert not {OpKind.CONCATENATION, OpKind.STRIDED_SLICE, OpKind.ASSIGN_VARIABLE} & set(kinds)
    after = rewrite(MODELS["windows"])
    assert [op.kind for op in after.ops].count(OpKind.SHIFT) == 3
    assert [after.tensors[s.before].shape[1] for s in after.states] == [6, 5, 7]


def test_a_file_as_the_converter_writes_it_is_read_and_equals_litert():
    model = ring_file()
    graph = rewrite(read_model(model))
    assert [op.kind for op in graph.ops] == [OpKind.SHIFT]
    (state,) = graph.states
    assert state.name == "layer/ring" and state.initial.tolist() == np.arange(12).reshape(1, 4, 3).tolist()
    inputs = [np.full((1, 1, 3), n, np.int8) for n in (50, 60, 70, 80, 90)]
    _assert_equal(expected(graph, inputs), sequence(model, inputs))


def test_references_keep_state_until_they_are_reset():
    model = ring_file()
    source = read_model(model)
    graph = rewrite(source)
    inputs = [np.full((1, 1, 3), 9, np.int8)]
    for which in ("numpy", "litert"):
        refer = referrer(which, model, source, graph)
        first, second, again = refer(inputs, False), refer(inputs, False), refer(inputs, True)
        out = graph.outputs[0]
        assert np.array_equal(first[out], again[out]) and not np.array_equal(first[out], second[out])


def test_numbers_and_topology_depend_on_neither_the_values_nor_the_order_of_states():
    graph = MODELS["delays"]
    reversed_graph = number_tensors(replace(graph, states=graph.states[::-1]))
    assert topology_digest(reversed_graph) == topology_digest(graph)
    assert reversed_graph.states[0].before == number_tensors(graph).states[0].before
    bare = topology(graph).bare_graph()
    assert [(s.before, s.after) for s in bare.states] == [
        (s.before, s.after) for s in number_tensors(graph).states
    ]
    zeros = [np.zeros_like(s.initial) for s in graph.states]
    other = replace(
        graph, states=tuple(replace(s, initial=v) for s, v in zip(graph.states, zeros, strict=True))
    )
    assert topology_digest(other) != topology_digest(graph)  # the weight image has other bytes


def _refusal(tensors=None, ops=RING_OPS, values=None, other=None):
    initial = _first_value() if values is None else values
    parts = [initialising(initial) if other is None else other]
    model = write(tensors or ring_tensors(), list(ops), [0], [7], others=parts)
    with pytest.raises((UnsupportedError, ModelError)) as refused:
        rewrite(read_model(model))
    return str(refused.value)


def _first_value(shape=(1, 4, 3), dtype=np.int8, *scale):
    return {"layer/ring": first_value(np.zeros(shape, dtype), *scale)}


FLOATS, WHOLE = _first_value((1, 4, 3), np.float32, None), initialising(_first_value())
NAMELESS = FileOperator("READ_VARIABLE", [2], [2], "ReadVariableOptions")
REFUSED = {
    "'layer/ring' is read before it has a value": {"values": {}},
    "float32": {"tensors": ring_tensors("float32", None), "values": FLOATS},
    "variable 'layer/ring' is of type float32": {"values": FLOATS},
    "has two types: int16 [1, 4, 3] and int8 [1, 4, 3]": {"values": _first_value(dtype=np.int16)},
    "has two types: int8 [1, 3, 3] and int8 [1, 4, 3]": {"values": _first_value((1, 3, 3))},
    "subgraph 1, #2 RELU: CALL_ONCE does more than assign constants to variables": {
        "other": ([*WHOLE[0], FileTensor((1, 4, 3))], [*WHOLE[1], FileOperator("RELU", [1], [2])])
    },
    "the initial value of a variable is not a constant": {
        "other": initialising({"layer/ring": FileTensor((1, 4, 3))})
    },
    "CALL_ONCE runs subgraph 7; the file has 2": {
        "ops": (replace(ONCE, options={"InitSubgraphIndex": 7}), *RING_OPS[1:])
    },
    # at LiteRT's first invoke the variable has no value
    "CALL_ONCE initialises variable 'layer/ring' too late": {"ops": (*RING_OPS[1:3], ONCE, *RING_OPS[3:])},
    "type uint8": {"tensors": ring_tensors("uint8"), "values": _first_value(dtype=np.uint8)},
    "does not name a variable": {"ops": (*RING_OPS[:2], NAMELESS, *RING_OPS[3:])},
}


@pytest.mark.parametrize("words", REFUSED)
def test_an_unsound_state_is_refused(words):
    text = _refusal(**REFUSED[words])
    assert words in text
    assert "_experimental_variable_quantization" not in text or "uint8" not in words
    assert "put CALL_ONCE before" in text or "too late" not in words


def test_a_huge_variable_tensor_is_refused_without_allocating():
    huge = FileTensor((1, 1 << 28), variable=True)
    model = write([huge, FileTensor((1, 1 << 28))], [FileOperator("RELU", [0], [1])], [1], [1])
    tracemalloc.start()
    try:
        with pytest.raises(ModelError):
            read_model(model)
        assert tracemalloc.get_traced_memory()[1] < 1 << 22
    finally:
        tracemalloc.stop()


def test_a_variable_tensor_with_a_value_is_refused():
    with pytest.raises(UnsupportedError, match="has a value in the file; LiteRT ignores such a value"):
        variable = FileTensor((1, 4), data=np.zeros((1, 4), np.int8), variable=True)
        add = FileOperator("ADD", [0, 1], [2], "AddOptions", version=2)
        read_model(write([FileTensor((1, 4)), variable, FileTensor((1, 4))], [add], [0], [2]))
