"""Data sets as inputs of a network, and arrays of users: a .npy file's bytes, values as an input has them."""

from __future__ import annotations

import io
import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from buildtool.base.errors import UsageError

if TYPE_CHECKING:
    from buildtool.graph.types import Quantization, Tensor

Array = npt.NDArray[np.generic]


_HINT = "numpy.save makes such a file"


@dataclass(frozen=True)
class Header:
    """What a .npy file says of its array. `bytes`: the header's length; `by_columns`: Fortran's order."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    by_columns: bool
    bytes: int

    @property
    def elements_bytes(self) -> int:
        """The size of all elements."""
        return math.prod(self.shape) * self.dtype.itemsize


def parsed(data: bytes, path: str, what: str = "the input") -> Array:
    """The array of a .npy file's bytes, of which it is a view.

    `what` names it in errors. Raises UsageError for bytes that are not such a file of numbers.
    """
    if data.startswith(b"PK"):
        raise UsageError(f"{what} is an archive of arrays, not one array", path=path, hint=_HINT)
    head = header(io.BytesIO(data), len(data), path, what)
    found = np.frombuffer(data, head.dtype, offset=head.bytes)
    return found.reshape(head.shape, order="F" if head.by_columns else "C")


def header(file: IO[bytes], size: int, path: str, what: str) -> Header:
    """Reads the header of a .npy file of `size` bytes, so that the elements follow in `file`.

    Raises UsageError for bytes that are not such a file of numbers, or not of the size that it says.
    """
    try:
        with warnings.catch_warnings(action="ignore"):  # of headers that Python 2 wrote
            version = np.lib.format.read_magic(file)
            read = (
                np.lib.format.read_array_header_1_0
                if version[0] == 1
                else np.lib.format.read_array_header_2_0
            )
            shape, by_columns, dtype = read(file)
        if dtype.hasobject or not dtype.itemsize or min(shape, default=1) < 0:
            raise ValueError
        head = Header(shape, dtype, by_columns, file.tell())
    except Exception:  # numpy's own reader of the header raises a dozen kinds
        text = f"{what} is not a .npy file of numbers, or a damaged one"
        raise UsageError(text, path=path, hint=_HINT) from None
    if head.bytes + head.elements_bytes != size:
        follow = f"{math.prod(shape):,} elements of {dtype} by its header, {size - head.bytes:,} bytes follow"
        raise UsageError(f"{what} is damaged: {follow}", path=path, hint=_HINT)
    return head


def same_shape(shape: tuple[int, ...], tensor: Tensor) -> bool:
    """Whether a shape is a tensor's, dimensions of 1 aside."""
    return [n for n in shape if n != 1] == [n for n in tensor.shape if n != 1]


def order_hint(shape: tuple[int, ...], tensor: Tensor) -> str:
    """What would help an image whose channels come first."""
    if len(shape) not in (3, 4) or len(tensor.shape) != 4:
        return ""
    turned = (*shape[:-3], *shape[-2:], shape[-3])
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


@dataclass(frozen=True)
class DataSet:
    """Inputs of a network, read one by one.

    `names`: of the inputs, as the user knows them. `labels`: a class each, () where there are none;
    `classes`: the classes' names by their numbers, () where only numbers are known. `how`: what became of
    the values of each of the network's inputs, in words. `read` gives the arrays of an input by its
    position; `check` raises UsageError for one that cannot be read, as far as that is cheap to know.
    """

    names: tuple[str, ...]
    labels: tuple[int, ...]
    classes: tuple[str, ...]
    how: tuple[str, ...]
    read: Callable[[int], list[Array]]
    check: Callable[[int], None] = lambda _: None
