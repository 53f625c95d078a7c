"""Layouts: every change of a layout is compared with numpy, which moves the elements."""

import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from buildtool.graph.onnx.layout import (
    Layout,
    canonical,
    find_transpose,
    order_of,
    plain,
    refine,
    tail_order,
    transpose_layout,
)

_settings = settings(derandomize=True, deadline=None, max_examples=120)
_sizes = st.lists(st.sampled_from([1, 1, 2, 2, 3, 4, 6]), min_size=1, max_size=5)


@st.composite
def _permuted(draw):
    """Draws (sizes, their order in memory)."""
    sizes = draw(_sizes)
    return sizes, draw(st.permutations(range(len(sizes))))


def memory(layout):
    """Returns the file's flat positions in memory order."""
    flat = np.arange(math.prod(layout.factors))
    return flat.reshape(layout.factors).transpose(layout.perm).reshape(-1)


@_settings
@given(drawn=_permuted(), data=st.data())
def test_equal_orders_have_equal_layouts(drawn, data):
    sizes, order = drawn
    layout = canonical(sizes, order)
    flat = np.arange(math.prod(sizes)).reshape(sizes)
    np.testing.assert_array_equal(memory(layout), flat.transpose(order).reshape(-1))
    assert 1 not in layout.factors
    other = canonical(sizes, data.draw(st.permutations(range(len(sizes)))))
    assert (other == layout) == np.array_equal(memory(other), memory(layout))


def test_dimensions_of_one_do_not_matter():
    assert canonical((1, 8, 1, 1), (0, 2, 3, 1)) == plain((8,)) == Layout((8,), (0,))
    assert canonical((1, 1, 1), (2, 0, 1)) == Layout((), ())
    assert canonical((1, 3, 4, 5), (0, 2, 3, 1)) == Layout((3, 20), (1, 0))


@_settings
@given(drawn=_permuted(), data=st.data())
def test_a_transposition_in_the_file_moves_nothing(drawn, data):
    sizes, order = drawn
    layout = canonical(sizes, order)
    perm = tuple(data.draw(st.permutations(range(len(sizes)))))
    after = transpose_layout(sizes, layout, perm)
    flat = np.arange(math.prod(sizes)).reshape(sizes)
    bytes_ = flat.reshape(-1)[memory(layout)]  # the tensor in memory
    transposed = flat.transpose(perm).reshape(-1)
    np.testing.assert_array_equal(transposed[memory(after)], bytes_)


@_settings
@given(drawn=_permuted(), data=st.data())
def test_one_transpose_turns_a_layout_into_another(drawn, data):
    sizes, order = drawn
    source = canonical(sizes, order)
    target = canonical(sizes, data.draw(st.permutations(range(len(sizes)))))
    shape, perm = find_transpose(source, target)
    elements = memory(source).reshape(shape)
    np.testing.assert_array_equal(elements.transpose(perm).reshape(-1), memory(target))
    if source == target:
        assert len(shape) <= 1


@_settings
@given(drawn=_permuted())
def test_the_order_of_dimensions_is_found(drawn):
    sizes, order = drawn
    layout = canonical(sizes, order)
    result = order_of(sizes, layout)
    assert sorted(result) == list(range(len(sizes)))
    assert canonical(sizes, result) == layout


def test_images_are_channels_last_where_that_is_one_of_the_orders():
    assert order_of((1, 8, 1, 1), plain((8,))) == (0, 2, 3, 1)
    assert order_of((1, 8, 4, 4), canonical((1, 8, 4, 4), (0, 2, 3, 1))) == (0, 2, 3, 1)
    assert order_of((1, 8, 4, 4), plain((1, 8, 4, 4))) == (0, 1, 2, 3)


def test_a_flattened_image_has_no_order_of_dimensions():
    layout = canonical((1, 8, 4, 4), (0, 2, 3, 1))
    assert order_of((1, 128), layout) is None
    assert tail_order((1, 128), layout) == ((8, 16), (1, 0))


@_settings
@given(drawn=_permuted(), count=st.integers(1, 4))
def test_columns_of_a_flattened_tensor_follow_its_bytes(drawn, count):
    """A matrix product with the columns permuted equals the product in the file's order."""
    sizes, order = drawn
    layout = canonical((count, *sizes), (0, *(d + 1 for d in order)))
    inputs = math.prod(sizes)
    factors, perm = tail_order((count, inputs), layout)
    rng = np.random.default_rng(0)
    x, w = rng.integers(-9, 9, (count, inputs)), rng.integers(-9, 9, (3, inputs))
    rows = x.reshape(-1)[memory(layout)].reshape(count, inputs)
    columns = w.reshape(3, *factors).transpose(0, *(p + 1 for p in perm)).reshape(3, inputs)
    np.testing.assert_array_equal(rows @ columns.T, x @ w.T)


def test_a_layout_without_common_factors_is_not_refined():
    layout = canonical((2, 3), (1, 0))
    assert refine(layout, (3, 2)) is None
    assert transpose_layout((3, 2), layout, (1, 0)) is None
    assert find_transpose(layout, canonical((3, 2), (1, 0))) is None
