"""Plans that are too large for a board: the error's text, and that its suggestions work."""

import re

import pytest
from plan_nets import make_target, residual_net

from buildtool.base.errors import PlanError
from buildtool.plan.assemble.layerwise import plan
from buildtool.plan.summary.fit import fit


def _refusal(made, target, graph):
    with pytest.raises(PlanError) as caught:
        fit(made, target, graph)
    return caught.value


def test_reserved_memory_is_not_available():
    graph = residual_net()
    result = plan(graph, make_target())
    fit(result, make_target(ram=result.arena_bytes + 100, reserved=100), graph)
    error = _refusal(result, make_target(ram=result.arena_bytes + 100, reserved=140), graph)
    assert "40 too many" in error.text
    assert "reserved_bytes = 100 or less" in error.hint


def test_the_error_gives_required_available_excess_and_the_operator_that_binds():
    graph, target = residual_net(), make_target(ram=6000)
    result = plan(graph, target)
    error = _refusal(result, target, graph)
    assert error.operator == "#6 DEPTHWISE_CONV_2D (t13)"
    numbers = [int(n) for n in re.findall(r"\b\d{3,}\b", error.text)]
    assert numbers[:3] == [result.arena_bytes, 6000, result.arena_bytes - 6000]
    assert f"a memory 'ram' of {result.arena_bytes} bytes or more" in error.hint


def test_settings_that_would_fit_are_proposed_first():
    graph = residual_net()
    best = plan(graph, make_target())
    target = make_target(ram=best.arena_bytes)
    error = _refusal(plan(graph, target, in_place="none"), target, graph)
    assert error.hint.startswith(f"in_place=rows image=overwritable ({best.arena_bytes} bytes);")
    fit(best, target, graph)
