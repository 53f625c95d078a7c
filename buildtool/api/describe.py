"""What a build system has to know to build a network: files, sources, flags, commands, dependencies.

The answer is the same for every front: SCons, CMake, Bazel and others write it down in their own words. It
plans nothing and reads no model: the library of a network holds every kernel that the board can run, of
which the linker takes what is used, and the names of the emitted files follow from the network's name.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from buildtool.api.requests.kinds import Describe
from buildtool.api.requests.parts import Flashing
from buildtool.base.modes import Requantise
from buildtool.base.session import Session
from buildtool.firmware.depends import Origins
from buildtool.firmware.linkmap import MAP_FLAG
from buildtool.options.values import TargetChoice
from buildtool.target.debugging import RENAMES
from buildtool.target.types import Board, LinkerScript, Target, Toolchain

if TYPE_CHECKING:
    from buildtool.schema.builds import (
        DescribeAnswer,
        NetworkFiles,
        Place,
        Script,
        Slot,
        Source,
        SourceGroup,
        Tools,
    )

EMITTED = "emitted"  # the root of what `emit` gives for a network: a folder that the build chooses
# Of any compiler: fused multiply-adds would round otherwise than the reference.
EXACT = ("-ffp-contract=off",)


@dataclass(frozen=True)
class _Subject:
    """What is described: a board with its tools and sources.

    `library`: a folder of somebody else's kernels, "" for none; `threads`,
    `weights_in` and `arena_in`: as asked for.
    """

    origins: Origins
    tools: Toolchain
    library: str
    threads: int | None
    weights_in: str | None
    arena_in: str | None
    requantise: Requantise

    @property
    def target(self) -> Target:
        """The board and its kernels."""
        return self.origins.target


def answer(request: Describe, session: Session) -> DescribeAnswer:
    """The answer to a `describe` request."""
    from buildtool.base.identity import code_digest
    from buildtool.emit.ctext import identifier
    from buildtool.plan.models import net_name

    net = request.name or (identifier(net_name(request.model)) if request.model else "")
    digest = session.remember("code digest", (), code_digest)
    return _described(_subject(request.target, session), net, digest, request.flashing)


def _subject(choice: TargetChoice, session: Session) -> _Subject:
    from buildtool.firmware.tools import toolchain
    from buildtool.target.choice import load_target

    target = load_target(choice, session)
    origins, tools = Origins.of(choice, target), toolchain(choice, target)
    memories = (choice.weights_in, choice.arena_in)
    return _Subject(origins, tools, choice.cmsis_nn, choice.threads, *memories, choice.requantise)


def _described(subject: _Subject, net: str, digest: str, flashing: Flashing) -> DescribeAnswer:
    """The answer for a board, and for the network `net` ("": without one)."""
    from buildtool.firmware.flashing.files import check
    from buildtool.firmware.tools import harness as harness_of
    from buildtool.target.kernels import all_kernel_sources, kernel_includes

    board, tools = subject.target.board, subject.tools
    check(board, flashing.formats, signed=flashing.sign is not None)
    harness, roots = harness_of(subject.origins.plugin, board, tools), _Roots(subject)
    emitted = _emitted("")
    kernels = list(map(roots.place, kernel_includes(subject.target)))
    own = [roots.place(Path(folder)) for folder in tools.includes]
    testing = list(map(roots.place, harness.includes))
    groups = [
        _group("kernels", True, kernels, _sources(roots, all_kernel_sources(subject.target), True)),
        _group("startup", True, [*own, *kernels], _sources(roots, map(Path, tools.objects))),
        _group("harness", False, [emitted, *own, *kernels, *testing], _sources(roots, harness.sources)),
    ]
    if net:
        groups.append(_group("network", False, [emitted, *kernels], _network_sources(net)))
    return {
        "board": board.name,
        "roots": roots.named,
        "tools": _tools(tools, subject.target),
        "script": _script(tools.script),
        "groups": groups,
        "library": ["network", "kernels"],
        "image": ["harness", "startup"],
        "network": _files(net, board, flashing) if net else None,
        "commands": _commands(subject, flashing),
        "depends": [place for path in subject.origins.files() for place in roots.places(path)],
        "digest": digest,
    }


def emitted_names(net: str) -> list[str]:
    """The files that `emit` gives for a network of this name, whatever it is and however it runs."""
    endings = (".c", ".h", ".plan", "_arena.json", "_quantization.h", "_weights.S", "_weights.bin")
    return [*(net + ending for ending in endings), "harness_net.h"]


# ---- parts ---------------------------------------------------------------------------------------


class _Roots:
    """Folders by name, and places below them."""

    def __init__(self, subject: _Subject) -> None:
        folders = subject.origins.folders(subject.library)
        self._folders = {name: folder.resolve() for name, folder in folders.items()}
        self.named = {name: str(folder) for name, folder in self._folders.items()}

    def place(self, path: Path) -> Place:
        """Below the innermost root that has it."""
        found = path.resolve()
        names = [name for name, folder in self._folders.items() if found.is_relative_to(folder)]
        if not names:
            return {"root": "", "path": str(found)}
        name = max(names, key=lambda name: len(self.named[name]))
        return {"root": name, "path": found.relative_to(self._folders[name]).as_posix()}

    def places(self, path: Path) -> list[Place]:
        """Where the file is, and where the link to it: another file may have that name tomorrow."""
        found = self.place(path)
        named = os.path.normpath(path.absolute())
        is_link = os.path.realpath(named) != named and (not found["root"] or path.is_symlink())
        return [found, {"root": "", "path": named}] if is_link else [found]


def _emitted(name: str) -> Place:
    return {"root": EMITTED, "path": name}


def _group(name: str, shared: bool, includes: list[Place], sources: list[Source]) -> SourceGroup:
    return {"name": name, "shared": shared, "includes": includes, "sources": sources}


def _sources(roots: _Roots, files: Iterable[Path], folders: bool = False) -> list[Source]:
    """Objects are called as the files are; with their folder where `folders` asks, or two share a name."""
    listed = list(files)
    stems = [path.stem for path in listed]

    def called(path: Path) -> str:
        apart = folders or stems.count(path.stem) > 1
        return f"{path.parent.name}/{path.stem}.o" if apart else f"{path.stem}.o"

    return [{"file": roots.place(path), "object": called(path), "reads": []} for path in listed]


def _network_sources(net: str) -> list[Source]:
    weights = f"{net}_weights"
    return [
        {"file": _emitted(f"{net}.c"), "object": f"{net}.o", "reads": []},
        {
            "file": _emitted(f"{weights}.S"),
            "object": f"{weights}.o",
            "reads": [_emitted(f"{weights}.bin")],
        },
    ]


def _tools(tools: Toolchain, target: Target) -> Tools:
    libraries = [flag for library in target.libraries for flag in library.cflags]  # find their headers
    return {
        "name": tools.name,
        "identity": tools.identity,
        "cc": tools.cc,
        "ar": tools.ar,
        "cflags": [*tools.cflags, *tools.renames],
        "exact": [*EXACT, *libraries],
        "core": list(target.board.core.cflags),
        "defines": [*target.board.core.defines, *(wiring.defines if (wiring := tools.wiring) else ())],
        "arflags": ["rcsD"],  # D: no times, no owners
        "ldflags": list(tools.ldflags),
        "incbin": "-I",
        "map": MAP_FLAG,
        "renames": RENAMES if tools.renames else "",
    }


def _script(script: LinkerScript | None) -> Script | None:
    if script is None:
        return None
    return {"name": script.name, "data": script.data, "flag": script.flag}


def _files(net: str, board: Board, flashing: Flashing) -> NetworkFiles:
    from buildtool.firmware.flashing.files import suffixes

    endings = suffixes(board, flashing.formats, signed=flashing.sign is not None)

    return {
        "net": net,
        "emitted": emitted_names(net),
        "plan": f"{net}.plan",
        "library": f"lib{net}.a",
        "image": f"{net}.elf",
        "map": f"{net}.map",
        "binaries": [net + ending for ending in endings],
        "report": "sizes.txt",
        "weights": f"{net}_weights.bin",
        "symbol": f"{net}_weights",
        "reserve": "-DNN_WEIGHTS_RESERVED",
        "apart": board.weights != board.code and not board.is_native,
    }


def _flashed(flashing: Flashing) -> list[str]:
    """Words for the files for flash; none for those that are written anyway."""
    words = [] if flashing == Flashing() else [f"--format={name}" for name in flashing.formats]
    if flashing.sign is not None:
        words += [f"--sign={flashing.sign.path}", f"--image-version={flashing.version}"]
    return words


def _commands(subject: _Subject, flashing: Flashing) -> dict[str, list[str | Slot]]:
    """Command lines of buildtool; `sizes` writes the files for flash and the report to the folder `out`."""

    def slot(name: str) -> Slot:
        return {"slot": name}

    kernels: list[str | Slot] = ["--cmsis-nn", slot("cmsis_nn")] if subject.library else []
    if subject.requantise is not Requantise.EXACT:
        kernels += ["--requantise", str(subject.requantise)]
    shared = ["--threads", str(subject.threads)] if subject.threads is not None else []
    shared += ["--weights-in", subject.weights_in] if subject.weights_in is not None else []
    shared += ["--arena-in", subject.arena_in] if subject.arena_in is not None else []
    run: list[str | Slot] = [
        slot("model"),
        "--board",
        slot("board"),
        *kernels,
        *shared,
        "--elf",
        slot("image"),
        "--plan",
        slot("plan"),
    ]
    return {
        "sizes": [
            "sizes",
            slot("image"),
            "--board",
            slot("board"),
            *_flashed(flashing),
            "--out",
            slot("out"),
        ],
        "profile": ["profile", *run],
        "validate": ["validate", *run],
        "debug": ["debug", *run, "--out", slot("session")],
        "flash": ["flash", *run, "--out", slot("out")],
    }
