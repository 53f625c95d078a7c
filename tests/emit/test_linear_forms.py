"""Linear forms in place of roundings: forms equal their table, and tables that are not linear have none."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from buildtool.emit.linear_forms import linear_form

LIMITS = (-128, 127)


@settings(max_examples=20, derandomize=True, deadline=None)
@given(st.integers(10, 1500), st.integers(-100000, 100000), st.integers(0, 255))
def test_a_form_gives_the_table_and_no_other(slope, offset, at):
    x = np.arange(-128, 128)
    table = np.clip((slope * x + offset) // 1000, *LIMITS)
    form = linear_form((x,), table, (slope / 1000,), LIMITS, 1 << 22, (1 << 31) - 1)
    assert form is not None
    np.testing.assert_array_equal(form.outputs((x,), None, *LIMITS), table)
    bent = table.copy()
    bent[at] += 3 if bent[at] < 100 else -3
    assert linear_form((x,), bent, (slope / 1000,), LIMITS, 1 << 22, (1 << 31) - 1) is None
