"""Data to train with: labelled images of 8 bits, from folders, archives and .npz files."""

from __future__ import annotations

import hashlib
import io
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from buildtool.base import outfiles
from buildtool.base.errors import MachineError, ToolError, UsageError
from buildtool.split import imagefiles

Pixels = npt.NDArray[np.uint8]
Labels = npt.NDArray[np.int64]

TEST_SHARE = 1 / 6  # of the images of a class, where the data set has no test part
MODES = {1: "L", 3: "RGB", 4: "RGBA"}  # of Pillow, by channels
_SCHEMA = 1  # of cached arrays
_NAMES = {
    "train_x": ("x_train", "train_x"),
    "train_y": ("y_train", "train_y"),
    "test_x": ("x_test", "test_x"),
    "test_y": ("y_test", "test_y"),
}
_KEYS = "give it the arrays x_train, y_train, x_test and y_test, or x and y"


@dataclass(frozen=True)
class Data:
    """Images, uint8 [N, height, width, channels], and their classes' numbers, int64 [N], in two parts.

    `test_x` is for a final figure: nothing is chosen by it. `classes`: their names, in the order of numbers.
    """

    train_x: Pixels
    train_y: Labels
    test_x: Pixels
    test_y: Labels
    classes: tuple[str, ...]

    @property
    def shape(self) -> tuple[int, int, int]:
        """Height, width and channels of an image."""
        height, width, channels = self.train_x.shape[1:]
        return height, width, channels

    def digest(self) -> str:
        """SHA-256 (hex) of all images, labels and names."""
        total = hashlib.sha256(repr((self.classes, self.train_x.shape, self.test_x.shape)).encode())
        arrays: tuple[npt.NDArray[Any], ...] = (self.train_x, self.train_y, self.test_x, self.test_y)
        for array in arrays:
            total.update(np.ascontiguousarray(array).data)
        return total.hexdigest()

    def limited(self, count: int, seed: int = 0) -> Data:
        """At most `count` images to train with, chosen at random by `seed`; the test part stays whole."""
        if count >= len(self.train_x):
            return self
        chosen = np.sort(np.random.default_rng(seed).permutation(len(self.train_x))[:count])
        return Data(self.train_x[chosen], self.train_y[chosen], self.test_x, self.test_y, self.classes)


def load(
    path: Path, *, seed: int = 0, size: tuple[int, int, int] | None = None, cache: Path | None = None
) -> Data:
    """The data set at `path`: a folder or a tar archive with a folder for each class, or a .npz file.

    Where it has no test part, a sixth of each class is taken for it, at random by `seed`. `size`: height,
    width and channels that images are brought to (scaled until they cover it, the rest is cut off); without
    it they must all be of one size. `cache`: a folder that decoded images are kept in.

    Raises UsageError for data that cannot be used, MachineError where it does not fit into memory.
    """
    if not path.exists():
        raise UsageError("there is no such file or folder", path=str(path), option="data")
    if path.is_file() and path.suffix == ".npz":
        return _of_npz(path, seed)
    if path.is_file() and not imagefiles.is_archive(path):
        kinds = ", ".join(imagefiles.ARCHIVES)
        hint = f"a folder with a folder for each class, the same as an archive ({kinds}), or a .npz file"
        raise UsageError("the file is no data set", path=str(path), option="data", hint=hint)
    if cache is None:
        return _of_images(path, seed, size)
    kept = cache / f"data-{_key(path, seed, size)}.npz"
    if (data := _kept(kept)) is None:
        data = _of_images(path, seed, size)
        cache.mkdir(parents=True, exist_ok=True)
        outfiles.write({kept.name: _packed(data)}, cache)
    return data


def check(data: Data, inputs: Sequence[int | None], outputs: Sequence[int | None], path: str = "") -> None:
    """UsageError where a network of these shapes, batch first, cannot be trained with the data."""
    if len(inputs) != 4 or any(
        want is not None and want != have for want, have in zip(inputs[1:], data.shape, strict=True)
    ):
        need = " x ".join("any" if one is None else str(one) for one in inputs[1:])
        have = " x ".join(str(one) for one in data.shape)
        hint = "images in files are brought to the network's size; arrays must have it"
        raise UsageError(
            f"the images are {have}, the network takes {need}", path=path, option="data", hint=hint
        )
    if len(outputs) != 2:
        text = f"the network's output has the shape {tuple(outputs)}; a value for each class is needed"
        raise UsageError(text, path=path)
    if len(data.classes) < 2:
        text = f"all images are of one class, '{data.classes[0]}'"
        hint = "give at least two classes: there is nothing to tell apart"
        raise UsageError(text, path=path, option="data", hint=hint)
    if outputs[1] != len(data.classes):
        text = f"the data has {len(data.classes)} classes, the network has {outputs[1]} outputs"
        hint = f"the classes of the data: {', '.join(data.classes[:20])}"
        raise UsageError(text, path=path, option="data", hint=hint)


# ---- arrays ----------------------------------------------------------------------------------------


