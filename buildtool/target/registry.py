"""Finds boards, plugins and kernels, and makes Boards and Targets from names and files.

Families that come with buildtool are found by their folders. Others are found by entry points of the group
`buildtool.targets`; those are read only for a name that buildtool's families do not have, because reading the
installed distributions takes 0.1 s. Nothing here needs a toolchain.
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

from buildtool.base.code_digest import ENTRY_POINTS
from buildtool.base.errors import (
    BuildtoolError,
    TargetError,
    UsageError,
    closest,
    described,
    did_you_mean,
    suggest,
)
from buildtool.base.modes import CostUnit, Requantise
from buildtool.target.board_file import chain, parse_board, resolve
from buildtool.target.kept_facts import kept_facts
from buildtool.target.kernels import HOME
from buildtool.target.plugin import INTERFACE, KernelFolder, TargetPlugin
from buildtool.target.readers import FILLED
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
CORES = "cores/"  # before the name of a core that a board file extends
NEAR = 3  # known boards that the error about an unknown one names


def board_names() -> list[str]:
    """Returns the names of all boards, sorted. Raises TargetError if two plugins have a board of the same
    name.
    """
    places: dict[str, Path] = {}
    for plugin in (*_own_plugins().values(), *_other_plugins().values()):
        for path in plugin.board_files():
            other = places.setdefault(path.stem, path)
            if other != path:
                raise TargetError(f"two plugins have a board '{path.stem}': {other} and {path}")
    return sorted(places)


def load_board(name_or_path: str, data: bytes | None = None) -> Board:
    """Returns the board with a known name, or that of the user's .toml file, whose stem is then the board's
    name.

    `data` is the file's content, if it has been read already. Raises UsageError for an unknown name or a
    missing file, TargetError for a file with mistakes.
    """
    if name_or_path.endswith(".toml"):
        path = Path(name_or_path)
        if data is None and not path.is_file():
            raise UsageError("there is no such board file", path=name_or_path)
    else:
        try:
            path = _find_board_file(name_or_path)
        except TargetError as error:
            raise UsageError(error.text, hint=error.hints) from None
    files = [*chain(path, find_extended_file, data)]
    board = parse_board(resolve(files), path.stem, str(path), data)
    if kept := kept_facts(files):
        board = dataclasses.replace(board, note="; ".join(filter(None, (board.note, kept))))
    if _find_plugin(board.family) is None:
        families = (*_own_plugins(), *_other_plugins())
        hint = did_you_mean(board.family, families)
        raise TargetError(f"family: no plugin is called '{board.family}'", path=str(path), hint=hint)
    return board


def board_chain(name_or_path: str) -> tuple[Path, ...]:
    """Returns a board's file and the files that it extends, directly or not, as far as they can be read."""
    path = Path(name_or_path) if name_or_path.endswith(".toml") else _find_board_file(name_or_path)
    paths: list[Path] = []
    with contextlib.suppress(TargetError):  # `load_board` raises the error
        for file, _ in chain(path, find_extended_file):
            paths.append(file)
    return tuple(paths)


def plugin(board: Board) -> TargetPlugin:
    """Returns the plugin of the board's family. Raises TargetError if it is not installed."""
    if family_plugin := _find_plugin(board.family):
        return family_plugin
    raise TargetError(f"no plugin is called '{board.family}'", hint="install the package that has it")


def _find_plugin(family: str) -> TargetPlugin | None:
    return _own_plugins().get(family) or _other_plugins().get(family)


def plugin_named(name: str) -> TargetPlugin:
    """Returns the plugin called `name`; raises UsageError if there is none."""
    if named_plugin := _find_plugin(name):
        return named_plugin
    hint = did_you_mean(name, sorted((*_own_plugins(), *_other_plugins())))
    if name in board_names():
        hint = f"'{name}' is a board of the plugin '{load_board(name).family}'"
    raise UsageError(f"no target plugin is called '{name}'", hint=hint)


