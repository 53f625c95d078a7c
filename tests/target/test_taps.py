"""Taps that meet the input, against counting them one by one."""

from hypothesis import given
from hypothesis import strategies as st

from buildtool.target.geometry import taps_met


def counted(outputs, inputs, kernel, stride, dilation, pad):
    met = [
        sum(0 <= i * stride - pad + tap * dilation < inputs for tap in range(kernel)) for i in range(outputs)
    ]
    return sum(met), met.count(kernel)


@given(
    st.integers(0, 14),
    st.integers(1, 14),
    st.integers(1, 6),
    st.integers(1, 5),
    st.integers(1, 4),
    st.integers(-20, 14),
)
def test_the_taps_are_those_that_are_there(outputs, inputs, kernel, stride, dilation, pad):
    case = (outputs, inputs, kernel, stride, dilation, pad)
    assert taps_met(*case) == counted(*case)


def test_windows_that_a_file_claims_by_the_million_are_not_looked_at_one_by_one():
    assert taps_met(1 << 40, 1 << 40, 1, 1, 1, 0) == (1 << 40, 1 << 40)
    assert taps_met(9, 9, 1 << 40, 1, 1, 1 << 40) == (sum(range(9)), 0)
    assert taps_met(1 << 40, 1 << 41, 1 << 10, 2, 1, 0)[1] == (1 << 40) - (1 << 9) + 1
