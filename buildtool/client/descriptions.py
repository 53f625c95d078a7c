"""Stores the answer to `describe`, and reuses it while everything that it depends on is unchanged.

Every build sends this request to learn its targets, even if there is nothing to do. A new answer needs a
running service and the compilers. So the client stores answers on disk (`base.store.disk`):

    the key     buildtool's code and its folder, the request, Python, the variables that choose a compiler
    the entry   the answer, and the state of all that it depends on: the folders of PATH, compiler and
                archiver with symbolic links resolved, the version that a compiler script prints, the
                board's files, and code and data of plugins that are not buildtool's

If some of this cannot be read, or changed shortly before the request, nothing is stored.
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

from buildtool.base.code_digest import ALL, below, home
from buildtool.base.digests import GRAIN_NS, Digests, stamp
from buildtool.base.folders import REMOTE
from buildtool.base.store import disk
from buildtool.client.files import Located

_LEVEL = "described"
_FORMAT = 2
_SECONDS = 120.0
OURS = ("kernels", "targets")  # roots that the code's digest covers
_LIBRARY = "library"  # the root of a user's library: C that does not run on this machine
_C = (".c", ".h")
_PACKAGES = ("site-packages", "dist-packages")

Request = Mapping[str, Any]


def fetch_description(
    request: Request, folder: str, code: str, seen: Digests, ask: Callable[[Request], dict[str, Any]]
) -> dict[str, Any]:
    """Returns the answer to a `describe` request from the cache, or else from `ask`, the client's method.

    Relative paths are relative to `folder`. `code` is the digest of buildtool's present code. `seen` has the
    digests of files.
    """
    began = time.time_ns()
    key = _make_key(request, folder, code)
    data = disk.recall(_LEVEL, key)
    # damaged bytes (msgpack raises many kinds of errors), or a missing file, which the service will report
    with contextlib.suppress(Exception):
        form, answer, facts = msgpack.unpackb(data, unicode_errors="surrogateescape")
        if form == _FORMAT and facts == _pack(_Facts(answer, seen).values):
            return dict(answer)
    answer = ask(request)
    if answer.get("digest") == code:
        with contextlib.suppress(OSError):
            state = _Facts(answer, seen)
            if state.newest_ns + GRAIN_NS <= began:
                disk.keep(_LEVEL, key, _pack([_FORMAT, answer, _pack(state.values)]))
    return answer


class _Facts:
    """The present state of all that an answer depends on. Its constructor raises OSError if a file is
    missing.

    `values` is the state as plain values. `newest_ns` is the time of the latest change (ns since 1970).
    """

    def __init__(self, answer: Mapping[str, Any], seen: Digests) -> None:
        self.newest_ns = 0
        self._seen = seen
        roots = {name: root for name, root in answer["roots"].items() if name not in OURS}
        foreign = [name for name in roots if name != _LIBRARY]
        places = [place for place in answer["depends"] if place["root"] not in OURS]
        # Folders with programs, then folders with plugins.
        searched = os.environ.get("PATH", os.defpath).split(os.pathsep)
        paths = (*sys.path, *os.environ.get("PYTHONPATH", "").split(os.pathsep))
        searched += [folder for folder in paths if Path(folder).name in _PACKAGES]
        files = [str(Path(answer["roots"].get(place["root"], ""), place["path"])) for place in places]
        self.values: list[Any] = [
            [self._folder(folder) for folder in searched],
            [self._program(answer["tools"][name]) for name in ("cc", "ar")],
            _query_script(answer["tools"]["cc"]),
            [self._file(path) for path in files],
            [[name, self._tree(root, _C if name == _LIBRARY else ALL)] for name, root in roots.items()],
            # foreign code may read any variable
            sorted(os.environ.items()) if foreign else [],
        ]

    def _stamp(self, path: str) -> tuple[int, int, int, int]:
        """Returns size, mtime, ctime and inode of a file."""
        numbers = stamp(Path(path).stat())
        self.newest_ns = max(self.newest_ns, *numbers[1:3])
        return numbers

    def _folder(self, path: str) -> list[Any]:
        """Returns a folder's path, times and inode. The times change when names in the folder change.

        If there is no such folder, returns only the path.
        """
        try:
            return [path, *self._stamp(path)[1:]]  # ctime as well: unpacking an archive sets the mtime
        except OSError:
            return [path]

    def _program(self, path: str) -> list[Any]:
        """Returns the state of a program's file and of its folder, which also contains its helper programs.

        `path` is the program's name or path; symbolic links are followed.
        """
        real = os.path.realpath(shutil.which(path) or path)
        return [path, real, *self._stamp(real), self._folder(str(Path(real).parent))]

    def _file(self, path: str) -> list[Any]:
        self._stamp(path)
        return [path, self._seen.digest(path)]

    def _tree(self, folder: str, suffixes: tuple[str, ...]) -> str:
        """Returns a digest of the names and contents of all files below a folder that have one of the
        `suffixes`.
        """
        digest = hashlib.sha256()
        for name in below(folder, suffixes):
            try:
                _, content = self._file(f"{folder}/{name}")
            except FileNotFoundError:
                continue  # a dangling link: editors mark open files with one
            digest.update(f"{name}\0{content}\0".encode(errors="surrogateescape"))
        return digest.hexdigest()


def _query_script(path: str) -> str:
    """Returns the version that a compiler prints if the compiler is a script; "" if it is a binary program.

    A script may call another compiler than before. The linker and the archiver depend on that compiler.
    """
    with Path(shutil.which(path) or path).open("rb") as file:
        if file.read(2) != b"#!":
            return ""
    try:
        result = subprocess.run(
            [path, "--version"], capture_output=True, stdin=subprocess.DEVNULL, timeout=_SECONDS, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise OSError("a compiler does not print its version") from error
    return f"{result.returncode} {result.stdout.decode(errors='surrogateescape')}"


def _make_key(request: Request, folder: str, code: str) -> str:
    """Returns the cache key of a request: a digest of the request and of what decides its answer, such as
    Python.

    It does not cover the content of the model.
    """
    options = {name: value for name, value in request.items() if name != "model"}
    model = request.get("model", "")
    path = Path(folder, model)
    own_variables = {name for name in os.environ if name.startswith("BUILDTOOL_")}.difference(REMOTE)
    variables = {name: os.environ[name] for name in own_variables}
    python = (sys.executable, sys.version, sorted(variables.items()))
    paths = (os.environ.get("PATH", ""), os.environ.get("PYTHONPATH", ""))
    about = (model, os.path.normpath(path), bool(model) and path.is_file())
    parts = [_FORMAT, code, home(), Located(options, folder).request, *about, *python, *paths]
    return hashlib.sha256(_pack(parts)).hexdigest()


def _pack(value: Any) -> bytes:
    packed: bytes = msgpack.packb(value, unicode_errors="surrogateescape")
    return packed
