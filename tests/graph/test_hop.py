"""Networks on a moving window: which rows move, what is kept, and the network of one hop."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from listeningnets import assert_hops_equal, listening_network

from buildtool import zoo
from buildtool.base.errors import PlanError, UnsupportedError, UsageError
from buildtool.graph.consistency import check_graph
from buildtool.graph.hop.build import build
from buildtool.graph.hop.choices import choices
from buildtool.graph.hop.moments import Work, analyse
from buildtool.graph.hop.spans import count
from buildtool.graph.hop.types import Hop, Kept
from buildtool.graph.macs import op_macs, total_macs
from buildtool.graph.rewrite import rewrite
from buildtool.graph.tflite.reader import read_model
from buildtool.graph.types import OpKind
from buildtool.plan.choose.hops import MOST_TRIED, hopping_as, list_hoppings
from buildtool.zoo.drawn import NetBuilder
from buildtool.zoo.drawn_series import SERIES
from buildtool.zoo.drawn_state import svdf


def keyword_spotter():
    return rewrite(read_model(zoo.build("ds_cnn")))


def new_rows(needs):
    """The rows that a hop computes of each tensor that has rows, by the operator that makes it."""
    graph, makers = needs.analysis.graph, needs.analysis.graph.producers()
    return [(graph.ops[makers[t]].kind, count(rows)) for t, rows in sorted(needs.made.items()) if t in makers]


def test_rows_that_see_a_border_are_computed_anew_by_hand():
    # 49 rows, SAME: a 10 x 4 kernel of stride 2, then four separable convolutions of 3 x 3
    least = choices(analyse(keyword_spotter(), 2))[0]
    rows = [n for kind, n in new_rows(least) if kind is not OpKind.RESHAPE]
    assert rows == [6, 8, 8, 10, 10, 12, 12, 14, 14]
    assert least.macs / total_macs(least.analysis.graph) == pytest.approx(0.42, abs=0.005)


@pytest.mark.parametrize(
    ("name", "rows"),
    [
        ("causal", [1, 1, 1, 1]),
        ("samples", [80, 20, 5]),
        ("ecg", [46, 46, 24, 30, 30, 16, 22, 22]),
    ],
)
def test_rows_that_are_new_by_hand(name, rows):
    series = SERIES[name]()
    assert [n for _, n in new_rows(choices(analyse(rewrite(series.graph), series.hop))[0])] == rows


@pytest.mark.parametrize("seed", range(40))
def test_every_tensor_of_every_hop_is_that_of_the_whole_window(seed):
    graph, draw = listening_network(seed), np.random.default_rng(seed)
    hop = int(draw.choice([1, 2, 3, 4, 6]))
    try:
        analysis = analyse(graph, hop)
    except UsageError as error:  # strides, or a window that is shorter than the hop
        analysis = analyse(graph, int(error.hints[0].settings[0][1] or 1))
    every = choices(analysis)
    for needs in {
        id(one): one for one in (every[0], every[-1], every[int(draw.integers(len(every)))])
    }.values():
        built = build(needs, in_columns=bool(draw.integers(2)))
        check_graph(built.graph)
        assert sum(op_macs(built.graph, op) for op in built.graph.ops) == needs.macs
        assert_hops_equal(graph, analysis, built, min(2 * built.graph.window.hops + 2, 24), seed)


def test_planned_choices_are_the_ends_and_those_whose_neighbours_are_far():
    window = keyword_spotter()
    every = choices(analyse(window, 2))
    planned = [one.needs for one in list_hoppings(window, 2)]
    assert len(every) > len(planned) == MOST_TRIED
    assert (planned[0].hop, planned[-1].hop) == (every[0].hop, every[-1].hop)
    by_memory = {one.state_bytes: one.work for one in every}
    # 2,944 bytes: 7 % more work than 3,600, but a tenth less than 2,288
    assert 2_944 in {one.state_bytes for one in planned}
    assert all(by_memory[one.state_bytes] == one.work for one in planned)


def test_a_plan_records_whether_moments_are_columns():
    window = rewrite(SERIES["ecg"]().graph)
    made = list_hoppings(window, 40)
    assert {one.in_columns for one in made} == {False, True}
    for one in made[:2]:
        again = hopping_as(window, one.hop)
        assert again.hop == one.hop
        assert str(again.graph.ops) == str(one.graph.ops)
    assert not any(one.in_columns for one in list_hoppings(keyword_spotter(), 2))  # its images have 5 columns
    with pytest.raises(PlanError, match="another network"):
        hopping_as(keyword_spotter(), replace(list_hoppings(keyword_spotter(), 2)[0].hop, in_columns=True))


# ---- networks and hops that cannot be ------------------------------------------------------------------


REFUSED = {  # words of the error -> (what adds the output, rows of a hop)
    "windows move by 2 rows": (lambda net: net.conv(net.input((1, 9, 1, 2)), 4, stride=(2, 1)), 5),
    "9 rows, and cannot move by 10": (lambda net: net.conv(net.input((1, 9, 1, 2)), 4, kernel=(3, 1)), 10),
    "state of its own": (lambda net: svdf(net, net.input((1, 8)), 4), 1),
    "2 inputs": (lambda net: net.elementwise(OpKind.ADD, *(net.input((1, 8, 1, 2)) for _ in "ab")), 1),
    "[2, 16, 1, 4] is no window": (lambda net: net.conv(net.input((2, 16, 1, 4)), 4, kernel=(3, 1)), 2),
}


@pytest.mark.parametrize("words", REFUSED)
def test_what_cannot_move_is_refused(words):
    add, rows = REFUSED[words]
    net = NetBuilder(0)
    graph = rewrite(net.graph([add(net)]))
    with pytest.raises((UsageError, UnsupportedError), match=re.escape(words)) as error:
        analyse(graph, rows)
    if rows == 5:  # the hint is the nearest hop
        (hint,) = error.value.hints
        assert hint.settings == (("hop", 4),) and analyse(graph, 4)


def test_a_dense_layer_over_all_moments_runs_whole_and_says_why():
    net = NetBuilder(0)
    x = net.conv(net.input((1, 20, 1, 2)), 4, kernel=(3, 1))
    analysis = analyse(rewrite(net.graph([net.dense(net.flatten(x), 3)])), 2)
    assert [role.why for role in analysis.roles if role.work is Work.WHOLE and role.why][-1] == (
        "each moment has weights of its own"
    )


@pytest.mark.parametrize(
    "hop",
    [
        Hop(2, (Kept(0, 0), Kept(99, 1))),
        *(Hop(rows) for rows in (0, -1, 3, 50)),
        Hop(2, (Kept(0, 0), Kept(4, 500))),
    ],
    ids=["tensor", "no rows", "negative", "strides", "longer", "beyond"],
)
def test_a_plan_that_this_network_cannot_have_is_refused(hop):
    with pytest.raises(PlanError, match="another network"):
        hopping_as(keyword_spotter(), hop)
