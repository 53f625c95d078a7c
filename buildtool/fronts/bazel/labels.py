"""What BUILD files are made of: labels of the tool's own files, by links, and text as Starlark has it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from buildtool.client import BuildtoolError, code_files, code_folders

RULES = Path(__file__).resolve().parent / "rules"  # the .bzl files that come with the package
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}
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
    files = [*map(Path, code_files()), *RULES.glob("*.bzl")]
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


# ---- text ----------------------------------------------------------------------------------------------


class Code(str):
    """An expression that stands as it is."""

    __slots__ = ()


def value(found: object) -> str:
    """A value as Starlark writes it: text, whole numbers, None, lists and maps of them."""
    if isinstance(found, Code):
        return found
    if isinstance(found, str):
        return '"' + "".join(_ESCAPES.get(letter, letter) for letter in found) + '"'
    if isinstance(found, Mapping):
        return "{" + ", ".join(f"{value(key)}: {value(item)}" for key, item in found.items()) + "}"
    if isinstance(found, list | tuple):
        return "[" + ", ".join(map(value, found)) + "]"
    return repr(found)


def call(rule: str, **attributes: object) -> str:
    """A rule's call, an attribute a line; those that are None are left out."""
    lines = [f"    {name} = {value(item)},\n" for name, item in attributes.items() if item is not None]
    return f"{rule}(\n{''.join(lines)})\n"


def load(label: str, *names: str) -> str:
    """A load statement."""
    return f"load({', '.join(map(value, (label, *names)))})\n"
