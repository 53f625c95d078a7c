"""A data set in a folder: images and arrays, in a folder for each class or without classes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from buildtool.base.errors import UsageError, did_you_mean
from buildtool.base.files import File
from buildtool.firmware.datasets import labels, pixels
from buildtool.firmware.datasets.arrays import Array, DataSet, order_hint, parsed, quantised, same_shape

if TYPE_CHECKING:
    from buildtool.base.modes import Resize
    from buildtool.graph.types import Tensor
    from buildtool.options.values import Wanted


@dataclass(frozen=True)
class Found:
    """The files of a folder by their names in it, and for each the name of its class ("": it has none)."""

    names: tuple[str, ...]
    classes: tuple[str, ...]


def opened(wanted: Wanted, inputs: tuple[Tensor, ...]) -> DataSet:
    """The data set of a folder; UsageError where it is none of a network with one input."""
    root = wanted.file.path
    if len(inputs) != 1:
        text = f"the network has {len(inputs)} inputs, and the files of a folder are one each"
        raise UsageError(text, path=root, hint="give a .npz file with an array for each input")
    found = files_of(root, wanted.labels)
    files, how = _files(found, wanted, inputs[0])
    numbers, classes = _labels(found, wanted)
    return DataSet(found.names, numbers, classes, (how,), files.read, files.check)


def files_of(root: str, apart: File | None = None) -> Found:
    """What a folder holds, in the order of names; hidden files, and the file `apart`, are not part of it."""
    folder = Path(root)
    try:
        tops = _listed(folder)
        skipped = apart.path if apart is not None and apart.data is None else ""
        tops = [one for one in tops if str(folder / one) != skipped]
        inner = [one for one in tops if (folder / one).is_dir()]
        if inner and len(inner) < len(tops):
            stray = next(one for one in tops if one not in inner)
            text = f"beside folders of classes the folder has files, such as '{stray}'"
            raise UsageError(
                text, path=root, hint="move them away: what has no class is no part of a data set"
            )
        names = [f"{top}/{one}" for top in inner for one in _listed(folder / top)]
    except OSError as error:
        raise UsageError(
            f"cannot read the folder: {error.strerror}", path=root, hint="check the path"
        ) from None
    names = names if inner else tops
    deep = next((name for name in names if (folder / name).is_dir()), None)
    if deep is not None:
        text = f"'{deep}' is a folder: a data set has files, or a folder of files for each class"
        raise UsageError(text, path=root)
    filled = {name.partition("/")[0] for name in names}
    for top in inner:
        if top not in filled:
            raise UsageError(f"the folder of the class '{top}' is empty", path=root)
    if not names:
        raise UsageError(
            "the folder is empty", path=root, hint="images, or a folder of images for each class"
        )
    return Found(tuple(names), tuple(name.partition("/")[0] if inner else "" for name in names))


def _listed(folder: Path) -> list[str]:
    """The names of what is in a folder, hidden files left out."""
    return sorted(one.name for one in folder.iterdir() if not one.name.startswith("."))


@dataclass(frozen=True)
class _Files:
    """The files of a data set as values of the one input: images by a table of `values` (see pixels).

    `values` is None where there are arrays alone.
    """

    root: Path
    names: tuple[str, ...]
    tensor: Tensor
    resize: Resize
    values: Array | None

    def check(self, at: int) -> None:
        """UsageError for a file that is no image by its head."""
        path = self.root / self.names[at]
        if not _is_array(path.name):
            pixels.check_image(path)

    def read(self, at: int) -> list[Array]:
        """The input at a position."""
        path = self.root / self.names[at]
        data = File(str(path)).read("the input", pixels.MOST_BYTES)
        if not _is_array(path.name):
            assert self.values is not None
            found = pixels.image(data, self.tensor, self.resize, str(path))
            return [pixels.quantised(found, self.values).reshape(self.tensor.shape)]
        array = parsed(data, str(path))
        if not same_shape(array.shape, self.tensor) or array.size != self.tensor.elements:
            text = f"the input has shape {array.shape}, the network takes {self.tensor.shape}"
            raise UsageError(text, path=str(path), hint=order_hint(array.shape, self.tensor))
        return [quantised(array.reshape(self.tensor.shape), self.tensor, str(path))]


def _is_array(name: str) -> bool:
    return name.lower().endswith(".npy")


def _files(found: Found, wanted: Wanted, tensor: Tensor) -> tuple[_Files, str]:
    """What reads the files, and in words what becomes of their values."""
    root = wanted.file.path
    if all(map(_is_array, found.names)):
        return _Files(Path(root), found.names, tensor, wanted.resize, None), "arrays (.npy)"
    pixels.pillow()
    mode = pixels.mode(tensor, root)
    rule = pixels.rule(tensor, wanted.normalise, root)
    height, width, _ = tensor.shape[1:]
    how = f"images, {mode} of {width} x {height} pixels ({wanted.resize}), {pixels.words(tensor, rule)}"
    values = pixels.table(tensor, rule)
    return _Files(Path(root), found.names, tensor, wanted.resize, values), how


def _labels(found: Found, wanted: Wanted) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """The classes' numbers of all inputs, and the classes' names."""
    folders = sorted(set(found.classes) - {""})
    file = wanted.labels
    if file is None:
        names = tuple(folders)
    elif folders and file.path.lower().endswith(".txt"):
        names = tuple(labels.lines(file))
        _check_names(names, folders, file.path)
    else:
        return labels.of_inputs(file, found.names, folders), tuple(folders)
    number = {name: index for index, name in enumerate(names)}
    return tuple(number[name] for name in found.classes if name), names


def _check_names(names: tuple[str, ...], folders: list[str], path: str) -> None:
    """UsageError where a folder is none of the classes that a file names, or one is named twice."""
    twice = next((name for i, name in enumerate(names) if name in names[:i]), None)
    if twice is not None:
        raise UsageError(f"the class '{twice}' is named twice", path=path)
    unknown = next((name for name in folders if name not in names), None)
    if unknown is not None:
        text = f"the file does not name the class '{unknown}', of which there is a folder"
        hint = (
            did_you_mean(unknown, list(names)[:20])
            or "one class a line, in the order of the network's output"
        )
        raise UsageError(text, path=path, hint=hint)
