"""The answer to `describe` of an earlier build, used while all that it depends on is unchanged.

A build asks this to know its targets, even if there is nothing to do, and the answer would need a service and
compilers. So the client keeps it in an entry:

    its name    buildtool's code and its place, the request, Python, the variables that choose a compiler
    in it       the folders of PATH, compiler and archiver behind their links, what a compiler that is a
                script says of itself, the board's files, and foreign code and data

If any of this cannot be read, or changed shortly before the question, nothing is kept.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgpack

from buildtool.base.digests import GRAIN_NS, Digests, stamp
from buildtool.base.identity import ALL, below, home
from buildtool.base.store import disk
from buildtool.client.files import Located

_LEVEL = "described"
_FORMAT = 2
_SECONDS = 120.0
OURS = ("kernels", "targets")  # roots that the code's digest stands for
_LIBRARY = "library"  # the root of a library of the user's: C, and nothing that runs here
_C = (".c", ".h")
_PACKAGES = ("site-packages", "dist-packages")

Request = Mapping[str, Any]


def fetch_description(
    request: Request, folder: str, code: str, seen: Digests, ask: Callable[[Request], dict[str, Any]]
) -> dict[str, Any]:
    """The answer to the `describe` request; `ask` is a client's method, called where nothing is known.
    `folder`: what relative paths are relative to; `code`: buildtool's digest now; `seen`: digests of files.
    """
    began = time.time_ns()
    name = _name(request, folder, code)
    data = disk.recall(_LEVEL, name)
    # damaged bytes (msgpack raises many kinds), or something is gone: whether it is missed, the service knows
    with contextlib.suppress(Exception):
        form, answer, facts = msgpack.unpackb(data, unicode_errors="surrogateescape")
        if form == _FORMAT and facts == _pack(_Facts(answer, seen).values):
            return dict(answer)
    answer = ask(request)
    if answer.get("digest") == code:
        with contextlib.suppress(OSError):
            now = _Facts(answer, seen)
            if now.newest_ns + GRAIN_NS <= began:
                disk.keep(_LEVEL, name, _pack([_FORMAT, answer, _pack(now.values)]))
    return answer


class _Facts:
    """What an answer was made from, as it is now; OSError where something is missing.
    `newest_ns`: when the last of it changed, in nanoseconds since 1970.
    """

    def __init__(self, answer: Mapping[str, Any], seen: Digests) -> None:
        self.newest_ns = 0
        self._seen = seen
        roots = {name: root for name, root in answer["roots"].items() if name not in OURS}
        foreign = [name for name in roots if name != _LIBRARY]
        places = [place for place in answer["depends"] if place["root"] not in OURS]
        searched = os.environ.get("PATH", os.defpath).split(os.pathsep)  # for programs, and for plugins:
        paths = (*sys.path, *os.environ.get("PYTHONPATH", "").split(os.pathsep))
        searched += [folder for folder in paths if Path(folder).name in _PACKAGES]
        files = [str(Path(answer["roots"].get(place["root"], ""), place["path"])) for place in places]
        self.values: list[Any] = [
            [self._folder(folder) for folder in searched],
            [self._program(answer["tools"][name]) for name in ("cc", "ar")],
            _script_identity(answer["tools"]["cc"]),
            [self._file(path) for path in files],
            [[name, self._tree(root, _C if name == _LIBRARY else ALL)] for name, root in roots.items()],
            # code of others may look at any variable
            sorted(os.environ.items()) if foreign else [],
        ]

    def _stamp(self, path: str) -> tuple[int, int, int, int]:
        """Size, both times and inode."""
        numbers = stamp(Path(path).stat())
        self.newest_ns = max(self.newest_ns, *numbers[1:3])
        return numbers

    def _folder(self, path: str) -> list[Any]:
        """When names were added to a folder or removed; the path alone if there is no folder."""
        try:
            return [path, *self._stamp(path)[1:]]  # archives set the first of these
        except OSError:
            return [path]

    def _program(self, path: str) -> list[Any]:
        """A program behind its links, and the folder where it looks for others."""
        real = os.path.realpath(shutil.which(path) or path)
        return [path, real, *self._stamp(real), self._folder(str(Path(real).parent))]

    def _file(self, path: str) -> list[Any]:
        self._stamp(path)
        return [path, self._seen.digest(path)]

    def _tree(self, folder: str, suffixes: tuple[str, ...]) -> str:
        """The digest of the names and the contents of the files below a folder."""
        digest = hashlib.sha256()
        for name in below(folder, suffixes):
            try:
                _, content = self._file(f"{folder}/{name}")
            except FileNotFoundError:
                continue  # a link to nothing, by which editors say that they have a file open
            digest.update(f"{name}\0{content}\0".encode(errors="surrogateescape"))
        return digest.hexdigest()


def _script_identity(path: str) -> str:
    """What a script that stands for a compiler says of itself ("": it is no script): another compiler may run
    behind it now, by which linker and archiver are chosen.
    """
    with Path(shutil.which(path) or path).open("rb") as file:
        if file.read(2) != b"#!":
            return ""
    try:
        done = subprocess.run(
            [path, "--version"], capture_output=True, stdin=subprocess.DEVNULL, timeout=_SECONDS, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise OSError("a compiler does not say what it is") from error
    return f"{done.returncode} {done.stdout.decode(errors='surrogateescape')}"


def _name(request: Request, folder: str, code: str) -> str:
    """The entry's name: it identifies the question and all used to answer it, but not the model's content."""
    asked = {name: value for name, value in request.items() if name != "model"}
    model = request.get("model", "")
    path = Path(folder, model)
    variables = {name: value for name, value in os.environ.items() if name.startswith("BUILDTOOL_")}
    means = (sys.executable, sys.version, sorted(variables.items()))
    paths = (os.environ.get("PATH", ""), os.environ.get("PYTHONPATH", ""))
    about = (model, os.path.normpath(path), bool(model) and path.is_file())
    parts = [_FORMAT, code, home(), Located(asked, folder).request, *about, *means, *paths]
    return hashlib.sha256(_pack(parts)).hexdigest()


def _pack(value: Any) -> bytes:
    packed: bytes = msgpack.packb(value, unicode_errors="surrogateescape")
    return packed
