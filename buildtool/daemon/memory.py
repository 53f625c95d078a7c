"""Answers by request, as long as the files behind them are what they were."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgpack

from buildtool.base.digests import Memo, sha256, stamp
from buildtool.base.store.recent import Recent

MOST_BYTES = 64 << 20
MOST_FILE_BYTES = 64 << 20  # of a file that the daemon itself reads: a tenth of a second
_MOST_FILES = 1024  # whose digests are known


def request_key(request: Mapping[str, Any], environment: Mapping[str, str], cache: str) -> str:
    """Stands for all that a request says."""
    said = [_sorted(request), sorted(environment.items()), cache]
    data = msgpack.packb(said, unicode_errors="surrogateescape")
    return hashlib.sha256(data).hexdigest()


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return [[str(key), _sorted(item)] for key, item in sorted(value.items(), key=lambda kv: str(kv[0]))]
    if isinstance(value, list | tuple):
        return [_sorted(item) for item in value]
    return value


class FileDigests:
    """SHA-256 (hex) of files' contents, read again where a file may have changed."""

    def __init__(self) -> None:
        self._known = Memo(_steady, _MOST_FILES)

    def of(self, path: str) -> str:
        """That of a file; "" of one that cannot be read, is too large, or changes meanwhile."""
        try:
            return self._known.of(path)
        except (OSError, ValueError):
            return ""


def _steady(path: str) -> str:
    """The digest of a file that stays as it is while it is read; OSError for another one."""
    before = stamp(Path(path).stat())
    digest = sha256(path, MOST_FILE_BYTES)
    if stamp(Path(path).stat()) != before:
        raise OSError("it changes")
    return digest


@dataclass(frozen=True)
class Kept:
    """An answer's frame; path and digest of the files behind it of which the request has no digest."""

    frame: bytes
    inputs: tuple[tuple[str, str], ...]


class Answers:
    """Answers of requests whose digests say all; the ones used last are kept, within some bytes."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._kept: Recent[str, Kept] = Recent(most_bytes, lambda kept: len(kept.frame))
        self._digests = FileDigests()

    def __len__(self) -> int:
        return len(self._kept)

    @property
    def size(self) -> int:
        """Bytes that are held."""
        return self._kept.held

    def get(self, key: str) -> bytes | None:
        """The frame for a request; None where none is known, or a file behind it changed."""
        known = self._kept.get(key)
        if known is None:
            return None
        if any(self._digests.of(path) != digest for path, digest in known.inputs):
            self._kept.pop(key)
            return None
        return known.frame

    def put(self, key: str, kept: Kept) -> None:
        """Keeps an answer."""
        self._kept.put(key, kept)

    def clear(self) -> None:
        """Forgets all."""
        self._kept.clear()
