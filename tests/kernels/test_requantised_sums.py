"""Every sum of channels with tight bounds gives LiteRT's output.

This is a part of `python benchmarks/requantisation.py`.
"""

import itertools

import numpy as np
import pytest
from hostfamily import comparing
from litert import run_graph
from placement import run_whole
from requantisers import CONV, DENSE, DEPTHWISE, REQUANTISERS, drawn, wrong

pytestmark = pytest.mark.slow  # the quick C takes long to compile
CHANNELS = 64
SEEDS = (29, 32, 60)  # their layers have channels that the vector unit once computed wrongly
KINDS = {
    "cortex_m_dsp": (CONV, DENSE),
    "cortex_m_mve": (CONV, DEPTHWISE, DENSE),
    "riscv": (CONV, DENSE),
    "riscv_v": (CONV, DEPTHWISE, DENSE),
    "mul32": (CONV, DENSE),
    "xcore_vpu": (CONV, DEPTHWISE, DENSE),
}


def layers(kind, seed, count, pixels=1):
    return itertools.islice(drawn(kind, CHANNELS, seed, pixels=pixels), count)


@pytest.mark.parametrize("requantiser", REQUANTISERS, ids=str)
def test_every_sum_gives_the_same_output(requantiser):
    compared = 0
    for seed in SEEDS:
        for layer in layers(requantiser.kind, seed, 2):
            sums, faults = wrong(requantiser, layer)
            assert not faults, (seed, faults)
            compared += sums
    assert compared > 2_000_000


@pytest.mark.parametrize("family", KINDS)
def test_whole_kernels_agree_with_what_stands_for_them(family):
    """The same layers, with inputs whose sums go from the smallest to the largest."""
    with comparing(family) as compared:
        for kind, seed in itertools.product(KINDS[family], SEEDS):
            for layer in layers(kind, seed, 2, pixels=200):
                expected = run_graph(layer.graph, layer.inputs)[layer.op.outputs[0]]
                np.testing.assert_array_equal(run_whole(layer), expected.reshape(layer.out_shape))
    assert compared.kernels.total() == 2 * len(KINDS[family]) * len(SEEDS)
    compared.check("" if family == "mul32" else "clang")
