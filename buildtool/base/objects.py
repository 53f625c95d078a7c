"""Caches compiled objects of C and assembly files, in a cache namespace of their own.

An entry's key has the compiler's identity (buildtool/base/compiler.py), its flags, and the content of every
file that the source includes, directly or not. Every `#include` counts, even if the preprocessor would skip
it. A name that is in none of the given folders belongs to the compiler. The entry lists the other files that
were read, the compiler's and the system's headers, with their digests. It is valid while these are unchanged.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import re
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from buildtool.base.compiler import Identity, identify
from buildtool.base.digests import Memo
from buildtool.base.errors import TargetError
from buildtool.base.programs import Recipe, level
from buildtool.base.session import Session

OBJECTS = level("objects")


@dataclass(frozen=True)
class Unit:
    """A source file to compile: its path, the folders of its headers, and its own flags."""

    source: Path
    includes: tuple[Path, ...] = ()
    flags: tuple[str, ...] = ()


@dataclass(frozen=True)
class Compiler:
    """A compiler (`cc`) with the flags for every unit. `identity` is its name and version.

    `renames` are flags that rename folders of this machine in debug information (FLAG=FOLDER=NAME), so that
    objects do not depend on the place of these folders.
    """

    cc: str
    identity: str
    flags: tuple[str, ...]
    renames: tuple[str, ...] = ()

    def called(self, folder: Path) -> str:
        """Returns the folder's name in debug information; "" if `renames` do not rename it."""
        pairs = (rename.partition("=")[2].rpartition("=")[::2] for rename in self.renames)
        around = [(Path(place), name) for place, name in pairs if folder.is_relative_to(place)]
        place, name = max(around, key=lambda pair: len(pair[0].parts), default=(folder, ""))
        return f"{name}/{folder.relative_to(place).as_posix()}" if name else ""


class CachedObjects:
    """The cached objects of a compiler that runs with the environment `variables`.

    `named` are the variables, with their values, that are part of every key.
    """

    def __init__(
        self, session: Session, compiler: Compiler, variables: Mapping[str, str], named: Mapping[str, str]
    ) -> None:
        self._session, self._compiler, self._variables, self._named = session, compiler, variables, named
        self._began = time.time_ns()
        self._identities: dict[tuple[str, ...], Identity | None] = {}

    def of(self, unit: Unit) -> tuple[Recipe, Reads] | None:
        """Returns the recipe (cache key) of a unit's object, and the files that its compilation reads.

        Returns None if there is no cache, or if these files or the compiler's identity cannot be found.
        """
        if self._session.keeper is None:
            return None
        # What is read counts, not the place of its folders: they differ between checkouts.
        (_, common), (_, own) = _split(self._compiler.flags), _split(unit.flags)
        flags = (*common, *own)
        # The identity leaves out the macros of networks, as most kernels do not use them.
        plain = tuple(flag for flag in flags if not flag.startswith("-DNN_"))
        if plain not in self._identities:
            self._identities[plain] = identify([self._compiler.cc, *plain], self._variables)
        files, identity = self._find_reads(unit), self._identities[plain]
        if files is None or identity is None:
            return None
        folders = [unit.source.parent, *self._include_folders(unit)] if self._compiler.renames else []
        parts = {
            "compiler": f"{self._compiler.identity}, of digest {identity.digest}",
            "flags": [flag for flag in (*common, "", *own) if files.asks_for(flag, flags)],
            "files": [list(pair) for pair in files.files],
            "folders": [self._compiler.called(folder.resolve()) or str(folder) for folder in folders],
            "variables": [list(pair) for pair in self._named.items()],
        }
        return Recipe(OBJECTS, parts, identity, self._began), files

    def put(self, recipe: Recipe, target: Path) -> list[str] | None:
        """Writes the cached object of `recipe` to `target`.

        Returns the compiler's own headers from which it was made, or None if the cache has no such object.
        """
        made = recipe.find(self._session)
        if made is None:
            return None
        target.write_bytes(made[1])
        return [path for path, digest in made[0] if digest]

    def keep(self, recipe: Recipe, files: Reads, unit: Unit, target: Path, names: Iterable[str]) -> None:
        """Writes the new object `target` to the cache, unless its sources have changed since `files` were
        read.

        `names` are the files that the compiler has read, relative to the folder of the source.
        """
        paths = [os.path.join(unit.source.parent.absolute(), name) for name in names]  # noqa: PTH118
        own = {str(path.resolve()) for path in files.paths}
        others = [path for path in paths if os.path.realpath(path) not in own]
        try:
            is_whole = not files.misses((*self._compiler.flags, *unit.flags), others)
        except OSError:
            return
        if is_whole and self._find_reads(unit) == files:  # else the key does not cover all that was compiled
            recipe.keep(self._session, target.read_bytes(), others)

    def _find_reads(self, unit: Unit) -> Reads | None:
        return reads(unit.source, self._include_folders(unit))

    def _include_folders(self, unit: Unit) -> list[Path]:
        """Returns the folders of headers that the unit and the flags name: neither the compiler's own nor the
        source's folder is among them.
        """
        return [*unit.includes, *_split(self._compiler.flags)[0], *_split(unit.flags)[0]]


def _split(flags: Sequence[str]) -> tuple[list[Path], list[str]]:
    """Returns the folders that -I and similar flags name, and all other flags."""
    folders, others = list[Path](), list[str]()
    words = iter(flags)
    for word in words:
        if word in ("-I", "-isystem", "-iquote", "-idirafter"):
            folders += [Path(folder) for folder in itertools.islice(words, 1)]
        elif word.startswith("-I"):
            folders.append(Path(word[2:]))
        else:
            others.append(word)
    return folders, others


