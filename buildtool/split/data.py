"""Training data: labelled 8-bit images, from folders, tar archives and .npz files."""

from __future__ import annotations

import contextlib
import hashlib
import io
import tarfile
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from buildtool.base.errors import MachineError, UsageError
from buildtool.firmware.datasets.pixels import MODES, pillow
from buildtool.split.records import keep_arrays, read_arrays

Pixels = npt.NDArray[np.uint8]
Labels = npt.NDArray[np.int64]
Labelled = tuple[Pixels, Labels]
Part = Literal["", "train", "test"]  # "": the data set has no parts
ImageFile = tuple[PurePosixPath, Part, str, bytes]  # name, its archive's part, name in messages, content

TEST_SHARE = 1 / 6  # of the images of a class, where the data set has no test part
ARCHIVES = (".tar", ".tar.xz", ".tar.gz", ".tgz", ".tar.bz2")
_PARTS: dict[str, Part] = {"train": "train", "training": "train", "test": "test", "testing": "test"}
_LAYOUT = "give DIR/CLASS/IMAGE files, or DIR/train/CLASS/IMAGE and DIR/test/CLASS/IMAGE"
_SCHEMA = 2  # of cached arrays
_KEYS = "give it the arrays x_train, y_train, x_test and y_test, or x and y"


@dataclass(frozen=True)
class Data:
    """Training and test images, uint8 [N, height, width, channels], and their class numbers, int64 [N].

    The test images have no influence on any decision. `classes`: the name of each class, by its number.
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

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Returns the arrays of images and labels, by field name."""
        return {name: getattr(self, name) for name in ("train_x", "train_y", "test_x", "test_y")}

    def digest(self) -> str:
        """Returns the SHA-256 (hex) of all images, labels and names."""
        total = hashlib.sha256(repr((self.classes, self.train_x.shape, self.test_x.shape)).encode())
        for array in self.arrays().values():
            total.update(np.ascontiguousarray(array).data)
        return total.hexdigest()


def load(
    path: Path, *, seed: int = 0, size: tuple[int, int, int] | None = None, cache: Path | None = None
) -> Data:
    """Loads the data set at `path`: a folder or tar archive with a folder for each class, or a .npz file.

    If it has no test part, a sixth of each class becomes the test part, at random by `seed`. `size`: height,
    width and channels to which images are scaled; what does not fit is cut off. Without `size`, all images
    must have the same size. `cache`: a folder for decoded images. Raises UsageError for data that cannot be
    used, MachineError for data that does not fit into memory.
    """
    if not path.exists():
        raise _unusable("there is no such file or folder", path)
    if path.is_file() and path.suffix == ".npz":
        return _read_npz(path, seed)
    if path.is_file() and not path.name.endswith(ARCHIVES):
        kinds = ", ".join(ARCHIVES)
        hint = f"a folder with a folder for each class, the same as an archive ({kinds}), or a .npz file"
        raise _unusable("the file is not a data set", path, hint)
    if cache is None:
        return _read_images(path, seed, size)
    names = [path] if path.is_file() else sorted(one for one in path.rglob("*") if one.is_file())
    stats = ((str(one), one.stat()) for one in names)
    listing = [(name, stat.st_size, stat.st_mtime_ns) for name, stat in stats]
    identity = repr((_SCHEMA, str(path.resolve()), listing, seed, size))
    key = hashlib.sha256(identity.encode(errors="surrogateescape")).hexdigest()[:16]
    file = cache / f"data-{key}.npz"
    if (cached := read_arrays(file)) is not None:
        about, arrays = cached
        return Data(**arrays, classes=tuple(about["classes"]))
    data = _read_images(path, seed, size)
    keep_arrays(file, {"classes": data.classes}, data.arrays())
    return data


def check(data: Data, inputs: Sequence[int | None], outputs: Sequence[int | None], path: str = "") -> None:
    """Raises UsageError if a network of these shapes, batch first, cannot be trained with the data."""
    if len(inputs) != 4 or any(
        want is not None and want != have for want, have in zip(inputs[1:], data.shape, strict=True)
    ):
        need = " x ".join("any" if one is None else str(one) for one in inputs[1:])
        have = " x ".join(str(one) for one in data.shape)
        hint = "image files are scaled to the network's size; arrays must have that size"
        raise _unusable(f"the images are {have}, the network takes {need}", path, hint)
    if len(outputs) != 2:
        text = f"the network's output has the shape {tuple(outputs)}; a value for each class is needed"
        raise UsageError(text, path=path)
    if len(data.classes) < 2:
        hint = "give at least two classes: there is nothing to tell apart"
        raise _unusable(f"all images are of one class, '{data.classes[0]}'", path, hint)
    if outputs[1] != len(data.classes):
        text = f"the data has {len(data.classes)} classes, the network has {outputs[1]} outputs"
        raise _unusable(text, path, f"the classes of the data: {', '.join(data.classes[:20])}")


def _unusable(text: str, path: Path | str, hint: str = "") -> UsageError:
    return UsageError(text, path=str(path), option="data", hint=hint)


