"""The boards, plugins and kernels there are: names and files into Board and Target.

The families that come with buildtool are found by their folders; others through entry points of
the group `buildtool.targets`, which are asked only when a name is not among the former: reading the
installed distributions costs 0.1 s. No toolchain is needed for anything here.
"""

from __future__ import annotations

import dataclasses
import hashlib
import importlib
import importlib.util
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from buildtool.errors import TargetError, UsageError, did_you_mean
from buildtool.target.board_file import chain, parse_board, resolve
from buildtool.target.plugin import TargetPlugin
from buildtool.target.types import Board, KernelVariant, Target

GROUP = "buildtool.targets"
REFERENCE = "reference"  # the kernel family that every core can run
DIGEST_SCHEMA = 1

_HOME = Path(__file__).resolve().parents[2]  # of the checkout, or site-packages


def board_names() -> list[str]:
    """Every board's name, sorted; third parties' included. TargetError if two share one."""
    places: dict[str, Path] = {}
    for plugin in (*_own_plugins().values(), *_other_plugins().values()):
        for path in plugin.board_files():
            other = places.setdefault(path.stem, path)
            if other != path:
                raise TargetError(f"two plugins have a board '{path.stem}': {other} and {path}")
    return sorted(places)


def load_board(name_or_path: str, data: bytes | None = None) -> Board:
    """A board by its name, or from a .toml file of the user's; the file's stem is its name.

    `data`: the file's content, where it was read already.

    Raises UsageError for an unknown name or a file that does not exist, TargetError for a file
    with mistakes.
    """
    if name_or_path.endswith(".toml"):
        path = Path(name_or_path)
        if data is None and not path.is_file():
            raise UsageError("there is no such board file", path=name_or_path)
    else:
        try:
            path = _board_file(name_or_path)
        except TargetError as error:
            raise UsageError(error.text, hint=error.hints) from None
    board = parse_board(resolve(path, _board_file, data=data), path.stem, str(path))
    if board.family not in _own_plugins() and board.family not in _other_plugins():
        families = (*_own_plugins(), *_other_plugins())
        hint = did_you_mean(board.family, families)
        raise TargetError(f"family: no plugin is called '{board.family}'", path=str(path), hint=hint)
    return board


def board_chain(name_or_path: str) -> tuple[Path, ...]:
    """The files of a board that `load_board` takes: its own, then those that it extends."""
    path = Path(name_or_path) if name_or_path.endswith(".toml") else _board_file(name_or_path)
    return chain(path, _board_file)


def plugin(board: Board) -> TargetPlugin:
    """The plugin that serves the board's family; raises TargetError."""
    found = _own_plugins().get(board.family) or _other_plugins().get(board.family)
    if found is None:
        raise TargetError(f"no plugin is called '{board.family}'", hint="install the package that has it")
    return found


def load_target(name_or_path: str) -> Target:
    """A board with the kernels its core can run, best first; as load_board."""
    return make_target(load_board(name_or_path))


def make_target(board: Board) -> Target:
    """`board` with the catalogues of its core's families in order, the reference kernels last."""
    # Imports numpy, which naming the boards need not wait for.
    from buildtool.target.catalogue import for_core, load_catalogue
    from buildtool.target.costs import load_costs, merged

    kernels: list[KernelVariant] = []
    costs: list[dict[str, str]] = []
    for family in (*(f for f in board.core.families if f != REFERENCE), REFERENCE):
        path = kernels_root() / family / "catalogue.toml"
        if not path.is_file():
            known = sorted(p.parent.name for p in kernels_root().glob("*/catalogue.toml"))
            raise TargetError(
                f"core.families: there are no kernels '{family}' (board '{board.name}')",
                hint=did_you_mean(family, known),
            )
        kernels += for_core(load_catalogue(path), board.core)
        costs.append(load_costs(path))
    return Target(board, tuple(kernels), merged(costs))