def _of_npz(path: Path, seed: int) -> Data:
    """The data set of a .npz file."""
    found = _arrays(path)
    classes = tuple(str(one) for one in found.pop("classes", np.array([], np.str_)))
    named = {
        key: next((found[name] for name in names if name in found), None) for key, names in _NAMES.items()
    }
    if all(one is not None for one in named.values()):
        train = _checked(named["train_x"], named["train_y"], path)
        test = _checked(named["test_x"], named["test_y"], path)
    elif "x" in found and "y" in found:
        train, test = _parted(*_checked(found["x"], found["y"], path), seed)
    else:
        have = ", ".join(found) or "none"
        raise UsageError(f"the file has the arrays: {have}", path=str(path), option="data", hint=_KEYS)
    if train[0].shape[1:] != test[0].shape[1:]:
        text = f"images to train with are {train[0].shape[1:]}, those to test with {test[0].shape[1:]}"
        raise UsageError(text, path=str(path), option="data")
    number = int(max(train[1].max(), test[1].max())) + 1
    return _complete(*train, *test, classes or tuple(str(one) for one in range(number)), str(path))


def _arrays(path: Path) -> dict[str, npt.NDArray[Any]]:
    """The arrays of a .npz file by name."""
    try:
        with np.load(path, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except MemoryError:
        raise _too_large(path.stat().st_size, str(path)) from None
    except Exception:  # a damaged archive makes zipfile, zlib and numpy raise a dozen kinds
        hint = "numpy.savez makes such a file"
        text = "this is no .npz file, or a damaged one, or it holds objects in the place of numbers"
        raise UsageError(text, path=str(path), option="data", hint=hint) from None


def _checked(x: Any, y: Any, path: Path) -> tuple[Pixels, Labels]:
    """Images and labels as they are needed; UsageError for arrays that are none."""
    x, y = np.asarray(x), np.asarray(y)
    if x.dtype != np.uint8:
        hint = "pixels are whole numbers from 0 to 255 (uint8); they are normalised later"
        raise UsageError(f"the images are {x.dtype}", path=str(path), option="data", hint=hint)
    x = x[..., None] if x.ndim == 3 else x
    if x.ndim != 4:
        text = f"the images have the shape {x.shape}"
        raise UsageError(text, path=str(path), option="data", hint="[N, height, width, channels]")
    y = y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y
    if y.shape != x.shape[:1] or not np.issubdtype(y.dtype, np.integer):
        text = f"{len(x):,} images have labels of shape {y.shape} and type {y.dtype}"
        raise UsageError(text, path=str(path), option="data", hint="a class's number for each image")
    if len(x) == 0 or y.min() < 0:
        text = "there is no image" if len(x) == 0 else f"the label {y.min()} is below 0"
        raise UsageError(text, path=str(path), option="data")
    return x, y.astype(np.int64)


def _parted(x: Pixels, y: Labels, seed: int) -> tuple[tuple[Pixels, Labels], tuple[Pixels, Labels]]:
    """Images for training and for the test: the same share of every class."""
    is_test = np.zeros(len(y), bool)
    order = np.random.default_rng(seed)
    for label in np.unique(y):
        members = order.permutation(np.flatnonzero(y == label))
        is_test[members[: max(1, round(len(members) * TEST_SHARE))]] = True
    return (x[~is_test], y[~is_test]), (x[is_test], y[is_test])


def _complete(
    train_x: Pixels, train_y: Labels, test_x: Pixels, test_y: Labels, classes: tuple[str, ...], path: str
) -> Data:
    """The data set; UsageError where a class has no image, or a label has no class."""
    largest = int(max(train_y.max(initial=-1), test_y.max(initial=-1)))
    if largest >= len(classes):
        text = f"a label is {largest}, but there are {len(classes)} names of classes"
        raise UsageError(text, path=path, option="data", hint="labels count from 0")
    for part, labels in (("train with", train_y), ("test with", test_y)):
        counts = np.bincount(labels, minlength=len(classes))
        if len(empty := np.flatnonzero(counts == 0)):
            text = f"class {empty[0]} ('{classes[empty[0]]}') has no image to {part}"
            raise UsageError(text, path=path, option="data", hint="give it images, or leave the class out")
    return Data(train_x, train_y, test_x, test_y, classes)


# ---- images ----------------------------------------------------------------------------------------


def _of_images(path: Path, seed: int, size: tuple[int, int, int] | None) -> Data:
    """The data set of a folder's or an archive's images."""
    pixels: dict[str, list[Pixels]] = {"": [], "train": [], "test": []}
    labels: dict[str, list[str]] = {"": [], "train": [], "test": []}
    if empty := imagefiles.empty_folders(path):
        text = f"the folder of class '{empty[0].name}' is empty"
        hint = "give it images, or remove the folder"
        raise UsageError(text, path=str(empty[0]), option="data", hint=hint)
    count, budget = 0, _free_bytes()
    expected: tuple[int, ...] = ()
    for one in imagefiles.read(path):
        image = _decoded(one.data, size, one.name)
        expected = expected or image.shape
        if image.shape != expected:
            raise _other_size(image, expected, one.name)
        count += 1
        if 2 * count * image.nbytes > budget:  # lists and the arrays made of them
            raise _too_large(2 * count * image.nbytes, str(path))
        pixels[one.part].append(image)
        labels[one.part].append(one.label)
    if count == 0:
        hint = "give DIR/CLASS/IMAGE files"
        raise UsageError("there is no image", path=str(path), option="data", hint=hint)
    if pixels["test"] and (pixels["train"] or pixels[""]):
        pixels["train"], labels["train"] = pixels[""] + pixels["train"], labels[""] + labels["train"]
        _same_classes(labels["train"], labels["test"], str(path))
        classes = tuple(sorted(set(labels["train"])))
        train, test = (_stacked(pixels[one], labels[one], classes) for one in ("train", "test"))
    else:
        images = pixels[""] + pixels["train"] + pixels["test"]
        names = labels[""] + labels["train"] + labels["test"]
        classes = tuple(sorted(set(names)))
        train, test = _parted(*_stacked(images, names, classes), seed)
    return _complete(*train, *test, classes, str(path))


def _other_size(image: Pixels, first: tuple[int, ...], name: str) -> UsageError:
    """The error for an image that is not of the first one's size."""
    height, width, channels = image.shape
    text = f"the image is {width} x {height} with {channels} channels, the first one {first[1]} x {first[0]}"
    return UsageError(f"{text} with {first[2]}", path=name, hint="bring all images to one size")


def _same_classes(train: list[str], test: list[str], path: str) -> None:
    """UsageError where the two parts of a data set do not have the same classes."""
    if different := sorted(set(train) ^ set(test)):
        part = "test" if different[0] in set(train) else "train"
        text = f"the class '{different[0]}' has no image to {part} with"
        raise UsageError(text, path=path, option="data", hint="both parts need a folder for each class")


def _stacked(images: list[Pixels], names: list[str], classes: tuple[str, ...]) -> tuple[Pixels, Labels]:
    """One array of images, and one of their classes' numbers."""
    numbers = {name: number for number, name in enumerate(classes)}
    return np.stack(images), np.array([numbers[name] for name in names], np.int64)


def _decoded(data: bytes, size: tuple[int, int, int] | None, name: str) -> Pixels:
    """An image's pixels, uint8 [height, width, channels]; UsageError that names a damaged one."""
    try:
        from PIL import Image, ImageOps
    except ImportError:
        hint = "pip install pillow"
        raise ToolError("images need Pillow, which is not installed", hint=hint) from None
    try:
        with warnings.catch_warnings(action="ignore"), Image.open(io.BytesIO(data)) as opened:
            mode = MODES[size[2]] if size is not None else "L" if opened.mode in ("1", "L") else "RGB"
            image: Any = opened if opened.mode == mode else opened.convert(mode)
            if size is not None and image.size != (size[1], size[0]):
                image = ImageOps.fit(image, (size[1], size[0]), Image.Resampling.BILINEAR)
            pixels = np.array(image, np.uint8)
    except MemoryError:
        raise
    except Exception:  # a damaged file makes Pillow raise a dozen kinds
        hint = "replace the file, or leave it out"
        raise UsageError("the file is no image, or a damaged one", path=name, hint=hint) from None
    return pixels[..., None] if pixels.ndim == 2 else pixels


def _free_bytes() -> float:
    """Memory that can be had without swapping, in bytes; infinite where the system does not say."""
    try:
        text = Path("/proc/meminfo").read_text()
    except OSError:
        return float("inf")
    found = [line.split()[1] for line in text.splitlines() if line.startswith("MemAvailable:")]
    return int(found[0]) * 1024 if found else float("inf")


def _too_large(needed: int, path: str) -> MachineError:
    hint = "take fewer images, a network with a smaller input, or a machine with more memory"
    return MachineError(f"the images need {needed / 1e9:.1f} GB of memory or more", path=path, hint=hint)


# ---- the cache of decoded images -------------------------------------------------------------------


def _key(path: Path, seed: int, size: tuple[int, int, int] | None) -> str:
    """What decoded images depend on: files by name, size and time, and how they are taken."""
    text = repr((_SCHEMA, str(path.resolve()), imagefiles.listing(path), seed, size))
    return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()[:16]


def _packed(data: Data) -> bytes:
    """A data set as the bytes of a .npz file, with its digest."""
    stream = io.BytesIO()
    np.savez(
        stream,
        train_x=data.train_x,
        train_y=data.train_y,
        test_x=data.test_x,
        test_y=data.test_y,
        classes=np.array(data.classes),
        digest=np.array(data.digest()),
    )
    return stream.getvalue()


def _kept(path: Path) -> Data | None:
    """A data set that was kept; None where there is none, or a damaged one."""
    try:
        with np.load(path, allow_pickle=False) as kept:
            classes = tuple(str(one) for one in kept["classes"])
            data = Data(kept["train_x"], kept["train_y"], kept["test_x"], kept["test_y"], classes)
            return data if data.digest() == str(kept["digest"]) else None
    except Exception:  # whatever damaged bytes bring about: it is decoded anew
        return None
