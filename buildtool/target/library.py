"""The C files that are compiled for a board: those of a network's library, and what some of them need.

Imports nothing that reads networks: builds ask for this list each time they start.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from buildtool.target.kernels import kernels_root
from buildtool.target.types import KernelVariant, Routine, Target

RUNTIME = ("nn_image.c", "nn_crc32.c")  # below kernels/runtime: what every network calls
PARALLEL = "nn_parallel.c"  # where calls are shared by threads
APART = ("nn_slots.c",)  # what an application may call besides


def include_folder() -> Path:
    """Where nn.h and the other headers of the kernels' public interface are."""
    return kernels_root() / "include"


def kernel_includes(target: Target) -> tuple[Path, ...]:
    """Where the headers are that emitted code and kernels include: the public ones, each family's own."""
    return (include_folder(), *(family.folder for family in target.families))


def all_kernel_sources(target: Target) -> list[Path]:
    """Every C file that some plan for the target or its application may need, the runtime's first."""
    return [*source_files(target, [*target.kernels, *target.routines]), *apart()]


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
