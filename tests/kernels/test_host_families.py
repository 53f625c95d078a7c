"""Families that compile on this machine leave the plain kernels' bytes here, in every placement.

Their instructions have a model in C; undefined behaviour traps. Emulators repeat a part of it with the
instructions themselves: test_emulated_families.py.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pytest
from hostfamily import on_host
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kernelcases import Case
from kernelcases import windowed as small
from largecases import depthwise_3x3, depthwise_rows, extreme, grouped
from largecases import windowed as large
from placement import WAYS, run_placed, run_whole

from buildtool.target.catalogue import select


def of(cases: Mapping[str, st.SearchStrategy[Case]], word: str, names: str) -> dict[str, object]:
    return {f"{word} {name}": cases[name] for name in names.split()}


@dataclass(frozen=True)
class Modelled:
    """A board's kernels of a family, whose calls so many threads share; `fast`: kinds of the fast tier.

    `least`: calls of the family's kernels that there are at least, where it is not a third of the examples.
    """

    board: str
    family: str
    kinds: Mapping[str, object]
    threads: int = 1
    examples: int = 40
    fast: frozenset[str] = frozenset()
    least: Mapping[str, int] = field(default_factory=dict)


MODELLED = {
    "dsp": Modelled(
        *("cortex-m4", "cortex_m_dsp"),
        of(small, "small", "convolution dense elementwise pool")
        | {f"large {kind}": strategy for kind, strategy in large.items() if kind != "depthwise"}
        | extreme,
        examples=60,
        fast=frozenset(
            {"small convolution", "large dense", "large elementwise", "large pool", "square depthwise"}
        ),
    ),
    "riscv": Modelled(
        *("qemu-virt-rv32", "riscv"),
        of(small, "small", "convolution dense elementwise pool table")
        | {"depthwise": depthwise_3x3(), "depthwise of any size": depthwise_rows()}
        | {"wide": large["elementwise"], "unchanging channels": extreme["unchanging channels"]},
        examples=60,
        fast=frozenset(
            {"small convolution", "small dense", "small pool", "depthwise", "unchanging channels"}
        ),
        least={"small elementwise": 8, "small table": 0},
    ),
    "vpu": Modelled(
        *("xcore", "xcore_vpu"),
        of(small, "small", "convolution dense")
        | of(large, "large", "convolution depthwise dense")
        | extreme
        | {"grouped": grouped()},
        fast=frozenset({"small convolution"}),
    ),
    "vpu by 5 threads": Modelled(
        *("xcore", "xcore_vpu"),
        of(large, "large", "elementwise pool convolution depthwise dense") | of(small, "small", "table"),
        threads=5,
        examples=24,
        # how many cases the vector unit takes depends on which modules hypothesis finds numbers in
        least={"large elementwise": 0, "large pool": 1},
    ),
    "plain by 5 threads": Modelled(
        *("xcore", "reference_threads"),
        of(small, "small", "convolution elementwise softmax resize dense")
        | {"large pool": large["pool"], "square depthwise": extreme["square depthwise"]},
        threads=5,
        examples=20,
    ),
}
EVERY = [
    pytest.param(name, kind, marks=[] if kind in family.fast else [pytest.mark.slow], id=f"{name}, {kind}")
    for name, family in MODELLED.items()
    for kind in sorted(family.kinds)
]


@pytest.mark.parametrize(("name", "kind"), EVERY)
def test_every_placement_gives_the_same_bytes(name, kind):
    """Whole, in pieces from rings, beside other channels and over the input."""
    modelled, used = MODELLED[name], Counter()

    @settings(
        max_examples=modelled.examples,
        derandomize=True,
        deadline=None,
        database=None,
        suppress_health_check=[HealthCheck.too_slow],
    )
    @given(case=modelled.kinds[kind], how=st.sampled_from(WAYS), seed=st.integers(0, 999))
    def run(case, how, seed):
        expected = run_whole(case)
        with on_host(modelled.board, modelled.family, modelled.threads) as family:
            contract = select(family.target, case.graph, case.op).overlap
            np.testing.assert_array_equal(run_placed(case, how, seed, contract), expected)
        used.update(family.used)

    run()
    assert used.total() > modelled.least.get(kind, modelled.examples // 3)