def load_target(name_or_path: str, libraries: Mapping[str, str] | None = None) -> Target:
    """Returns the board with the kernels that its core can run, best first; see `load_board` and
    `make_target`.
    """
    return make_target(load_board(name_or_path), libraries)


def make_target(
    board: Board, libraries: Mapping[str, str] | None = None, requantise: Requantise = Requantise.EXACT
) -> Target:
    """Returns `board` with the kernels of its core's families in order; those of portable families come last.

    `libraries` maps the names of libraries to their paths; their kernels precede all others. Next come the
    kernels for `requantise`. Libraries and `requantise` change the target's planning digest.
    """
    # Imported here because it imports numpy, which code that only lists boards does not need.
    from buildtool.target.catalogue import for_core
    from buildtool.target.cycle_costs import converter, loading, waiting
    from buildtool.target.family import resolve_packings

    used_libraries = tuple(_load_library(board, name, path) for name, path in (libraries or {}).items())
    folders = _find_kernel_folders(board)
    portable = [name for name, folder in folders.items() if folder.portable]
    preferred = [*(name for library in used_libraries for name in library.families)]
    preferred += [*_find_requantising_families(board, requantise), *board.core.families]
    names = [*(name for name in dict.fromkeys(preferred) if name not in portable), *portable]
    by_name = _load_catalogues(names, folders, board)
    catalogues = [by_name[name] for name in names]
    cycles = converter(board.pipeline, catalogues)
    own_costs = _read_portable_costs(catalogues, portable)
    by_ratio: set[str] = set()
    kernels: list[KernelVariant] = []
    for name, catalogue in zip(names, catalogues, strict=True):
        variants = resolve_packings(catalogue, [by_name[other] for other in (*catalogue.uses, *portable)])
        if name in portable:
            variants = tuple(dataclasses.replace(v, cost=own_costs.get(v.name, v.cost)) for v in variants)
        if cycles:
            by_ratio |= cycles.by_ratio(name, variants)
            variants = waiting(cycles.kernels(name, variants), board)
        kernels += [
            _with_scratch_function(kernel, name, used_libraries) for kernel in for_core(variants, board.core)
        ]
    routines = [routine for catalogue in catalogues for routine in catalogue.routines]
    _refuse_strange_sources((*kernels, *routines), by_name)
    _refuse_missing_routines(kernels, routines)
    _refuse_shared_names(catalogues)
    costs = Costs(**ChainMap(*(dict(catalogue.costs) for catalogue in catalogues)))
    return Target(
        board,
        tuple(kernels),
        loading(cycles.costs(costs) if cycles else costs, board),
        tuple(routines),
        tuple(catalogue.family for catalogue in by_name.values()),
        used_libraries,
        requantise,
        CostUnit.CYCLES if cycles else CostUnit.ISSUES if board.vector_unit else CostUnit.INSTRUCTIONS,
        frozenset(by_ratio),
    )


def _read_portable_costs(catalogues: Sequence[Catalogue], portable: Sequence[str]) -> Mapping[str, str]:
    """Returns the core's own cost formulas for kernels of portable families, by the kernel's name. If several
    families have one, that of the first family counts. Raises TargetError for an unknown kernel.
    """
    from buildtool.target.family import CATALOGUE

    names = {kernel.name for each in catalogues if each.family.name in portable for kernel in each.kernels}
    for each in catalogues:
        for kernel in each.portable:
            if kernel not in names:
                hint, path = did_you_mean(kernel, names), str(each.family.folder / CATALOGUE)
                text = f"no portable family has a kernel '{kernel}'"
                raise TargetError(text, path=path, operator=f"portable.{kernel}", hint=hint)
    return ChainMap(*(dict(each.portable) for each in catalogues))


