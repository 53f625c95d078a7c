"""Stores the output of compilers in the cache; compiles programs for this machine when they are first
used.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import hashlib
import os
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import msgpack

from buildtool.base import compiler
from buildtool.base.errors import ToolError
from buildtool.base.locks import scratch
from buildtool.base.session import Namespace, Session, current_session

_ENDING = ".exe" if os.name == "nt" else ""  # Windows runs no file without it
_SHOWN = 2000  # upper limit for the characters of a compiler's messages that we show

Made = tuple[list[compiler.Fact], bytes]  # the headers that the compiler read, and its output


def level(name: str) -> Namespace[Made]:
    """Returns a cache namespace for outputs of compilers. Its keys contain all that decides the output."""

    def unpack(data: bytes) -> Made:
        pairs, output = msgpack.unpackb(data, unicode_errors="surrogateescape")
        if not isinstance(output, bytes) or not all(isinstance(word, str) for pair in pairs for word in pair):
            raise ValueError("not the output of a compiler")
        return [(path, digest) for path, digest in pairs], output

    return Namespace(name, partial(msgpack.packb, unicode_errors="surrogateescape"), unpack, by_code=False)


PROGRAMS = level("programs")


@dataclass(frozen=True)
class Recipe:
    """The inputs of a compiler's output: the `parts` of its cache key, and the compiler's identity.

    The key does not cover the headers of the compiler and the system. Instead, the cache entry contains their
    digests, and is valid while they stay the same. `began_ns` is the time when the parts were read (ns since
    1970).
    """

    level: Namespace[Made]
    parts: Mapping[str, Any]
    identity: compiler.Identity
    began_ns: int

    def find(self, session: Session) -> Made | None:
        """Returns, from the cache, the headers and the output of the same recipe; None if there is no valid
        entry.
        """
        entry = session.load(self.level, self.parts)
        return entry if entry is not None and compiler.are_current(entry[0]) else None

    def load(self, session: Session) -> bytes | None:
        """Returns the output of the same recipe from the cache; None if there is no valid entry."""
        entry = self.find(session)
        return entry[1] if entry is not None else None

    def keep(self, session: Session, made: bytes, others: Iterable[str]) -> None:
        """Stores the output `made`, unless one of `others`, the headers that the compiler read, has changed
        since.
        """
        with contextlib.suppress(OSError):
            facts = compiler.facts(self.identity, others)
            if not compiler.changed_since(facts, self.began_ns):
                session.store(self.level, self.parts, (facts, made))


def program(
    cc: str, name: str, sources: Sequence[Path], flags: Sequence[str], what: str, place: Path, hint: str = ""
) -> Path:
    """Returns the path of the program that the compiler `cc` makes of `sources`. It runs on this machine, and
    exists until this process ends.

    Raises ToolError if it does not compile. Messages call the program `what`, and give `place` as its path.
    """
    command = [cc, *flags]
    contents = [[path.name, hashlib.sha256(path.read_bytes()).hexdigest()] for path in sources]
    key = (name, *command, *map(tuple, contents))

    def compile_in(folder: Path) -> bytes:
        built = folder / f"program{_ENDING}"
        words = [*command, "-MD", *map(str, sources), "-o", str(built)]
        options: dict[str, Any] = {"cwd": folder, "env": compiler.environment(), "stdin": subprocess.DEVNULL}
        try:
            result = subprocess.run(words, capture_output=True, text=True, errors="replace", **options)
        except OSError as error:
            raise ToolError(f"{what} cannot be compiled: {error.strerror}", path=cc) from None
        if result.returncode or not built.is_file():
            text = result.stderr.strip()[:_SHOWN] or f"the compiler's exit status is {result.returncode}"
            raise ToolError(f"{what} does not compile:\n{text}", path=str(place), hint=hint)
        return built.read_bytes()

    binary = current_session().remember(
        "programs of this process", key, lambda: _load_or_make(command, sources, contents, compile_in)
    )
    path = Path(_make_folder(), f"{hashlib.sha256(binary).hexdigest()[:16]}-{name}{_ENDING}")
    if not path.is_file():  # a cleaner of temporary files may have removed it
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(binary)
        path.chmod(0o700)
    return path


@functools.cache
def _make_folder() -> str:
    stack = contextlib.ExitStack()
    atexit.register(stack.close)
    return stack.enter_context(scratch())


def _load_or_make(
    command: list[str], sources: Sequence[Path], contents: object, compile_in: Callable[[Path], bytes]
) -> bytes:
    """Returns the program's bytes: from the cache, or as `compile_in` compiles them in a temporary folder."""
    session, began = current_session(), time.time_ns()
    identity = compiler.identify(command, compiler.environment(), ()) if session.keeper is not None else None
    recipe = None
    if identity is not None:
        variables = [list(pair) for pair in compiler.passed().items()]
        parts = {"compiler": identity.digest, "flags": command, "files": contents, "variables": variables}
        recipe = Recipe(PROGRAMS, parts, identity, began)
        if (binary := recipe.load(session)) is not None:
            return binary
    with scratch() as name:
        binary, rules = compile_in(Path(name)), list(Path(name).glob("*.d"))
        if recipe is not None and len(rules) == len(sources):
            paths = {path for rule in rules for path in compiler.dependencies(rule.read_bytes())}
            recipe.keep(session, binary, sorted(paths - set(map(str, sources))))
    return binary
