"""The description of a network for build systems: files, sources, flags, commands, dependencies.

All callers get the same answer. It needs no plan and reads no model: the names of the files follow from the
network's name. The group `kernels` has every kernel that the board can run, and an emitted file lists those
that the network calls.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from buildtool.api.requests.parts import AS_BIN, Flashing
from buildtool.base.modes import Requantise
from buildtool.firmware.linkmap import MAP_FLAG
from buildtool.firmware.tools import RENAMES, Origins

if TYPE_CHECKING:
    from buildtool.api.requests.kinds import Describe
    from buildtool.base.session import Session
    from buildtool.options.values import TargetChoice
    from buildtool.schema.builds import (
        DescribeAnswer,
        NetworkFiles,
        Place,
        SerialPort,
        Slot,
        Source,
        SourceGroup,
        Tools,
    )
    from buildtool.target.plugin import Harness
    from buildtool.target.types import Board, Target, Toolchain, Wiring

EMITTED = "emitted"  # the root of the files that `emit` makes for a network: a folder that the build chooses
# For any compiler: fused multiply-adds would round differently from the reference.
EXACT = ("-ffp-contract=off",)


def answer(request: Describe, session: Session) -> DescribeAnswer:
    """Returns the answer to a `describe` request, which describes a board and possibly a network for it.

    Of the network, only the name is used.
    """
    from buildtool.base.code_digest import code_digest
    from buildtool.emit.ctext import identifier
    from buildtool.firmware.flashfiles import check_formats
    from buildtool.firmware.tools import harness as harness_of
    from buildtool.firmware.tools import toolchain
    from buildtool.plan.models import net_name
    from buildtool.target.choice import load_target

    choice, flashing = request.target, request.flashing
    net = request.name or (identifier(net_name(request.model)) if request.model else "")
    target = load_target(choice, session)
    board, origins, tools = target.board, Origins.of(choice, target), toolchain(choice, target)
    check_formats(board, flashing.formats, signed=flashing.sign is not None)
    harness, roots = harness_of(board, tools), _Roots(origins.folders(choice.cmsis_nn))
    script = tools.script
    return {
        "board": board.name,
        "roots": roots.kernels_by_name,
        "tools": _describe_tools(tools, target),
        "script": {"name": script.name, "data": script.data, "flag": script.flag} if script else None,
        "groups": list(_list_groups(net, target, tools, harness, roots)),
        "serial": _describe_serial(target, tools, roots),
        "library": ["network", "kernels"],
        "image": ["harness", "startup"],
        "network": _name_files(net, board, flashing) if net else None,
        "commands": _list_commands(choice, flashing),
        "depends": [place for path in origins.files() for place in roots.places(path)],
        "digest": session.remember("code digest", (), code_digest),
    }


def _list_groups(
    net: str, target: Target, tools: Toolchain, harness: Harness, roots: _Roots
) -> Iterator[SourceGroup]:
    """Yields the groups of sources that are compiled with the same flags.

    `net` is the network's name in C. If it is "", only the board is described, and there is no group
    `network`.
    """
    from buildtool.target.kernels import all_kernel_sources, kernel_includes

    def group(name: str, shared: bool, includes: list[Place], sources: list[Source]) -> SourceGroup:
        return {"name": name, "shared": shared, "includes": includes, "sources": sources}

    emitted = _place_emitted("")
    kernels = list(map(roots.place, kernel_includes(target)))
    own = [roots.place(Path(folder)) for folder in tools.includes]
    testing = list(map(roots.place, harness.includes))
    yield group("kernels", True, kernels, _list_sources(roots, all_kernel_sources(target), True))
    yield group("startup", True, [*own, *kernels], _list_sources(roots, map(Path, tools.objects)))
    yield group("harness", False, [emitted, *own, *kernels, *testing], _list_sources(roots, harness.sources))
    if net:
        code: Source = {"file": _place_emitted(f"{net}.c"), "object": f"{net}.o", "reads": []}
        image, assembly = _place_emitted(f"{net}_weights.bin"), _place_emitted(f"{net}_weights.S")
        weights: Source = {"file": assembly, "object": f"{net}_weights.o", "reads": [image]}
        yield group("network", False, [emitted, *kernels], [code, weights])


def _describe_serial(target: Target, tools: Toolchain, roots: _Roots) -> SerialPort | None:
    from buildtool.target import registry

    find = getattr(registry.plugin(target.board), "serial_port", None)
    port: Wiring | None = find(target.board) if find else None
    if port is None:
        return None
    includes = [roots.place(Path(folder)) for folder in (*tools.includes, *port.includes)]
    sources = _list_sources(roots, map(Path, port.sources))
    return {"flags": list(port.cflags), "includes": includes, "sources": sources}


class _Roots:
    """The root folders of the answer, by name. Files are named by a root and a path below it."""

    def __init__(self, folders: Mapping[str, Path]) -> None:
        self._folders = {name: folder.resolve() for name, folder in folders.items()}
        self.kernels_by_name = {name: str(folder) for name, folder in self._folders.items()}

    def place(self, path: Path) -> Place:
        """Returns a file's place below the innermost root that contains it, or its absolute path."""
        real = path.resolve()
        names = [name for name, folder in self._folders.items() if real.is_relative_to(folder)]
        if not names:
            return {"root": "", "path": str(real)}
        name = max(names, key=lambda name: len(self.kernels_by_name[name]))
        return {"root": name, "path": real.relative_to(self._folders[name]).as_posix()}

    def places(self, path: Path) -> list[Place]:
        """Returns the place of a file and, if `path` is a symbolic link, the place of the link.

        Build systems watch both, because the link may point to another file later.
        """
        place = self.place(path)
        link = os.path.normpath(path.absolute())
        is_link = os.path.realpath(link) != link and (not place["root"] or path.is_symlink())
        return [place, {"root": "", "path": link}] if is_link else [place]


