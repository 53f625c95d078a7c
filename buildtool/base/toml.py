"""Files of TOML: their tables, and errors that say where in them a mistake is."""

from __future__ import annotations

import contextlib
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from buildtool.base.errors import TargetError
from buildtool.base.plain import Mismatch

_MOST_BYTES = 1 << 20  # of a file
# How the standard library says where a file is no TOML.
_AT = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")


def read_toml(path: Path, what: str, data: bytes | None = None) -> dict[str, Any]:
    """The file's top-level table; raises TargetError. `what` it is; `data`: its content, if read already."""
    text = ""
    try:
        text = (_read(path, what) if data is None else data).decode("utf-8")
        return tomllib.loads(text)
    except OSError as error:
        raise TargetError(f"cannot read the {what}: {error.strerror}", path=str(path)) from None
    except RecursionError:
        raise TargetError("not a TOML file: it is nested too deeply", path=str(path)) from None
    except ValueError as error:  # the decoders' errors are of this kind, and so is a number of 5,000 digits
        said, at = str(error), _AT.search(str(error))
        line, column = (int(at[1] or 0), int(at[2] or 0)) if at else (0, 0)
        if at and not line:  # the end of the document
            line, column = text.count("\n") + 1, len(text) - text.rfind("\n")
        wrong = f"not a TOML file: {_AT.sub('', said)}"
        raise TargetError(wrong, path=str(path), line=line, column=column) from None


def _read(path: Path, what: str) -> bytes:
    """The bytes of a file; TargetError for what is no plain file, or one that nobody needs."""
    if path.exists() and not path.is_file():
        raise TargetError(f"cannot read the {what}: it is not a regular file", path=str(path))
    with path.open("rb") as file:
        data = file.read(_MOST_BYTES + 1)
    if len(data) > _MOST_BYTES:
        raise TargetError(f"the {what} has more than {_MOST_BYTES} bytes", path=str(path))
    return data


def placed(error: TargetError, key: str, data: bytes | None = None) -> TargetError:
    """The error, with the line and column of `key` where its file has that."""
    from buildtool.base.toml_places import place  # of mistakes alone: it costs start-up time

    with contextlib.suppress(OSError, ValueError):
        text = (Path(error.path).read_bytes() if data is None else data).decode("utf-8")
        error.line, error.column = place(text, key)
    return error


@contextlib.contextmanager
def mistakes(path: str, data: bytes | None = None) -> Iterator[None]:
    """Tells what is wrong with a file's tables (Mismatch) as a TargetError with the key and its place."""
    try:
        yield
    except Mismatch as error:
        raise placed(TargetError(str(error), path=path, hint=error.hint), error.at, data) from None
