"""Finds the compiler of a request, for debugging or not, and the files that the emitted code depends on."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from buildtool.base.errors import UsageError, suggest
from buildtool.firmware.levels import is_native
from buildtool.options.values import ANY_WIRE, TargetChoice
from buildtool.target import registry
from buildtool.target.choice import link_of
from buildtool.target.plugin import Harness, TargetPlugin
from buildtool.target.types import Board, Target, Toolchain, Wiring


def toolchain(choice: TargetChoice, target: Target, *, native: bool = False) -> Toolchain:
    """Returns the compiler that `choice` names, with the settings of the plugin of `target`.

    For a debugger, or if `native` is true, it is a compiler for programs of this machine, if the board has
    one. Raises ToolError if the compiler is missing. Raises UsageError if the plugin does not have the link
    that `choice` names, or if the named compiler makes no programs of this machine.
    """
    board, wire = target.board, link_of(choice, target.board)
    if board.is_native and (choice.debug or native):
        target = replace(target, board=_only_native(choice, board))
    tools = registry.toolchain(target, choice.toolchain)
    if wire:
        make = getattr(registry.plugin(board), "wiring", None)
        if make is None:
            option = "on" if choice.wire == ANY_WIRE else "wire"
            text = f"test firmware for board '{board.name}' cannot answer over a link"
            raise UsageError(text, option=option, hint=suggest(**{option: None}))
        wiring: Wiring = make(board, wire)
        tools = replace(tools, cflags=(*tools.cflags, *wiring.cflags), wiring=wiring)
    if not choice.debug:
        return tools
    return debuggable(tools, Origins.of(choice, target).folders(choice.cmsis_nn))


def _only_native(choice: TargetChoice, board: Board) -> Board:
    """Returns the board with only those toolchains whose programs run on this machine; with all of them if
    there are none. Raises UsageError if `choice` names another toolchain.
    """
    names = tuple(name for name in board.toolchains if is_native(board, name)) or board.toolchains
    if choice.toolchain and choice.toolchain not in names:
        text = f"'{choice.toolchain}' makes no programs of this machine, which debuggers and sanitizers need"
        raise UsageError(text, option="toolchain", hint=suggest(toolchain=names[0]))
    return replace(board, toolchains=names)


def harness(board: Board, tools: Toolchain) -> Harness:
    """Returns the sources of the test firmware itself: the plugin's, or those that answer over a link."""
    if tools.wiring is None:
        return registry.plugin(board).harness(board)
    sources, includes = tools.wiring.sources, tools.wiring.includes
    return Harness(tuple(map(Path, sources)), tuple(map(Path, includes)))


# ---- files that the emitted code of a board depends on, and their folders ---------------------------


OURS = "buildtool_plugins"


@dataclass(frozen=True)
class Origins:
    """What a target is made from: its plugin, and its board's file with the files that this file extends."""

    target: Target
    plugin: TargetPlugin
    boards: tuple[Path, ...]

    @classmethod
    def of(cls, choice: TargetChoice, target: Target) -> Origins:
        """Returns the origins of `target`, which was loaded for `choice`."""
        path = choice.board if isinstance(choice.board, str) else choice.board.path
        return cls(target, registry.plugin(target.board), registry.board_chain(path))

    def files(self) -> list[Path]:
        """Returns the files on which the emitted code and its build depend, besides buildtool's own code.

        They are the board's files, the code and data of other distributions, and the files that libraries
        read. The digest of buildtool's code covers the rest.
        """
        code = {path for folder in self.foreign().values() for path in folder.rglob("*")}
        module = Path(sys.modules[type(self.plugin).__module__].__file__ or "").resolve()
        if not _is_below(module, list(ours().values())):
            code.add(module)
        by_libraries = [path for library in self.target.libraries for path in library.reads]
        code_and_data = sorted(path for path in code if path.suffix in (".py", ".toml"))
        return [*self.boards, *code_and_data, *by_libraries]

    def foreign(self) -> dict[str, Path]:
        """Returns the folders, by name, of the board's plugin and of kernel families that come from other
        distributions.
        """
        package = sys.modules[type(self.plugin).__module__.partition(".")[0]]
        folders = {family.name: family.folder for family in self.target.families}
        if hasattr(package, "__path__"):  # else it is a single file
            folders["plugin"] = Path(next(iter(package.__path__)))
        own = list(ours().values())
        return {name: folder for name, folder in folders.items() if not _is_below(folder, own)}

    def folders(self, library: str = "") -> dict[str, Path]:
        """Returns all folders of code by name. The user's `library` is one of them ("": no library)."""
        users = {"library": Path(library)} if library else {}
        return {**ours(), **self.foreign(), **users}


def ours() -> dict[str, Path]:
    """Returns the folders of code, by name, that belong to buildtool. Its digest covers them."""
    from buildtool.target.kernels import kernels_root

    return {"kernels": kernels_root(), "targets": Path(sys.modules[OURS].__file__ or "").parent}


def _is_below(path: Path, folders: Sequence[Path]) -> bool:
    real = path.resolve()
    return any(real.is_relative_to(folder.resolve()) for folder in folders)


# ---- builds for debuggers ---------------------------------------------------------------------------


# NN_DEBUG: symbols only for debuggers, such as the arena with the network's name.
FLAGS = ("-Og", "-g", "-DNN_DEBUG")
RENAMES = "-ffile-prefix-map="  # FOLDER=NAME renames in debug information and in __FILE__
_OPTIMISES = re.compile(r"-O([0-3sgz]|fast)?")


def debug_name(name: str) -> str:
    """Returns the name of a code folder in debug information; `name` is the folder's name in `describe`."""
    return f"/buildtool/{name}"


def debuggable(tools: Toolchain, folders: Mapping[str, Path]) -> Toolchain:
    """Returns `tools` with flags for debugging instead of optimising. `folders` maps names to folders of
    code, which get these names in debug information.

    Of two nested folders, the inner one comes last in the flags, as compilers require.
    """
    others = [flag for flag in tools.cflags if not _OPTIMISES.fullmatch(flag)]
    places = sorted(((str(folder.resolve()), name) for name, folder in folders.items()))
    return replace(
        tools,
        cflags=(*others, *FLAGS),
        renames=tuple(f"{RENAMES}{place}={debug_name(name)}" for place, name in places),
    )
