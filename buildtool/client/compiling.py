"""Takes compiled objects for a build system from the user's cache and its server.

A build system calls `Objects.compile` with a command line that it would run. If an equal compilation is in
the cache (same compiler, flags and content of all sources, in any folder), its object is written and nothing
is compiled. Only some command lines are looked up: those whose flags are known to read and write nothing that
the cache key leaves out (`read_command`). All others are run.
"""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from buildtool.base.code_digest import code_digest
from buildtool.base.compiler import VARIABLES, dependencies
from buildtool.base.folders import REMOTE_URL
from buildtool.base.modes import Use
from buildtool.base.objects import CachedObjects, Compiler, Unit
from buildtool.base.session import Session
from buildtool.base.store.cache import open_cache

# Flags that read no file, write no file, and put no path into an object. Debug information names folders.
_PLAIN = re.compile(
    r"-O\w*|-m[\w.+=,-]+|-w|-W(?![alp],)[\w=+-]*|-std=\S+|-pedantic|-pipe|-ansi|-[DU][A-Za-z_]\w*(=.*)?"
    r"|-nostd\w+|--target=\S+|--sysroot=\S+|--?specs=\S+"
    r"|-f(?!profile|plugin|pass-plugin|dump|save|auto-profile|coverage|module|test-|debug|macro|sanitize|xray"
    r"|instrument|callgraph|stack-usage|embed|implicit-module|cs-profile|memory-profile|time-|compilation"
    r"|lto-|thinlto|crash|record|optimization-record|diagnostics|split|file|working|working-|prebuilt)[\w=+-]+"
)
_DEPENDENCIES = ("-MD", "-MMD", "-MP")
_NAMED_PLACE = re.compile(rb"__FILE__|__BASE_FILE__|\bassert\b")

Run = Callable[[Sequence[str]], int]


@dataclass(frozen=True)
class Command:
    """A compilation.

    `target` is the object that it writes. `rule` is the file for the list of dependencies (None: no such
    file).
    """

    cc: str
    unit: Unit
    target: Path
    rule: Path | None


def read_command(words: Sequence[str], folder: Path) -> Command | None:
    """Returns the compilation that a command line in `folder` does.

    None if it does something else, or if its object may depend on something that the cache key leaves out.
    """
    flags, includes, systems, values = list[str](), list[Path](), list[Path](), dict[str, str]()
    sources, rest = list[str](), iter(words[1:])
    for word in rest:
        if word in ("-o", "-MF", "-MT", "-MQ"):
            values[word] = next(rest, "")
        elif word == "-isystem":
            systems.append(folder / next(rest, ""))
        elif word.startswith("-I"):
            includes.append(folder / (word[2:] or next(rest, "")))
        elif _PLAIN.fullmatch(word):
            flags.append(word)
        elif not word.startswith(("-", "@")):
            sources.append(word)
        elif word != "-c" and word not in _DEPENDENCIES and not _renames(word):
            return None
    if (
        "-c" not in words
        or len(sources) != 1
        or not sources[0].endswith((".c", ".S"))
        or not values.get("-o")
    ):
        return None
    unit = Unit(folder / sources[0], (*includes, *systems), tuple(flags))
    return Command(words[0], unit, folder / values["-o"], folder / values["-MF"] if "-MF" in values else None)


def _renames(word: str) -> bool:
    """Whether a flag renames folders in debug information.

    Objects that are looked up in the cache have no debug information, so the flag does not change them.
    """
    return word.startswith(("-ffile-prefix-map=", "-fdebug-prefix-map=", "-fmacro-prefix-map="))


class Objects:
    """The compiled objects in the user's cache, for a build. Threads may share it.

    `use` says whether the cache is on, off or renewed (see `base.modes.Use`).
    """

    def __init__(self, use: str = "on") -> None:
        self._use, self._lock = Use(use), threading.Lock()
        self._session: Session | None = None
        self._cached: dict[tuple[str, ...], CachedObjects] = {}

    def compile(
        self, words: Sequence[str], run: Run, variables: Mapping[str, str], folder: Path
    ) -> tuple[int, list[str]]:
        """Writes the object that the command line `words` makes in `folder`: from the cache, or by calling
        `run`.

        `variables` is the compiler's environment. Returns the exit status and the files that were read. The
        files are [] if the compiler does not list them.
        """
        with self._lock:
            command = read_command(words, folder) if self._use is not Use.OFF else None
            cached = self._open(command.cc, variables) if command else None
            found = cached.of(command.unit) if cached and command else None
            if found and any(_names_place(path) for path in found[1].paths):
                found = None
            if found and cached and command:
                own = sorted(map(str, found[1].paths))
                others = cached.put(found[0], command.target)
                if others is not None:
                    return 0, [*own, *others]
        if not (found and cached and command):
            return run(words), []
        with tempfile.TemporaryDirectory() as scratch:
            rule = command.rule or Path(scratch, "rule.d")
            more = () if command.rule else ("-MD", f"-MF{rule}")
            status = run([*words, *more])
            names = []
            with contextlib.suppress(OSError):
                names = [str(folder / name) for name in dependencies(rule.read_bytes())]
        if not status and names:
            with self._lock, contextlib.suppress(OSError):
                cached.keep(*found, command.unit, command.target, names)
        return status, names

    def close(self) -> None:
        """Writes new objects to the cache, and sends them to its server."""
        with self._lock:
            keeper = self._session.keeper if self._session else None
            if keeper is not None:
                keeper.flush()
                keeper.share()

    def _open(self, cc: str, variables: Mapping[str, str]) -> CachedObjects:
        """Returns the cached objects of the compiler `cc` with the environment `variables`."""
        if self._session is None:
            keeper = open_cache(code_digest())
            if keeper is not None and os.environ.get(REMOTE_URL):
                from buildtool.base.store.remote.settings import Settings

                keeper.connect(Settings.of(os.environ))
            if keeper is not None:
                keeper.begin("", self._use)
            self._session = Session(keeper=keeper)
        named = {name: variables[name] for name in VARIABLES if name in variables}
        key = (cc, *(word for pair in sorted(variables.items()) for word in pair))
        if key not in self._cached:
            self._cached[key] = CachedObjects(self._session, Compiler(cc, "", ()), variables, named)
        return self._cached[key]


def _names_place(path: Path) -> bool:
    return bool(_NAMED_PLACE.search(path.read_bytes()))
