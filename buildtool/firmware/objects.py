"""Compiles C and assembly files to objects, which are a level of the cache.

An entry's key has the compiler's identity (buildtool/base/compiler.py), its flags, and the content of every
file that the source includes, directly or not. Every `#include` counts, also one that the preprocessor would
leave out; a name that is in none of the given folders belongs to the compiler. The entry lists the other
files that were read, which are the compiler's and the system's headers, with their digests: it is valid while
these are the same.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from buildtool.base.compiler import Identity, dependencies, environment, identify, passed
from buildtool.base.digests import Memo
from buildtool.base.errors import TargetError, ToolError
from buildtool.base.programs import Recipe, level
from buildtool.base.session import Session, at_work

_LINES_SHOWN = 20  # of what a tool said
# What objects and images begin with: ELF, LLVM's bitcode (-flto), Mach-O.
_MADE = (b"\x7fELF", b"BC\xc0\xde", b"\xcf\xfa\xed\xfe", b"\xce\xfa\xed\xfe")

OBJECTS = level("objects")


@dataclass(frozen=True)
class Unit:
    """A file to compile: where it is, the folders it includes from, and its own flags."""

    source: Path
    includes: tuple[Path, ...] = ()
    flags: tuple[str, ...] = ()


@dataclass(frozen=True)
class Compiler:
    """A compiler with the flags that every unit gets; `identity` is its name and version.

    `renames`: flags that rename folders of this machine in debug information (FLAG=FOLDER=NAME), so that
    objects are the same wherever these folders are.
    """

    cc: str
    identity: str
    flags: tuple[str, ...]
    renames: tuple[str, ...] = ()

    def called(self, folder: Path) -> str:
        """The folder's name in debug information; "" if it keeps its own."""
        pairs = (rename.partition("=")[2].rpartition("=")[::2] for rename in self.renames)
        found = [(Path(place), name) for place, name in pairs if folder.is_relative_to(place)]
        place, name = max(found, key=lambda pair: len(pair[0].parts), default=(folder, ""))
        return f"{name}/{folder.relative_to(place).as_posix()}" if name else ""


def compile_all(
    compiler: Compiler, units: Sequence[Unit], folder: Path, tell: Callable[[str], None] = lambda _: None
) -> list[Path]:
    """Objects of `units` in `folder`, in order; raises ToolError with the compiler's words.

    `tell` hears how many are done.
    """
    folder = folder.absolute()  # compilers run in the folders of their sources
    targets = [folder / f"{number:03d}_{unit.source.stem}.o" for number, unit in enumerate(units)]
    known = _Known(at_work(), compiler)
    wanted = [(known.of(unit), unit, target) for unit, target in zip(units, targets, strict=True)]
    missing = [one for one in wanted if one[0] is None or not known.put(one[0][0], one[2])]
    done = len(units) - len(missing)
    with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
        for (made_of, unit, target), read in zip(
            missing, pool.map(lambda one: _compile(compiler, *one[1:]), missing), strict=True
        ):
            if made_of is not None and read is not None:
                known.keep(*made_of, unit, target, read)
            done += 1
            tell(f"compiled {done} of {len(units)} files")
    return targets


class _Known:
    """The cached objects of a compiler."""

    def __init__(self, session: Session, compiler: Compiler) -> None:
        self._session, self._compiler = session, compiler
        self._began = time.time_ns()
        self._identities: dict[tuple[str, ...], Identity | None] = {}

    def of(self, unit: Unit) -> tuple[Recipe, Reads] | None:
        """The object's key, and the files that it reads; None if either is not known, or nothing is kept."""
        if self._session.keeper is None:
            return None
        # Definitions for networks are no part of the compiler's identity: kernels do without most of them.
        flags = (*self._compiler.flags, *unit.flags)
        plain = tuple(flag for flag in flags if not flag.startswith("-DNN_"))
        if plain not in self._identities:
            self._identities[plain] = identify([self._compiler.cc, *plain], environment())
        found, identity = self._reads(unit), self._identities[plain]
        if found is None or identity is None:
            return None
        folders = [unit.source.parent, *unit.includes] if self._compiler.renames else []
        parts = {
            "compiler": f"{self._compiler.identity}, of digest {identity.digest}",
            "flags": [
                flag for flag in (*self._compiler.flags, "", *unit.flags) if found.asks_for(flag, flags)
            ],
            "files": [list(pair) for pair in found.files],
            "folders": [self._compiler.called(folder.resolve()) or str(folder) for folder in folders],
            "variables": [list(pair) for pair in passed().items()],
        }
        return Recipe(OBJECTS, parts, identity, self._began), found

    def put(self, recipe: Recipe, target: Path) -> bool:
        """Writes the cached object to `target`; returns whether there is one."""
        made = recipe.kept(self._session)
        if made is not None:
            target.write_bytes(made)
        return made is not None

    def keep(self, recipe: Recipe, named: Reads, unit: Unit, target: Path, read: list[str]) -> None:
        """Keeps a new object, unless its sources have changed meanwhile."""
        paths = [os.path.join(unit.source.parent.absolute(), path) for path in read]  # noqa: PTH118
        known = {str(path.resolve()) for path in named.paths}
        others = [path for path in paths if os.path.realpath(path) not in known]
        try:
            is_whole = not named.misses((*self._compiler.flags, *unit.flags), others)
        except OSError:
            return
        if is_whole and self._reads(unit) == named:  # else the key has not all that the object is made of
            recipe.keep(self._session, target.read_bytes(), others)

    def _reads(self, unit: Unit) -> Reads | None:
        return reads(unit.source, list(_include_folders(self._compiler, unit)))


