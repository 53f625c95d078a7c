"""The boards, plugins and kernels there are: names and files into Board and Target.

The families that come with buildtool are found by their folders; others through entry points of
the group `buildtool.targets`, which are asked only when a name is not among the former: reading the
installed distributions costs 0.1 s. No toolchain is needed for anything here.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import importlib
import importlib.util
import sys
from collections import ChainMap
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from buildtool.base.errors import (
    BuildtoolError,
    TargetError,
    UsageError,
    closest,
    described,
    did_you_mean,
    suggest,
)
from buildtool.base.identity import ENTRY_POINTS
from buildtool.base.modes import CostUnit, Requantise
from buildtool.target.board_file import chain, parse_board, resolve
from buildtool.target.kernels import HOME
from buildtool.target.plugin import INTERFACE, KernelFolder, TargetPlugin
from buildtool.target.types import (
    Argument,
    Board,
    Costs,
    KernelVariant,
    Library,
    Routine,
    Target,
    Toolchain,
)

if TYPE_CHECKING:
    from buildtool.target.family import Catalogue

GROUP = ENTRY_POINTS
NEAR = 3  # known boards that the error about an unknown one names


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
    board = parse_board(resolve(path, _board_file, data=data), path.stem, str(path), data)
    if _find_plugin(board.family) is None:
        families = (*_own_plugins(), *_other_plugins())
        hint = did_you_mean(board.family, families)
        raise TargetError(f"family: no plugin is called '{board.family}'", path=str(path), hint=hint)
    return board


def board_chain(name_or_path: str) -> tuple[Path, ...]:
    """A board's file, then those that it extends, as far as they can be read."""
    path = Path(name_or_path) if name_or_path.endswith(".toml") else _board_file(name_or_path)
    paths: list[Path] = []
    with contextlib.suppress(TargetError):  # `load_board` says what is wrong
        for file, _ in chain(path, _board_file):
            paths.append(file)
    return tuple(paths)


def plugin(board: Board) -> TargetPlugin:
    """The plugin that serves the board's family; raises TargetError."""
    if served := _find_plugin(board.family):
        return served
    raise TargetError(f"no plugin is called '{board.family}'", hint="install the package that has it")


def _find_plugin(family: str) -> TargetPlugin | None:
    return _own_plugins().get(family) or _other_plugins().get(family)


def plugin_named(name: str) -> TargetPlugin:
    """The plugin of that name; UsageError if there is none."""
    if known := _find_plugin(name):
        return known
    hint = did_you_mean(name, sorted((*_own_plugins(), *_other_plugins())))
    if name in board_names():
        hint = f"'{name}' is a board of the plugin '{load_board(name).family}'"
    raise UsageError(f"no target plugin is called '{name}'", hint=hint)


def load_target(name_or_path: str, libraries: Mapping[str, str] | None = None) -> Target:
    """A board with the kernels its core can run, best first; as load_board and make_target."""
    return make_target(load_board(name_or_path), libraries)


