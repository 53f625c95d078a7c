"""Reads arrays from .npy and .npz files, draws random ones, and makes them a network's inputs."""

from __future__ import annotations

import contextlib
import io
import math
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from buildtool.base.errors import UsageError, suggest
from buildtool.graph.types import DType, OpKind

if TYPE_CHECKING:
    from buildtool.api.requests.parts import Inputs
    from buildtool.base.files import File
    from buildtool.graph.types import Graph, Quantization, Tensor

Array = npt.NDArray[np.generic]
MOST_INPUT_BYTES = 1 << 30  # of a .npy file with one input
MOST_BYTES = 1 << 31  # of all arrays of an archive, unpacked
_STEP = 1 << 20  # bytes to skip at a time
_NPY, _NPZ = "numpy.save makes such a file", "numpy.savez makes such a file"


# ---- .npy files ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Header:
    """The header of a .npy file.

    `shape`, `dtype`: those of the array.
    `by_columns`: whether the elements are in Fortran order.
    `bytes`: the header's length.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    by_columns: bool
    bytes: int

    @property
    def elements_bytes(self) -> int:
        """The size of all elements, in bytes."""
        return math.prod(self.shape) * self.dtype.itemsize


def parse_npy(data: bytes, path: str, what: str = "the input") -> Array:
    """Returns the array in the bytes of a .npy file, without copying its elements. Errors name it `what`.

    Raises UsageError for other files, and for arrays that do not contain numbers.
    """
    if data.startswith(b"PK"):
        raise UsageError(f"{what} is an archive of arrays, not one array", path=path, hint=_NPY)
    head = _read_header(io.BytesIO(data), len(data), path, what)
    array = np.frombuffer(data, head.dtype, offset=head.bytes)
    return array.reshape(head.shape, order="F" if head.by_columns else "C")


def _read_header(file: IO[bytes], size: int, path: str, what: str) -> Header:
    """Reads the header of a .npy file of `size` bytes, so that `file` is then at the first element.

    Raises UsageError for other files, for arrays that do not contain numbers, and if the size does not match
    the header.
    """
    try:
        with warnings.catch_warnings(action="ignore"):  # about headers that Python 2 wrote
            is_first = np.lib.format.read_magic(file)[0] == 1
            reader = np.lib.format.read_array_header_1_0 if is_first else np.lib.format.read_array_header_2_0
            shape, by_columns, dtype = reader(file)
        if dtype.hasobject or not dtype.itemsize or min(shape, default=1) < 0:
            raise ValueError
        head = Header(shape, dtype, by_columns, file.tell())
    except Exception:  # numpy's own reader of the header raises many kinds of errors
        text = f"{what} is not a .npy file of numbers, or a damaged one"
        raise UsageError(text, path=path, hint=_NPY) from None
    if head.bytes + head.elements_bytes != size:
        why = f"{math.prod(shape):,} elements of {dtype} by its header, {size - head.bytes:,} bytes follow"
        raise UsageError(f"{what} is damaged: {why}", path=path, hint=_NPY)
    return head


# ---- .npz files ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Member(Header):
    """An array in a .npz archive. Its elements are read on request."""

    archive: zipfile.ZipFile
    entry: zipfile.ZipInfo
    path: str  # of the archive
    what: str  # names the archive in errors

    def whole(self) -> Array:
        """Returns all elements of the array."""
        with _reading(self.path, self.what):
            return parse_npy(self.archive.read(self.entry), self.path)

    def rows(self, positions: Sequence[int]) -> Array:
        """Returns the elements at `positions` of the first dimension. `positions` is in ascending order."""
        if self.by_columns:  # the elements of a row are not adjacent
            return self.whole()[list(positions)]
        row = self.elements_bytes // max(self.shape[0], 1)
        data = np.empty((len(positions), row), np.uint8)
        with _reading(self.path, self.what), self.archive.open(self.entry) as file:
            for place, position in enumerate(positions):
                begin = self.bytes + position * row
                while file.tell() < begin and file.read(min(begin - file.tell(), _STEP)):
                    pass
                data[place] = np.frombuffer(file.read(row), np.uint8)
        return data.reshape(-1).view(self.dtype).reshape(len(positions), *self.shape[1:])


def members(file: IO[bytes], path: str, what: str = "the data") -> dict[str, Member]:
    """Returns the arrays of a .npz file by name, in the file's order. They can be read while `file` is open.

    Raises UsageError for another file.
    """
    arrays: dict[str, Member] = {}
    with _reading(path, what):
        archive = zipfile.ZipFile(file)
        entries = [one for one in archive.infolist() if not one.is_dir()]
        if sum(one.file_size for one in entries) > MOST_BYTES:
            raise UsageError(f"{what} has more than {MOST_BYTES:,} bytes when unpacked", path=path)
        for one in entries:
            name = one.filename.removesuffix(".npy")
            with archive.open(one) as opened:
                head = _read_header(opened, one.file_size, path, f"the array '{name}'")
            fields = (head.shape, head.dtype, head.by_columns, head.bytes)
            arrays[name] = Member(*fields, archive, one, path, what)
    return arrays


@contextlib.contextmanager
def _reading(path: str, what: str) -> Iterator[None]:
    """A context that turns the errors of zipfile for a damaged file into a UsageError."""
    try:
        yield
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, OSError, ValueError):
        raise UsageError(f"{what} is not a .npz file, or a damaged one", path=path, hint=_NPZ) from None


# ---- values of an input --------------------------------------------------------------------------------


def same_shape(shape: tuple[int, ...], tensor: Tensor) -> bool:
    """Whether a shape equals that of a tensor. Dimensions of 1 do not count."""
    return [n for n in shape if n != 1] == [n for n in tensor.shape if n != 1]


def order_hint(shape: tuple[int, ...], tensor: Tensor) -> str:
    """Returns the hint for an array whose channels come first although those of the tensor come last.

    Returns "" for other arrays.
    """
    if len(shape) not in (3, 4) or len(tensor.shape) != 4:
        return ""
    moved = (*shape[:-3], *shape[-2:], shape[-3])
    return "channels come last: np.moveaxis(array, -3, -1)" if same_shape(moved, tensor) else ""


def quantisation(tensor: Tensor, path: str) -> Quantization:
    """Returns an input's scale and zero point; raises UsageError if the input has none."""
    if tensor.quant is None:
        raise UsageError(
            f"the input '{tensor.name}' has no scale, so it takes only quantised values",
            path=path,
            hint=f"an array of {tensor.dtype}",
        )
    return tensor.quant


