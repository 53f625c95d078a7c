"""The golden input of a network, whose output is known, and when the network checks its guard words."""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from buildtool.base.modes import Guards
from buildtool.graph.reference import execute
from buildtool.graph.types import Graph


@dataclass(frozen=True)
class Golden:
    """An input whose output is known.

    seed, data: the bytes of the input are `data`. If `data` is empty, they are made from `seed`.
    crc32: the CRC-32 of all outputs, one after the other.
    """

    seed: int
    data: bytes
    crc32: int


@dataclass(frozen=True)
class Checks:
    """The checks of a network: when it checks its guard words, and the golden input of its self-test (None:
    no self-test).
    """

    guards: Guards = Guards.NONE
    golden: Golden | None = None


NO_CHECKS = Checks()


def made_up(seed: int, size: int) -> bytes:
    """Returns the `size` bytes that nn_golden_fill makes from `seed`."""
    x = np.uint32(seed) + np.arange(size, dtype=np.uint32) * np.uint32(0x9E3779B1)
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        x = (x ^ (x >> np.uint32(shift))) * np.uint32(factor)
    return bytes(((x ^ (x >> np.uint32(16))) & np.uint32(0xFF)).astype(np.uint8))


def split_bytes(graph: Graph, data: bytes) -> list[npt.NDArray[np.generic]]:
    """Returns the values of the network's inputs, whose bytes are one after the other in `data`."""
    values, start = [], 0
    for t in graph.inputs:
        tensor = graph.tensors[t]
        part = data[start : start + tensor.size]
        values.append(np.frombuffer(part, tensor.dtype.value).reshape(tensor.shape))
        start += tensor.size
    return values


def crc_of_outputs(graph: Graph, data: bytes) -> int:
    """Returns the CRC-32 of the outputs that the reference computes from the inputs in `data`.

    The outputs follow each other in the network's order. States have their initial values, as after a reset.
    """
    values = execute(graph, split_bytes(graph, data))
    crc = 0
    for t in graph.outputs:
        crc = zlib.crc32(np.ascontiguousarray(values[t]).tobytes(), crc)
    return crc