def _include_folders(compiler: Compiler, unit: Unit) -> Iterator[Path]:
    """The folders of the unit's headers, without the compiler's own and the source's folder."""
    yield from unit.includes
    for flag, after in itertools.pairwise((*compiler.flags, *unit.flags, "")):
        if flag in ("-I", "-isystem", "-iquote", "-idirafter"):
            yield Path(after)
        elif flag.startswith("-I"):
            yield Path(flag[2:])


def _compile(compiler: Compiler, unit: Unit, target: Path) -> list[str] | None:
    """Makes the object; returns the files that were read, None if the compiler does not list them."""
    includes = [f"-I{folder.absolute()}" for folder in unit.includes]
    rule = target.with_suffix(".d")
    # the source is named relative to its own folder: no path of this machine gets into the object
    command = [
        *(compiler.cc, *compiler.flags, *unit.flags, *compiler.renames, *includes),
        *("-MD", "-MF", str(rule), "-c", unit.source.name, "-o", str(target)),
    ]
    said = run(command, f"compiling {unit.source.name}", cwd=unit.source.parent)
    refuse_unless_made(target, f"compiling {unit.source.name}", compiler.cc, said)
    try:
        listed = rule.read_bytes()
        rule.unlink()
    except OSError:
        return None
    return dependencies(listed)


def refuse_unless_made(target: Path, what: str, program: str, said: str) -> None:
    """ToolError if a compiler or linker that reported success made no object or image at `target`."""
    try:
        with target.open("rb") as file:
            if file.read(4) in _MADE:
                return
    except FileNotFoundError:
        pass
    lines = said.strip().splitlines()[:_LINES_SHOWN]
    text = f"{what} failed: {Path(program).name} reported success, but made no object file"
    raise ToolError(
        "\n".join([f"{text}; it printed:" if lines else text, *lines]),
        hint="check the compiler, and core.cflags of the board's file: no flag may make it print or stop",
    )


Explain = Callable[[str], ToolError | None]


def run(command: Sequence[str], what: str, cwd: Path | None = None, explain: Explain | None = None) -> str:
    """Runs a tool with the variables that it needs: its output, or a ToolError with the first lines of it.

    `explain` may find a better error in the tool's words.
    """
    try:
        done = subprocess.run(
            command,
            cwd=cwd,
            env=environment(),
            capture_output=True,
            text=True,
            errors="replace",
            stdin=subprocess.DEVNULL,
        )
    except (OSError, ValueError) as error:  # ValueError: a null character in an argument
        reason = error.strerror if isinstance(error, OSError) else error
        raise ToolError(f"{what}: cannot start {command[0]}: {reason}") from error
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip()
        better = explain(said) if explain is not None else None
        if better is not None:
            raise better
        lines = said.splitlines()
        shown = lines[:_LINES_SHOWN] + (["..."] if len(lines) > _LINES_SHOWN else [])
        how = f"exit {done.returncode}"
        if done.returncode < 0:
            how = f"signal {-done.returncode}, {signal.strsignal(-done.returncode)}"
        text = f"{what} failed ({Path(command[0]).name} {how})"
        raise ToolError("\n".join([f"{text}:" if shown else text, *shown]))
    return done.stdout


# ---- the files that a compilation reads ---------------------------------------------------------------


_NAMED = re.compile(rb'#[ \t]*include[ \t]*(?:"([^"\n]+)"|<([^>\n]+)>)')
# Reads a file that the text does not name, asks whether one is there, or asks for the time.
_HIDDEN = re.compile(
    rb'#[ \t]*(?:include(?![ \t]*["<])|include_next|import|embed)'
    rb"|__has_include|__has_embed|\.incbin|\.include|(?:%:|\?\?=)[ \t]*include"
    rb"|\b__(?:DATE|TIME|TIMESTAMP)__\b"
)
# Names that no header of a compiler asks about; "NN_ ##" may make any of them.
_OWN_NAME = re.compile(rb"\bNN_[A-Za-z0-9_]*(?:[ \t]*##)?")


