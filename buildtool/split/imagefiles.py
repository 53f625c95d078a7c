"""Labelled images as files: of a folder or of a tar archive, with a folder for each class."""

from __future__ import annotations

import tarfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Literal

from buildtool.base.errors import UsageError

Part = Literal["", "train", "test"]  # "": the data set says nothing of parts

ARCHIVES = (".tar", ".tar.xz", ".tar.gz", ".tgz", ".tar.bz2")
_PARTS: dict[str, Part] = {"train": "train", "training": "train", "test": "test", "testing": "test"}
_LAYOUT = "give DIR/CLASS/IMAGE files, or DIR/train/CLASS/IMAGE and DIR/test/CLASS/IMAGE"


@dataclass(frozen=True)
class ImageFile:
    """An image's bytes, what it is called in messages, its class, and its part of the data set."""

    name: str
    label: str
    part: Part
    data: bytes


def is_archive(path: Path) -> bool:
    """Whether a file is a tar archive by its name."""
    return path.name.endswith(ARCHIVES)


def read(path: Path) -> Iterator[ImageFile]:
    """The images of a folder or an archive, sorted by name; UsageError for another layout.

    A folder may hold archives in the place of class folders, one of them with "train" in its name and one
    with "test", as data sets are often handed on.
    """
    if is_archive(path):
        yield from _of_archive(path, "")
        return
    archives = sorted(one for one in path.iterdir() if one.is_file() and is_archive(one))
    if archives:
        for archive in _two_parts(path, archives):
            yield from _of_archive(archive, "test" if "test" in archive.name else "train")
        return
    files = (
        one for one in sorted(path.rglob("*")) if one.is_file() and not _is_hidden(one.relative_to(path))
    )
    for file in files:
        name = PurePosixPath(file.relative_to(path).as_posix())
        yield _image(name, "", str(file), file.read_bytes)


def listing(path: Path) -> list[tuple[str, int, int]]:
    """Every file that `read` depends on: its name, bytes, and time of change in nanoseconds."""
    files = [path] if path.is_file() else sorted(one for one in path.rglob("*") if one.is_file())
    stats = ((str(one), one.stat()) for one in files)
    return [(name, stat.st_size, stat.st_mtime_ns) for name, stat in stats]


def empty_folders(path: Path) -> list[Path]:
    """The folders of a data set without anything in them, sorted; of an archive none are looked for."""
    folders = sorted(one for one in path.rglob("*") if one.is_dir()) if path.is_dir() else []
    return [one for one in folders if not _is_hidden(one.relative_to(path)) and not any(one.iterdir())]


def _two_parts(path: Path, archives: list[Path]) -> list[Path]:
    """The archives with a data set's two parts; UsageError where they are not one of each."""
    train = [one for one in archives if "train" in one.name and "test" not in one.name]
    test = [one for one in archives if "test" in one.name]
    if len(train) != 1 or len(test) != 1:
        names = ", ".join(one.name for one in archives)
        raise UsageError(
            f"the folder holds the archives {names}: which one is for training is not clear",
            path=str(path),
            hint="have one archive with 'train' in its name and one with 'test', or name one archive",
        )
    return [*train, *test]


def _of_archive(path: Path, part: Part) -> Iterator[ImageFile]:
    """The images of an archive, in its order; nothing is unpacked onto the disk."""
    try:
        with tarfile.open(path) as archive:
            for member in archive:
                name = PurePosixPath(member.name)
                if member.isfile() and not _is_hidden(name):
                    stream = archive.extractfile(member)
                    assert stream is not None  # it is a regular file
                    yield _image(name, part, f"{path}:{member.name}", stream.read)
    except (tarfile.TarError, EOFError, OSError) as error:
        if isinstance(error, FileNotFoundError | PermissionError):
            raise
        text = f"the archive cannot be read: {str(error).splitlines()[0].rstrip(':')}"
        raise UsageError(text, path=str(path), hint="it may have been cut short: copy it again") from None


def _image(name: PurePosixPath, part: Part, shown: str, read: Callable[[], bytes]) -> ImageFile:
    """An image by its name within the data set; UsageError where no folder says its class."""
    folders = name.parent.parts
    if not folders:
        raise UsageError("the image lies in no folder of a class", path=shown, hint=_LAYOUT)
    found = next((_PARTS[one.lower()] for one in folders[:-1] if one.lower() in _PARTS), part)
    return ImageFile(shown, folders[-1], found, read())


def _is_hidden(name: PurePosixPath | Path) -> bool:
    """Whether a file or a folder above it is hidden, as systems leave them beside a user's own."""
    return any((one.startswith(".") and one not in (".", "..")) or one == "__MACOSX" for one in name.parts)