def make_target(
    board: Board, libraries: Mapping[str, str] | None = None, requantise: Requantise = Requantise.EXACT
) -> Target:
    """`board` with the kernels of its core's families in their order, those of portable families last.

    `libraries`: name and path of those whose kernels come before all others; behind them come those that
    `requantise` asks for. They are a variant of the target, which a plan's digest tells apart.
    """
    # Imports numpy, which naming the boards need not wait for.
    from buildtool.target.catalogue import for_core
    from buildtool.target.cycle_costs import converter, loading, waiting
    from buildtool.target.family import resolve_packings

    used = tuple(_library(board, name, path) for name, path in (libraries or {}).items())
    offered = _offered_kernels(board)
    portable = [name for name, folder in offered.items() if folder.portable]
    named = [*(name for library in used for name in library.families)]
    named += [*_requantising(board, requantise), *board.core.families]
    wanted = [*(name for name in dict.fromkeys(named) if name not in portable), *portable]
    known = _catalogues(wanted, offered, board)
    catalogues = [known[name] for name in wanted]
    cycles = converter(board.pipeline, catalogues)
    stated = _portable_costs(catalogues, portable)
    by_ratio: set[str] = set()
    kernels: list[KernelVariant] = []
    for name, catalogue in zip(wanted, catalogues, strict=True):
        own = resolve_packings(catalogue, [known[other] for other in (*catalogue.uses, *portable)])
        if name in portable:
            own = tuple(dataclasses.replace(v, cost=stated.get(v.name, v.cost)) for v in own)
        if cycles:
            by_ratio |= cycles.by_ratio(name, own)
            own = waiting(cycles.kernels(name, own), board)
        kernels += [_answer_contract(kernel, name, used) for kernel in for_core(own, board.core)]
    routines = [routine for catalogue in catalogues for routine in catalogue.routines]
    _refuse_strange_sources((*kernels, *routines), known)
    _refuse_missing_routines(kernels, routines)
    _refuse_shared_names(catalogues)
    costs = Costs(**ChainMap(*(dict(catalogue.costs) for catalogue in catalogues)))
    return Target(
        board,
        tuple(kernels),
        loading(cycles.costs(costs) if cycles else costs, board),
        tuple(routines),
        tuple(catalogue.family for catalogue in known.values()),
        used,
        requantise,
        CostUnit.CYCLES if cycles else CostUnit.ISSUES if board.vector_unit else CostUnit.INSTRUCTIONS,
        frozenset(by_ratio),
    )


def _portable_costs(catalogues: Sequence[Catalogue], portable: Sequence[str]) -> Mapping[str, str]:
    """What kernels of portable families cost by the core's own ones, the best family's formula first."""
    from buildtool.target.family import CATALOGUE

    known = {kernel.name for one in catalogues if one.family.name in portable for kernel in one.kernels}
    for one in catalogues:
        for kernel in one.portable:
            if kernel not in known:
                hint, path = did_you_mean(kernel, known), str(one.family.folder / CATALOGUE)
                text = f"no portable family has a kernel '{kernel}'"
                raise TargetError(text, path=path, operator=f"portable.{kernel}", hint=hint)
    return ChainMap(*(dict(one.portable) for one in catalogues))


def _requantising(board: Board, requantise: Requantise) -> tuple[str, ...]:
    """The kernel families that requantise so; UsageError where the board has none."""
    if requantise is Requantise.EXACT:
        return ()
    family = plugin(board)
    families: Mapping[str, tuple[str, ...]] = (
        family.requantisations(board) if hasattr(family, "requantisations") else {}
    )
    if requantise not in families:
        text = f"board '{board.name}' cannot requantise by '{requantise}': its core has no kernels for that"
        raise UsageError(text, option="requantise", hint=suggest(requantise=None))
    return families[requantise]


def _refuse_strange_sources(users: Iterable[KernelVariant | Routine], families: Collection[str]) -> None:
    for user in users:
        for source in user.sources:
            family = source.partition("/")[0]
            if family not in families:
                raise TargetError(
                    f"source '{source}' of {user.symbol} is of a family that its own one does not use",
                    hint=f'uses = ["{family}"] in its catalogue.toml',
                )


def _refuse_shared_names(catalogues: Iterable[Catalogue]) -> None:
    """A plan names kernels: a name belongs to one family."""
    owners: dict[str, str] = {}
    for catalogue in catalogues:
        for kernel in catalogue.kernels:
            family = catalogue.family.name
            if (owner := owners.setdefault(kernel.name, family)) != family:
                raise TargetError(f"families '{owner}' and '{family}' both have a kernel '{kernel.name}'")


def _offered_kernels(board: Board) -> dict[str, KernelFolder]:
    """Every kernel family that the board can name, by its folder's name.

    Plugins of other distributions are asked where the board's own is one of them, or where it names a
    family that buildtool has not.
    """
    own = _own_plugins()
    folders = _folders(own.values())
    if board.family not in own or not set(board.core.families) <= set(folders):
        folders = _folders([*own.values(), *_other_plugins().values()])
    return folders


