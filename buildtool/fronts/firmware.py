"""Writes the files of a build to a folder, and checks files before they are written."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

from buildtool.base.errors import UsageError, suggest
from buildtool.base.outfiles import check_writable, keep_inputs, keep_networks, outdated_files, write


def write_firmware(
    files: Mapping[str, bytes], folder: Path, inputs: Collection[str]
) -> tuple[list[str], list[str]]:
    """Writes the files of a build into `folder`. Returns the names of the files written and removed.

    Raises UsageError, before anything is written, if a file would replace one of `inputs` or belongs to
    another network.
    """
    keep_inputs([(folder / name, data) for name, data in files.items()], inputs)
    keep_networks(files, folder)
    removed = outdated_files(files, folder)
    written = write(files, folder)
    for name in removed:
        (folder / name).unlink(missing_ok=True)
    return written, removed


def check_quantized(out: Path, model: str, inputs: Collection[str]) -> None:
    """Raises UsageError if the quantised network cannot be written to `out`, before quantising takes minutes.

    `out` must have the suffix of `model`, must not be one of `inputs`, and must be writable.
    """
    suffix = Path(model).suffix.lower()
    if out.suffix.lower() != suffix and suffix in (".tflite", ".onnx"):
        hint = suggest(out=str(out.with_suffix(suffix)))
        raise UsageError(f"the quantised network is a {suffix} file, too", path=str(out), hint=hint)
    keep_inputs([(out, None)], inputs)
    check_writable(out)