def _find_requantising_families(board: Board, requantise: Requantise) -> tuple[str, ...]:
    """Returns the kernel families that requantise in this way; none for EXACT. Raises UsageError if the board
    has none.
    """
    if requantise is Requantise.EXACT:
        return ()
    family = plugin(board)
    families: Mapping[str, tuple[str, ...]] = (
        family.requantisations(board) if hasattr(family, "requantisations") else {}
    )
    if requantise not in families:
        text = f"board '{board.name}' cannot requantise by '{requantise}': its core has no kernels for it"
        raise UsageError(text, option="requantise", hint=suggest(requantise=None))
    return families[requantise]


def _refuse_strange_sources(users: Iterable[KernelVariant | Routine], families: Collection[str]) -> None:
    for user in users:
        for source in user.sources:
            family = source.partition("/")[0]
            if family not in families:
                raise TargetError(
                    f"source '{source}' of {user.symbol} is in a family that its own family does not use",
                    hint=f'uses = ["{family}"] in its catalogue.toml',
                )


def _refuse_shared_names(catalogues: Iterable[Catalogue]) -> None:
    """Raises TargetError if two families have a kernel of the same name, because plans refer to kernels by
    name.
    """
    owners: dict[str, str] = {}
    for catalogue in catalogues:
        for kernel in catalogue.kernels:
            family = catalogue.family.name
            if (owner := owners.setdefault(kernel.name, family)) != family:
                raise TargetError(f"families '{owner}' and '{family}' both have a kernel '{kernel.name}'")


def _find_kernel_folders(board: Board) -> dict[str, KernelFolder]:
    """Returns every kernel family that the board may use, by the name of its folder.

    Plugins of other distributions are searched if the board's own plugin is one of them, or if the board
    names a family that buildtool does not have.
    """
    own = _own_plugins()
    folders = _collect_folders(own.values())
    if board.family not in own or not set(board.core.families) <= set(folders):
        folders = _collect_folders([*own.values(), *_other_plugins().values()])
    return folders


def _load_library(board: Board, name: str, path: str) -> Library:
    """Returns the user's library called `name` at `path`. Raises UsageError if the board's plugin does not
    know the name.
    """
    family = plugin(board)
    names = getattr(family, "libraries", ())
    if name not in names:
        hint = did_you_mean(name, names) if names else suggest(**{name: None})
        raise UsageError(f"board '{board.name}' cannot use a library '{name}'", option=name, hint=hint)
    library: Library = family.library(board, name, path)  # type: ignore[attr-defined]
    return library


def _with_scratch_function(kernel: KernelVariant, family: str, libraries: Sequence[Library]) -> KernelVariant:
    """Returns the kernel; if a library computes its scratch, with the library's function. Raises TargetError
    if no library has that function.
    """
    if not kernel.asks:
        return kernel
    for library in libraries:
        if library.ask is not None and family in library.families:
            return dataclasses.replace(kernel, ask=functools.partial(library.ask, kernel.asks))
    text = f"kernel '{kernel.name}' needs a library that computes the scratch of '{kernel.asks}'"
    hint = "for a kernel without a library, write a formula 'scratch' in the catalogue"
    raise TargetError(text, hint=hint)


def toolchain(target: Target, name: str) -> Toolchain:
    """Returns the board's toolchain `name` ("": its first one), with the flags and sources of the target's
    libraries.
    """
    board = target.board
    tools: Toolchain = ask_plugin(
        board.family, "toolchain", lambda: plugin(board).toolchain(board, name), Toolchain
    )
    cflags = (flag for library in target.libraries for flag in library.cflags)
    sources = (source for library in target.libraries for source in library.sources)
    return dataclasses.replace(tools, cflags=(*tools.cflags, *cflags), objects=(*tools.objects, *sources))


