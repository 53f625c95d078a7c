"""Operators and trained networks in the reference executor equal LiteRT's reference kernels, bit for bit."""

import pytest
from drawnnets import small_networks
from graphs import KIND_GROUPS, graphs_of_one_of, inputs_for, patterns, seeds
from hypothesis import HealthCheck, given, settings
from litert import check, check_file
from needs import needs_shared

from buildtool.graph.tflite.reader import read_model
from buildtool.graph.tflite.writer import write_model

SETTINGS = settings(derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
MODELS = ["mcunet_vww5", "mlperf_ad", "mlperf_kws", "mlperf_resnet8", "mlperf_vww96", "mbv2_w035_144_random"]
MODELS += ["mobilenetv2_160", "mcunet_320k_imagenet"]


@pytest.mark.parametrize("kinds", KIND_GROUPS.values(), ids=KIND_GROUPS)
def test_an_operator_alone_equals_litert(kinds):
    @settings(SETTINGS, max_examples=36)
    @given(graph=graphs_of_one_of(kinds), seed=seeds, pattern=patterns)
    def compare(graph, seed, pattern):
        check(graph, inputs_for(graph, seed, pattern))

    compare()


@pytest.mark.slow
@settings(SETTINGS, max_examples=40)
@given(graph=small_networks(), seed=seeds, pattern=patterns)
def test_every_tensor_of_a_network_equals_litert_also_after_it_is_read_back(graph, seed, pattern):
    inputs = inputs_for(graph, seed, pattern)
    check(graph, inputs)
    again = check_file(write_model(graph), inputs)
    assert [(op.kind, op.attrs) for op in again.ops] == [(op.kind, op.attrs) for op in graph.ops]


@pytest.mark.parametrize("name", MODELS)
def test_every_tensor_of_a_trained_network_equals_litert(name):
    data = needs_shared(f"models/{name}.tflite").read_bytes()
    for seed, pattern in enumerate(("random", "extremes")):
        graph = check_file(data, inputs_for(read_model(data), seed, pattern))
        assert all(tensor.source is not None for tensor in graph.tensors)
