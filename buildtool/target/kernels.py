"""Finds the kernels' folders, and lists the C files that networks for a board need.

It imports nothing that reads networks, because builds need these lists each time they start.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from buildtool.base.errors import TargetError
from buildtool.target.types import KernelVariant, Routine, Target

RUNTIME = ("nn_image.c", "nn_crc32.c")  # in kernels/runtime: every network calls them
PARALLEL = "nn_parallel.c"  # for calls that threads share
APART = ("nn_boxes.c", "nn_slots.c")  # for applications; no network calls them
APART_HEADERS = ("nn_status_text.h", "nn_tflm.h")  # for applications; no source includes them
HOME = Path(__file__).resolve().parents[2]  # the checkout, or site-packages


@cache
def kernels_root() -> Path:
    """Returns the folder of all kernels, with include/ (nn.h, shared headers), runtime/ and a folder for each
    family.
    """
    for name in ("kernels", "buildtool_kernels"):
        if (HOME / name / "include" / "nn.h").is_file():
            return HOME / name
    spec = importlib.util.find_spec("buildtool_kernels")
    if spec is None or not spec.submodule_search_locations:
        raise TargetError(
            "the kernels (package buildtool_kernels) are not installed", hint="reinstall buildtool"
        )
    return Path(next(iter(spec.submodule_search_locations)))


def include_folder() -> Path:
    """Returns the folder of nn.h and the other headers of the kernels' public interface."""
    return kernels_root() / "include"


def kernel_includes(target: Target) -> tuple[Path, ...]:
    """Returns the folders of headers for emitted code and kernels: the public one, and each family's own."""
    return (include_folder(), *(family.folder for family in target.families))


def all_kernel_sources(target: Target) -> list[Path]:
    """Returns every C file that a plan for the target, or an application, may need; those of the runtime come
    first.
    """
    return [*source_files(target, [*target.kernels, *target.routines]), *application_sources()]


def object_name(path: Path) -> str:
    """Returns the path of the object file for a kernel's source, relative to the folder for all kernels'
    objects.
    """
    return f"{path.parent.name}/{path.stem}.o"


def is_runtime(path: Path) -> bool:
    """Whether a source belongs to the runtime, which is part of every firmware."""
    return path.parent == kernels_root() / "runtime"


def application_sources() -> list[Path]:
    """Returns the C files of the runtime that only applications call."""
    return [kernels_root() / "runtime" / name for name in APART]


def source_files(target: Target, callees: Iterable[KernelVariant | Routine]) -> list[Path]:
    """Returns the C files of the runtime, followed by those of the kernels and routines `callees`, sorted by
    name.
    """
    names = {source for callee in callees for source in callee.sources}
    runtime = [*RUNTIME, *([PARALLEL] if target.board.core.threads > 1 else [])]
    own = (kernels_root() / "runtime" / name for name in runtime)
    return [*own, *(target.source(name) for name in sorted(names))]
