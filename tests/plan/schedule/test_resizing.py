"""Tables of the rows that resizings and transpose convolutions read: exactly those that LiteRT reads."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from litert import run_graph
from namednets import u_net

import buildtool.graph.types as g
from buildtool.api.checking.floatcases import in_floats
from buildtool.base.errors import PlanError
from buildtool.emit.rows import find_scale
from buildtool.graph.types import OpKind
from buildtool.plan.schedule.axis import Axis, AxisTable, table, tabulate, union
from buildtool.plan.schedule.inner import objection
from buildtool.plan.schedule.receptive import axes
from buildtool.plan.schedule.schedule import run
from buildtool.plan.types import Group, Region, Scheme
from buildtool.zoo.drawn import NetBuilder, quant

MODES = [(False, False), (True, False), (False, True)]
_sizes = st.integers(1, 40)
_examples = settings(derandomize=True, deadline=None, max_examples=25)


def _read(graph) -> np.ndarray:
    """[row of the output, row of the input]: whether LiteRT reads the input row for the output row.

    Channel c of the image is 0 except in row c, so that the output's channel c shows where that row goes.
    """
    _, rows, _, channels = graph.tensors[graph.inputs[0]].shape
    image = np.zeros((1, rows, 1, channels), graph.tensors[graph.inputs[0]].dtype.value)
    image[0, np.arange(rows), 0, np.arange(rows)] = 127
    return run_graph(graph, [image])[graph.outputs[0]][0, :, 0, :] != 0


def _spans(axis: AxisTable, rows: int) -> np.ndarray:
    """The same from the table."""
    place = np.arange(rows)
    return (place >= np.array(axis.first)[:, None]) & (place < np.array(axis.end)[:, None])


@_examples
@example(5, 35, False, MODES[0], True)  # other rows than in int8
@example(8, 56, False, MODES[0], True)
@given(_sizes, _sizes, st.booleans(), st.sampled_from([*MODES, (True, True)]), st.booleans())
def test_the_table_of_a_resizing_has_the_rows_that_litert_reads(size, out, nearest, mode, real):
    kind = OpKind.RESIZE_NEAREST_NEIGHBOR if nearest else OpKind.RESIZE_BILINEAR
    attrs = g.ResizeAttrs(*(mode if nearest or mode != (True, True) else MODES[0]))
    net = NetBuilder(1)
    x = net.input((1, size, 1, size), q=quant(1.0))
    graph = net.graph([net.move(kind, x, (1, out, 1, size), attrs)])
    if real:
        graph = in_floats(graph)
    axis = axes(graph, graph.ops[0])[0]
    assert isinstance(axis, AxisTable)
    read, told = _read(graph), _spans(axis, size)
    assert not (read & ~told).any()
    if nearest:
        assert (read == told).all()
    else:  # a weight of 1 / 1024 makes no visible difference
        assert told.sum(axis=1).max() <= 2 and (read.any(axis=1)).all()


@_examples
@given(st.integers(1, 12), st.integers(1, 5), st.integers(1, 4), st.booleans())
def test_the_table_of_a_transpose_convolution_has_the_rows_that_litert_reads(size, kernel, stride, same):
    out = size * stride if same else (size - 1) * stride + kernel
    total = max((size - 1) * stride + kernel - out, 0)
    net = NetBuilder(1)
    x = net.input((1, size, 1, size), q=quant(1.0))
    weights = np.zeros((size, kernel, 1, size), np.int8)
    weights[np.arange(size), :, :, np.arange(size)] = 1
    taps = net.tensor(weights.shape, g.Quantization((1.0,) * size, (0,) * size, 0), data=weights)
    attrs = g.ConvAttrs((stride, 1), (1, 1), g.Pad(total // 2, total - total // 2, 0, 0))
    graph = net.graph(
        [net.op(OpKind.TRANSPOSE_CONV, (x, taps, -1), attrs, quant(1.0), shape=(1, out, 1, size))]
    )
    axis = axes(graph, graph.ops[0])[0]
    assert isinstance(axis, AxisTable)
    assert (_read(graph) == _spans(axis, size)).all()


def _same(formula, axis, size):
    """Asserts that a formula, if there is one, gives the table's values."""
    if formula is None:
        return
    rows, of, offset = formula
    out = len(axis.end)
    for n in range(1, out + 1):
        assert n * rows + offset >= 0
        assert min(size, (n * rows + offset) // of) == min(size, axis.high(n))
    for made in range(size):
        ready = int((made * of + of - offset - 1) / rows)  # C's division
        assert max(0, min(out, ready)) == axis.ready(made)


@pytest.mark.parametrize("factor", [1, 2, 3, 4])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", [OpKind.RESIZE_NEAREST_NEIGHBOR, OpKind.RESIZE_BILINEAR])
def test_a_formula_in_c_says_what_its_table_says(kind, mode, factor):
    """Whole factors have one. With aligned corners either result is possible."""
    found = 0
    for size in range(1, 30):
        for out in {factor * size, factor * size - 1, size + 7} - {0}:
            net = NetBuilder(1)
            x = net.input((1, size, 1, 1))
            graph = net.graph([net.move(kind, x, (1, out, 1, 1), g.ResizeAttrs(*mode))])
            axis = axes(graph, graph.ops[0])[0]
            assert isinstance(axis, AxisTable)
            formula = find_scale(axis, size)
            assert formula or mode[0] or out != factor * size, (size, out)
            found += formula is not None
            _same(formula, axis, size)
    assert found


def test_what_enlarges_is_in_no_chain_of_a_plan():
    graph = u_net(8, 2, 1, "nearest")
    position = next(p for p, op in enumerate(graph.ops) if op.kind is OpKind.RESIZE_NEAREST_NEIGHBOR)
    found = objection(graph, (position - 1, position))
    assert found is not None and found[0] == position and "a group of its own" in found[1]
    with pytest.raises(PlanError, match="cannot run under scheme"):
        run(Region((Group((position - 1, position), Scheme.HALO, 1),)), graph)


@st.composite
def _tables(draw):
    count = draw(st.integers(1, 12))
    first = np.array(draw(st.lists(st.integers(0, 20), min_size=count, max_size=count)))
    return table(first, first + np.array(draw(st.lists(st.integers(0, 4), min_size=count, max_size=count))))


@_examples
@given(_tables(), st.integers(1, 5), st.integers(0, 30))
def test_a_table_answers_as_an_axis_does(axis, n, made):
    rows = [range(a, b) for a, b in zip(axis.first, axis.end, strict=True)]
    assert [axis.low(q) for q in range(len(rows))] == list(axis.first) == sorted(axis.first)
    assert [axis.high(q) for q in range(len(rows) + 1)] == [0, *axis.end] == sorted([0, *axis.end])
    places = np.arange(len(rows) + 3)
    assert axis.lows(places).tolist() == [axis.low(q) for q in places.tolist()]
    assert axis.highs(places).tolist() == [axis.high(q) for q in places.tolist()]
    spans = (rows[q : q + n] for q in range(len(rows)))
    assert axis.extent(n) == max(span[-1].stop - span[0].start for span in spans)
    assert axis.ready(made) == sum(row.stop <= made for row in rows)


@_examples
@given(_tables(), st.builds(Axis, st.integers(1, 4), st.integers(1, 3), st.integers(0, 2)), st.integers(1, 9))
def test_tables_follow_each_other_as_their_rows_do(axis, plain, count):
    through = axis.after(plain)
    assert list(through.first) == [max(0, plain.low(q)) for q in axis.first]
    assert list(through.end) == [max(0, plain.high(q)) for q in axis.end]
    told = tabulate(plain, count, 30)
    assert [told.low(q) for q in range(count)] == [min(30, max(0, plain.low(q))) for q in range(count)]
    assert [told.high(q) for q in range(1, count)] == [
        min(30, max(0, plain.high(q))) for q in range(1, count)
    ]
    other = tabulate(plain, len(axis.first), 30)
    both = union(axis, other)
    assert list(both.first) == list(map(min, axis.first, other.first))
    assert list(both.end) == list(map(max, axis.end, other.end))
    with pytest.raises(PlanError, match="group of its own"):
        Axis(3, 1, 1).after(axis)