@dataclass(frozen=True)
class _Text:
    """A file's text. `hides`: it reads files that it does not name; `names`: its identifiers with NN_."""

    digest: str
    included: tuple[tuple[str, bool], ...]  # name, whether the file's own folder comes first
    hides: bool
    names: frozenset[str]


@dataclass(frozen=True)
class Reads:
    """The files that a compilation reads, as name and digest in a fixed order, and what they mention."""

    files: tuple[tuple[str, str], ...]
    names: frozenset[str]
    paths: frozenset[Path]

    def asks_for(self, flag: str, flags: Iterable[str] = ()) -> bool:
        """Whether `flag` may change the object: all but -DNN_... of a name that nothing mentions.

        Macros that the other `flags` define may mention it, too.
        """
        if not flag.startswith("-DNN_"):
            return True
        values = (one.partition("=")[2] if one.startswith("-DNN_") else one for one in flags)
        within = frozenset[str]().union(*(_find_names(os.fsencode(value)) for value in values))
        return _is_mentioned(flag, self.names | within)

    def misses(self, flags: Iterable[str], others: Iterable[str]) -> bool:
        """Whether a flag that these files do not ask for may mean something in `others`, which were read too.

        Those are headers that a flag includes, and the compiler's. Raises OSError.
        """
        flags = tuple(flags)
        unasked = [flag for flag in flags if not self.asks_for(flag, flags)]
        names = frozenset[str]().union(*(_TEXTS.of(path).names for path in others)) if unasked else ()
        return any(_is_mentioned(flag, names) for flag in unasked)


def _is_mentioned(flag: str, names: Collection[str]) -> bool:
    """Whether the macro that `flag` defines is one of `names`, or may be put together from one."""
    name = re.split(r"[=(]", flag.removeprefix("-D"))[0]
    return name in names or any(known.endswith("##") for known in names)


def _find_names(data: bytes) -> frozenset[str]:
    return frozenset(name.decode() for name in _OWN_NAME.findall(data))


def _parse(data: bytes) -> _Text:
    named = tuple(
        ((quoted or bracketed).decode(errors="surrogateescape"), bool(quoted))
        for quoted, bracketed in _NAMED.findall(data)
    )
    return _Text(hashlib.sha256(data).hexdigest(), named, bool(_HIDDEN.search(data)), _find_names(data))


_TEXTS = Memo(lambda path: _parse(Path(path).read_bytes()), 4096)


def _read(path: Path) -> _Text:
    try:
        return _TEXTS.of(str(path))
    except FileNotFoundError:
        text = "a catalogue or plugin names this file, which is not there"
        raise TargetError(text, path=str(path)) from None


def _walk(waiting: list[tuple[str, Path]], folders: Sequence[Path]) -> Iterator[tuple[str, Path, _Text]]:
    """Files by name, and all that they include from `folders`, directly or not, each once."""
    seen: set[Path] = set()
    while waiting:
        name, path = waiting.pop()
        if path not in seen:
            seen.add(path)
            text = _read(path)
            yield name, path, text
            waiting += _resolve(text, path.parent, folders)


def reads(source: Path, folders: Sequence[Path]) -> Reads | None:
    """The files that a compilation of `source` reads: itself, and those of `folders` that it may include.

    None: the text does not tell (a macro names a file, data is included).
    """
    files, names, paths = [], set[str](), set[Path]()
    for name, path, text in _walk([(source.name, source)], folders):
        if text.hides:
            return None
        files.append((name, text.digest))
        names |= text.names
        paths.add(path)
    return Reads(tuple(files), frozenset(names), frozenset(paths))


def closure(texts: Iterable[bytes], sources: Iterable[Path], folders: Sequence[Path]) -> list[Path]:
    """The headers of `folders` that these texts and files include, directly or not, sorted."""
    first = [found for data in texts for found in _resolve(_parse(data), None, folders)]
    for source in sources:
        first += _resolve(_read(source), source.parent, folders)
    return sorted(path for _, path, _ in _walk(first, folders))


def _resolve(text: _Text, own: Path | None, folders: Sequence[Path]) -> Iterator[tuple[str, Path]]:
    """The file of each name that the compiler finds first; `own`: the text's own folder."""
    for name, quoted in text.included:
        paths = (folder / name for folder in ((own, *folders) if quoted and own else folders))
        if found := next(filter(Path.is_file, paths), None):
            yield name, found
