"""Answers by request, as long as the files behind them are what they were."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from buildtool.base.digests import Memo, sha256, stamp
from buildtool.base.store.recent import Recent

MOST_BYTES = 64 << 20
MOST_FILE_BYTES = 64 << 20  # of a file that the daemon itself reads: a tenth of a second
_MOST_FILES = 1024  # whose digests are known


def request_key(request: Mapping[str, Any], environment: Mapping[str, str], cache: str) -> str:
    """A key that identifies a request, its environment and its use of the cache."""
    said = json.dumps([request, environment, cache], sort_keys=True, default=lambda data: [repr(data)])
    return hashlib.sha256(said.encode()).hexdigest()


class FileDigests(Memo[str]):
    """SHA-256 (hex) of files' contents, read again where a file may have changed."""

    def __init__(self) -> None:
        def steady(path: str) -> str:
            before = stamp(Path(path).stat())
            digest = sha256(path, MOST_FILE_BYTES)
            if stamp(Path(path).stat()) != before:
                raise OSError("it changes while it is read")
            return digest

        super().__init__(steady, _MOST_FILES)

    def of(self, path: str) -> str:
        """The digest of a file; "" where it cannot be read, is too large, or changes meanwhile."""
        try:
            return super().of(path)
        except (OSError, ValueError):
            return ""


class Kept(NamedTuple):
    """An answer's frame, and path and digest of each file behind it whose digest is not in the request."""

    frame: bytes
    inputs: tuple[tuple[str, str], ...]


class Answers(Recent[str, Kept]):
    """Answers that depend on files with known digests alone; those used last, up to MOST_BYTES."""

    def __init__(self) -> None:
        super().__init__(MOST_BYTES, lambda kept: len(kept.frame))
        self._digests = FileDigests()

    def get(self, key: str) -> Kept | None:
        """The answer for the key of a request; None where none is known, or a file behind it has changed."""
        known = super().get(key)
        if known is not None and any(self._digests.of(path) != digest for path, digest in known.inputs):
            self.pop(key)
            return None
        return known
