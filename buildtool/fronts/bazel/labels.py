"""The tool's own files as Bazel sees them: links to the folders of its code, and labels below them."""

from __future__ import annotations

from pathlib import Path

from buildtool.client import BuildtoolError, code_files, code_folders

CODE = "{code}"  # in a path: the folder of the repository of the code, which only Bazel knows
KERNELS = "buildtool_kernels"  # as it is imported: in a checkout its folder has another name


def packages() -> dict[str, Path]:
    """The folders of the code by the names that they are imported by."""
    found = {}
    for folder in map(Path, code_folders()):
        is_kernels = (folder / "include" / "nn.h").is_file() and folder.name == "kernels"
        found[KERNELS if is_kernels else folder.name] = folder.resolve()
    return found


def watched() -> list[str]:
    """The files below the links that decide what the tool says, and the rules themselves."""
    folders = packages()
    rules = (folders["buildtool"] / "fronts/bazel/rules").glob("*.bzl")
    files = [*map(Path, code_files()), *rules]
    return sorted(found for path in files if (found := linked(path, folders)))


def linked(path: Path, folders: dict[str, Path]) -> str:
    """A file or folder below the links; "" of one that is in no folder of the code."""
    real = path.resolve()
    for name, folder in folders.items():
        if real.is_relative_to(folder):
            below = real.relative_to(folder).as_posix()
            return name if below == "." else f"{name}/{below}"
    return ""


def needed(path: Path, folders: dict[str, Path]) -> str:
    """The same of one that has to be there."""
    if found := linked(path, folders):
        return found
    raise BuildtoolError(
        "the rules for Bazel build from buildtool's own folders and those of plugins only",
        path=str(path),
        hint="make it part of a package that offers boards",
    )