# ---- the files that a compilation reads ---------------------------------------------------------------


_NAMED = re.compile(rb'#[ \t]*include[ \t]*(?:"([^"\n]+)"|<([^>\n]+)>)')
# Text that reads a file without naming it, tests whether a file exists, or reads the time.
_HIDDEN = re.compile(
    rb'#[ \t]*(?:include(?![ \t]*["<])|include_next|import|embed)'
    rb"|__has_include|__has_embed|\.incbin|\.include|(?:%:|\?\?=)[ \t]*include"
    rb"|\b__(?:DATE|TIME|TIMESTAMP)__\b"
)
# Names that no header of a compiler uses; "NN_ ##" may make any of them.
_OWN_NAME = re.compile(rb"\bNN_[A-Za-z0-9_]*(?:[ \t]*##)?")


@dataclass(frozen=True)
class _Text:
    """What the cache must know about a file's text.

    `digest`: the SHA-256 of the text.
    `included`: the files that it includes.
    `hides`: whether it may read files that it does not name, or the time.
    `names`: its identifiers that begin with NN_.
    """

    digest: str
    included: tuple[tuple[str, bool], ...]  # name, whether the file's own folder comes first
    hides: bool
    names: frozenset[str]


@dataclass(frozen=True)
class Reads:
    """The files that a compilation reads.

    `files`: their names and digests, in a fixed order.
    `names`: the identifiers in them that begin with NN_.
    `paths`: their paths.
    """

    files: tuple[tuple[str, str], ...]
    names: frozenset[str]
    paths: frozenset[Path]

    def asks_for(self, flag: str, flags: Iterable[str] = ()) -> bool:
        """Whether `flag`, one of the compiler's `flags`, may change the object.

        Every flag may, except one that defines a macro NN_... whose name appears neither in the files nor in
        the values of `flags`.
        """
        if not flag.startswith("-DNN_"):
            return True
        values = (one.partition("=")[2] if one.startswith("-DNN_") else one for one in flags)
        within = frozenset[str]().union(*(_find_names(os.fsencode(value)) for value in values))
        return _is_mentioned(flag, self.names | within)

    def misses(self, flags: Iterable[str], others: Iterable[str]) -> bool:
        """Whether one of `flags` defines a macro that may matter although `asks_for` says that it does not.

        It may matter if one of `others` mentions it: the other files that the compiler read, which are
        headers that a flag includes and the compiler's own headers. Raises OSError if one of them cannot be
        read.
        """
        flags = tuple(flags)
        unused = [flag for flag in flags if not self.asks_for(flag, flags)]
        names = frozenset[str]().union(*(_TEXTS.of(path).names for path in others)) if unused else ()
        return any(_is_mentioned(flag, names) for flag in unused)


def _is_mentioned(flag: str, names: Collection[str]) -> bool:
    """Whether the macro that `flag` defines is in `names`, or might be.

    It might be if one of the names ends with ##, which can build any other name.
    """
    name = re.split(r"[=(]", flag.removeprefix("-D"))[0]
    return name in names or any(other.endswith("##") for other in names)


def _find_names(data: bytes) -> frozenset[str]:
    return frozenset(name.decode() for name in _OWN_NAME.findall(data))


def _parse(data: bytes) -> _Text:
    included = tuple(
        ((quoted or bracketed).decode(errors="surrogateescape"), bool(quoted))
        for quoted, bracketed in _NAMED.findall(data)
    )
    return _Text(hashlib.sha256(data).hexdigest(), included, bool(_HIDDEN.search(data)), _find_names(data))


_TEXTS = Memo(lambda path: _parse(Path(path).read_bytes()), 4096)


def _read(path: Path) -> _Text:
    try:
        return _TEXTS.of(str(path))
    except FileNotFoundError:
        text = "a catalogue or plugin names this file, but it does not exist"
        raise TargetError(text, path=str(path)) from None


def _walk(waiting: list[tuple[str, Path]], folders: Sequence[Path]) -> Iterator[tuple[str, Path, _Text]]:
    """Yields each of the `waiting` files, and each file of `folders` that they include at any depth, once:
    the name by which it was included, its path and its text.
    """
    seen: set[Path] = set()
    while waiting:
        name, path = waiting.pop()
        if path not in seen:
            seen.add(path)
            text = _read(path)
            yield name, path, text
            waiting += _resolve(text, path.parent, folders)


def reads(source: Path, folders: Sequence[Path]) -> Reads | None:
    """Returns `source` and the files of `folders` that it may include: what its compilation reads.

    Returns None if the text does not name all of them: a macro gives a file's name, or data is included.
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
    """Returns the headers of `folders` that the `texts` (content) and `sources` (paths) include at any depth,
    sorted.
    """
    waiting = [header for data in texts for header in _resolve(_parse(data), None, folders)]
    for source in sources:
        waiting += _resolve(_read(source), source.parent, folders)
    return sorted(path for _, path, _ in _walk(waiting, folders))


def _resolve(text: _Text, own: Path | None, folders: Sequence[Path]) -> Iterator[tuple[str, Path]]:
    """Yields each name that `text` includes, with the path of the file that the compiler finds for it.

    `own` is the folder of the file that has this text, None if the text is not from a file.
    """
    for name, quoted in text.included:
        paths = (folder / name for folder in ((own, *folders) if quoted and own else folders))
        if path := next(filter(Path.is_file, paths), None):
            yield name, path
