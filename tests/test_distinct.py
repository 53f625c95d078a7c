"""The distinct numbers of an array, compared with numpy's."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from buildtool.base.distinct import distinct


@given(st.lists(st.integers(-3, 3), max_size=30))
def test_it_is_what_numpy_tells(numbers):
    array = np.array(numbers, np.int32)
    expected = np.unique(array, return_index=True, return_counts=True)
    assert all(np.array_equal(a, b) for a, b in zip(distinct(array), expected, strict=True))
