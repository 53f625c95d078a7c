"""Every kernel that computes slices of its output channels gives the plain kernel's bytes, in any width."""

import numpy as np
import pytest
from hostfamily import library, on_host
from kernelcases import CONV, DENSE, Axis, changed, layer
from placement import Margin, run_whole
from slicing import block_of, in_slices

FAMILIES = {
    "cortex_m_dsp": "cortex-m4",
    "mul32": "cortex-m0plus",
    "riscv": "hifive1",
    "xcore_vpu": "xcore",
}
WHOLE = Axis(1, 1)
# (kind, rows, columns, inputs, outputs)
SHAPES = [
    (CONV, Axis(3, 1), Axis(5, 1), 35, 41),
    (CONV, Axis(5, 3, 1, before=1, after=1), Axis(7, 3, 2, before=1, after=1), 6, 40),
    (CONV, Axis(4, 3, 1, before=1, after=1), Axis(4, 3, 1, before=1, after=1), 32, 66),
    (CONV, Axis(3, 1), Axis(4, 1, 1), 64, 96),
    (DENSE, Axis(2, 1), WHOLE, 67, 43),
    (DENSE, WHOLE, WHOLE, 96, 10),
    (DENSE, WHOLE, WHOLE, 128, 53),
]


@pytest.mark.slow  # compiles the family
@pytest.mark.parametrize("family", FAMILIES)
def test_slices_are_what_the_plain_kernel_computes(family):
    rng = np.random.default_rng(7)
    tried = set()
    for number, (kind, rows, columns, inputs, outputs) in enumerate(SHAPES):
        case = layer(rng, kind, rows, columns, inputs, outputs, points=(int(rng.integers(-99, 99)), 3))
        if number % 2:  # some channels have factors that kernels compute apart
            case = changed(case, scales=2.0 ** rng.choice([-11.0, -12.5, 1.2], outputs), steps=(1.0, 1.0))
        expected = run_whole(case).reshape(case.out_shape)
        with on_host(FAMILIES[family], family) as of:
            variant = of.select(case.graph, case.op)
        widths = block_of(case, variant).widths
        assert widths, f"{variant.name} has no slices of {outputs} outputs"
        tried.add(variant.name)
        for width in {*widths[:6], widths[len(widths) // 2], widths[-1]}:
            margin = Margin(number % 2 * 3, number % 3)
            np.testing.assert_array_equal(
                in_slices(case, variant, library(family), width, margin), expected, f"{variant.name}, {width}"
            )
    assert len(tried) >= 3
