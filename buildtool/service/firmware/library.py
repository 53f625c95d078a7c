"""The kernels that are compiled for a board, all of them: what a network's library is made from.

Imports nothing that reads networks: builds ask for this list each time they start.
"""

from __future__ import annotations

from pathlib import Path

from buildtool.target.registry import kernels_root
from buildtool.target.types import Target

SLICES_SOURCE = "reference/nn_copy_s8.c"  # puts slices of an output into their places
SUMS_SOURCES = {  # of poolings that are fed part by part in a streamed region, by operator kind
    "MEAN": ("reference/nn_accumulate_s8.c", "reference/nn_mean_sums_s8.c"),
    "AVERAGE_POOL_2D": ("reference/nn_accumulate_s8.c", "reference/nn_avg_pool_sums_s8.c"),
}


def include_folder() -> Path:
    """Where nn.h and the other headers of the kernels are."""
    return kernels_root() / "include"


def kernel_includes(_target: Target) -> tuple[Path, ...]:
    """Where the headers are that emitted code and kernels include."""
    return (include_folder(),)


def all_kernel_sources(target: Target) -> list[Path]:
    """Every C file that some plan for the target may need, the runtime's first, sorted by name."""
    root = kernels_root()
    names = {source for kernel in target.kernels for source in kernel.sources}
    names.add(SLICES_SOURCE)
    names.update(source for sources in SUMS_SOURCES.values() for source in sources)
    return [root / "runtime" / "nn_image.c", *(root / name for name in sorted(names))]
