"""Operators whose sums or offsets int32 may not hold are refused; at the limit they are not."""

import dataclasses

import pytest
from widecases import conv, dense, depthwise, pool

from buildtool.base.errors import UnsupportedError
from buildtool.graph.consistency import check_op
from buildtool.graph.limits import MAX_ACTIVATION, MAX_MEAN, MAX_TAPS
from buildtool.graph.types import OpKind


def checked(case):
    check_op(case.graph, case.op)


def stepping(case, **steps):
    """The case with other strides or dilations; its output stays."""
    graph = case.graph
    op = dataclasses.replace(case.op, attrs=dataclasses.replace(case.op.attrs, **steps))
    return lambda: check_op(graph, op)


@pytest.mark.parametrize("make", [lambda n: conv((1, 1), n, 1), lambda n: dense(n, 1)])
def test_products_in_a_sum(make):
    checked(make(MAX_TAPS))
    with pytest.raises(UnsupportedError, match="131072 products in a sum, more than 131071"):
        checked(make(MAX_TAPS + 1))


def test_values_in_a_pooling():
    assert MAX_MEAN == 8388544
    checked(pool(OpKind.AVERAGE_POOL_2D, (65534, 128), 1))
    with pytest.raises(UnsupportedError, match="8388608 values in a mean, more than 8388544"):
        checked(pool(OpKind.AVERAGE_POOL_2D, (65536, 128), 1))


@pytest.mark.parametrize("case", [conv((1, 1), 4, 3), depthwise((1, 1), 4, (1, 1))])
@pytest.mark.parametrize("name", ["stride", "dilation"])
@pytest.mark.parametrize("across", [False, True])
def test_a_step_beyond_the_range_of_offsets(case, name, across):
    last = MAX_ACTIVATION // 4 - 1

    def step(n):
        return stepping(case, **{name: (1, n) if across else (n, 1)})

    step(last)()
    with pytest.raises(UnsupportedError, match="2147483648 bytes far, more than 2147483647"):
        step(last + 1)()
