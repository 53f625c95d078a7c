"""All requests plan in the same way: `plan`, `front` and `analyze` agree on every board."""

from __future__ import annotations

import contextlib
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest

from buildtool.api import handle
from buildtool.base.errors import PlanError
from buildtool.base.session import Session
from buildtool.graph.types import Graph
from buildtool.plan.schedule import timeline as timelines
from buildtool.plan.schedule.schedule import Run
from buildtool.plan.types import Region

BOARDS = ["host", "cortex-m4", "xcore"]
CASES = [
    ("ds_cnn", "cortex-m4", "overwritable"),
    ("ds_cnn", "cortex-m4", "stream"),
    *(
        pytest.param(*case, marks=pytest.mark.slow)
        for case in (
            ("ds_cnn", "xcore", "stream"),
            ("resnet8", "xcore", "overwritable"),
            ("resnet8", "host", "stream"),
        )
    ),
]
SESSION = Session()
MOST_ASKED = 5  # points of a front, the first and the last among them


class Asker:
    """Sends requests for one network on one board."""

    def __init__(self, model: str, board: str) -> None:
        self.about = {"model": model, "board": board}

    def __call__(self, kind: str, **options: object) -> dict:
        return handle({"kind": kind, **self.about, "options": options}, SESSION)


@pytest.mark.parametrize(("model", "board", "image"), CASES)
def test_the_front_is_what_plan_gives_at_each_size(model: str, board: str, image: str) -> None:
    front_and_plans_agree(Asker(model, board), image=image)


def front_and_plans_agree(ask: Asker, **options: object) -> None:
    """The points of `front` are plans of `plan`, and no plan of their size is more expensive."""
    points = ask("front", **options)["points"]
    assert points[0]["arena_bytes"] == ask("plan", **options, objective="ram")["arena_bytes"]
    asked = np.linspace(0, len(points) - 1, min(len(points), MOST_ASKED)).round().astype(int).tolist()
    for point in (points[i] for i in asked):
        plan = ask("plan", **options, ram=point["arena_bytes"])
        assert plan["arena_bytes"] <= point["arena_bytes"]
        assert plan["f"] >= point["f"]  # no plan of this size does less work
        assert plan["cost"] <= point["cost"] * (1 + 1e-9)
    least = points[0]["arena_bytes"]
    below = {"max_f": 2, **options, "ram": least - 1}  # F of at most 2, as on the front
    if ask.about["board"] != "xcore":
        with pytest.raises(PlanError):
            ask("plan", **below)
    else:  # what constants on dead rows save is found after the search, so a little less may be found yet
        with contextlib.suppress(PlanError):
            assert ask("plan", **below)["arena_bytes"] > 0.99 * least
    for one, other in pairwise(points):
        assert one["arena_bytes"] < other["arena_bytes"] and one["macs"] > other["macs"]


@pytest.mark.slow
@pytest.mark.parametrize("board", BOARDS[1:])
def test_the_analysis_is_of_the_plan_that_is_made(board: str) -> None:
    for options in ({}, {"objective": "ram", "in_place": "none"}):
        about = {"model": "ds_cnn", "options": options}
        (verdict,) = handle({"kind": "analyze", **about, "boards": [board]}, SESSION)["boards"]
        plan = handle({"kind": "plan", **about, "board": board}, SESSION)
        for key in ("arena_bytes", "f", "cost", "strategy", "flash_bytes"):
            assert verdict[key] == plan[key]


@pytest.mark.slow
def test_the_analysis_keeps_limits_and_says_by_how_much_they_are_missed() -> None:
    about = {"kind": "analyze", "model": "ds_cnn", "boards": ["cortex-m4"]}
    least = Asker("ds_cnn", "cortex-m4")("plan", objective="ram")["arena_bytes"]
    (verdict,) = handle({**about, "options": {"ram": least - 624, "max_flash": 1000}}, SESSION)["boards"]
    ram, flash = (need for need in verdict["needs"] if need["what"] in ("arena limit", "weights limit"))
    assert (ram["required"], ram["available"], ram["excess"]) == (least, least - 624, 624)
    assert (flash["available"], flash["excess"]) == (1000, flash["required"] - 1000)
    assert not verdict["fits"]


def test_limits_leave_out_points_of_the_front() -> None:
    ask = Asker("ds_cnn", "cortex-m4")
    points = ask("front")["points"]
    assert len(points) > 2
    sizes = [point["arena_bytes"] for point in points]
    assert [p["arena_bytes"] for p in ask("front", ram=sizes[1])["points"]] == sizes[:2]
    limit = points[1]["f"]
    assert [p["arena_bytes"] for p in ask("front", max_f=limit)["points"]] == sizes[1:]
    cost = sorted(point["cost"] for point in points)[1]
    within = ask("front", max_cost=cost)["points"]
    assert within and all(point["cost"] <= cost for point in within)
    with pytest.raises(PlanError, match="the arena requires") as caught:
        ask("front", ram=sizes[0] - 1)
    assert dict(caught.value.hints[0].settings) == {"ram": sizes[0]}
    with pytest.raises(PlanError, match="the weight image requires"):
        ask("front", max_flash=1000)


@pytest.mark.slow
def test_a_cost_that_a_plan_has_is_kept_whatever_is_minimised() -> None:
    ask = Asker("ds_cnn", "host")
    for ram in (None, 9000, 6000):
        cheap = ask("plan", ram=ram)
        limits = {"max_cost": cheap["cost"], "ram": cheap["arena_bytes"]}
        assert ask("plan", objective="ram", **limits)["arena_bytes"] <= cheap["arena_bytes"]
        points = ask("front", **limits)["points"]
        assert points and all(point["cost"] <= cheap["cost"] for point in points)


@pytest.mark.parametrize("kind", ["plan", "emit"])
@pytest.mark.parametrize(
    "options", [{"strategy": "xcore-strips", "segments": "0-2x4"}, {"strategy": "layerwise"}]
)
def test_a_request_makes_each_schedule_once_and_the_checker_once_more(
    monkeypatch: pytest.MonkeyPatch, kind: str, options: dict[str, str]
) -> None:
    counts: Counter[Region] = Counter()
    run = timelines.run

    def counted(region: Region, graph: Graph, image: str) -> Run:
        counts[region] += 1
        return run(region, graph, image)

    monkeypatch.setattr(timelines, "run", counted)
    handle({"kind": kind, "model": "ds_cnn", "board": "cortex-m4", "options": options})
    # `plan` tells beside it what a plan layer by layer needs, which has a check of its own: a region that
    # both have is made once for both, and once for each check.
    most = 3 if kind == "plan" and "segments" in options else 2
    assert any(region.is_streamed for region in counts) == ("segments" in options)
    assert all(times in (2, 2 if region.is_streamed else most) for region, times in counts.items())
