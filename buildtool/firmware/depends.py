"""The files, besides a network's own, that decide what is emitted for a board, and their folders."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from buildtool.options.values import TargetChoice
from buildtool.target.plugin import TargetPlugin
from buildtool.target.types import Target

OURS = "buildtool_plugins"


@dataclass(frozen=True)
class Origins:
    """Where a target comes from: its plugin, the board's file and those that it extends."""

    target: Target
    plugin: TargetPlugin
    boards: tuple[Path, ...]

    @classmethod
    def of(cls, choice: TargetChoice, target: Target) -> Origins:
        """Of the target that was loaded for a choice."""
        from buildtool.target.registry import board_chain, plugin

        named = choice.board if isinstance(choice.board, str) else choice.board.path
        return cls(target, plugin(target.board), board_chain(named))

    def files(self) -> list[Path]:
        """The board's files, the code and data of others, and what libraries were asked about.

        What comes with buildtool is not among the code: its digest stands for it.
        """
        asked = [path for library in self.target.libraries for path in library.reads]
        return [*self.boards, *self._foreign_code(), *asked]

    def foreign(self) -> dict[str, Path]:
        """The folders of other distributions: of the board's plugin, and of kernel families."""
        package = sys.modules[type(self.plugin).__module__.partition(".")[0]]
        folders = {family.name: family.folder for family in self.target.families}
        if hasattr(package, "__path__"):  # else it is one file among those of others
            folders["plugin"] = Path(next(iter(package.__path__)))
        known = list(ours().values())
        return {name: folder for name, folder in folders.items() if not _is_below(folder, known)}

    def folders(self, library: str = "") -> dict[str, Path]:
        """All folders of code by name: ours, those of others, and that of a `library` of the user's."""
        named = {"library": Path(library)} if library else {}
        return {**ours(), **self.foreign(), **named}

    def _foreign_code(self) -> list[Path]:
        """The code and data of other distributions that decide what is emitted."""
        found = {path for folder in self.foreign().values() for path in folder.rglob("*")}
        module = Path(sys.modules[type(self.plugin).__module__].__file__ or "").resolve()
        if not _is_below(module, list(ours().values())):
            found.add(module)
        return sorted(path for path in found if path.suffix in (".py", ".toml"))


def ours() -> dict[str, Path]:
    """The folders that come with buildtool, which its digest covers."""
    from buildtool.target.kernels import kernels_root

    return {"kernels": kernels_root(), "targets": Path(sys.modules[OURS].__file__ or "").parent}


def _is_below(path: Path, folders: Sequence[Path]) -> bool:
    found = path.resolve()
    return any(found.is_relative_to(folder.resolve()) for folder in folders)
