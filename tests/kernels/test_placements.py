"""Kernels give the same bytes in every placement: whole, in ring buffers, as parts, over their input.

The plain kernels equal LiteRT exactly. Families that compile on this machine equal the plain kernels: their
instructions have a model in C, and undefined behaviour traps. test_emulated_families.py repeats a part of
this with the real instructions, in emulators.
"""

import functools
import itertools
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from boardcalls import PLACED, draw_placed
from ckernels import catalogue
from hostfamily import on_host
from hypothesis import strategies as st
from kernelcases import Case
from kernelcases import windowed as small
from largecases import depthwise_3x3, depthwise_rows, extreme, grouped, sums_of_two
from largecases import windowed as large
from litert import run_graph
from loaded import load_target
from placement import WAYS, check_placements, run_placed, run_whole

from buildtool.target.catalogue import select
from buildtool.target.types import Target

slow = pytest.mark.slow
PLAIN = small | {"grouped": grouped()}
NEVER_OVER_INPUTS = {"dense", "resize", "transpose_convolution"}
SLOW = {"resize", "transpose_convolution", "prelu", "normalisation"}


@pytest.mark.parametrize("kind", [pytest.param(k, marks=[slow] if k in SLOW else []) for k in sorted(PLAIN)])
def test_plain_kernels_give_litert_s_bytes(kind):
    """The memory around does not matter, and only the output is written."""
    ways = Counter()

    for case, _, seed in draw_placed(PLAIN[kind])[:25]:
        expected = run_graph(case.graph, case.inputs)[case.op.outputs[0]]
        ways.update(check_placements(case, seed, catalogue()[case.op.kind].overlap, expected))
    assert set(ways) == set(WAYS) - ({"over"} if kind in NEVER_OVER_INPUTS else set())


def of(cases: Mapping[str, st.SearchStrategy[Case]], word: str, names: str) -> dict[str, object]:
    return {f"{word} {name}": cases[name] for name in names.split()}


@dataclass(frozen=True)
class Modelled:
    """A board's kernels of a family, whose calls `threads` threads share; `fast`: kinds of the fast tier.

    `least`: the smallest number of kernel calls, by kind; the default is a third of the examples. `lean`:
    the kernels with the least scratch.
    """

    board: str
    family: str
    kinds: Mapping[str, object]
    threads: int = 1
    examples: int = PLACED
    fast: frozenset[str] = frozenset()
    least: Mapping[str, int] = field(default_factory=dict)
    lean: bool = False

    @property
    def target(self) -> Target | None:
        """The target with the leanest kernels; None: the board's own."""
        return replace(load_target(self.board), lean=True) if self.lean else None


MODELLED = {
    "dsp": Modelled(
        *("cortex-m4", "cortex_m_dsp"),
        of(small, "small", "convolution depthwise transpose_convolution dense elementwise pool")
        | {f"large {kind}": strategy for kind, strategy in large.items()}
        | extreme,
        fast=frozenset(
            {
                "small convolution",
                "small depthwise",
                "large dense",
                "large elementwise",
                "large pool",
                "square depthwise",
            }
        ),
        least={"small pool": 9},
    ),
    "dsp without scratch": Modelled(
        *("cortex-m4", "cortex_m_dsp"),
        of(small, "small", "convolution")
        | of(large, "large", "convolution")
        | {"sums": extreme["extreme sums"], "deep sums": extreme["deep sums"]},
        fast=frozenset({"small convolution"}),
        least={"small convolution": 3, "large convolution": 9, "sums": 3, "deep sums": 3},
        lean=True,
    ),
    "riscv": Modelled(
        *("qemu-virt-rv32", "riscv"),
        of(small, "small", "convolution dense elementwise pool table")
        | {"depthwise": depthwise_3x3(), "depthwise of any size": depthwise_rows()}
        | {"wide": large["elementwise"], "unchanging channels": extreme["unchanging channels"]}
        | {"filled pool": large["filled pool"]},
        fast=frozenset({"small convolution", "small dense", "small pool", "depthwise"})
        | {"unchanging channels", "filled pool"},
        least={"small elementwise": 8, "small table": 0},
    ),
    "vpu": Modelled(
        *("xcore", "xcore_vpu"),
        of(small, "small", "convolution dense")
        | of(large, "large", "convolution depthwise dense")
        | extreme
        | {"grouped": grouped(), "filled pool": large["filled pool"]},
        examples=40,
        fast=frozenset({"small convolution"}),
        least={"filled pool": 8},
    ),
    "vpu by 5 threads": Modelled(
        *("xcore", "xcore_vpu"),
        of(large, "large", "elementwise pool convolution depthwise dense")
        | of(small, "small", "table")
        | {"sums": sums_of_two(), "filled pool": large["filled pool"]},
        threads=5,
        examples=20,
        least={"large elementwise": 0, "large pool": 1, "small table": 4, "filled pool": 1},
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
    pytest.param(name, kind, marks=[] if kind in family.fast else [slow], id=f"{name}, {kind}")
    for name, family in MODELLED.items()
    for kind in sorted(family.kinds)
]


@functools.cache
def run_plain(strategy: st.SearchStrategy[Case]) -> list[np.ndarray]:
    """Returns the plain kernels' outputs, once for all families."""
    return [run_whole(case) for case, *_ in draw_placed(strategy)]


@pytest.mark.parametrize(("name", "kind"), EVERY)
def test_families_give_the_plain_kernels_bytes(name, kind):
    modelled, kernels = MODELLED[name], Counter()

    strategy = modelled.kinds[kind]
    cases = zip(draw_placed(strategy), run_plain(strategy), strict=True)
    for (case, how, seed), expected in itertools.islice(cases, modelled.examples):
        with on_host(modelled.board, modelled.family, modelled.threads, modelled.target) as family:
            contract = select(family.target, case.graph, case.op).overlap
            np.testing.assert_array_equal(run_placed(case, how, seed, contract), expected)
        kernels.update(family.kernels)
    assert kernels.total() > modelled.least.get(kind, modelled.examples // 3)