def _library(board: Board, name: str, path: str) -> Library:
    """What the board's plugin makes of a library; UsageError if it knows none of that name."""
    family = plugin(board)
    known = getattr(family, "libraries", ())
    if name not in known:
        hint = did_you_mean(name, known) if known else suggest(**{name: None})
        raise UsageError(f"board '{board.name}' can use no library '{name}'", option=name, hint=hint)
    made: Library = family.library(board, name, path)  # type: ignore[attr-defined]
    return made


def _answer_contract(kernel: KernelVariant, family: str, libraries: Sequence[Library]) -> KernelVariant:
    """A kernel of `family` with who answers what it asks; TargetError if no library of the target does."""
    if not kernel.asks:
        return kernel
    for library in libraries:
        if library.ask is not None and family in library.families:
            return dataclasses.replace(kernel, ask=functools.partial(library.ask, kernel.asks))
    text = f"kernel '{kernel.name}' asks for '{kernel.asks}', and the board uses no library that answers"
    hint = "'scratch' in the catalogue is a formula, for kernels that belong to no library"
    raise TargetError(text, hint=hint)


def toolchain(target: Target, name: str) -> Toolchain:
    """The compiler `name` ("": the board's first), as its plugin sets it up.

    It finds the headers of the target's libraries, and compiles their sources with the start-up code.
    """
    board = target.board
    tools: Toolchain = ask_plugin(
        board.family, "toolchain", lambda: plugin(board).toolchain(board, name), Toolchain
    )
    cflags = (flag for library in target.libraries for flag in library.cflags)
    sources = (source for library in target.libraries for source in library.sources)
    return dataclasses.replace(tools, cflags=(*tools.cflags, *cflags), objects=(*tools.objects, *sources))


def _catalogues(wanted: list[str], offered: Mapping[str, KernelFolder], board: Board) -> dict[str, Catalogue]:
    """The catalogues of some families and of all that they use, in this order."""
    from buildtool.target.family import load_family

    found: dict[str, Catalogue] = {}
    left = [(name, "core.families: there are no") for name in wanted]
    while left:
        name, what = left.pop(0)
        if name in found:
            continue
        if name not in offered:
            hint = did_you_mean(name, offered)
            raise TargetError(f"{what} kernels '{name}' (board '{board.name}')", hint=hint)
        found[name] = load_family(offered[name].path)
        left += [(used, f"family '{name}' uses unknown") for used in found[name].uses]
    return found


def _refuse_missing_routines(kernels: Iterable[KernelVariant], routines: Sequence[Routine]) -> None:
    """What every other kernel of a kind has done beside it, by a routine that reads its constants."""
    roles = {(r.role, r.op, r.types) for r in routines if Argument.CONSTANTS in r.call}
    for kernel in kernels:
        for role, op, types in sorted(roles):
            is_read = any(r.role is role and r.serves(kernel) for r in routines)
            if (op, types) == (kernel.op, kernel.types) and not is_read:
                packing = kernel.packing
                text = f"kernel '{kernel.name}' has constants of packing '{packing}', which no routine"
                hint = f'add a [[routine]] with role = "{role}" and packing = "{packing}"'
                raise TargetError(f"{text} '{role}' for {op} reads", hint=hint)


def _folders(plugins: Iterable[TargetPlugin]) -> dict[str, KernelFolder]:
    found: dict[str, KernelFolder] = {}
    for plugin_ in plugins:
        if not hasattr(plugin_, "kernel_families"):
            continue
        name = getattr(plugin_, "name", "")
        for folder in ask_plugin(name, "kernel_families", plugin_.kernel_families, list | tuple):
            if not isinstance(folder, KernelFolder):
                text = f"the target plugin '{name}': kernel_families gives {folder!r}, no KernelFolder"
                raise TargetError(text)
            other = found.setdefault(folder.path.name, folder)
            if other.path != folder.path:
                text = f"two plugins have kernels '{folder.path.name}': {other.path} and {folder.path}"
                raise TargetError(text, hint="rename the folder of one of them")
    return found


