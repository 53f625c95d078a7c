"""Every operator of the reference executor equals LiteRT's reference kernels to the bit."""

import pytest
from graphs import KIND_GROUPS, graphs_of_one_of, inputs_for, patterns, seeds, small_networks
from hypothesis import HealthCheck, given, settings
from litert import check

SETTINGS = settings(derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.mark.parametrize("kinds", KIND_GROUPS.values(), ids=KIND_GROUPS)
def test_an_operator_alone_equals_litert(kinds):
    @settings(SETTINGS, max_examples=36)
    @given(graph=graphs_of_one_of(kinds), seed=seeds, pattern=patterns)
    def compare(graph, seed, pattern):
        check(graph, inputs_for(graph, seed, pattern))

    compare()


@pytest.mark.slow
@settings(SETTINGS, max_examples=90)
@given(graph=small_networks(), seed=seeds, pattern=patterns)
def test_every_tensor_of_a_network_equals_litert(graph, seed, pattern):
    check(graph, inputs_for(graph, seed, pattern))