def quantised(array: Array, tensor: Tensor, path: str) -> Array:
    """Returns an array with the tensor's type. An array of floats is quantised for a tensor of integers.

    Floats beyond the range are clipped. An array of the tensor's own type is returned unchanged. Raises
    UsageError for other types, and for floats that are not finite.
    """
    dtype = np.dtype(tensor.dtype.value)
    if tensor.dtype is DType.FLOAT32 and np.issubdtype(array.dtype, np.floating):
        with np.errstate(over="ignore"):
            array = array.astype(dtype, copy=False)
        if not np.isfinite(array).all():
            raise UsageError("the input has values that are not finite float32 numbers", path=path)
    if array.dtype == dtype:
        return array
    if not np.issubdtype(array.dtype, np.floating):
        raise UsageError(
            f"the input's elements are {array.dtype}, the network takes {dtype} or floats",
            path=path,
            hint="array.astype('float32') if the values are scaled as in training"
            if tensor.dtype is DType.FLOAT32
            else f"array.astype('{dtype}') if the values are quantised already"
            + (", (array ^ 128).view('int8') if quantised to uint8" if array.dtype == np.uint8 else ""),
        )
    if tensor.dtype is DType.FLOAT32:
        return array.astype(np.float32)
    quant = quantisation(tensor, path)
    if not np.isfinite(array).all():
        raise UsageError("the input has values that are not finite", path=path)
    limits = np.iinfo(dtype)
    with np.errstate(over="ignore"):  # infinite values are clipped
        steps = np.round(array.astype(np.float64) / quant.scale) + quant.zero_point
    return np.clip(steps, limits.min, limits.max).astype(dtype)