def _place_emitted(name: str) -> Place:
    return {"root": EMITTED, "path": name}


def _list_sources(roots: _Roots, files: Iterable[Path], folders: bool = False) -> list[Source]:
    """Returns the source files, each with the name of its object.

    An object is named after its file. The folder is part of the name if `folders` is true or if two of the
    files have the same name.
    """
    from buildtool.target.kernels import object_name

    paths = list(files)
    stems = [path.stem for path in paths]
    apart = [folders or stems.count(stem) > 1 for stem in stems]
    names = [object_name(path) if far else f"{path.stem}.o" for path, far in zip(paths, apart, strict=True)]
    pairs = zip(paths, names, strict=True)
    return [{"file": roots.place(path), "object": name, "reads": []} for path, name in pairs]


def _describe_tools(tools: Toolchain, target: Target) -> Tools:
    libraries = [flag for library in target.libraries for flag in library.cflags]  # to find their headers
    return {
        "name": tools.name,
        "identity": tools.identity,
        "cc": tools.cc,
        "ar": tools.ar,
        "cflags": [*tools.cflags, *tools.renames],
        "exact": [*EXACT, *libraries],
        "core": list(target.board.core.cflags),
        "defines": [*target.board.core.defines, *(tools.wiring.defines if tools.wiring else ())],
        "arflags": ["rcsD"],  # D: without times and owners
        "ldflags": list(tools.ldflags),
        "incbin": "-I",
        "map": MAP_FLAG,
        "renames": RENAMES if tools.renames else "",
    }


def _name_files(net: str, board: Board, flashing: Flashing) -> NetworkFiles:
    """Returns the names of a network's files. They depend on the network's name, but not on its content."""
    from buildtool.firmware.flashfiles import suffixes

    emitted = [".c", ".h", ".plan", "_arena.json", "_kernels.txt", "_quantization.h"]
    emitted += ["_weights.S", "_weights.bin"]
    endings = suffixes(board, flashing.formats, signed=flashing.sign is not None)
    return {
        "net": net,
        "emitted": [*(net + ending for ending in emitted), "harness_net.h"],
        "plan": f"{net}.plan",
        "library": f"lib{net}.a",
        "image": f"{net}.elf",
        "map": f"{net}.map",
        "binaries": [net + ending for ending in endings],
        "report": "sizes.txt",
        "kernels": f"{net}_kernels.txt",
        "weights": f"{net}_weights.bin",
        "symbol": f"{net}_weights",
        "reserve": "-DNN_WEIGHTS_RESERVED",
        "apart": board.weights != board.code and not board.is_native,
    }


def _list_commands(choice: TargetChoice, flashing: Flashing) -> dict[str, list[str | Slot]]:
    """Returns buildtool's command lines for a build system: name -> arguments.

    The build system replaces each slot with a path or name. `sizes` writes files for flash and a report to
    the folder in the slot `out`.
    """

    def slot(flag: str, name: str) -> list[str | Slot]:
        return [flag, {"slot": name}]

    # the files for flash: no options for the default format
    formats = [] if flashing == AS_BIN else [f"--format={name}" for name in flashing.formats]
    if flashing.sign is not None:
        formats += [f"--sign={flashing.sign.path}", f"--image-version={flashing.version}"]
    run: list[str | Slot] = [{"slot": "model"}, *slot("--board", "board")]
    run += slot("--cmsis-nn", "cmsis_nn") if choice.cmsis_nn else []
    if choice.requantise is not Requantise.EXACT:
        run += ["--requantise", str(choice.requantise)]
    for flag in ("--threads", "--weights-in", "--arena-in"):
        value = getattr(choice, flag[2:].replace("-", "_"))
        run += [flag, str(value)] if value is not None else []
    run += [*slot("--elf", "image"), *slot("--plan", "plan")]
    return {
        "sizes": [*slot("sizes", "image"), *slot("--board", "board"), *formats, *slot("--out", "out")],
        "profile": ["profile", *run],
        "validate": ["validate", *run],
        "debug": ["debug", *run, *slot("--out", "session")],
        "flash": ["flash", *run, *slot("--out", "out")],
    }
