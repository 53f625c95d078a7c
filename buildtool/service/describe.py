"""What a build system has to know to build a network: files, sources, flags, commands, dependencies.

The answer is the same for every front: SCons, CMake, Bazel and others write it down in their own words. It
plans nothing and reads no model: the library of a network holds every kernel that the board can run, of
which the linker takes what is used, and the names of the emitted files follow from the network's name.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from buildtool.service.pipeline.targets import TargetChoice
from buildtool.service.requests import Describe
from buildtool.session import Session
from buildtool.target.plugin import TargetPlugin
from buildtool.target.types import LinkerScript, Target, Toolchain

EMITTED = "emitted"  # the root of what `emit` gives for a network: a folder that the build chooses
OURS = "buildtool_plugins"

Word = str | dict[str, str]  # of a command: text, or {"slot": what the build puts there}


@dataclass(frozen=True)
class Place:
    """A file or folder: `path` below a root of the answer (POSIX), or an absolute one where `root` is ""."""

    root: str
    path: str


@dataclass(frozen=True)
class Source:
    """A file to compile, and what its object is called below the group's folder.

    `reads`: files that it takes in otherwise than by #include.
    """

    file: Place
    object: str
    reads: tuple[Place, ...] = ()


@dataclass(frozen=True)
class Group:
    """Sources that are compiled alike; `shared`: once for all networks of a board."""

    name: str
    shared: bool
    includes: tuple[Place, ...]
    sources: tuple[Source, ...]


@dataclass(frozen=True)
class Tools:
    """Compiler and archiver, each word of a command line by itself.

    compile: cc cflags -I... -c SOURCE -o OBJECT; archive: ar arflags LIBRARY OBJECTS; link: cc cflags
    OBJECTS LIBRARY ldflags -o IMAGE. `incbin` is the flag before a folder in which the assembler looks
    for what a source reads.
    """

    name: str
    identity: str
    cc: str
    ar: str
    cflags: tuple[str, ...]
    arflags: tuple[str, ...]
    ldflags: tuple[str, ...]
    incbin: str


@dataclass(frozen=True)
class NetworkFiles:
    """What is made of a network: `emitted` by the request `emit`, the rest by the build and its commands."""

    net: str
    emitted: tuple[str, ...]
    plan: str
    library: str
    image: str
    binaries: tuple[str, ...]
    report: str


@dataclass(frozen=True)
class Description:
    """The answer to `describe`.

    `roots`: folders by name. `library`, `image`: the groups that are archived with a network, and those
    that are linked with this archive for its test firmware. `network`: None where no model was named.
    `script`: a file that the build writes, whose path goes behind `ldflags`. `depends`: files that the
    answer and what is emitted depend on besides the model; `digest` stands for buildtool's own code.
    """

    board: str
    roots: Mapping[str, str]
    tools: Tools
    script: LinkerScript | None
    groups: tuple[Group, ...]
    library: tuple[str, ...]
    image: tuple[str, ...]
    network: NetworkFiles | None
    commands: Mapping[str, tuple[Word, ...]]
    depends: tuple[Place, ...]
    digest: str

    def plain(self) -> dict[str, Any]:
        """For the wire: dataclasses as mappings, tuples as lists."""
        answer = _plain(self)
        assert isinstance(answer, dict)
        return answer


@dataclass(frozen=True)
class _Subject:
    """What is described: a board with its tools and sources.

    `boards`: the board's file and those that it extends; `library`: a folder of somebody else's kernels,
    "" for none.
    """

    target: Target
    plugin: TargetPlugin
    tools: Toolchain
    boards: tuple[Path, ...]
    library: str


def answer(request: Describe, session: Session) -> dict[str, Any]:
    """The answer to a `describe` request, in plain values."""
    from buildtool.emit.names import identifier
    from buildtool.identity import code_digest
    from buildtool.service.pipeline.models import net_name

    net = request.name or (identifier(net_name(request.model)) if request.model else "")
    digest = session.remember("code digest", (), code_digest)
    return _described(_subject(request.target, session), net, digest).plain()


def _subject(choice: TargetChoice, session: Session) -> _Subject:
    from buildtool.service.pipeline.targets import load_board, load_target
    from buildtool.target.registry import board_chain, plugin, toolchain

    board = load_board(choice.board)
    boards = board_chain(choice.board if isinstance(choice.board, str) else choice.board.path)
    target = session.remember("target", (board, choice.cmsis_nn), lambda: load_target(choice))
    return _Subject(target, plugin(board), toolchain(target, choice.toolchain), boards, choice.cmsis_nn)


def _described(subject: _Subject, net: str, digest: str) -> Description:
    """The answer for a board, and for the network `net` ("": without one)."""
    from buildtool.service.firmware.library import all_kernel_sources, kernel_includes
    from buildtool.service.firmware.sizes import binary_suffixes

    board, tools, harness = subject.target.board, subject.tools, subject.plugin.harness(subject.target.board)
    roots, foreign = _Roots(subject), _foreign_code(subject)
    emitted = Place(EMITTED, "")
    kernels = tuple(map(roots.place, kernel_includes(subject.target)))
    own = tuple(roots.place(Path(folder)) for folder in tools.includes)
    testing = tuple(map(roots.place, harness.includes))
    groups = [
        Group("kernels", True, kernels, _sources(roots, all_kernel_sources(subject.target), True)),
        Group("startup", True, (*own, *kernels), _sources(roots, map(Path, tools.objects))),
        Group("harness", False, (emitted, *own, *kernels, *testing), _sources(roots, harness.sources)),
    ]
    if net:
        groups.append(Group("network", False, (emitted, *kernels), _network_sources(net)))
    return Description(
        board=board.name,
        roots=roots.named,
        tools=_tools(tools),
        script=tools.script,
        groups=tuple(groups),
        library=("network", "kernels"),
        image=("harness", "startup"),
        network=_files(net, binary_suffixes(board)) if net else None,
        commands=_commands(bool(subject.library)),
        depends=tuple(map(roots.place, [*subject.boards, *foreign])),
        digest=digest,
    )


def emitted_names(net: str) -> tuple[str, ...]:
    """The files that `emit` gives for a network of this name, whatever it is and however it runs."""
    endings = (".c", ".h", ".plan", "_arena.json", "_quantization.h", "_weights.S", "_weights.bin")
    return (*(net + ending for ending in endings), "harness_net.h")


# ---- parts ---------------------------------------------------------------------------------------


class _Roots:
    """Folders by name, and places below them."""

    def __init__(self, subject: _Subject) -> None:
        folders = {**_ours(), **_foreign(subject)}
        if subject.library:
            folders["library"] = Path(subject.library)
        self._folders = {name: folder.resolve() for name, folder in folders.items()}
        self.named = {name: str(folder) for name, folder in self._folders.items()}

    def place(self, path: Path) -> Place:
        """Below the innermost root that has it."""
        found = path.resolve()
        names = [name for name, folder in self._folders.items() if found.is_relative_to(folder)]
        if not names:
            return Place("", str(found))
        name = max(names, key=lambda name: len(self.named[name]))
        return Place(name, found.relative_to(self._folders[name]).as_posix())


def _ours() -> dict[str, Path]:
    """The folders that come with buildtool, which its digest covers."""
    from buildtool.target.kernels import kernels_root

    return {"kernels": kernels_root(), "targets": Path(sys.modules[OURS].__file__ or "").parent}


def _foreign(subject: _Subject) -> dict[str, Path]:
    """The folders of other distributions: of the board's plugin, and of kernel families."""
    package = sys.modules[type(subject.plugin).__module__.partition(".")[0]]
    folders = {family.name: family.folder for family in subject.target.families}
    if hasattr(package, "__path__"):  # else it is one file among those of others
        folders["plugin"] = Path(next(iter(package.__path__)))
    ours = [folder.resolve() for folder in _ours().values()]
    return {
        name: folder
        for name, folder in folders.items()
        if not any(folder.resolve().is_relative_to(known) for known in ours)
    }


