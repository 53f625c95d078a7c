"""Strips: xcore-opt's published segments, the search for better ones, and refusals."""

from __future__ import annotations

from functools import cache, partial
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from needs import needs_shared

from buildtool import api
from buildtool.base.errors import PlanError, UsageError
from buildtool.base.session import Session
from buildtool.options.values import PlanOptions
from buildtool.plan.assemble.layerwise import plan as plan_layerwise
from buildtool.plan.baselines.strips import Segment, parse_segments, plan_strips, promising
from buildtool.plan.check.check import check
from buildtool.plan.choose.choose import make_plan
from buildtool.plan.models import load_model, read_graph
from buildtool.target.registry import load_target

handle = partial(api.handle, session=Session())  # makes a network's tables once

MODEL = "models/mobilenetv2_160.tflite"  # in ../shared
SEED = "mobilenetv2:size=64,alpha=0.35,classes=10"

# xcore-opt 1.4.2 on MobileNetV2-160, weights not in the arena: segments -> (arena bytes, F).
XCORE_OPT = {
    "0-14x10": (253216, 1.211),
    "0-6x8,7-14x4": (231752, 1.040),
    "0-6x8,7-14x4,15-26x2": (233320, 1.051),
    "0-6x20,7-14x10,15-22x4": (192872, 1.132),
}
UNSPLIT = 792624

SESSION = Session()  # one search for all requests for a network


def best_strips(graph, target, **limits):
    return make_plan(graph, target, PlanOptions(strategy="xcore-strips", **limits), SESSION)


@cache
def trained():
    """MobileNetV2-160 of xcore's application note."""
    return read_graph(load_model(str(needs_shared(MODEL))))[1]


@cache
def small():
    return read_graph(load_model(SEED))[1]


@cache
def host():
    return load_target("host")


@pytest.mark.parametrize("segments", XCORE_OPT)
def test_no_more_memory_and_work_than_xcore_opt_for_its_own_segments(segments):
    plan = plan_strips(trained(), host(), parse_segments(segments))
    check(plan, trained(), host())
    arena, f = XCORE_OPT[segments]
    assert plan.arena_bytes <= arena
    assert plan.f <= f


def test_no_more_memory_than_xcore_opt_without_segments():
    assert plan_layerwise(trained(), host()).arena_bytes <= UNSPLIT


@pytest.mark.slow
def test_the_search_beats_the_tools_suggestion_and_the_best_found_by_hand():
    strips = best_strips(trained(), host())
    check(strips, trained(), host())
    assert strips.arena_bytes < min(arena for arena, _ in XCORE_OPT.values())
    assert strips.f < XCORE_OPT["0-6x20,7-14x10,15-22x4"][1]


@pytest.mark.slow
def test_the_search_takes_the_least_work_that_fits():
    layerwise = plan_layerwise(small(), host())
    least = best_strips(small(), host(), max_f=2.0)
    assert least.arena_bytes < layerwise.arena_bytes / 2
    assert best_strips(small(), host(), ram=layerwise.arena_bytes).f == 1.0
    between = best_strips(small(), host(), ram=(layerwise.arena_bytes + least.arena_bytes) // 2)
    assert between.f <= least.f
    assert between.arena_bytes <= (layerwise.arena_bytes + least.arena_bytes) // 2


@pytest.mark.slow
def test_limits_that_cannot_be_kept_name_the_nearest():
    least = best_strips(small(), host(), max_f=4.0).arena_bytes
    with pytest.raises(PlanError) as caught:
        best_strips(small(), host(), ram=least - 1)
    assert f"the smallest arena is {least:,} bytes" in caught.value.text
    assert f"ram={least}" in caught.value.hint


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0-6x20", (Segment(0, 6, 20),)),
        (" 0 - 6 x 20 , 7-14X10", (Segment(0, 6, 20), Segment(7, 14, 10))),
        ("3-3x1", (Segment(3, 3, 1),)),
    ],
)
def test_segments_are_read(text, expected):
    assert parse_segments(text) == expected
    assert parse_segments(",".join(map(str, expected))) == expected


@pytest.mark.parametrize(
    "text", ["", "0-6", "0-6x", "6x4", "a-bx2", "0-6x0", "6-0x2", "0-6x2,", "-1-6x2", "0-6x2;7-9x2"]
)
def test_what_is_no_segment_is_refused(text):
    with pytest.raises(UsageError, match="segments:"):
        parse_segments(text)


@settings(derandomize=True, deadline=None, max_examples=200)
@given(st.text("0123456789-x, ", max_size=20))
def test_any_text_is_segments_or_a_usage_error(text):
    try:
        segments = parse_segments(text)
    except UsageError:
        return
    assert all(s.first <= s.last and s.strips >= 1 for s in segments)
    assert all(a.last < b.first for a, b in pairwise(segments))


@pytest.mark.parametrize(
    ("segments", "says"),
    [
        ("0-6x2,6-9x2", "does not come after"),
        ("0-500x2", "no operators 0 to 500"),
        ("0-6x1000", "more strips than rows"),
        ("50-68x2", "cannot run in strips"),
    ],
)
def test_segments_that_cannot_be_are_refused(segments, says):
    with pytest.raises(UsageError) as caught:
        plan_strips(small(), host(), parse_segments(segments))
    assert says in caught.value.text
    assert caught.value.hint


def validated(board, strategy, **options):
    answer = handle(
        {
            "kind": "validate",
            "model": SEED,
            "board": board,
            "tensors": board == "host",
            "inputs": 2,
            "options": {"strategy": strategy, **options},
        }
    )
    assert answer["exact"], answer["first_difference"]
    assert answer["strategy"] == strategy
    return answer


@pytest.mark.slow
def test_strips_run_equal_to_the_bit():
    """On a board, with an image that arrives by rows."""
    answer = validated("cortex-m4", "xcore-strips", segments="0-6x5,7-22x3", image="stream")
    assert answer["arena_high_water"] <= answer["arena_bytes"]


@pytest.mark.slow
def test_searched_strips_run_equal_to_the_bit():
    answer = validated("host", "xcore-strips", max_f=1.5)
    assert answer["arena_bytes"] < plan_layerwise(small(), host()).arena_bytes


@pytest.mark.parametrize(
    "name",
    [
        "autoencoder",
        "ds_cnn",
        "resnet8",
        pytest.param("mobilenetv3_small:size=32,classes=10", marks=pytest.mark.slow),
    ],
)
def test_networks_of_every_form_have_a_plan_in_strips(name):
    graph = read_graph(load_model(name))[1]
    assert promising(graph, host())[-1] == ()
    plan = best_strips(graph, host())
    check(plan, graph, host())
    assert plan.f <= 1.2
