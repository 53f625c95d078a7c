"""Depthwise kernels of one row and with distances between taps, in every placement: as the plain kernel."""

import numpy as np
import pytest
from boardcalls import recording
from groupcases import depthwise_of
from hypothesis import given, settings
from hypothesis import strategies as st
from kernelcases import seeds
from placement import WAYS, run_placed

from buildtool.target.catalogue import select

# Board, family; kernels (rows, columns, and how far their taps may be apart); what computes them.
SERVED = {
    "rows on Helium": (
        ("cortex-m55", "cortex_m_mve"),
        [(1, columns, 1) for columns in (5, 6, 7, 8)],
        {"depthwise_1_row_mve"},
    ),
    "spread on Helium": (
        ("cortex-m55", "cortex_m_mve"),
        [(3, 3, 3), (2, 3, 2), (5, 5, 2), (1, 5, 2), (4, 7, 3)],
        {"depthwise_3_columns_mve", "depthwise_conv2d_mve"},
    ),
    "spread with the DSP extension": (
        ("cortex-m4", "cortex_m_dsp"),
        [(3, 3, 3), (5, 5, 2), (7, 7, 2)],
        {"depthwise_3x3_dsp", "depthwise_5x5_dsp", "depthwise_7x7_dsp"},
    ),
}


@st.composite
def placed(draw, kernels):
    """A layer, a way to place it, a seed."""
    rows, columns, most = draw(st.sampled_from(kernels))
    dilation = (draw(st.integers(1, most)), draw(st.integers(2, most)) if most > 1 else 1)
    rng = np.random.default_rng(draw(seeds))
    layer = depthwise_of(rng, (rows, columns), dilation)
    return layer, draw(st.sampled_from(WAYS)), draw(st.integers(0, 999))


@pytest.mark.slow
@pytest.mark.parametrize("name", SERVED)
def test_every_placement_leaves_the_same_bytes(name):
    (board, family), kernels, served = SERVED[name]
    with recording(board, family) as recorder:

        @settings(max_examples=25, derandomize=True, deadline=None, database=None)
        @given(drawn=placed(kernels))
        def place(drawn):
            case, how, seed = drawn
            run_placed(case, how, seed, select(recorder.target, case.graph, case.op).overlap)

        place()
    assert set(recorder.kernels) == served
    recorder.check("clang")
