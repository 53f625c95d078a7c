"""Trained networks: every tensor that the executor computes equals LiteRT's reference kernels."""

import numpy as np
import pytest
from graphs import inputs_for
from litert import run
from needs import needs_shared

from buildtool.graph.reference import execute
from buildtool.graph.tflite.reader import read_model

SMALL = ["mcunet_vww5", "mlperf_ad", "mlperf_kws", "mlperf_resnet8", "mlperf_vww96", "mbv2_w035_144_random"]
LARGE = ["mobilenetv2_160", "mcunet_320k_imagenet"]


def compare(name, seed, pattern="random"):
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
    for seed in range(3):
        compare(name, seed)
    compare(name, 0, "extremes")


@pytest.mark.parametrize("name", LARGE)
@pytest.mark.parametrize(
    "seed", [0, pytest.param(1, marks=pytest.mark.slow), pytest.param(2, marks=pytest.mark.slow)]
)
def test_every_tensor_of_a_large_network_equals_litert(name, seed):
    compare(name, seed)
