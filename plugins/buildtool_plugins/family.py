"""What every target family that comes with buildtool has in common: its boards and kernels, by folders."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from buildtool.base.errors import ToolError, did_you_mean
from buildtool.target.kernels import kernels_root
from buildtool.target.plugin import INTERFACE, KernelFolder
from buildtool.target.types import Board


class Family:
    """See buildtool.target.plugin.TargetPlugin; `root` is the family's folder, `kernels` its kernel families.

    `portable`: those of them that every core can run; `toolchains`: those it knows, the preferred one first.
    """

    interface = INTERFACE

    name: str
    root: Path
    kernels: tuple[str, ...]
    portable: tuple[str, ...] = ()
    toolchains: tuple[str, ...]

    def board_files(self) -> tuple[Path, ...]:
        """The .toml files of the boards it knows."""
        return tuple(sorted((self.root / "boards").glob("*.toml")))

    def kernel_families(self) -> tuple[KernelFolder, ...]:
        """The kernels that it offers."""
        return tuple(KernelFolder(kernels_root() / name, name in self.portable) for name in self.kernels)

    def find_toolchains(self, board: Board, name: str) -> Sequence[str]:
        """The toolchains that build for a board; ToolError where `name` ("": any) is none of them."""
        known = [t for t in board.toolchains or self.toolchains if t in self.toolchains]
        chosen = name or next(iter(known), self.toolchains[0])
        if chosen not in known:
            hint = did_you_mean(chosen, known)
            raise ToolError(f"board '{board.name}' has no toolchain '{chosen}'", hint=hint)
        return known
