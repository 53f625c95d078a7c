"""msf-CNN's model: Table 1 of its paper to the byte, and the front compared with brute force."""

from __future__ import annotations

from functools import cache
from itertools import combinations

import msf_tables
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from buildtool.base.distinct import undominated
from buildtool.plan.baselines.chains import Chain, Part
from buildtool.plan.baselines.msf import Layer, all_blocks, front

P1 = [(name, most, cell) for name, column in msf_tables.P1.items() for most, cell in column.items()]
P2 = [(name, most, cell) for name, column in msf_tables.P2.items() for most, cell in column.items()]


def total_macs(layers) -> int:
    return sum(each.macs for each in layers)


@cache
def blocks(name: str) -> list[Part]:
    return all_blocks(msf_tables.TABLES[name])


@cache
def whole_front(name: str) -> list[Chain]:
    return front(blocks(name), len(msf_tables.TABLES[name]))


def printed(name: str, choice: Chain | None) -> tuple[int, float] | None:
    """A cell of the table: bytes, and F with two digits."""
    return choice and (choice.ram, round(choice.macs / total_macs(msf_tables.TABLES[name]), 2))


@pytest.mark.parametrize(("name", "most", "cell"), P1)
def test_p1_gives_the_papers_cell(name, most, cell):
    allowed = [c for c in whole_front(name) if c.macs <= most * total_macs(msf_tables.TABLES[name])]
    assert printed(name, min(allowed, key=lambda c: c.ram, default=None)) == cell


@pytest.mark.parametrize(("name", "most", "cell"), P2)
def test_p2_gives_the_papers_cell(name, most, cell):
    allowed = [c for c in whole_front(name) if c.ram <= most]
    assert printed(name, min(allowed, key=lambda c: c.macs, default=None)) == cell


def chained(parts: list[Part]) -> Chain:
    return Chain(max(block.ram for block in parts), sum(block.macs for block in parts), tuple(parts))


LAYERS = st.lists(
    st.tuples(st.sampled_from([1, 3, 5]), st.sampled_from([1, 1, 2]), st.integers(1, 4), st.booleans()),
    min_size=1,
    max_size=6,
)


def chain_of(drawn, side: int) -> tuple[Layer, ...]:
    layers, channels = [], 3
    for kernel, stride, wanted, depthwise in drawn:
        filters = channels if depthwise else wanted
        layers.append(Layer(kernel, stride, kernel // 2, channels, filters, side, side, depthwise))
        side, channels = layers[-1].rows_out, filters
    return tuple(layers)


@pytest.mark.slow
@settings(derandomize=True, deadline=None, max_examples=150)
@given(LAYERS, st.integers(3, 20))
def test_the_front_is_that_of_every_way_to_cut_the_chain(drawn, side):
    layers = chain_of(drawn, side)
    costs = {(block.first, block.end): block for block in all_blocks(layers)}
    n = len(layers)
    every = []
    for count in range(n):
        for cuts in combinations(range(1, n), count):
            edges = list(zip((0, *cuts), (*cuts, n), strict=True))
            if all(edge in costs for edge in edges):
                every.append(chained([costs[edge] for edge in edges]))
    expected = undominated(((c.ram, c.macs) for c in every), lambda point: point)
    assert [(c.ram, c.macs) for c in front([*costs.values()], n)] == expected[::-1]


@settings(derandomize=True, deadline=None, max_examples=100)
@given(LAYERS, st.integers(3, 20))
def test_a_blocks_tiles_are_what_one_output_element_needs(drawn, side):
    """The rows of each layer's input for one element, counted as sets, equal the closed formula."""
    layers = chain_of(drawn, side)
    needed = {0}
    for each in reversed(layers):
        needed = {q * each.stride + k for q in needed for k in range(each.kernel)}
    rows = max(needed) - min(needed) + 1
    is_possible = any(block.end - block.first == len(layers) for block in all_blocks(layers))
    assert is_possible == (len(layers) == 1 or rows <= side)
