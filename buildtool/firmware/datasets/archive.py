"""The arrays of a .npz file, and a data set that lies in one."""

from __future__ import annotations

import contextlib
import math
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from buildtool.base.errors import UsageError
from buildtool.firmware.datasets import pixels
from buildtool.firmware.datasets.arrays import (
    Array,
    Header,
    header,
    order_hint,
    parsed,
    quantisation,
    quantised,
    same_shape,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from buildtool.graph.types import Tensor
    from buildtool.options.parsers import Normalise

MOST_BYTES = 1 << 31  # of all arrays of an archive, unpacked
_STEP = 1 << 20  # bytes that are read at a time
_HINT = "numpy.savez makes such a file"


@dataclass(frozen=True)
class Member:
    """An array of an archive, of which only the header has been read."""

    archive: zipfile.ZipFile
    entry: zipfile.ZipInfo
    header: Header
    path: str  # of the archive
    what: str  # names the archive in errors

    @property
    def shape(self) -> tuple[int, ...]:
        """The array's dimensions."""
        return self.header.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """The elements' type."""
        return self.header.dtype

    def whole(self) -> Array:
        """All elements."""
        with _reading(self.path, self.what):
            return parsed(self.archive.read(self.entry), self.path)

    def rows(self, positions: Sequence[int]) -> Array:
        """The elements at some positions of the first dimension, in ascending order; others are not kept."""
        if self.header.by_columns:  # the elements of a row lie apart
            return self.whole()[list(positions)]
        row = self.header.elements_bytes // max(self.shape[0], 1)
        kept = np.empty((len(positions), row), np.uint8)
        with _reading(self.path, self.what), self.archive.open(self.entry) as file:
            at = -self.header.bytes  # in the elements
            for place, position in enumerate(positions):
                _skip(file, position * row - at)
                _fill(file, memoryview(kept[place]))
                at = (position + 1) * row
        return kept.reshape(-1).view(self.dtype).reshape(len(positions), *self.shape[1:])


def members(file: IO[bytes], path: str, what: str = "the data") -> dict[str, Member]:
    """The arrays of a .npz file by name, in its order, while `file` is open; UsageError for another file."""
    found: dict[str, Member] = {}
    with _reading(path, what):
        archive = zipfile.ZipFile(file)
        entries = [one for one in archive.infolist() if not one.is_dir()]
        if sum(one.file_size for one in entries) > MOST_BYTES:
            raise UsageError(f"{what} has more than {MOST_BYTES:,} bytes when unpacked", path=path)
        for one in entries:
            name = one.filename.removesuffix(".npy")
            with archive.open(one) as opened:
                head = header(opened, one.file_size, path, f"the array '{name}'")
            found[name] = Member(archive, one, head, path, what)
    return found


@contextlib.contextmanager
def _reading(path: str, what: str) -> Iterator[None]:
    """What zipfile raises for damaged files is a UsageError."""
    try:
        yield
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, OSError, ValueError):
        raise UsageError(f"{what} is not a .npz file, or a damaged one", path=path, hint=_HINT) from None


def _skip(file: IO[bytes], count: int) -> None:
    """Reads past `count` bytes."""
    while count > 0:
        step = len(file.read(min(count, _STEP)))
        if not step:
            raise EOFError
        count -= step


def _fill(file: IO[bytes], place: memoryview) -> None:
    """Reads as many bytes as `place` has."""
    done = 0
    while done < len(place):
        data = file.read(min(len(place) - done, _STEP))
        if not data:
            raise EOFError
        place[done : done + len(data)] = data
        done += len(data)


def of_inputs(found: Mapping[str, Member], inputs: Sequence[Tensor], path: str) -> list[Member]:
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


def samples(found: tuple[int, ...], name: str, tensor: Tensor, path: str) -> int:
    """How many inputs an array of the shape `found` holds: its first dimension, before the tensor's shape."""
    if found and found[0] and same_shape(found[1:], tensor) and math.prod(found[1:]) == tensor.elements:
        return found[0]
    if found and not found[0]:
        raise UsageError(f"the array for '{name}' has no inputs", path=path)
    shape = tuple(n for i, n in enumerate(tensor.shape) if i or n != 1)
    hint = order_hint(found[1:], tensor) if found else ""
    text = f"the array for '{name}' has shape {found}; the network takes (N, {', '.join(map(str, shape))})"
    if same_shape(found, tensor):
        hint = "array[None] for the one input that it is"
    raise UsageError(text, path=path, hint=hint)


def reader(
    array: Array, positions: Sequence[int], tensor: Tensor, normalise: Normalise | None, path: str
) -> tuple[Callable[[int], Array], str]:
    """What gives the input at a position of an archive, and in words what becomes of the values.

    `array`: the inputs at `positions`, which are the only ones that can be had.
    """
    row = {position: place for place, position in enumerate(positions)}
    own = np.dtype(tensor.dtype.value)
    if array.dtype == own:
        return lambda at: array[row[at]].reshape(tensor.shape), f"{array.dtype} as they are"
    if np.issubdtype(array.dtype, np.floating):
        for position, place in row.items():
            if not np.isfinite(array[place]).all():
                text = f"input {position:,} of '{tensor.name}' has values that are not finite"
                raise UsageError(text, path=path)
        quant = quantisation(tensor, path)
        how = f"scale {quant.scale:.6g} and zero point {quant.zero_point}"
        return lambda at: quantised(array[row[at]].reshape(tensor.shape), tensor, path), (
            f"{array.dtype}, quantised by {how}"
        )
    if array.dtype == np.uint8:
        rule = pixels.rule(tensor, normalise, path)
        values = pixels.table(tensor, rule)
        return lambda at: pixels.quantised(array[row[at]].reshape(tensor.shape), values), (
            f"pixels (uint8) {pixels.words(tensor, rule)}"
        )
    hint = f"array.astype('{own}') if the values are quantised already"
    raise UsageError(f"the values of '{tensor.name}' are {array.dtype}", path=path, hint=hint)
