"""Firmware of one operator each: what arranges, reduces and multiplies, natively under sanitizers."""

from __future__ import annotations

import pytest
from graphs import one_operator_graphs
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from nativebatch import differences, prepare, run

from buildtool.graph.types import OpKind

KINDS = (
    OpKind.TILE,
    OpKind.GATHER,
    OpKind.DEPTH_TO_SPACE,
    OpKind.SPACE_TO_DEPTH,
    OpKind.BATCH_TO_SPACE_ND,
    OpKind.SPACE_TO_BATCH_ND,
    OpKind.REDUCE_MAX,
    OpKind.REDUCE_MIN,
    OpKind.ARG_MAX,
    OpKind.ARG_MIN,
    OpKind.BATCH_MATMUL,
)
_batches = settings(
    derandomize=True,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],  # a batch is dear: no shrinking
    suppress_health_check=list(HealthCheck),
)


def check(graphs, folder):
    jobs = [prepare(graph, f"n{i}", seed=i) for i, graph in enumerate(graphs)]
    for job, runs in zip(jobs, run(jobs, folder), strict=True):
        assert differences(job, runs) == [], job.source


def each(count: int) -> st.SearchStrategy[list]:
    """So many graphs of every kind."""
    return st.tuples(*(one_operator_graphs(kind) for kind in KINDS for _ in range(count)))


@pytest.mark.slow
@settings(_batches, max_examples=1)
@given(graphs=each(2))
def test_operators_that_arrange_are_exact(graphs, tmp_path_factory):
    check(graphs, tmp_path_factory.mktemp("batch"))
