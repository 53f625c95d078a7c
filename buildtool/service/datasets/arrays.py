"""Arrays of users: the bytes of a .npy file, and values as an input of a network has them."""

from __future__ import annotations

import io
import math
import warnings
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from buildtool.errors import UsageError

if TYPE_CHECKING:
    from buildtool.graph.types import Quantization, Tensor

Array = npt.NDArray[np.generic]


def parsed(data: bytes, path: str, what: str = "the input") -> Array:
    """The array of a .npy file's bytes; nothing is allocated that is not there.

    `what` names it in errors. UsageError for bytes that are no such file of numbers.
    """
    hint = "numpy.save makes such a file"
    if data.startswith(b"PK"):
        raise UsageError(f"{what} is an archive of arrays, not one array", path=path, hint=hint)
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
            text = (
                f"{what} is damaged: {count:,} elements of {dtype} by its header, {len(body):,} bytes follow"
            )
            raise UsageError(text, path=path, hint=hint)
        return np.frombuffer(body, dtype).reshape(shape, order="F" if by_columns else "C")
    except UsageError:
        raise
    except Exception:  # numpy's own reader of the header raises a dozen kinds
        text = f"{what} is not a .npy file of numbers, or a damaged one"
        raise UsageError(text, path=path, hint=hint) from None


def same_shape(array: Array, tensor: Tensor) -> bool:
    """Whether an array has a tensor's shape, dimensions of 1 aside."""

    def squeezed(shape: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(n for n in shape if n != 1)

    return squeezed(array.shape) == squeezed(tensor.shape)


def order_hint(array: Array, tensor: Tensor) -> str:
    """What would help an image whose channels come first."""
    if array.ndim not in (3, 4) or len(tensor.shape) != 4:
        return ""
    turned = np.moveaxis(array, -3, -1)
    return "channels come last: np.moveaxis(array, -3, -1)" if same_shape(turned, tensor) else ""


def quantisation(tensor: Tensor, path: str) -> Quantization:
    """An input's scale and zero point; UsageError for one that only moves bytes and has none."""
    if tensor.quant is None:
        raise UsageError(
            f"the input '{tensor.name}' has no scale, so that only its own values can be given",
            path=path,
            hint=f"an array of {tensor.dtype}",
        )
    return tensor.quant


def quantised(array: Array, tensor: Tensor, path: str) -> Array:
    """Values of the tensor's own type as they are, floats in steps of its scale; UsageError for others.

    What lies beyond the range is cut to its ends.
    """
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
    quant = quantisation(tensor, path)
    if not np.isfinite(array).all():
        raise UsageError("the input has values that are not finite", path=path)
    limits = np.iinfo(dtype)
    with np.errstate(over="ignore"):  # what is infinite is cut to the limits
        steps = np.round(array.astype(np.float64) / quant.scale) + quant.zero_point
    return np.clip(steps, limits.min, limits.max).astype(dtype)