def _load_catalogues(
    names: list[str], folders: Mapping[str, KernelFolder], board: Board
) -> dict[str, Catalogue]:
    """Returns the catalogues of the families `names`, then those of the families that these use. Raises
    TargetError for an unknown family.
    """
    from buildtool.target.family import load_family

    catalogues: dict[str, Catalogue] = {}
    pending = [(name, "core.families: there are no") for name in names]
    while pending:
        name, what = pending.pop(0)
        if name in catalogues:
            continue
        if name not in folders:
            hint = did_you_mean(name, folders)
            raise TargetError(f"{what} kernels '{name}' (board '{board.name}')", hint=hint)
        catalogues[name] = load_family(folders[name].path)
        pending += [(used, f"family '{name}' uses unknown") for used in catalogues[name].uses]
    return catalogues


def _refuse_missing_routines(kernels: Iterable[KernelVariant], routines: Sequence[Routine]) -> None:
    """Raises TargetError if a kernel lacks a routine that reads its constants, although other kernels of the
    same operator kind and types have one.
    """
    roles = {(r.role, r.op, r.types) for r in routines if Argument.CONSTANTS in r.call}
    for kernel in kernels:
        for role, op, types in sorted(roles) if kernel.form != FILLED else ():  # such averages are not global
            is_read = any(r.role is role and r.serves(kernel) for r in routines)
            if (op, types) == (kernel.op, kernel.types) and not is_read:
                packing = kernel.packing
                text = f"no routine '{role}' for {op} reads packing '{packing}' of kernel '{kernel.name}'"
                hint = f'add a [[routine]] with role = "{role}" and packing = "{packing}"'
                raise TargetError(text, hint=hint)


def _collect_folders(plugins: Iterable[TargetPlugin]) -> dict[str, KernelFolder]:
    folders: dict[str, KernelFolder] = {}
    for plugin_ in plugins:
        if not hasattr(plugin_, "kernel_families"):
            continue
        name = getattr(plugin_, "name", "")
        for folder in ask_plugin(name, "kernel_families", plugin_.kernel_families, list | tuple):
            if not isinstance(folder, KernelFolder):
                text = f"the target plugin '{name}': kernel_families returns {folder!r}, not a KernelFolder"
                raise TargetError(text)
            other = folders.setdefault(folder.path.name, folder)
            if other.path != folder.path:
                text = f"two plugins have kernels '{folder.path.name}': {other.path} and {folder.path}"
                raise TargetError(text, hint="rename the folder of one of them")
    return folders


def ask_plugin(name: str, method: str, call: Callable[[], Any], kind: Any) -> Any:
    """Returns the result of `call`, a call of a plugin's method. Raises TargetError if a plugin of another
    distribution fails, or the result is not of the type `kind`. `name` and `method` are for the error.
    """
    try:
        result = call()
    except Exception as error:  # other people's code may raise anything
        if isinstance(error, BuildtoolError) or name in _own_plugins():
            raise
        raise TargetError(f"the target plugin '{name}' failed in {method}: {described(error)}") from error
    if not isinstance(result, kind):
        raise TargetError(f"the target plugin '{name}': {method} returns {result!r}")
    return result


def _find_board_file(name: str) -> Path:
    """Returns the file of the board called `name`. Raises TargetError for an unknown name; its hint has the
    closest names.
    """
    for plugins in (_own_plugins, _other_plugins):
        for plugin in plugins().values():
            for path in plugin.board_files():
                if path.stem == name:
                    return path
    word, names = name.lower(), board_names()
    near = [board for board in names if word and word in board][:NEAR] or closest(word, names, NEAR)
    hint = f"did you mean {' or '.join(map(repr, near))}? " if near else ""
    hint += "'buildtool boards' lists all boards; a path to a board's file ends in .toml"
    raise TargetError(f"unknown board '{name}'", hint=hint)


