"""The inputs of a network: seeded random values, or a user's .npy file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from buildtool.base.errors import UsageError, suggest
from buildtool.firmware.datasets.arrays import Array, order_hint, parsed, quantised, same_shape
from buildtool.graph.types import DType

if TYPE_CHECKING:
    from buildtool.api.requests.parts import Inputs
    from buildtool.base.files import File
    from buildtool.firmware.planned import Planned
    from buildtool.graph.types import Graph, Tensor

MOST_BYTES = 1 << 30


def seeded(graph: Graph, count: int, seed: int) -> list[list[Array]]:
    """`count` sets of inputs, every quantised value equally likely."""
    random = np.random.default_rng(seed)
    return [[_random(graph.tensors[t], random) for t in graph.inputs] for _ in range(count)]


def sequences(graph: Graph, count: int, length: int) -> list[bool]:
    """Before which of `count` inputs the state is reset, so that `length` of them follow one another.

    0: two sequences of equal length, with all that a reset in between could leave undone. Init has reset it
    before the first input.
    """
    each = length or max(1, -(-count // 2))
    return [bool(graph.states) and i > 0 and i % each == 0 for i in range(count)]


def _random(tensor: Tensor, random: np.random.Generator) -> Array:
    if tensor.dtype is DType.BOOL:
        return np.asarray(random.integers(0, 2, tensor.shape) != 0)
    limits = np.iinfo(tensor.dtype.value)
    return random.integers(limits.min, limits.max + 1, tensor.shape, dtype=np.dtype(tensor.dtype.value))


def from_file(graph: Graph, file: File) -> list[list[Array]]:
    """One set of inputs from a .npy file: quantised values, or floats that are quantised here.

    The array has the input's shape, with or without a batch dimension of 1.
    """
    path = file.path
    if len(graph.inputs) != 1:
        raise UsageError(
            f"the network has {len(graph.inputs)} inputs, a .npy file holds one",
            path=path,
            hint=suggest("random values", input=None),
        )
    tensor = graph.tensors[graph.inputs[0]]
    array = parsed(file.read("the input", MOST_BYTES), path)
    if array.size != tensor.elements or not same_shape(array.shape, tensor):
        raise UsageError(
            f"the input has shape {array.shape}, the network takes {tensor.shape}",
            path=path,
            hint=order_hint(array.shape, tensor),
        )
    return [[quantised(array.reshape(tensor.shape), tensor, path)]]


def inputs_of(wanted: Inputs, made: Planned, in_sequence: int = 1) -> list[list[Array]]:
    """The inputs that a request asks for: a file's, or random ones.

    Where it does not say how many, it is one, or `in_sequence` of a network with state.
    """
    if wanted.file is not None:
        return from_file(made.graph, wanted.file)
    return seeded(made.graph, wanted.count or (in_sequence if made.graph.states else 1), wanted.seed)
