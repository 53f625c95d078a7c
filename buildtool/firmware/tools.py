"""The compiler that a request asks for, for a debugger or not, and the files that its input depends on."""

from __future__ import annotations

import dataclasses
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from buildtool.base.errors import UsageError, suggest
from buildtool.options.values import ANY_WIRE, TargetChoice
from buildtool.target import registry
from buildtool.target.choice import wire_of
from buildtool.target.plugin import Harness, TargetPlugin
from buildtool.target.types import Board, Target, Toolchain, Wiring


def toolchain(choice: TargetChoice, target: Target) -> Toolchain:
    """The compiler of a choice, as the plugin of its `target` sets it up.

    ToolError if it is missing; UsageError about the option that asks for a wire which the plugin does not
    have.
    """
    tools = registry.toolchain(target, choice.toolchain)
    board, wire = target.board, wire_of(choice, target.board)
    if wire:
        make = getattr(registry.plugin(board), "wiring", None)
        if make is None:
            option = "on" if choice.wire == ANY_WIRE else "wire"
            text = f"test firmware for board '{board.name}' answers over no wire"
            raise UsageError(text, option=option, hint=suggest(**{option: None}))
        wiring: Wiring = make(board, wire)
        tools = dataclasses.replace(tools, cflags=(*tools.cflags, *wiring.cflags), wiring=wiring)
    if not choice.debug:
        return tools
    return debuggable(tools, Origins.of(choice, target).folders(choice.cmsis_nn))


def harness(board: Board, tools: Toolchain) -> Harness:
    """The test firmware's own sources: the plugin's, or those for a wire."""
    if tools.wiring is None:
        return registry.plugin(board).harness(board)
    sources, includes = tools.wiring.sources, tools.wiring.includes
    return Harness(tuple(map(Path, sources)), tuple(map(Path, includes)))


# ---- files that decide what is emitted for a board, and their folders -------------------------------


OURS = "buildtool_plugins"


@dataclass(frozen=True)
class Origins:
    """A target's plugin, its board's file, and the files that this extends."""

    target: Target
    plugin: TargetPlugin
    boards: tuple[Path, ...]

    @classmethod
    def of(cls, choice: TargetChoice, target: Target) -> Origins:
        """The origins of the target that was loaded for a choice."""
        named = choice.board if isinstance(choice.board, str) else choice.board.path
        return cls(target, registry.plugin(target.board), registry.board_chain(named))

    def files(self) -> list[Path]:
        """The board's files, the code and data of other distributions, and what libraries were asked about.

        buildtool's own code is not among them: its digest stands for it.
        """
        code = {path for folder in self.foreign().values() for path in folder.rglob("*")}
        module = Path(sys.modules[type(self.plugin).__module__].__file__ or "").resolve()
        if not _is_below(module, list(ours().values())):
            code.add(module)
        asked = [path for library in self.target.libraries for path in library.reads]
        return [*self.boards, *sorted(path for path in code if path.suffix in (".py", ".toml")), *asked]

    def foreign(self) -> dict[str, Path]:
        """The folders of other distributions: of the board's plugin, and of kernel families."""
        package = sys.modules[type(self.plugin).__module__.partition(".")[0]]
        folders = {family.name: family.folder for family in self.target.families}
        if hasattr(package, "__path__"):  # else it is one file among others
            folders["plugin"] = Path(next(iter(package.__path__)))
        known = list(ours().values())
        return {name: folder for name, folder in folders.items() if not _is_below(folder, known)}

    def folders(self, library: str = "") -> dict[str, Path]:
        """All folders of code by name: buildtool's, others', and that of a `library` of the user's."""
        named = {"library": Path(library)} if library else {}
        return {**ours(), **self.foreign(), **named}


def ours() -> dict[str, Path]:
    """The folders that come with buildtool, which its digest covers."""
    from buildtool.target.kernels import kernels_root

    return {"kernels": kernels_root(), "targets": Path(sys.modules[OURS].__file__ or "").parent}


def _is_below(path: Path, folders: Sequence[Path]) -> bool:
    found = path.resolve()
    return any(found.is_relative_to(folder.resolve()) for folder in folders)


# ---- builds for debuggers ---------------------------------------------------------------------------


# NN_DEBUG: symbols for debuggers alone, such as the arena by the network's name.
FLAGS = ("-Og", "-g", "-DNN_DEBUG")
RENAMES = "-ffile-prefix-map="  # FOLDER=NAME: in debug information and in __FILE__
_OPTIMISES = re.compile(r"-O([0-3sgz]|fast)?")


def debug_name(name: str) -> str:
    """The name of a folder of buildtool's in debug information, by the folder's name in `describe`."""
    return f"/buildtool/{name}"


def debuggable(tools: Toolchain, folders: Mapping[str, Path]) -> Toolchain:
    """`tools` with flags for debugging in place of those that optimise; `folders` by their names.

    The innermost of two folders comes last, as compilers want it.
    """
    kept = [flag for flag in tools.cflags if not _OPTIMISES.fullmatch(flag)]
    places = sorted(((str(folder.resolve()), name) for name, folder in folders.items()))
    return dataclasses.replace(
        tools,
        cflags=(*kept, *FLAGS),
        renames=tuple(f"{RENAMES}{place}={debug_name(name)}" for place, name in places),
    )
