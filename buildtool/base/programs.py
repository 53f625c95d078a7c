"""What compilers make, as the cache keeps it; and programs for this machine, compiled on first use."""

from __future__ import annotations

import atexit
import contextlib
import functools
import hashlib
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
from buildtool.base.session import Level, Session, at_work

_SHOWN = 2000  # characters of a compiler's complaint

Made = tuple[list[compiler.Fact], bytes]  # the headers that were read, and what was made


def level(name: str) -> Level[Made]:
    """A level of the cache for what a compiler makes. Its keys name everything that decides the result."""

    def unpack(data: bytes) -> Made:
        known, made = msgpack.unpackb(data, unicode_errors="surrogateescape")
        if not isinstance(made, bytes) or not all(isinstance(word, str) for pair in known for word in pair):
            raise ValueError("not what a compiler has made")
        return [(path, digest) for path, digest in known], made

    return Level(name, partial(msgpack.packb, unicode_errors="surrogateescape"), unpack, by_code=False)


PROGRAMS = level("programs")


@dataclass(frozen=True)
class Recipe:
    """What a compiler makes something of: the `parts` of its key, and the compiler itself.

    The files that no part names, which are the compiler's and the system's headers, are in the entry, with
    their digests: it counts while these are the same. `began_ns`: when the parts were read (ns since 1970).
    """

    level: Level[Made]
    parts: Mapping[str, Any]
    identity: compiler.Identity
    began_ns: int

    def kept(self, session: Session) -> bytes | None:
        """The result of the same recipe from the cache; None where there is none."""
        entry = session.kept(self.level, self.parts)
        return entry[1] if entry is not None and compiler.are_so(entry[0]) else None

    def keep(self, session: Session, made: bytes, others: Iterable[str]) -> None:
        """Keeps what was made, unless one of the `others`, which were read as well, has changed meanwhile."""
        with contextlib.suppress(OSError):
            known = compiler.facts(self.identity, others)
            if not compiler.changed_since(known, self.began_ns):
                session.hold(self.level, self.parts, (known, made))


def program(
    cc: str, name: str, sources: Sequence[Path], flags: Sequence[str], what: str, place: Path, hint: str = ""
) -> Path:
    """The program that `cc` makes of `sources` for this machine; there until this process ends.
    ToolError where `what` (at `place`) does not compile.
    """
    command = [cc, *flags]
    contents = [[path.name, hashlib.sha256(path.read_bytes()).hexdigest()] for path in sources]
    key = (name, *command, *map(tuple, contents))

    def compiled(folder: Path) -> bytes:
        built = folder / "program"
        words = [*command, "-MD", *map(str, sources), "-o", str(built)]
        options: dict[str, Any] = {"cwd": folder, "env": compiler.environment(), "stdin": subprocess.DEVNULL}
        try:
            done = subprocess.run(words, capture_output=True, text=True, errors="replace", **options)
        except OSError as error:
            raise ToolError(f"{what} cannot be compiled: {error.strerror}", path=cc) from None
        if done.returncode or not built.is_file():
            said = done.stderr.strip()[:_SHOWN] or f"the compiler's exit status is {done.returncode}"
            raise ToolError(f"{what} does not compile:\n{said}", path=str(place), hint=hint)
        return built.read_bytes()

    made = at_work().remember(
        "programs of this process", key, lambda: _load_or_make(command, sources, contents, compiled)
    )
    path = Path(_folder(), f"{hashlib.sha256(made).hexdigest()[:16]}-{name}")
    if not path.is_file():  # a cleaner of temporary files may have removed it
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(made)
        path.chmod(0o700)
    return path


@functools.cache
def _folder() -> str:
    held = contextlib.ExitStack()
    atexit.register(held.close)
    return held.enter_context(scratch())


def _load_or_make(
    command: list[str], sources: Sequence[Path], contents: object, compiled: Callable[[Path], bytes]
) -> bytes:
    """The program, from the cache or new."""
    session, began = at_work(), time.time_ns()
    identity = compiler.identify(command, compiler.environment(), ()) if session.keeper is not None else None
    recipe = None
    if identity is not None:
        variables = [list(pair) for pair in compiler.passed().items()]
        parts = {"compiler": identity.digest, "flags": command, "files": contents, "variables": variables}
        recipe = Recipe(PROGRAMS, parts, identity, began)
        if (kept := recipe.kept(session)) is not None:
            return kept
    with scratch() as name:
        made, rules = compiled(Path(name)), list(Path(name).glob("*.d"))
        if recipe is not None and len(rules) == len(sources):
            read = {path for rule in rules for path in compiler.dependencies(rule.read_bytes())}
            recipe.keep(session, made, sorted(read - set(map(str, sources))))
    return made
