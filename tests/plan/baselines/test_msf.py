"""msf-CNN's model: Table 1 of its paper to the byte, and the front against brute force."""

from __future__ import annotations

import time
from functools import cache
from itertools import combinations

import msf_tables
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from buildtool.plan.baselines.msf_layers import Layer, total_macs
from buildtool.plan.baselines.msf_solve import (
    Blocks,
    Choice,
    all_blocks,
    front,
    least_macs,
    least_ram,
    one_block,
    shrinking,
    undominated,
)

NETWORKS = sorted(msf_tables.TABLES)
P1 = [(name, most, cell) for name, column in msf_tables.P1.items() for most, cell in column.items()]
P2 = [(name, most, cell) for name, column in msf_tables.P2.items() for most, cell in column.items()]


@cache
def blocks(name: str) -> Blocks:
    return all_blocks(msf_tables.TABLES[name])


@cache
def searched(name: str, limit: int = 1 << 40) -> list[Choice]:
    within = {edge: cost for edge, cost in blocks(name).items() if cost.ram <= limit}
    return shrinking(within, len(msf_tables.TABLES[name]))


@cache
def whole_front(name: str) -> list[Choice]:
    return front(blocks(name), len(msf_tables.TABLES[name]))


def printed(name: str, choice: Choice | None) -> tuple[int, float] | None:
    """A cell of the table: bytes, and F with two digits."""
    return choice and (choice.ram, round(choice.macs / total_macs(msf_tables.TABLES[name]), 2))


def test_the_table_has_33_cells_two_of_them_empty():
    cells = [cell for _, _, cell in P1 + P2]
    assert (len(cells), cells.count(None)) == (33, 2)


@pytest.mark.parametrize(("name", "most", "cell"), P1)
def test_p1_gives_the_papers_cell(name, most, cell):
    most_macs = most * total_macs(msf_tables.TABLES[name])
    assert printed(name, least_ram(searched(name), most_macs)) == cell
    assert printed(name, least_ram(whole_front(name), most_macs)) == cell


@pytest.mark.parametrize(("name", "most", "cell"), P2)
def test_p2_gives_the_papers_cell(name, most, cell):
    assert printed(name, least_macs(searched(name, most), most)) == cell
    assert printed(name, least_macs(whole_front(name), most)) == cell


@pytest.mark.parametrize("name", NETWORKS)
def test_single_layers_are_the_vanilla_row(name):
    layers = msf_tables.TABLES[name]
    assert max(blocks(name)[i, i + 1].ram for i in range(len(layers))) == msf_tables.VANILLA[name]
    assert sum(blocks(name)[i, i + 1].macs for i in range(len(layers))) == total_macs(layers)


@pytest.mark.parametrize("name", NETWORKS)
def test_one_block_from_the_start(name):
    assert printed(name, one_block(blocks(name), len(msf_tables.TABLES[name]))) == msf_tables.ONE_BLOCK[name]


@pytest.mark.parametrize("name", NETWORKS)
def test_the_whole_front_takes_milliseconds(name):
    layers = msf_tables.TABLES[name]
    best = 1e9
    for _ in range(3):
        start = time.process_time()
        found = front(all_blocks(layers), len(layers))
        best = min(best, time.process_time() - start)
    assert found == whole_front(name)
    assert best < 0.5  # some 20 ms on an idle machine


LAYERS = st.lists(
    st.tuples(st.sampled_from([1, 3, 5]), st.sampled_from([1, 1, 2]), st.integers(1, 4), st.booleans()),
    min_size=1,
    max_size=6,
)


def chain_of(drawn, side: int) -> tuple[Layer, ...]:
    found, channels = [], 3
    for kernel, stride, wanted, depthwise in drawn:
        filters = channels if depthwise else wanted
        found.append(Layer(kernel, stride, kernel // 2, channels, filters, side, side, depthwise))
        side, channels = found[-1].rows_out, filters
    return tuple(found)


@settings(derandomize=True, deadline=None, max_examples=150)
@given(LAYERS, st.integers(3, 20))
def test_the_front_is_that_of_every_way_to_cut_the_chain(drawn, side):
    layers = chain_of(drawn, side)
    costs = all_blocks(layers)
    n = len(layers)
    every = []
    for count in range(n):
        for cuts in combinations(range(1, n), count):
            edges = list(zip((0, *cuts), (*cuts, n), strict=True))
            if all(edge in costs for edge in edges):
                ram = max(costs[edge].ram for edge in edges)
                every.append(Choice(ram, sum(costs[edge].macs for edge in edges), tuple(edges)))
    expected = [(c.ram, c.macs) for c in undominated(every)]
    assert [(c.ram, c.macs) for c in front(costs, n)] == expected
    for ram, macs in expected:
        assert (least_ram(shrinking(costs, n), macs).ram, least_macs(front(costs, n), ram).macs) == (
            ram,
            macs,
        )


@settings(derandomize=True, deadline=None, max_examples=100)
@given(LAYERS, st.integers(3, 20))
def test_a_blocks_tiles_are_what_one_output_element_needs(drawn, side):
    """Rows of each layer's input for one element, counted set by set, against the closed formula."""
    layers = chain_of(drawn, side)
    needed = {0}
    for each in reversed(layers):
        needed = {q * each.stride + k for q in needed for k in range(each.kernel)}
    rows = max(needed) - min(needed) + 1
    whole = (0, len(layers))
    assert (whole in all_blocks(layers)) == (len(layers) == 1 or rows <= side)
