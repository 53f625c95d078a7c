"""The C files that are compiled for a board: those of a network's library, and what some of them need.

Imports nothing that reads networks: builds ask for this list each time they start.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from buildtool.target.kernels import kernels_root
from buildtool.target.types import KernelVariant, Routine, Target


def include_folder() -> Path:
    """Where nn.h and the other headers of the kernels' public interface are."""
    return kernels_root() / "include"


def kernel_includes(target: Target) -> tuple[Path, ...]:
    """Where the headers are that emitted code and kernels include: the public ones, each family's own."""
    return (include_folder(), *(family.folder for family in target.families))


def all_kernel_sources(target: Target) -> list[Path]:
    """Every C file that some plan for the target may need, the runtime's first, sorted by name."""
    return source_files(target, [*target.kernels, *target.routines])


def source_files(target: Target, callees: Iterable[KernelVariant | Routine]) -> list[Path]:
    """The C files of these kernels and routines, the runtime's first, sorted by name."""
    names = {source for callee in callees for source in callee.sources}
    runtime = ["nn_image.c"]
    if target.board.core.threads > 1:
        runtime.append("nn_parallel.c")
    own = (kernels_root() / "runtime" / name for name in runtime)
    return [*own, *(target.source(name) for name in sorted(names))]
