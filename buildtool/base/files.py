"""Files that a request names. A request has either a file's bytes, or an absolute path and the digest of the
content that the client has seen there.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from buildtool.base.errors import ModelError, UsageError


@dataclass(frozen=True)
class File:
    """A file that a request names. Its content is `data`, or that of the file at `path` where `data` is None.
    `sha256` is the digest (hex) that the content must have ("": any content).
    """

    path: str
    sha256: str = ""
    data: bytes | None = None

    @property
    def stem(self) -> str:
        """The name of the file without folders and suffix."""
        return Path(self.path).stem

    def exists(self) -> bool:
        """Whether the file exists, or its bytes came with the request."""
        return self.data is not None or Path(self.path).exists()

    def read(self, what: str, most: int) -> bytes:
        """Returns the content; messages call the file `what`. Raises ModelError above `most` bytes, and
        UsageError where the file cannot be read or its digest differs.
        """
        with self._errors(what):
            if self.data is not None:
                data = self.data
            else:
                self._check(most)
                with Path(self.path).open("rb") as file:
                    data = file.read(most + 1)  # it may have grown since the check
            if len(data) > most:
                raise self._too_large(most)
        self._compare(what, hashlib.sha256(data).hexdigest() if self.sha256 else "")
        return data

    @contextlib.contextmanager
    def _errors(self, what: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            missing = isinstance(error, FileNotFoundError)
            text = f"cannot read {what}: {'there is no such file' if missing else error.strerror}"
            raise UsageError(text, path=self.path, hint="check the path") from error
        except ValueError:  # a null character
            raise UsageError(f"cannot read {what}: this is not a path", path=repr(self.path)) from None

    def _compare(self, what: str, sha256: str) -> None:
        """Raises UsageError unless `sha256`, the digest of the content, is the one that the request gave."""
        if self.sha256 and sha256 != self.sha256:
            text = f"{what} changed after the request was made: its digest differs"
            raise UsageError(text, path=self.path, hint="send the request again")

    @contextlib.contextmanager
    def opened(self, what: str, most: int) -> Iterator[IO[bytes]]:
        """Yields the file, opened for reading. Raises the same errors as `read`."""
        if self.data is not None:
            yield io.BytesIO(self.read(what, most))
            return
        with contextlib.ExitStack() as stack:
            with self._errors(what):
                self._check(most)
                file = stack.enter_context(Path(self.path).open("rb"))
                if self.sha256:
                    self._compare(what, hashlib.file_digest(file, "sha256").hexdigest())
                    file.seek(0)
            yield file

    def _check(self, most: int) -> None:
        """Raises UsageError unless the file is a regular file, and ModelError if it has more than `most`
        bytes.
        """
        path = Path(self.path)
        size = path.stat().st_size
        if not path.is_file():  # a pipe can be read only once, and a device may never end
            raise UsageError("it is not a regular file", path=self.path, hint="check the path")
        if size > most:
            raise self._too_large(most)

    def _too_large(self, most: int) -> ModelError:
        return ModelError(f"the file has more than {most} bytes", path=self.path)


Named = str | File  # the name of a network of the zoo or of a known board, or a file


@dataclass(frozen=True)
class Cut:
    """A part of a network: the operators that `outputs` need.

    `outputs` names tensors or layers. If it is empty, the part ends where the network ends. If `single`, the
    part is the network for one image, provided that the network computes each image of its batch separately.
    """

    network: Named
    outputs: tuple[str, ...] = ()
    single: bool = False


NetworkSpec = Named | Cut


def uncut(network: NetworkSpec) -> Named:
    """Returns the name or file of the whole network, of which `network` may be a part."""
    return network.network if isinstance(network, Cut) else network


def to_file(value: str | dict[str, Any] | File, suffixes: tuple[str, ...]) -> str | File:
    """Returns the File that a value in a request describes, or the value itself if it is the name of a
    network or board. A text is a path if it ends with one of the `suffixes` or is absolute. Raises UsageError
    for a relative path.
    """
    if isinstance(value, File):
        return value
    if isinstance(value, dict):
        file = (
            File(value["name"], data=value["data"])
            if "data" in value
            else File(value["path"], value["sha256"])
        )
    elif Path(value).is_absolute() or value.lower().endswith(suffixes):
        file = File(value)
    else:
        return value
    if file.data is None and not Path(file.path).is_absolute():
        raise UsageError("a path in a request must be absolute", path=file.path)
    return file
