"""The zoo's networks, built once per process, and seeded inputs for them."""

import functools

import numpy as np
import pytest

from buildtool import zoo
from buildtool.graph.reference import execute
from buildtool.graph.tflite.writer import write_model
from buildtool.graph.types import Graph
from buildtool.zoo.networks import calibration_input, feed

SMALL = (
    "autoencoder",
    "ds_cnn",
    "mcunet_vww5",
    "mobilenetv1_025_96",
    "mobilenetv2:size=32,alpha=0.35,classes=10",
    "resnet8",
    "squeezenet:size=48,classes=10",
)
LARGE = (
    "densenet",
    "mbv2_w035_144",
    "mcunet_320k",
    "mobilenetv2",
    "mobilenetv3_small:size=128,classes=10",
)
ALL = (*SMALL, *(pytest.param(name, marks=pytest.mark.slow) for name in LARGE))


@functools.cache
def built(name: str) -> Graph:
    return zoo.graph(name)


@functools.cache
def file(name: str) -> bytes:
    """Returns a network's file, equal to that of `zoo.build` (tests/zoo/test_zoo_determinism.py)."""
    return write_model(built(name))


@functools.cache
def runs(name: str) -> list[dict[int, np.ndarray]]:
    """Returns all values of the network on `fresh_inputs`, by the reference executor."""
    return [execute(built(name), [x]) for x in fresh_inputs(name)]


def fresh_inputs(name: str) -> list[np.ndarray]:
    """Returns a picture and noise that the network was not calibrated on, with batch 1."""
    return [x[None] for x in calibration_input(feed(zoo.choose(name)), f"test/{name}")[:2]]
