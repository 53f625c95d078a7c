"""REDUCE_PROD equals LiteRT's reference kernel to the bit, in the reference and in firmware on two boards."""

import math

import pytest
from boardruns import file_of, validated
from graphs import inputs_for, patterns, seeds
from hypothesis import given, settings
from hypothesis import strategies as st
from litert import check

from buildtool.base.errors import UnsupportedError
from buildtool.graph.consistency import check_graph
from buildtool.graph.tflite.reader import read_model
from buildtool.graph.tflite.writer import write_model
from buildtool.graph.types import MeanAttrs, OpKind
from buildtool.zoo.drawn import NetBuilder, quant


def product(net, x, axes, keep, factor, zero_point=0):
    """Adds a REDUCE_PROD of `x` whose every step multiplies by about `factor`."""
    shape = net.shape(x)
    count = math.prod(shape[a] for a in axes)
    logarithm = count * (math.log(net.scale(x)) - math.log(factor))
    q = quant(math.exp(min(max(logarithm, -80), 80)), zero_point)
    return net.op(OpKind.REDUCE_PROD, (x,), MeanAttrs(axes, keep), q)


@st.composite
def products(draw):
    """Draws a product over any axes of any shape. Small factors give 0, and large ones wrap around."""
    net = NetBuilder(draw(seeds))
    shape = draw(st.lists(st.sampled_from((1, 2, 3, 5, 7, 8, 17)), min_size=1, max_size=5))
    axes = tuple(sorted(draw(st.sets(st.integers(0, len(shape) - 1), min_size=1))))
    factor = 2.0 ** draw(st.floats(-8, 6.9))
    x, zero_point = net.input(shape), draw(st.sampled_from((-128, -1, 0, 5, 127)))
    return net.graph([product(net, x, axes, draw(st.booleans()), factor, zero_point)])


@pytest.mark.slow
@settings(derandomize=True, deadline=None, max_examples=30)
@given(graph=products(), seed=seeds, pattern=patterns)
def test_products_equal_litert(graph, seed, pattern):
    try:
        check_graph(graph)
    except UnsupportedError as error:
        assert "requantisation factor" in error.text
        return
    check(graph, inputs_for(graph, seed, pattern))


def test_a_factor_beyond_the_shift_is_refused():
    net = NetBuilder(0)
    graph = net.graph([product(net, net.input((1, 4)), (1,), False, 128.5)])
    with pytest.raises(UnsupportedError, match="a requantisation factor of 128"):
        read_model(write_model(graph))


def network():
    """Returns products over rows and columns, over channels, over columns, and over all."""
    net = NetBuilder(3)
    x = net.input((1, 5, 7, 9))
    return net.graph([product(net, x, axes, True, 1 / 45) for axes in ((1, 2), (3,), (2,), (1, 2, 3))])


@pytest.mark.slow
def test_firmware_equals_litert(tmp_path):
    answer = validated(file_of(network(), tmp_path), "cortex-m4", {}, inputs=3, seed=1)
    assert answer["output_values"] > 50  # different values
