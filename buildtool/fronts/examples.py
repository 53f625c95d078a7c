"""The examples: projects that use buildtool, complete enough to be copied. A wheel has them, too."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import NamedTuple

from buildtool.base.code_digest import home
from buildtool.base.errors import ToolError, UsageError, did_you_mean
from buildtool.base.outfiles import write

INDEX = "examples.toml"


class Example(NamedTuple):
    """An example: what it is about, the commands to begin with, and its files by their paths in it."""

    name: str
    about: str
    run: tuple[str, ...]
    folder: Path
    files: tuple[str, ...]


def examples() -> dict[str, Example]:
    """Returns the examples by name, in the order of lists. Raises ToolError if none are installed."""
    root = _root()
    with (root / INDEX).open("rb") as file:
        rows = tomllib.load(file)
    return {
        name: Example(name, row["about"], tuple(row["run"]), root / row["folder"], tuple(row["files"]))
        for name, row in rows.items()
    }


def write_example(name: str, folder: Path) -> Example:
    """Writes an example to a new or empty folder, all of its files or none; returns the example.

    Raises UsageError if the name is unknown, the folder is not empty, or a file cannot be written.
    """
    known = examples()
    if name not in known:
        raise UsageError(f"there is no example '{name}'", hint=did_you_mean(name, known))
    example = known[name]
    try:
        is_empty = not folder.is_dir() or not any(folder.iterdir())
        files = {path: (example.folder / path).read_bytes() for path in example.files}
    except OSError as error:
        raise UsageError(f"cannot read: {error.strerror}", path=str(error.filename)) from None
    if not is_empty:
        hint = f"name a new folder: buildtool example {name} {folder / name}"
        raise UsageError("this folder is not empty", path=str(folder), hint=hint)
    write(files, folder)
    return example


def _root() -> Path:
    for name in ("examples", "buildtool_examples"):  # in a checkout, in site-packages
        if (Path(home()) / name / INDEX).is_file():
            return Path(home()) / name
    raise ToolError("the examples (package buildtool_examples) are not installed", hint="reinstall buildtool")
