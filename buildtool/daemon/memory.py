"""Answers by request, valid while the files that they depend on are unchanged."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from buildtool.base.digests import Memo, sha256, stamp
from buildtool.base.store.recent import Recent

MOST_BYTES = 64 << 20
MOST_FILE_BYTES = 64 << 20  # the daemon itself reads no larger file: this one takes a tenth of a second
_MOST_FILES = 1024  # files whose digests are remembered


def request_key(request: Mapping[str, Any], environment: Mapping[str, str], cache: str) -> str:
    """Returns a key that identifies a request, its environment and its use of the cache."""
    text = json.dumps([request, environment, cache], sort_keys=True, default=lambda data: [repr(data)])
    return hashlib.sha256(text.encode()).hexdigest()


class FileDigests(Memo[str]):
    """SHA-256 (hex) of files' contents. A file is read again if it may have changed since."""

    def __init__(self) -> None:
        def steady(path: str) -> str:
            old = stamp(Path(path).stat())
            digest = sha256(path, MOST_FILE_BYTES)
            if stamp(Path(path).stat()) != old:
                raise OSError("the file changed while it was read")
            return digest

        super().__init__(steady, _MOST_FILES)

    def of(self, path: str) -> str:
        """Returns the digest of a file; "" if it cannot be read, is too large, or changes while it is
        read.
        """
        try:
            return super().of(path)
        except (OSError, ValueError):
            return ""


class KeptAnswer(NamedTuple):
    """An answer that is kept: the bytes of its message, and the files that it depends on.

    `inputs` has path and digest of each such file, except for files whose digests are in the request.
    """

    frame: bytes
    inputs: tuple[tuple[str, str], ...]


class Answers(Recent[str, KeptAnswer]):
    """The recently used answers that depend only on files with known digests, MOST_BYTES at most."""

    def __init__(self) -> None:
        super().__init__(MOST_BYTES, lambda kept: len(kept.frame))
        self._digests = FileDigests()

    def get(self, key: str) -> KeptAnswer | None:
        """Returns the answer to the request with this key; None if it is unknown, or a file has changed."""
        answer = super().get(key)
        if answer is not None and any(self._digests.of(path) != digest for path, digest in answer.inputs):
            self.pop(key)
            return None
        return answer