def input_values(data: bytes, tensor: Tensor, path: str) -> Array:
    """Returns the values of an input from the bytes of a .npy file. Floats are quantised for an input of
    integers.

    The file's array has the input's shape, with or without a batch dimension of 1.
    """
    array = parse_npy(data, path)
    if array.size != tensor.elements or not same_shape(array.shape, tensor):
        text = f"the input has shape {array.shape}, the network takes {tensor.shape}"
        raise UsageError(text, path=path, hint=order_hint(array.shape, tensor))
    return quantised(array.reshape(tensor.shape), tensor, path)


# ---- inputs of a request -------------------------------------------------------------------------------


def inputs_of(inputs: Inputs, graph: Graph, in_sequence: int = 1) -> list[list[Array]]:
    """Returns the sets of inputs of a request: the one in its file, or random ones.

    If the request does not give their number, there is one random set, or `in_sequence` sets for a network
    with state.
    """
    if inputs.file is not None:
        return from_file(graph, inputs.file)
    return draw_inputs(graph, inputs.count or (in_sequence if graph.states else 1), inputs.seed)


def draw_inputs(graph: Graph, count: int, seed: int) -> list[list[Array]]:
    """Returns `count` sets of random inputs. For each set it has an array for each of the network's inputs.

    All quantised values are equally likely, as are all rows of a table that an input selects from. Values of
    float32 are normally distributed with mean 0 and standard deviation 1.
    """
    random, rows = np.random.default_rng(seed), dict[int, int]()
    for op in graph.ops:
        for t in op.inputs[1:] if op.kind is OpKind.GATHER else ():
            rows[t] = min(graph.tensors[op.inputs[0]].shape[0], rows.get(t, 1 << 31))

    def draw(t: int) -> Array:
        tensor = graph.tensors[t]
        if tensor.dtype is DType.BOOL:
            return np.asarray(random.integers(0, 2, tensor.shape) != 0)
        if tensor.dtype is DType.FLOAT32:
            return random.normal(size=tensor.shape).astype(np.float32)
        if t in rows:
            return random.integers(0, rows[t], tensor.shape, dtype=np.dtype(tensor.dtype.value))
        limits = np.iinfo(tensor.dtype.value)
        return random.integers(limits.min, limits.max + 1, tensor.shape, dtype=np.dtype(tensor.dtype.value))

    return [[draw(t) for t in graph.inputs] for _ in range(count)]


def sequences(graph: Graph, count: int, length: int) -> list[bool]:
    """Returns, for each of `count` inputs, whether the network's state is reset before it.

    The state is reset after every `length` inputs. If `length` is 0, there are two sequences of equal length,
    which reveals a missing reset. The first input needs no reset, because init has reset the state.
    """
    each = length or max(1, -(-count // 2))
    return [bool(graph.states) and i > 0 and i % each == 0 for i in range(count)]


def from_file(graph: Graph, file: File) -> list[list[Array]]:
    """Returns the set of inputs in a .npy file (see `input_values`). Raises UsageError for a network with
    several inputs.
    """
    if len(graph.inputs) != 1:
        raise UsageError(
            f"the network has {len(graph.inputs)} inputs, but a .npy file has only one",
            path=file.path,
            hint=suggest("random values", input=None),
        )
    data = file.read("the input", MOST_INPUT_BYTES)
    return [[input_values(data, graph.tensors[graph.inputs[0]], file.path)]]


@dataclass(frozen=True)
class DataSet:
    """Inputs of a network, which are read one by one.

    `names`: the user's names of the inputs.
    `labels`: the number of each input's class; () without labels.
    `classes`: the names of the classes by number; () if only numbers are known.
    `how`: for each of the network's inputs a text, which says how its values are made.
    `read`: returns the arrays of the input at a position.
    `check`: raises UsageError for an input that cannot be read, as far as a quick test shows this.
    """

    names: tuple[str, ...]
    labels: tuple[int, ...]
    classes: tuple[str, ...]
    how: tuple[str, ...]
    read: Callable[[int], list[Array]]
    check: Callable[[int], None] = lambda _: None