def _too_large(needed: int, path: Path) -> MachineError:
    hint = "take fewer images, a network with a smaller input, or a machine with more memory"
    return MachineError(f"the images need {needed / 1e9:.1f} GB of memory or more", path=str(path), hint=hint)


def _split_parts(x: Pixels, y: Labels, seed: int) -> tuple[Labelled, Labelled]:
    """Divides images into a training part and a test part, with the same share of every class."""
    is_test = share_of_each(y, TEST_SHARE, np.random.default_rng(seed))
    return (x[~is_test], y[~is_test]), (x[is_test], y[is_test])


def share_of_each(y: Labels, share: float, random: np.random.Generator) -> npt.NDArray[np.bool_]:
    """Returns a mask that selects a random share of the images of each class, at least one image each."""
    is_chosen = np.zeros(len(y), bool)
    for label in np.unique(y):
        members = random.permutation(np.flatnonzero(y == label))
        is_chosen[members[: max(1, round(len(members) * share))]] = True
    return is_chosen


def _make_data(train: Labelled, test: Labelled, classes: tuple[str, ...], path: Path) -> Data:
    """Returns a data set of these parts. Raises UsageError if a class has no image, or a label no class."""
    largest = int(max(train[1].max(initial=-1), test[1].max(initial=-1)))
    if largest >= len(classes):
        text = f"a label is {largest}, but there are {len(classes)} names of classes"
        raise _unusable(text, path, "labels count from 0")
    for part, (_, labels) in (("train with", train), ("test with", test)):
        counts = np.bincount(labels, minlength=len(classes))
        if len(empty := np.flatnonzero(counts == 0)):
            text = f"class {empty[0]} ('{classes[empty[0]]}') has no image to {part}"
            raise _unusable(text, path, "give it images, or leave the class out")
    return Data(*train, *test, classes)


# ---- arrays ----------------------------------------------------------------------------------------


