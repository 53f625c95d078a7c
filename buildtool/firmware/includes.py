"""Which files a compilation reads, found in the sources' own text: what cached objects and bundles hold.

Every `#include` counts, also one that the preprocessor would leave out. A name that is in none of the
given folders belongs to the compiler, and so to its identity.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from buildtool.base.digests import Memo
from buildtool.base.errors import TargetError

_NAMED = re.compile(rb'#[ \t]*include[ \t]*(?:"([^"\n]+)"|<([^>\n]+)>)')
# What reads a file that the text does not name, asks whether one is there, or what time it is.
_HIDDEN = re.compile(
    rb'#[ \t]*(?:include(?![ \t]*["<])|include_next|import|embed)'
    rb"|__has_include|__has_embed|\.incbin|\.include|(?:%:|\?\?=)[ \t]*include"
    rb"|\b__(?:DATE|TIME|TIMESTAMP)__\b"
)


# Names that no header of a compiler asks about; "NN_ ##" may make any of them.
_OWN_NAME = re.compile(rb"\bNN_[A-Za-z0-9_]*(?:[ \t]*##)?")


@dataclass(frozen=True)
class _Text:
    """A file: its digest, the names it includes in quotes and in brackets, whether it hides others.

    `names`: every identifier in it that begins with NN_.
    """

    digest: str
    included: tuple[tuple[str, bool], ...]  # name, whether the file's own folder comes first
    hides: bool
    names: frozenset[str]


@dataclass(frozen=True)
class Reads:
    """The files that a compilation reads, as name and digest in a fixed order, and what they mention.

    `paths`: where they are.
    """

    files: tuple[tuple[str, str], ...]
    names: frozenset[str]
    paths: frozenset[Path]

    def asks_for(self, flag: str, flags: Iterable[str] = ()) -> bool:
        """Whether `flag` may change the object: all but -DNN_... of a name that nothing mentions.

        A macro that one of the other `flags` defines may mention it, too.
        """
        if not flag.startswith("-DNN_"):
            return True
        within = frozenset[str]().union(*(_names(os.fsencode(value)) for value in _meanings(flags)))
        return _is_mentioned(flag, self.names | within)

    def misses(self, flags: Iterable[str], others: Iterable[str]) -> bool:
        """Whether a flag that these files do not ask for may mean something in `others`, which were read too.

        Such are headers that a flag includes, and those of the compiler. Raises OSError.
        """
        flags = tuple(flags)
        unasked = [flag for flag in flags if not self.asks_for(flag, flags)]
        names = frozenset[str]().union(*(_TEXTS.of(path).names for path in others)) if unasked else ()
        return any(_is_mentioned(flag, names) for flag in unasked)


def _is_mentioned(flag: str, names: Collection[str]) -> bool:
    """Whether the macro that `flag` defines is one of `names`, or one that is put together."""
    name = re.split(r"[=(]", flag.removeprefix("-D"))[0]
    return name in names or any(known.endswith("##") for known in names)


def _meanings(flags: Iterable[str]) -> Iterator[str]:
    """What flags say, but for the names of the macros that they define."""
    for flag in flags:
        yield flag.partition("=")[2] if flag.startswith("-DNN_") else flag


def _names(data: bytes) -> frozenset[str]:
    return frozenset(name.decode() for name in _OWN_NAME.findall(data))


def _parsed(data: bytes) -> _Text:
    named = tuple(
        ((quoted or bracketed).decode(errors="surrogateescape"), bool(quoted))
        for quoted, bracketed in _NAMED.findall(data)
    )
    return _Text(hashlib.sha256(data).hexdigest(), named, bool(_HIDDEN.search(data)), _names(data))


_TEXTS = Memo(lambda path: _parsed(Path(path).read_bytes()), 4096)


def _read(path: Path) -> _Text:
    try:
        return _TEXTS.of(str(path))
    except FileNotFoundError:
        raise TargetError(
            "a catalogue or plugin names this file, which is not there", path=str(path)
        ) from None


def reads(source: Path, folders: Sequence[Path]) -> Reads | None:
    """What a compilation of `source` reads: itself, and every file of `folders` that it may include.

    None: this cannot be told from the text (a macro names a file, data is included).
    """
    files: list[tuple[str, str]] = []
    names: set[str] = set()
    seen: set[Path] = set()
    waiting = [(source.name, source)]
    while waiting:
        name, path = waiting.pop()
        if path in seen:
            continue
        seen.add(path)
        text = _read(path)
        if text.hides:
            return None
        files.append((name, text.digest))
        names |= text.names
        waiting += _resolved(text, path.parent, folders)
    return Reads(tuple(files), frozenset(names), frozenset(seen))


def closure(texts: Iterable[bytes], sources: Iterable[Path], folders: Sequence[Path]) -> list[Path]:
    """The headers of `folders` that these texts and files include, and that those headers do, sorted."""
    found: set[Path] = set()
    waiting = [path for data in texts for _, path in _resolved(_parsed(data), None, folders)]
    for source in sources:
        waiting += [path for _, path in _resolved(_read(source), source.parent, folders)]
    while waiting:
        path = waiting.pop()
        if path not in found:
            found.add(path)
            waiting += [other for _, other in _resolved(_read(path), path.parent, folders)]
    return sorted(found)


def _resolved(text: _Text, own: Path | None, folders: Sequence[Path]) -> Iterator[tuple[str, Path]]:
    """The first file of each name, as the compiler looks for it; `own`: the text's own folder."""
    for name, quoted in text.included:
        for folder in (own, *folders) if quoted and own else folders:
            path = folder / name
            if path.is_file():
                yield name, path
                break
