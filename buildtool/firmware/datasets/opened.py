"""Opens the data set of a request: an archive of arrays, or a folder of images and arrays."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from buildtool.base.errors import UsageError, did_you_mean
from buildtool.base.files import File
from buildtool.firmware.datasets import labels, pixels
from buildtool.firmware.datasets.arrays import (
    Array,
    DataSet,
    Member,
    input_values,
    members,
    order_hint,
    quantisation,
    quantised,
    same_shape,
)
from buildtool.graph.types import DType

if TYPE_CHECKING:
    from buildtool.graph.types import Graph, Tensor
    from buildtool.options.parsers import Normalise
    from buildtool.options.values import DataOptions

MOST_BYTES = 1 << 30  # of an archive
Choice = Callable[[int], Sequence[int]]
CLASSES = "classes"  # the name of the array with the classes' names in an archive


def open_data_set(wanted: DataOptions, graph: Graph, choose: Choice | None = None) -> DataSet:
    """Opens the data set for a network; see `open_for_inputs`."""
    return open_for_inputs(wanted, tuple(graph.tensors[t] for t in graph.inputs), choose)


def open_for_inputs(wanted: DataOptions, inputs: tuple[Tensor, ...], choose: Choice | None = None) -> DataSet:
    """Opens the data set for the `inputs` of a network. Raises UsageError if it does not fit them.

    `choose` gets the number of inputs in the data set and returns the positions of those that will be read,
    in ascending order. Other inputs are not stored in memory. If `choose` is None, all inputs are read.
    """
    file = wanted.file
    if file.data is None and Path(file.path).is_dir():
        return _open_folder(wanted, inputs)
    with file.opened("the data set", MOST_BYTES) as data:
        return _open_archive(members(data, file.path), wanted, inputs, choose or range)


def choose_positions(count: int, limit: int | None, seed: int) -> list[int]:
    """Returns the positions of all inputs, or of `limit` inputs that are drawn with `seed`, in ascending
    order.
    """
    if limit is None or limit >= count:
        return list(range(count))
    return sorted(int(i) for i in np.random.default_rng(seed).permutation(count)[:limit])


# ---- archives ------------------------------------------------------------------------------------------


def _open_archive(
    arrays: dict[str, Member], wanted: DataOptions, inputs: tuple[Tensor, ...], choose: Choice
) -> DataSet:
    """Returns the data set of an archive. One of its arrays may have labels, and one the classes' names."""
    path = wanted.file.path
    input_names = {tensor.name for tensor in inputs}
    name = next((name for name in labels.LABELS if name in arrays and name not in input_names), "")
    label_array = arrays.pop(name) if name else None
    class_array = arrays.pop(CLASSES) if CLASSES in arrays and CLASSES not in input_names else None
    pairs = list(zip(_match_inputs(arrays, inputs, path), inputs, strict=True))
    counts = [_count_samples(array.shape, tensor, path) for array, tensor in pairs]
    if len(set(counts)) > 1:
        each = ", ".join(f"{n:,} of '{t.name}'" for n, t in zip(counts, inputs, strict=True))
        raise UsageError(f"the arrays have different numbers of inputs: {each}", path=path)
    classes = tuple(str(word) for word in class_array.whole().reshape(-1)) if class_array is not None else ()
    names = tuple(map(str, range(counts[0])))
    numbers: tuple[int, ...] = ()
    if wanted.labels is not None:
        numbers = labels.of_inputs(wanted.labels, names, classes)
    elif label_array is not None:
        numbers = labels.of_array(label_array, counts[0], path, classes)
    positions = choose(counts[0])
    readers = [
        _make_reader(array.rows(positions), positions, t, wanted.normalise, path) for array, t in pairs
    ]
    how = tuple(words for _, words in readers)
    return DataSet(names, numbers, classes, how, lambda at: [read(at) for read, _ in readers])