def _read_npz(path: Path, seed: int) -> Data:
    """Returns the data set of a .npz file."""
    try:
        with np.load(path, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    except MemoryError:
        raise _too_large(path.stat().st_size, path) from None
    except Exception:  # for a damaged archive zipfile, zlib and numpy raise many kinds of errors
        text = "this is not a .npz file, or it is damaged, or it contains objects instead of numbers"
        raise _unusable(text, path, "write the file with numpy.savez") from None
    classes = tuple(str(one) for one in arrays.pop("classes", np.array([], np.str_)))
    parts = {
        part: [arrays.get(f"{one}_{part}", arrays.get(f"{part}_{one}")) for one in "xy"]
        for part in ("train", "test")
    }
    if all(one is not None for part in parts.values() for one in part):
        train, test = (_check_arrays(x, y, path) for x, y in parts.values())
    elif "x" in arrays and "y" in arrays:
        train, test = _split_parts(*_check_arrays(arrays["x"], arrays["y"], path), seed)
    else:
        raise _unusable(f"the file has the arrays: {', '.join(arrays) or 'none'}", path, _KEYS)
    if train[0].shape[1:] != test[0].shape[1:]:
        text = f"training images are {train[0].shape[1:]}, test images are {test[0].shape[1:]}"
        raise _unusable(text, path)
    number = int(max(train[1].max(), test[1].max())) + 1
    return _make_data(train, test, classes or tuple(map(str, range(number))), path)


def _check_arrays(x: Any, y: Any, path: Path) -> Labelled:
    """Returns images and labels in the shapes of Data. Raises UsageError for other arrays."""
    if x.dtype != np.uint8:
        hint = "pixels are whole numbers from 0 to 255 (uint8); they are normalised later"
        raise _unusable(f"the images are {x.dtype}", path, hint)
    x = x[..., None] if x.ndim == 3 else x
    if x.ndim != 4:
        raise _unusable(f"the images have the shape {x.shape}", path, "[N, height, width, channels]")
    y = y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y
    if y.shape != x.shape[:1] or not np.issubdtype(y.dtype, np.integer):
        text = f"{len(x):,} images have labels of shape {y.shape} and type {y.dtype}"
        raise _unusable(text, path, "a class's number for each image")
    if len(x) == 0 or y.min() < 0:
        raise _unusable("there is no image" if len(x) == 0 else f"the label {y.min()} is below 0", path)
    return x, y.astype(np.int64)


# ---- images ----------------------------------------------------------------------------------------


def _read_images(path: Path, seed: int, size: tuple[int, int, int] | None) -> Data:
    """Returns the data set of a folder of images, or of an archive."""
    images_by_part: dict[Part, list[tuple[Pixels, str]]] = {"": [], "train": [], "test": []}
    count, budget = 0, _free_bytes()
    first: tuple[int, ...] = ()
    for name, archive_part, shown, content in _read_files(path):
        folders = name.parent.parts
        if not folders:
            raise UsageError("the image is not in the folder of a class", path=shown, hint=_LAYOUT)
        part = next((_PARTS[one.lower()] for one in folders[:-1] if one.lower() in _PARTS), archive_part)
        image = _decode(content, size, shown)
        first = first or image.shape
        if image.shape != first:
            height, width, channels = image.shape
            text = f"the image is {width} x {height} with {channels} channels, the first one "
            text += f"{first[1]} x {first[0]} with {first[2]}"
            raise UsageError(text, path=shown, hint="bring all images to one size")
        count += 1
        if 2 * count * image.nbytes > budget:  # the lists, and the arrays built from them
            raise _too_large(2 * count * image.nbytes, path)
        images_by_part[part].append((image, folders[-1]))
    if count == 0:
        raise _unusable("there is no image", path, "give DIR/CLASS/IMAGE files")
    train, test = images_by_part[""] + images_by_part["train"], images_by_part["test"]
    classes = tuple(sorted({name for _, name in train + test}))

    def stack(images: list[tuple[Pixels, str]]) -> Labelled:
        return np.stack([one for one, _ in images]), np.array([classes.index(name) for _, name in images])

    if not train or not test:
        return _make_data(*_split_parts(*stack(train + test), seed), classes, path)
    train_names = {name for _, name in train}
    if different := sorted(train_names ^ {name for _, name in test}):
        missing_part = "test" if different[0] in train_names else "train"
        text = f"the class '{different[0]}' has no image to {missing_part} with"
        raise _unusable(text, path, "both parts need a folder for each class")
    return _make_data(stack(train), stack(test), classes, path)


def _decode(data: bytes, size: tuple[int, int, int] | None, name: str) -> Pixels:
    """Decodes an image to pixels, uint8 [height, width, channels]. Raises UsageError if it is damaged."""
    library = pillow()
    from PIL import ImageOps

    try:
        with warnings.catch_warnings(action="ignore"), library.open(io.BytesIO(data)) as opened:
            mode = MODES[size[2]] if size is not None else "L" if opened.mode in ("1", "L") else "RGB"
            image: Any = opened if opened.mode == mode else opened.convert(mode)
            if size is not None and image.size != (size[1], size[0]):
                image = ImageOps.fit(image, (size[1], size[0]), library.Resampling.BILINEAR)
            pixels = np.array(image, np.uint8)
    except MemoryError:
        raise
    except Exception:  # for a damaged file Pillow raises many kinds of errors
        hint = "replace the file, or leave it out"
        raise UsageError("the file is not an image, or it is damaged", path=name, hint=hint) from None
    return pixels[..., None] if pixels.ndim == 2 else pixels


def _free_bytes() -> float:
    """Returns the bytes of memory that are free without swapping; infinite if the system does not say."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    return float("inf")


# ---- files of images -------------------------------------------------------------------------------


def _read_files(path: Path) -> Iterator[ImageFile]:
    """Reads the images of a folder or an archive, sorted by name. Raises UsageError for another layout.

    A folder may hold two archives instead of class folders: one with "train" in its name, one with "test".
    """
    if path.is_file():
        yield from _read_archive(path, "")
        return
    below = [one for one in sorted(path.rglob("*")) if not _is_hidden(one.relative_to(path))]
    for folder in below:
        if folder.is_dir() and not any(folder.iterdir()):
            text = f"the folder of class '{folder.name}' is empty"
            raise _unusable(text, folder, "give it images, or remove the folder")
    archives = [one for one in below if one.parent == path and one.name.endswith(ARCHIVES) and one.is_file()]
    if archives:
        train = [one for one in archives if "train" in one.name and "test" not in one.name]
        test = [one for one in archives if "test" in one.name]
        if len(train) != 1 or len(test) != 1:
            names = ", ".join(one.name for one in archives)
            what = f"the folder holds the archives {names}: which one is for training is not clear"
            hint = "have one archive with 'train' in its name and one with 'test', or name one archive"
            raise UsageError(what, path=str(path), hint=hint)
        yield from _read_archive(train[0], "train")
        yield from _read_archive(test[0], "test")
        return
    for file in below:
        if file.is_file():
            yield PurePosixPath(file.relative_to(path).as_posix()), "", str(file), file.read_bytes()


def _read_archive(path: Path, part: Part) -> Iterator[ImageFile]:
    """Reads the images of an archive, in its order, without unpacking it onto the disk."""
    try:
        with tarfile.open(path) as archive:
            for member in archive:
                name = PurePosixPath(member.name)
                if member.isfile() and not _is_hidden(name):
                    stream = archive.extractfile(member)
                    assert stream is not None  # it is a regular file
                    yield name, part, f"{path}:{member.name}", stream.read()
    except (tarfile.TarError, EOFError, OSError) as error:
        if isinstance(error, FileNotFoundError | PermissionError):
            raise
        text = f"the archive cannot be read: {str(error).splitlines()[0].rstrip(':')}"
        raise UsageError(text, path=str(path), hint="it may have been cut short: copy it again") from None


def _is_hidden(name: PurePosixPath | Path) -> bool:
    """Whether a file is hidden, or lies in a hidden folder."""
    return any((one.startswith(".") and one not in (".", "..")) or one == "__MACOSX" for one in name.parts)
