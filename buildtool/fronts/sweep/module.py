"""Functions of a user's Python file: they yield networks in this process, or make one in a worker."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from buildtool.base.errors import MachineError, UsageError, described, did_you_mean


@dataclass(frozen=True)
class Module:
    """A Python file: its path and its text. Workers get the text and do not read the file again."""

    path: str
    text: str


@dataclass(frozen=True)
class Made:
    """A network that a function of a module returns for some arguments. A worker calls the function."""

    module: Module
    function: str
    arguments: tuple[tuple[str, Any], ...]

    @property
    def identity(self) -> str:
        """A digest of all that the network depends on: the module's text, the function and its arguments.

        It identifies the network if the function returns the same bytes for the same arguments.
        """
        content = repr([self.module.text, self.function, self.arguments])
        return hashlib.sha256(content.encode(errors="surrogatepass")).hexdigest()

    def __call__(self) -> bytes:
        """Returns the network's file. Raises UsageError if the function fails or does not return bytes."""
        made = _run(self.module, self.function, dict(self.arguments))
        data = made.read_bytes() if isinstance(made, Path) else made
        if not isinstance(data, bytes | bytearray):
            text = f"{self.function} returned {type(made).__name__}, not the bytes of a network"
            raise UsageError(text, path=self.module.path)
        return bytes(data)


def is_function(text: str) -> bool:
    """Whether a text names a function: FILE.py:NAME."""
    path, colon, name = text.rpartition(":")
    return bool(colon) and path.endswith(".py") and name.isidentifier()


def read_module(named: Path) -> Module:
    """Returns the module in FILE.py:NAME. Raises UsageError if the file cannot be read."""
    path = str(named).rpartition(":")[0]
    try:
        return Module(path, Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is not text in UTF-8"
        raise UsageError(f"cannot read the module: {reason}", path=path, hint="check the path") from None


def call(named: Path) -> Iterable[Any]:
    """Returns what the function FILE.py:NAME yields. Raises UsageError if it fails or yields nothing."""
    module, name = read_module(named), str(named).rpartition(":")[2]
    several = _run(module, name, {})
    if not isinstance(several, Iterable):
        raise UsageError(f"{name} yields no networks: {type(several).__name__}", path=module.path)
    rest, count = iter(several), 0
    while True:
        with _calling(name, module.path):
            try:
                one = next(rest)
            except StopIteration:
                break
        yield one
        count += 1
    if not count:
        raise UsageError(f"{name} yields no networks", path=module.path)


def _run(module: Module, name: str, arguments: dict[str, Any]) -> Any:
    loaded = _load(module.path, module.text)
    function = getattr(loaded, name, None)
    if not callable(function):
        functions = [key for key, value in vars(loaded).items() if callable(value)]
        hint = did_you_mean(name, functions)
        raise UsageError(f"the module has no function '{name}'", path=module.path, hint=hint)
    with _calling(name, module.path):
        return function(**arguments)


@contextlib.contextmanager
def _calling(name: str, path: str) -> Iterator[None]:
    """A context for a user's code. Its errors become UsageErrors, and its prints go to standard error."""
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    except MemoryError:  # of the machine: another attempt may succeed
        raise MachineError(f"{name} needs more memory than there is", path=path) from None
    except (Exception, SystemExit) as error:
        raise UsageError(f"{name} failed: {described(error)}", path=path) from error


@functools.lru_cache(maxsize=4)
def _load(path: str, text: str) -> ModuleType:
    folder = str(Path(path).parent)
    loaded = ModuleType(Path(path).stem)
    loaded.__file__ = path
    if folder not in sys.path:
        sys.path.append(folder)  # the file may import modules beside it
    with _calling("the import of the module", path):
        exec(compile(text, Path(path).name, "exec"), loaded.__dict__)  # rows name no folder
    return loaded