def _foreign_code(subject: _Subject) -> list[Path]:
    """The code and data of other distributions that decide what is emitted."""
    found = {path for folder in _foreign(subject).values() for path in folder.rglob("*")}
    module = Path(sys.modules[type(subject.plugin).__module__].__file__ or "").resolve()
    if not any(module.is_relative_to(folder.resolve()) for folder in _ours().values()):
        found.add(module)
    return sorted(path for path in found if path.suffix in (".py", ".toml"))


def _sources(roots: _Roots, files: Iterable[Path], folders: bool = False) -> tuple[Source, ...]:
    """Objects are called as the files are; with their folder where `folders` asks, or two share a name."""
    listed = list(files)
    stems = [path.stem for path in listed]

    def called(path: Path) -> str:
        apart = folders or stems.count(path.stem) > 1
        return f"{path.parent.name}/{path.stem}.o" if apart else f"{path.stem}.o"

    return tuple(Source(roots.place(path), called(path)) for path in listed)


def _network_sources(net: str) -> tuple[Source, ...]:
    weights = f"{net}_weights"
    return (
        Source(Place(EMITTED, f"{net}.c"), f"{net}.o"),
        Source(Place(EMITTED, f"{weights}.S"), f"{weights}.o", (Place(EMITTED, f"{weights}.bin"),)),
    )


def _tools(tools: Toolchain) -> Tools:
    return Tools(
        name=tools.name,
        identity=tools.identity,
        cc=tools.cc,
        ar=tools.ar,
        cflags=tools.cflags,
        arflags=("rcsD",),  # D: no times, no owners
        ldflags=tools.ldflags,
        incbin="-Wa,-I",
    )


def _files(net: str, binaries: Iterable[str]) -> NetworkFiles:
    return NetworkFiles(
        net=net,
        emitted=emitted_names(net),
        plan=f"{net}.plan",
        library=f"lib{net}.a",
        image=f"{net}.elf",
        binaries=tuple(net + ending for ending in binaries),
        report="sizes.txt",
    )


def _commands(library: bool) -> dict[str, tuple[Word, ...]]:
    """Command lines of buildtool; `sizes` writes the binaries and the report to the folder `out`."""

    def slot(name: str) -> Word:
        return {"slot": name}

    kernels: tuple[Word, ...] = ("--cmsis-nn", slot("cmsis_nn")) if library else ()
    run = (slot("model"), "--board", slot("board"), *kernels, "--elf", slot("image"), "--plan", slot("plan"))
    return {
        "sizes": ("sizes", slot("image"), "--board", slot("board"), "--out", slot("out")),
        "profile": ("profile", *run),
        "validate": ("validate", *run),
    }


def _plain(value: object) -> object:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: _plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, tuple) else value
