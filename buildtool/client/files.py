"""Turns the files that a request names into absolute paths with digests.

So the service, which has another working folder, reads the same files as the client.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from buildtool.base.digests import Digests
from buildtool.base.errors import BuildtoolError, Hint, MachineError
from buildtool.options import BY_NAME, Option

MOST_BYTES = 1 << 30  # upper limit for a file that the service reads


def _is_model(path: Path) -> bool:
    """Whether a name without a known suffix is a model: a file or a SavedModel, which the service will
    refuse.
    """
    return path.is_file() or (path / "saved_model.pb").is_file()


def _working_folder() -> Path:
    try:
        return Path.cwd()
    except FileNotFoundError:
        text, hint = "the working folder has been removed", "change to another folder"
        raise MachineError(text, hint=hint) from None


class Located:
    """A request with absolute paths in place of paths that are relative to `folder`; `request` is the result.

    If `folder` is None, they are relative to the working folder.
    """

    def __init__(self, request: Mapping[str, Any], folder: str | None = None) -> None:
        self._folder = Path(folder).absolute() if folder else _working_folder()
        self._given: dict[str, str] = {}
        self._seen = Digests(f"files named in {self._folder}")
        self.request = {name: self._value(BY_NAME.get(name), value) for name, value in request.items()}
        self._seen.save()

    def restore_path(self, error: BuildtoolError) -> BuildtoolError:
        """Returns `error` with its path, and the paths in its hints, as the user wrote them."""
        if error.path in self._given:
            absolute, given = error.path, self._given[error.path]
            # Hints also name new files: the same path with another suffix.
            old, new = (path.removesuffix(Path(path).suffix) for path in (absolute, given))

            def restore(value: Any) -> Any:
                return value.replace(old, new) if isinstance(value, str) else value

            error.path = given
            error.hints = tuple(
                Hint(restore(text), tuple((name, restore(value)) for name, value in settings))
                for text, settings in error.hints
            )
        return error

    def _value(self, option: Option | None, value: Any) -> Any:
        if option is None or (option.suffixes is None and not option.folder):
            return value
        if isinstance(value, list | tuple):
            return [self._value(option, item) for item in value]
        if not isinstance(value, str) or not value:
            return value
        path = self._folder / value
        if option.folder:
            return self._absolute(path, value)
        if value.lower().endswith(option.suffixes or ()) or (option.name == "model" and _is_model(path)):
            absolute, digest = self._absolute(path, value), self._digest(path)
            # only the path of an unreadable file: the service will report the error
            return {"path": absolute, "sha256": digest} if digest else absolute
        return value

    def _digest(self, path: Path) -> str:
        """Returns the SHA-256 (hex) of a file; "" if it is not a regular file, unreadable or too large."""
        try:
            if not path.is_file() or path.stat().st_size > MOST_BYTES:
                return ""
            return self._seen.digest(str(path))
        except (OSError, ValueError):
            return ""

    def _absolute(self, path: Path, given: str) -> str:
        absolute = os.path.normpath(path)
        self._given[absolute] = given
        return absolute
