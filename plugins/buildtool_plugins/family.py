"""The base class of the target families that come with buildtool. Their boards and kernels are in folders."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from buildtool.base.errors import ToolError, did_you_mean
from buildtool.target.kernels import kernels_root
from buildtool.target.plugin import INTERFACE, KernelFolder
from buildtool.target.types import Board


class Family:
    """A family of boards, its kernels and its toolchains; see buildtool.target.plugin.TargetPlugin.

    `root`: the family's folder.
    `kernels`: the names of its kernel families.
    `portable`: those of them that every core can run.
    `toolchains`: their names, the preferred one first.
    """

    interface = INTERFACE

    name: str
    root: Path
    kernels: tuple[str, ...]
    portable: tuple[str, ...] = ()
    toolchains: tuple[str, ...]

    def board_files(self) -> tuple[Path, ...]:
        """Returns the .toml files of the family's boards."""
        return tuple(sorted((self.root / "boards").glob("*.toml")))

    def core_files(self) -> tuple[Path, ...]:
        """Returns the .toml files of the family's cores, which board files extend as "cores/NAME"."""
        return tuple(sorted((self.root / "cores").glob("*.toml")))

    def kernel_families(self) -> tuple[KernelFolder, ...]:
        """Returns the folders of the family's kernels."""
        return tuple(KernelFolder(kernels_root() / name, name in self.portable) for name in self.kernels)

    def find_toolchains(self, board: Board, name: str) -> Sequence[str]:
        """Returns the names of a board's toolchains, the preferred one first.

        Raises ToolError if none of them is called `name`, or if there are none.
        """
        names = [t for t in board.toolchains or self.toolchains if t in self.toolchains]
        selected = name or next(iter(names), self.toolchains[0])
        if selected not in names:
            hint = did_you_mean(selected, names)
            raise ToolError(f"board '{board.name}' has no toolchain '{selected}'", hint=hint)
        return names
