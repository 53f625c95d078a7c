"""The arrays of a .npz file, and a data set that lies in one."""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from buildtool.errors import UsageError
from buildtool.service.datasets import pixels
from buildtool.service.datasets.arrays import Array, order_hint, parsed, quantisation, quantised, same_shape

if TYPE_CHECKING:
    from collections.abc import Callable

    from buildtool.graph.types import Tensor
    from buildtool.options.pixels import Normalise

MOST_BYTES = 1 << 31  # of all arrays of an archive, unpacked
_HINT = "numpy.savez makes such a file"


def arrays_of(data: bytes, path: str, what: str = "the data") -> dict[str, Array]:
    """The arrays of a .npz file's bytes by name, in its order; UsageError for other bytes."""
    found: dict[str, Array] = {}
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = [one for one in archive.infolist() if not one.is_dir()]
            if sum(one.file_size for one in members) > MOST_BYTES:
                raise UsageError(f"{what} has more than {MOST_BYTES:,} bytes when unpacked", path=path)
            for one in members:
                name = one.filename.removesuffix(".npy")
                found[name] = parsed(archive.read(one), path, f"the array '{name}'")
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, OSError, ValueError):
        raise UsageError(f"{what} is not a .npz file, or a damaged one", path=path, hint=_HINT) from None
    return found


def of_inputs(found: Mapping[str, Array], inputs: Sequence[Tensor], path: str) -> list[Array]:
    """An array for each input of a network: by the inputs' names, or in the archive's order."""
    names = [tensor.name for tensor in inputs]
    if all(name in found for name in names):
        return [found[name] for name in names]
    if len(found) != len(inputs):
        have = ", ".join(f"'{name}'" for name in found) or "none"
        need = ", ".join(f"'{name}'" for name in names)
        raise UsageError(
            f"the archive has the arrays {have}, the network the inputs {need}",
            path=path,
            hint="give it an array for each input, in their order or by their names, and one named 'labels'",
        )
    return list(found.values())


def samples(array: Array, name: str, tensor: Tensor, path: str) -> int:
    """How many inputs an array holds: its first dimension, behind which it has the tensor's shape."""
    if array.ndim and array.shape[0] and same_shape(array[0], tensor) and array[0].size == tensor.elements:
        return int(array.shape[0])
    if array.ndim and not array.shape[0]:
        raise UsageError(f"the array for '{name}' has no inputs", path=path)
    shape = tuple(n for i, n in enumerate(tensor.shape) if i or n != 1)
    hint = order_hint(array[0], tensor) if array.ndim else ""
    text = (
        f"the array for '{name}' has shape {array.shape}; the network takes (N, {', '.join(map(str, shape))})"
    )
    if same_shape(array, tensor):
        hint = "array[None] for the one input that it is"
    raise UsageError(text, path=path, hint=hint)


def reader(
    array: Array, tensor: Tensor, normalise: Normalise | None, path: str
) -> tuple[Callable[[int], Array], str]:
    """What gives the input at a position of an array, and in words what becomes of the values."""
    own = np.dtype(tensor.dtype.value)
    if array.dtype == own:
        return lambda i: array[i].reshape(tensor.shape), f"{array.dtype} as they are"
    if np.issubdtype(array.dtype, np.floating):
        for place in range(array.shape[0]):
            if not np.isfinite(array[place]).all():
                text = f"input {place:,} of '{tensor.name}' has values that are not finite"
                raise UsageError(text, path=path)
        quant = quantisation(tensor, path)
        how = f"scale {quant.scale:.6g} and zero point {quant.zero_point}"
        return lambda i: quantised(array[i].reshape(tensor.shape), tensor, path), (
            f"{array.dtype}, quantised by {how}"
        )
    if array.dtype == np.uint8:
        rule = pixels.rule(tensor, normalise, path)
        values = pixels.table(tensor, rule)
        return lambda i: pixels.quantised(array[i].reshape(tensor.shape), values), (
            f"pixels (uint8) {pixels.words(tensor, rule)}"
        )
    hint = f"array.astype('{own}') if the values are quantised already"
    raise UsageError(f"the values of '{tensor.name}' are {array.dtype}", path=path, hint=hint)
