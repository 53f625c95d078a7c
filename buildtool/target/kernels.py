"""Where the kernels are, and the C files that are compiled for a board: a network's, and what they need.

Imports nothing that reads networks: builds ask for these lists each time they start.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from buildtool.base.errors import TargetError
from buildtool.target.types import KernelVariant, Routine, Target

RUNTIME = ("nn_image.c", "nn_crc32.c")  # below kernels/runtime: what every network calls
PARALLEL = "nn_parallel.c"  # where calls are shared by threads
APART = ("nn_slots.c",)  # what an application may call besides
HOME = Path(__file__).resolve().parents[2]  # of the checkout, or site-packages


@cache
def kernels_root() -> Path:
    """The folder of include/ (nn.h and what kernels share), runtime/ and one folder a family."""
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
    """Where nn.h and the other headers of the kernels' public interface are."""
    return kernels_root() / "include"


def kernel_includes(target: Target) -> tuple[Path, ...]:
    """Where the headers are that emitted code and kernels include: the public ones, each family's own."""
    return (include_folder(), *(family.folder for family in target.families))


def all_kernel_sources(target: Target) -> list[Path]:
    """Every C file that some plan for the target or its application may need, the runtime's first."""
    return [*source_files(target, [*target.kernels, *target.routines]), *apart()]


def object_name(path: Path) -> str:
    """The object of a kernel's source, in a folder for the objects of all kernels."""
    return f"{path.parent.name}/{path.stem}.o"


def is_runtime(path: Path) -> bool:
    """Whether a source is of the runtime, which is part of every firmware."""
    return path.parent == kernels_root() / "runtime"


def apart() -> list[Path]:
    """Files of the runtime that no network calls, for applications."""
    return [kernels_root() / "runtime" / name for name in APART]


def source_files(target: Target, callees: Iterable[KernelVariant | Routine]) -> list[Path]:
    """The C files of these kernels and routines, the runtime's first, sorted by name."""
    names = {source for callee in callees for source in callee.sources}
    runtime = [*RUNTIME, *([PARALLEL] if target.board.core.threads > 1 else [])]
    own = (kernels_root() / "runtime" / name for name in runtime)
    return [*own, *(target.source(name) for name in sorted(names))]