def _match_inputs(arrays: Mapping[str, Member], inputs: Sequence[Tensor], path: str) -> list[Member]:
    """Returns the array for each input of a network, by the inputs' names or in the archive's order."""
    names = [tensor.name for tensor in inputs]
    if all(name in arrays for name in names):
        return [arrays[name] for name in names]
    if len(arrays) != len(inputs):
        arrays_there = ", ".join(f"'{name}'" for name in arrays) or "none"
        inputs_there = ", ".join(f"'{name}'" for name in names)
        raise UsageError(
            f"the archive has the arrays {arrays_there}, but the network has the inputs {inputs_there}",
            path=path,
            hint="write an array for each input, in their order or with their names, and one named 'labels'",
        )
    return list(arrays.values())


def _count_samples(shape: tuple[int, ...], tensor: Tensor, path: str) -> int:
    """Returns the number N of inputs in an array, whose shape is N followed by the tensor's shape."""
    if shape and shape[0] and same_shape(shape[1:], tensor) and math.prod(shape[1:]) == tensor.elements:
        return shape[0]
    if shape and not shape[0]:
        raise UsageError(f"the array for '{tensor.name}' has no inputs", path=path)
    own = ", ".join(str(n) for i, n in enumerate(tensor.shape) if i or n != 1)
    hint = order_hint(shape[1:], tensor) if shape else ""
    if same_shape(shape, tensor):
        hint = "array[None] for a single input"
    text = f"the array for '{tensor.name}' has shape {shape}; the network takes (N, {own})"
    raise UsageError(text, path=path, hint=hint)


def _make_reader(
    array: Array, positions: Sequence[int], tensor: Tensor, normalise: Normalise | None, path: str
) -> tuple[Callable[[int], Array], str]:
    """Returns a function that reads the input at a position in the archive, and a text.

    The text says how the function converts the values. `array` has the inputs at `positions` only.
    """
    row = {position: place for place, position in enumerate(positions)}
    dtype = np.dtype(tensor.dtype.value)
    if np.issubdtype(array.dtype, np.floating):
        most = float(np.finfo(np.float32).max) if tensor.dtype is DType.FLOAT32 else np.inf
        for position, place in row.items():
            if not (np.isfinite(array[place]) & (np.abs(array[place]) <= most)).all():
                text = f"input {position:,} of '{tensor.name}' has values that are not finite"
                raise UsageError(text, path=path)
    if array.dtype == dtype:
        return lambda at: array[row[at]].reshape(tensor.shape), f"{array.dtype} as they are"
    if np.issubdtype(array.dtype, np.floating):
        how = f"{array.dtype} as {dtype}"
        if tensor.dtype is not DType.FLOAT32:
            quant = quantisation(tensor, path)
            how = f"{array.dtype}, quantised by scale {quant.scale:.6g} and zero point {quant.zero_point}"
        return lambda at: quantised(array[row[at]].reshape(tensor.shape), tensor, path), how
    if array.dtype == np.uint8:
        rule = pixels.rule(tensor, normalise, path)
        values = pixels.table(tensor, rule)
        how = f"pixels (uint8) {pixels.words(tensor, rule)}"
        return lambda at: pixels.quantised(array[row[at]].reshape(tensor.shape), values), how
    state = "scaled as in training" if tensor.dtype is DType.FLOAT32 else "quantised already"
    hint = f"array.astype('{dtype}') if the values are {state}"
    raise UsageError(f"the values of '{tensor.name}' are {array.dtype}", path=path, hint=hint)


# ---- folders -------------------------------------------------------------------------------------------


