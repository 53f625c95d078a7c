"""The inputs of a network: seeded random values, or a user's .npy file."""

from __future__ import annotations

import io
import math
import warnings
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from buildtool.errors import UsageError, suggest

if TYPE_CHECKING:
    from buildtool.graph.types import Graph, Tensor
    from buildtool.service.files import File

MOST_BYTES = 1 << 30
Array = npt.NDArray[np.generic]


def seeded(graph: Graph, count: int, seed: int) -> list[list[Array]]:
    """`count` sets of inputs, every quantised value equally likely."""
    random = np.random.default_rng(seed)
    return [[_random(graph.tensors[t], random) for t in graph.inputs] for _ in range(count)]


def _random(tensor: Tensor, random: np.random.Generator) -> Array:
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
    array = _array(file.read("the input", MOST_BYTES), path)
    if array.size != tensor.elements or not _same_shape(array, tensor):
        raise UsageError(
            f"the input has shape {array.shape}, the network takes {tensor.shape}",
            path=path,
            hint=_order_hint(array, tensor),
        )
    return [[_quantised(array.reshape(tensor.shape), tensor, path)]]


def _array(data: bytes, path: str) -> Array:
    """The array of a .npy file's bytes; nothing is allocated that is not there."""
    hint = "numpy.save makes such a file"
    if data.startswith(b"PK"):
        raise UsageError("the input is an archive of arrays, not one array", path=path, hint=hint)
    file = io.BytesIO(data)
    try:
        with warnings.catch_warnings(action="ignore"):  # of headers that Python 2 wrote
            version = np.lib.format.read_magic(file)
            read = (
                np.lib.format.read_array_header_1_0
                if version[0] == 1
                else np.lib.format.read_array_header_2_0
            )
            shape, by_columns, dtype = read(file)
        count = math.prod(shape)
        if dtype.hasobject or not dtype.itemsize or min(shape, default=1) < 0:
            raise ValueError
        body = data[file.tell() :]
        if count * dtype.itemsize != len(body):
            text = f"a damaged input: {count:,} elements of {dtype} by its header, {len(body):,} bytes follow"
            raise UsageError(text, path=path, hint=hint)
        return np.frombuffer(body, dtype).reshape(shape, order="F" if by_columns else "C")
    except UsageError:
        raise
    except Exception:  # numpy's own reader of the header raises a dozen kinds
        text = "the input is not a .npy file of numbers, or a damaged one"
        raise UsageError(text, path=path, hint=hint) from None


def _same_shape(array: Array, tensor: Tensor) -> bool:
    def squeezed(shape: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(n for n in shape if n != 1)

    return squeezed(array.shape) == squeezed(tensor.shape)


def _order_hint(array: Array, tensor: Tensor) -> str:
    """What would help an image whose channels come first."""
    if array.ndim not in (3, 4) or len(tensor.shape) != 4:
        return ""
    turned = np.moveaxis(array, -3, -1)
    return "channels come last: np.moveaxis(array, -3, -1)" if _same_shape(turned, tensor) else ""


def _quantised(array: Array, tensor: Tensor, path: str) -> Array:
    dtype = np.dtype(tensor.dtype.value)
    if array.dtype == dtype:
        return array
    if not np.issubdtype(array.dtype, np.floating):
        raise UsageError(
            f"the input's elements are {array.dtype}, the network takes {dtype} or floats",
            path=path,
            hint=f"array.astype('{dtype}') if the values are quantised already"
            + (", (array ^ 128).view('int8') if they are to uint8" if array.dtype == np.uint8 else ""),
        )
    if tensor.quant is None or not np.isfinite(array).all():
        raise UsageError("the input has values that are not finite", path=path)
    limits = np.iinfo(dtype)
    with np.errstate(over="ignore"):  # what is infinite is cut to the limits
        steps = np.round(array.astype(np.float64) / tensor.quant.scale) + tensor.quant.zero_point
    return np.clip(steps, limits.min, limits.max).astype(dtype)
