"""A plan step by step: costs add up to the plan's cost, and live bytes are those of the live buffers."""

import functools

import numpy as np
import pytest

from buildtool.api.requests import parse
from buildtool.base.session import Session
from buildtool.firmware.planned import plan_or_read
from buildtool.plan.summary.steps import plan_steps
from buildtool.plan.summary.summary import binding, summarize
from buildtool.plan.types import BufferKind

SMALL = "mobilenetv2:size=32,alpha=0.35,classes=10"
# Whole operators; streamed, with a delivered image and a pooling in parts; with loaded weights and moves.
PLANS = {
    "whole": ("ds_cnn", "cortex-m4", {}),
    "streamed": (SMALL, "cortex-m55", {"image": "stream", "objective": "ram"}),
    "loaded": (SMALL, "xcore", {"image": "stream", "objective": "ram"}),
    "branches": ("squeezenet:size=48,classes=10", "cortex-m4", {"objective": "ram"}),
}


@functools.cache
def made(name):
    model, board, options = PLANS[name]
    request = parse({"kind": "plan", "model": model, "board": board, "options": options})
    result = plan_or_read(request.model, request.target, request.options, None, Session())
    kernels = result.target.kernels_by_name(result.plan.kernels)
    return result, plan_steps(result.plan, result.graph, kernels, result.target.costs, result.session)


@pytest.mark.slow
@pytest.mark.parametrize("name", PLANS)
def test_costs_add_up_to_the_plans_and_the_fullest_step_is_the_one_that_binds(name):
    result, steps = made(name)
    assert steps.total == result.plan.cost
    kernels = result.target.kernels_by_name(result.plan.kernels)
    summary = summarize(result.plan, result.graph, kernels, result.target.costs, result.session)
    for index, region in enumerate(summary.regions):
        of_region = steps.region == index
        assert np.flatnonzero(of_region)[[0, -1]].tolist() == [region.first, region.last]
        for op, _, work in region.operators:
            own = steps.cost[of_region & (steps.steps[:, 0] == op)]
            assert len(own) == work.calls
            assert own.sum() == work.cost - sum(one.cost for one in steps.loads if one.load.op == op)
    at = binding(result.plan, result.graph)
    assert (steps.live.max(), int(steps.live.argmax())) == (at.live_bytes, at.step)


def test_live_bytes_are_those_that_some_buffer_covers():
    """Checked byte by byte, for plans whose buffers keep all bytes as long as they live."""
    result, steps = made("whole")
    arena = np.zeros((len(steps.live), result.plan.arena_bytes + 64), bool)
    for held in steps.held:
        buffer = held.buffer
        size = -(-buffer.size // result.plan.alignment) * result.plan.alignment
        at = slice(buffer.first, buffer.last + 1)
        if buffer.kind is BufferKind.SCRATCH:
            at = np.flatnonzero(steps.steps[:, 0] == held.operator)
        arena[at, buffer.offset : buffer.offset + size] = True
    assert arena.sum(axis=1).tolist() == steps.live.tolist()


def test_what_comes_and_moves_is_listed_with_its_step():
    result, steps = made("loaded")
    assert steps.loads and {one.load.op for one in steps.loads} <= set(range(len(result.graph.ops)))
    for one in steps.loads:
        buffer = steps.held[one.load.buffer].buffer
        assert buffer.kind is BufferKind.WEIGHTS and buffer.first <= one.step <= buffer.last
    for moved in steps.moves:
        assert steps.held[moved.move.target].buffer.first == moved.step
    assert len(steps.moves) == len(result.plan.moves)