def _open_folder(wanted: DataOptions, inputs: tuple[Tensor, ...]) -> DataSet:
    """Returns the data set of a folder; raises UsageError for a network with several inputs."""
    root = wanted.file.path
    if len(inputs) != 1:
        text = f"the network has {len(inputs)} inputs, but each file of a folder is only one"
        raise UsageError(text, path=root, hint="give a .npz file with an array for each input")
    (tensor,) = inputs
    names, classes_of = _list_files(root, wanted.labels)
    values, how = None, "arrays (.npy)"  # `values` is the table for pixels
    if not all(map(_is_array, names)):
        pixels.pillow()
        mode, rule = pixels.mode(tensor, root), pixels.rule(tensor, wanted.normalise, root)
        height, width, _ = tensor.shape[1:]
        how = f"images, {mode} of {width} x {height} pixels ({wanted.resize}), {pixels.words(tensor, rule)}"
        values = pixels.table(tensor, rule)

    def check(at: int) -> None:
        if not _is_array(names[at]):
            pixels.check_image(Path(root, names[at]))

    def read(at: int) -> list[Array]:
        path = str(Path(root, names[at]))
        data = File(path).read("the input", pixels.MOST_BYTES)
        if values is None or _is_array(path):
            return [input_values(data, tensor, path)]
        image = pixels.image(data, tensor, wanted.resize, path)
        return [pixels.quantised(image, values).reshape(tensor.shape)]

    numbers, classes = _read_labels(names, classes_of, wanted)
    return DataSet(names, numbers, classes, (how,), read, check)


def _is_array(name: str) -> bool:
    return name.lower().endswith(".npy")


def _list_files(root: str, left_out: File | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Returns the sorted paths of the files in a folder, and the class of each file ("": no class).

    The paths are relative to the folder. Hidden files and the file `left_out` are not among them.
    """
    folder = Path(root)
    try:
        skipped = left_out.path if left_out is not None and left_out.data is None else ""
        tops = [name for name in _list_visible(folder) if str(folder / name) != skipped]
        inner = [name for name in tops if (folder / name).is_dir()]
        if inner and len(inner) < len(tops):
            stray = next(name for name in tops if name not in inner)
            text = f"beside the folders of classes, the folder has files, such as '{stray}'"
            raise UsageError(
                text, path=root, hint="move them away: a file without a class is not part of a data set"
            )
        names = [f"{top}/{name}" for top in inner for name in _list_visible(folder / top)] if inner else tops
    except OSError as error:
        text = f"cannot read the folder: {error.strerror}"
        raise UsageError(text, path=root, hint="check the path") from None
    deep = next((name for name in names if (folder / name).is_dir()), None)
    if deep is not None:
        text = f"'{deep}' is a folder: a data set has files, or a folder of files for each class"
        raise UsageError(text, path=root)
    tops_with_files = {name.partition("/")[0] for name in names}
    for top in inner:
        if top not in tops_with_files:
            raise UsageError(f"the folder of the class '{top}' is empty", path=root)
    if not names:
        hint = "images, or a folder of images for each class"
        raise UsageError("the folder is empty", path=root, hint=hint)
    return tuple(names), tuple(name.partition("/")[0] if inner else "" for name in names)


def _list_visible(folder: Path) -> list[str]:
    """Returns the names in a folder, without hidden files."""
    return sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))


def _read_labels(
    names: tuple[str, ...], classes_of: tuple[str, ...], wanted: DataOptions
) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Returns the class number of each input, and the names of the classes.

    `classes_of` has the class of each input by its folder ("": no class).
    """
    folders = sorted(set(classes_of) - {""})
    file, classes = wanted.labels, tuple(folders)
    if file is not None:
        if not folders or not file.path.lower().endswith(".txt"):
            return labels.of_inputs(file, names, folders), classes
        classes = tuple(labels.lines(file))
        _check_names(classes, folders, file.path)
    number = {name: index for index, name in enumerate(classes)}
    return tuple(number[name] for name in classes_of if name), classes


def _check_names(names: tuple[str, ...], folders: list[str], path: str) -> None:
    """Raises UsageError if `names`, the names of classes, has a name twice, or lacks one of `folders`."""
    twice = next((name for i, name in enumerate(names) if name in names[:i]), None)
    if twice is not None:
        raise UsageError(f"the class '{twice}' is named twice", path=path)
    unknown = next((name for name in folders if name not in names), None)
    if unknown is not None:
        text = f"the file does not name the class '{unknown}', which has a folder"
        line = "one class per line, in the order of the network's output"
        raise UsageError(text, path=path, hint=did_you_mean(unknown, list(names)[:20]) or line)