def find_extended_file(name: str) -> Path:
    """Returns the file of a board, or of a core "cores/NAME", that a board file may extend. Raises
    TargetError for an unknown name.
    """
    if not name.startswith(CORES):
        return _find_board_file(name)
    core = name.removeprefix(CORES)
    names: list[str] = []
    path: Path
    for plugins in (_own_plugins, _other_plugins):
        for plugin in plugins().values():
            for path in getattr(plugin, "core_files", tuple)():
                if path.stem == core:
                    return path
                names.append(path.stem)
    raise TargetError(f"unknown core '{core}'", hint=did_you_mean(core, names))


def core_names() -> list[str]:
    """Returns the names of the cores for which buildtool's own plugins have files, sorted."""
    plugins = _own_plugins().values()
    return sorted(path.stem for each in plugins for path in getattr(each, "core_files", tuple)())


@cache
def _own_plugins() -> dict[str, TargetPlugin]:
    """Returns the plugins of buildtool_plugins by name, sorted: one for each folder that has boards."""
    spec = importlib.util.find_spec("buildtool_plugins")
    if spec is None and (HOME / "plugins" / "buildtool_plugins").is_dir():
        # Running from the checkout, where the package exists but is not installed.
        sys.path.append(str(HOME / "plugins"))
        spec = importlib.util.find_spec("buildtool_plugins")
    folders = (spec.submodule_search_locations if spec else None) or ()
    families = {boards.parent.name for folder in folders for boards in Path(folder).glob("*/boards")}
    plugins = {}
    for family in sorted(families):
        module = importlib.import_module(f"buildtool_plugins.{family}")
        plugins[family] = _check_plugin(module.plugin, f"buildtool_plugins.{family}")
    return plugins


@cache
def _other_plugins() -> dict[str, TargetPlugin]:
    """Returns the plugins of other distributions by name. Raises TargetError if one cannot be loaded."""
    from importlib.metadata import entry_points

    plugins: dict[str, TargetPlugin] = {}
    for entry in sorted(entry_points(group=GROUP), key=lambda entry: (entry.name, entry.value)):
        if entry.value.startswith("buildtool_plugins."):
            continue
        try:
            loaded = entry.load()
        except Exception as error:  # other people's modules may raise anything
            text = f"the target plugin '{entry.name}' ({entry.value}) cannot be loaded: {error}"
            hint = "update or uninstall the package that has it"
            raise TargetError(text, hint=hint) from error
        plugin = _check_plugin(loaded, entry.value)
        if plugin.name in plugins or plugin.name in _own_plugins():
            raise TargetError(f"two target plugins are called '{plugin.name}'; one is {entry.value}")
        plugins[plugin.name] = plugin
    return plugins


def has_asked_others() -> bool:
    """Whether this process has loaded the plugins of other distributions."""
    return _other_plugins.cache_info().currsize > 0


def uses_others() -> bool:
    """Whether this process has loaded a plugin of another distribution that is a single module. The digest of
    the code does not cover such a plugin.
    """
    if not has_asked_others():
        return False
    tops = {type(plugin_).__module__.partition(".")[0] for plugin_ in _other_plugins().values()}
    return not all(hasattr(sys.modules.get(top), "__path__") for top in tops)


def forget_others() -> None:
    """Forgets the plugins of other distributions, so that the next use finds newly installed ones."""
    _other_plugins.cache_clear()


def _check_plugin(candidate: object, where: str) -> TargetPlugin:
    for attribute in ("name", "board_files", "toolchain", "harness", "run"):
        if not hasattr(candidate, attribute):
            raise TargetError(f"the target plugin {where} has no '{attribute}'")
    plugin: TargetPlugin = candidate  # type: ignore[assignment]
    version = getattr(plugin, "interface", None)
    if version != INTERFACE:
        state = "has no 'interface'" if version is None else f"is written for interface {version!r}"
        text = f"the target plugin {where} {state}; buildtool has interface {INTERFACE}"
        hint = f"update buildtool or the plugin; docs/guides/new-boards.md describes interface {INTERFACE}"
        raise TargetError(text, hint=hint)
    return plugin