def ask_plugin(name: str, method: str, call: Callable[[], Any], kind: Any) -> Any:
    """What a plugin's method gives; TargetError where somebody else's fails or gives something else."""
    try:
        found = call()
    except Exception as error:  # somebody else's code may raise anything
        if isinstance(error, BuildtoolError) or name in _own_plugins():
            raise
        raise TargetError(f"the target plugin '{name}' failed in {method}: {described(error)}") from error
    if not isinstance(found, kind):
        raise TargetError(f"the target plugin '{name}': {method} gives {found!r}")
    return found


def _board_file(name: str) -> Path:
    """The file of a board by name; TargetError for an unknown one, with the closest names."""
    for plugins in (_own_plugins, _other_plugins):
        for found in plugins().values():
            for path in found.board_files():
                if path.stem == name:
                    return path
    word, names = name.lower(), board_names()
    near = [board for board in names if word and word in board][:NEAR] or closest(word, names, NEAR)
    hint = f"did you mean {' or '.join(map(repr, near))}? " if near else ""
    hint += "'buildtool boards' lists all boards; a path to a board's file ends in .toml"
    raise TargetError(f"unknown board '{name}'", hint=hint)


@cache
def _own_plugins() -> dict[str, TargetPlugin]:
    """The families of buildtool_plugins: each folder with boards in it. By name, sorted."""
    spec = importlib.util.find_spec("buildtool_plugins")
    if spec is None and (HOME / "plugins" / "buildtool_plugins").is_dir():
        # Running from the checkout: the package is there, but nobody installed it.
        sys.path.append(str(HOME / "plugins"))
        spec = importlib.util.find_spec("buildtool_plugins")
    folders = (spec.submodule_search_locations if spec else None) or ()
    families = {boards.parent.name for folder in folders for boards in Path(folder).glob("*/boards")}
    found = {}
    for family in sorted(families):
        module = importlib.import_module(f"buildtool_plugins.{family}")
        found[family] = _check_plugin(module.plugin, f"buildtool_plugins.{family}")
    return found


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
        except Exception as error:  # somebody else's module may raise anything
            text = f"the target plugin '{entry.name}' ({entry.value}) cannot be loaded: {error}"
            hint = "update or uninstall the package that has it"
            raise TargetError(text, hint=hint) from error
        plugin = _check_plugin(loaded, entry.value)
        if plugin.name in found or plugin.name in _own_plugins():
            raise TargetError(f"two target plugins are called '{plugin.name}'; one is {entry.value}")
        found[plugin.name] = plugin
    return found


def has_asked_others() -> bool:
    """Whether this process has asked for the plugins of other distributions."""
    return _other_plugins.cache_info().currsize > 0


def uses_others() -> bool:
    """Whether it has, and one of them is a single module, which the digest of the code does not cover."""
    if not has_asked_others():
        return False
    tops = {type(plugin_).__module__.partition(".")[0] for plugin_ in _other_plugins().values()}
    return not all(hasattr(sys.modules.get(top), "__path__") for top in tops)


def forget_others() -> None:
    """Forgets the plugins of other distributions, so that newly installed ones are found."""
    _other_plugins.cache_clear()


def _check_plugin(candidate: object, where: str) -> TargetPlugin:
    for attribute in ("name", "board_files", "toolchain", "harness", "run"):
        if not hasattr(candidate, attribute):
            raise TargetError(f"the target plugin {where} has no '{attribute}'")
    plugin: TargetPlugin = candidate  # type: ignore[assignment]
    version = getattr(plugin, "interface", None)
    if version != INTERFACE:
        said = "does not say its interface" if version is None else f"is written for interface {version!r}"
        text = f"the target plugin {where} {said}, and this is buildtool with interface {INTERFACE}"
        hint = f"update buildtool or the plugin; docs/new-boards.md has what interface {INTERFACE} is"
        raise TargetError(text, hint=hint)
    return plugin
