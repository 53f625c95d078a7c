"""Writes the files of a build to a folder, and removes those of an earlier build that are outdated."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

from buildtool.base.outfiles import keep_inputs, keep_networks, outdated_files, write


def write_firmware(
    files: Mapping[str, bytes], folder: Path, inputs: Collection[str]
) -> tuple[list[str], list[str]]:
    """Returns the names of the files written and removed.

    Raises UsageError, before anything is written, where a file would replace one of `inputs` or belongs to
    another network.
    """
    keep_inputs([(folder / name, data) for name, data in files.items()], inputs)
    keep_networks(files, folder)
    removed = outdated_files(files, folder)
    written = write(files, folder)
    for name in removed:
        (folder / name).unlink(missing_ok=True)
    return written, removed
