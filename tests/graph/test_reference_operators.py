"""Operators and trained networks in the reference executor equal LiteRT's reference kernels, bit for bit."""

import numpy as np
import pytest
from drawnnets import small_networks
from graphs import KIND_GROUPS, graphs_of_one_of, inputs_for, patterns, seeds
from hypothesis import HealthCheck, given, settings
from litert import check, run
from needs import needs_shared

from buildtool.graph.reference import execute
from buildtool.graph.tflite.reader import read_model

SETTINGS = settings(derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
SMALL = ["mcunet_vww5", "mlperf_ad", "mlperf_kws", "mlperf_resnet8", "mlperf_vww96", "mbv2_w035_144_random"]
LARGE = ["mobilenetv2_160", "mcunet_320k_imagenet"]


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
def test_every_tensor_of_a_network_equals_litert(graph, seed, pattern):
    check(graph, inputs_for(graph, seed, pattern))


def compare_model(name, seed, pattern="random"):
    path = needs_shared(f"models/{name}.tflite")
    data = path.read_bytes()
    graph = read_model(data, path=path.name)
    inputs = inputs_for(graph, seed, pattern)
    expected = run(data, inputs)
    for index, value in execute(graph, inputs).items():
        tensor = graph.tensors[index]
        assert tensor.source is not None
        np.testing.assert_array_equal(value, expected[tensor.source.index], tensor.name, strict=True)


@pytest.mark.parametrize("name", SMALL)
def test_every_tensor_equals_litert(name):
    compare_model(name, 0)
    compare_model(name, 1, "extremes")


@pytest.mark.parametrize("name", LARGE)
def test_every_tensor_of_a_large_network_equals_litert(name):
    compare_model(name, 0)
