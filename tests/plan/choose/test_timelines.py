"""A request makes each schedule of its plan once, and the checker makes it once more."""

from __future__ import annotations

from collections import Counter

import pytest

from buildtool.api import handle
from buildtool.plan.schedule import timeline as timelines


@pytest.mark.parametrize("kind", ["plan", "emit"])
@pytest.mark.parametrize(
    "options", [{"strategy": "xcore-strips", "segments": "0-2x4"}, {"strategy": "layerwise"}]
)
def test_a_request_makes_each_schedule_once_and_the_checker_once_more(monkeypatch, kind, options):
    made = Counter()
    run = timelines.run

    def counted(region, graph, image):
        made[region] += 1
        return run(region, graph, image)

    monkeypatch.setattr(timelines, "run", counted)
    handle({"kind": kind, "model": "ds_cnn", "board": "cortex-m4", "options": options})
    beside_it = {"plan": 1, "emit": 0}[kind] if options["strategy"] != "layerwise" else 0
    whole = [region for region in made if not region.is_streamed]
    streamed = [region for region in made if region.is_streamed]
    assert bool(streamed) == ("segments" in options)
    assert {made[region] for region in streamed} <= {2}
    # `plan` tells beside it what a plan layer by layer needs, which has a check of its own: a region that
    # both have is made once for both, and once for each check.
    assert {made[region] for region in whole} <= {2, 2 + beside_it}
