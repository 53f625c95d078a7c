"""What the checker says an operator reads, against what the planner says: neither uses the other."""

from __future__ import annotations

import plan_nets
import pytest
from drawnnets import branching_networks
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from namednets import enlarging_networks
from plan_nets import residual_nets

from buildtool.graph.liveness import alias_roots
from buildtool.graph.ops import ALIAS_KINDS
from buildtool.plan.check.reads import alias_groups, reads, sums_up
from buildtool.plan.schedule.receptive import accumulates, axes, row_inputs, streams


@pytest.mark.slow
@settings(derandomize=True, deadline=None, max_examples=200, suppress_health_check=list(HealthCheck))
@given(st.data(), st.one_of(residual_nets(), plan_nets.graphs(), branching_networks(), enlarging_networks()))
def test_checker_and_planner_agree_on_every_window(data, graph):
    assert alias_groups(graph) == alias_roots(graph)
    for op in graph.ops:
        if op.kind in ALIAS_KINDS:
            continue
        assert sums_up(graph, op) == accumulates(graph, op)
        by_row = row_inputs(graph, op) if streams(graph, op) and not accumulates(graph, op) else ()
        found = reads(graph, op)
        assert [r.tensor for r in found if r.rows] == list(by_row)
        assert {r.tensor for r in found} == {
            t for t in op.inputs if t >= 0 and not graph.tensors[t].is_constant
        }
        _, height, width, _ = graph.tensors[op.outputs[0]].nhwc
        for read in found:
            for taps, axis, size in zip(
                (read.rows, read.columns), axes(graph, op), (height, width), strict=True
            ):
                if taps is not None:
                    low = data.draw(st.integers(0, size - 1))
                    high = data.draw(st.integers(low + 1, size))
                    expected = (max(0, axis.low(low)), min(taps.size, axis.high(high)))
                    assert taps.read((low, high)) == expected
