"""Answers by request, as long as the files behind them are what they were."""

from __future__ import annotations

import hashlib
import os
import stat
import time
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgpack

from buildtool.base.seen import proves, stamp

MOST_BYTES = 64 << 20
MOST_FILE_BYTES = 64 << 20  # of a file that the daemon itself reads: a tenth of a second


def request_key(request: Mapping[str, Any], environment: Mapping[str, str], cache: str) -> str:
    """Stands for all that a request says."""
    data = msgpack.packb(
        [_sorted(request), sorted(environment.items()), cache],
        use_bin_type=True,
        unicode_errors="surrogateescape",
    )
    return hashlib.sha256(data).hexdigest()


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return [[str(key), _sorted(item)] for key, item in sorted(value.items(), key=lambda kv: str(kv[0]))]
    if isinstance(value, list | tuple):
        return [_sorted(item) for item in value]
    return value


class Digests:
    """SHA-256 (hex) of files' contents, read again where size or time changed or is too young to tell."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, tuple[tuple[int, ...], str]] = OrderedDict()

    def of(self, path: str) -> str:
        """That of a file; "" of one that cannot be read."""
        try:
            there = _stat(path)
            if there is None:
                return ""
            known = self._known.get(path)
            if known is not None and known[0] == stamp(there):
                return known[1]
            now, digest = time.time_ns(), hashlib.sha256(_content(path)).hexdigest()
            after = _stat(path)
            if after is None or stamp(there) != stamp(after):
                return ""
        except (OSError, ValueError):
            return ""
        if proves(there, now):
            self._known[path] = (stamp(there), digest)
            while len(self._known) > 1024:
                self._known.popitem(last=False)
        return digest


def _content(path: str) -> bytes:
    """A file's bytes; OSError for a pipe that has taken its place, which would be waited for."""
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    with open(handle, "rb") as file:  # noqa: PTH123 - an open one, not a name
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError("not a file")
        return file.read(MOST_FILE_BYTES)


def _stat(path: str) -> os.stat_result | None:
    """That of a regular file that is not too large; OSError where there is nothing."""
    found = os.stat(path)  # noqa: PTH116 - of text that may be no path
    if not stat.S_ISREG(found.st_mode) or found.st_size > MOST_FILE_BYTES:
        return None
    return found


@dataclass(frozen=True)
class Kept:
    """An answer's frame; path and digest of the files behind it of which the request has no digest."""

    frame: bytes
    inputs: tuple[tuple[str, str], ...]


class Answers:
    """Answers of requests whose digests say all; the ones used last are kept, within some bytes."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._kept: OrderedDict[str, Kept] = OrderedDict()
        self._most, self._held = most_bytes, 0
        self._digests = Digests()

    def __len__(self) -> int:
        return len(self._kept)

    @property
    def size(self) -> int:
        """Bytes that are held."""
        return self._held

    def get(self, key: str) -> bytes | None:
        """The frame for a request; None where none is known, or a file behind it changed."""
        known = self._kept.get(key)
        if known is None:
            return None
        if any(self._digests.of(path) != digest for path, digest in known.inputs):
            self._drop(key)
            return None
        self._kept.move_to_end(key)
        return known.frame

    def put(self, key: str, kept: Kept) -> None:
        """Keeps an answer."""
        self._drop(key)
        self._kept[key] = kept
        self._held += len(kept.frame)
        while self._held > self._most:
            self._drop(next(iter(self._kept)))

    def clear(self) -> None:
        """Forgets all."""
        self._kept.clear()
        self._held = 0

    def _drop(self, key: str) -> None:
        known = self._kept.pop(key, None)
        if known is not None:
            self._held -= len(known.frame)