def target_digest(target: Target) -> str:
    """SHA-256 (hex) of everything a plan may depend on: the board's, the kernels' and the costs' data."""
    import msgpack

    content = {
        "schema": DIGEST_SCHEMA,
        "board": _plain(target.board),
        "kernels": [_plain(variant) for variant in target.kernels],
        "costs": _plain(target.costs),
    }
    packed: bytes = msgpack.packb(content, use_bin_type=True)
    return hashlib.sha256(packed).hexdigest()


def _plain(value: object) -> object:
    """Dataclasses as dictionaries with sorted keys, so that equal values pack to equal bytes."""
    if dataclasses.is_dataclass(value):
        names = sorted(field.name for field in dataclasses.fields(value))
        return {name: _plain(getattr(value, name)) for name in names}
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    # Enumerations of strings: msgpack wants the plain type.
    return str(value) if isinstance(value, str) else value


@cache
def kernels_root() -> Path:
    """The folder of the kernels: include/ and one folder a family."""
    for name in ("kernels", "buildtool_kernels"):
        if (_HOME / name / "include" / "nn.h").is_file():
            return _HOME / name
    spec = importlib.util.find_spec("buildtool_kernels")
    if spec is None or not spec.submodule_search_locations:
        raise TargetError(
            "the kernels (package buildtool_kernels) are not installed", hint="reinstall buildtool"
        )
    return Path(next(iter(spec.submodule_search_locations)))


def _board_file(name: str) -> Path:
    """The file of a board by name; TargetError for an unknown one, with the closest name."""
    for plugins in (_own_plugins, _other_plugins):
        for found in plugins().values():
            for path in found.board_files():
                if path.stem == name:
                    return path
    hint = did_you_mean(name, board_names()) + " A path to a board's file ends in .toml."
    raise TargetError(f"unknown board '{name}'", hint=hint)


@cache
def _own_plugins() -> dict[str, TargetPlugin]:
    """The families of buildtool_plugins: each folder with boards in it. By name, sorted."""
    found = {}
    for family in _own_families():
        module = importlib.import_module(f"buildtool_plugins.{family}")
        found[family] = _checked(module.plugin, f"buildtool_plugins.{family}")
    return found


def _own_families() -> Iterator[str]:
    spec = importlib.util.find_spec("buildtool_plugins")
    if spec is None and (_HOME / "plugins" / "buildtool_plugins").is_dir():
        # Running from the checkout: the package is there, but nobody installed it.
        sys.path.append(str(_HOME / "plugins"))
        spec = importlib.util.find_spec("buildtool_plugins")
    folders = (spec.submodule_search_locations if spec else None) or ()
    yield from sorted({boards.parent.name for folder in folders for boards in Path(folder).glob("*/boards")})


@cache
def _other_plugins() -> dict[str, TargetPlugin]:
    """The plugins of other distributions, by family; TargetError names one that fails to load."""
    from importlib.metadata import entry_points

    found: dict[str, TargetPlugin] = {}
    for entry in sorted(entry_points(group=GROUP), key=lambda entry: (entry.name, entry.value)):
        if entry.value.startswith("buildtool_plugins."):
            continue
        try:
            loaded = entry.load()
        except Exception as error:  # whatever a stranger's module raises
            raise TargetError(
                f"the target plugin '{entry.name}' ({entry.value}) cannot be loaded: {error}",
                hint="update or uninstall the package that has it",
            ) from error
        plugin = _checked(loaded, entry.value)
        if plugin.name in found or plugin.name in _own_plugins():
            raise TargetError(f"two target plugins are called '{plugin.name}'; one is {entry.value}")
        found[plugin.name] = plugin
    return found


def _checked(candidate: object, where: str) -> TargetPlugin:
    for attribute in ("name", "board_files", "toolchain", "harness", "run"):
        if not hasattr(candidate, attribute):
            raise TargetError(f"the target plugin {where} has no '{attribute}'")
    plugin: TargetPlugin = candidate  # type: ignore[assignment]
    return plugin
