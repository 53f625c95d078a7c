"""A session remembers computed values for as long as it lives.

It is made where a request arrives, and passed to all code that may reuse a value. Keys are canonical values
(digests, tuples of numbers), never an object's identity, so that equal requests share one value. Nothing else
in the project remembers values between calls. A session's keeper (buildtool/base/store/cache.py) stores
values for later processes, as bytes. Their keys contain everything that they depend on, including the code.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, Generic, NamedTuple, ParamSpec, TypeVar, cast

import msgpack

from buildtool import __version__
from buildtool.base.store.recent import Recent
from buildtool.base.work import Spent, Work

if TYPE_CHECKING:
    from buildtool.base.store.cache import Cache

T = TypeVar("T")
S = TypeVar("S")
P = ParamSpec("P")

_at_work: ContextVar[Session | None] = ContextVar("session", default=None)

MOST_ENTRIES = 64  # upper limit for the values of one kind
_SCHEMA = 1  # version of the keys


@dataclass(frozen=True)
class Namespace(Generic[T]):
    """A cache namespace: a kind of value that outlives a process. `name` has lower-case letters only.

    `pack`: returns the bytes of a value, or b"" if the value must not outlive the session.
    `unpack`: returns the value. It may raise any error for other bytes; then the value is computed again.
    `by_code`: whether keys contain the digest of buildtool's code.
    """

    name: str
    pack: Callable[[T], bytes]
    unpack: Callable[[bytes], T]
    by_code: bool = True


class _Value(NamedTuple):
    """A remembered value, and the units of work that computing it took (buildtool/base/work.py)."""

    value: Any
    spent: tuple[Spent, ...] = ()


class Session:
    """Computed values by kind and key: of each kind, the `most_entries` that were used last.

    `keeper`: also stores some of the values, for later processes (None: no cache).
    `progress`: is called with a text when a step begins that may take long.
    `work`: the budget of the current request.
    """

    def __init__(
        self,
        most_entries: int = MOST_ENTRIES,
        keeper: Cache | None = None,
        progress: Callable[[str], None] | None = None,
    ) -> None:
        self._most, self.keeper, self.progress = most_entries, keeper, progress
        self._kinds: dict[str, Recent[Hashable, _Value]] = {}
        self.work = Work()

    def tell(self, text: str) -> None:
        """Reports the step that begins now to `progress`."""
        if self.progress is not None:
            self.progress(text)

    @contextlib.contextmanager
    def budget(self, most: float) -> Iterator[Work]:
        """A context in which `work` is a budget of `most` units."""
        before, self.work = self.work, Work(most)
        try:
            yield self.work
        finally:
            self.work = before

    def remember(
        self,
        kind: str,
        key: Hashable,
        make: Callable[[], T],
        most_entries: int = 0,
        serves: Callable[[T], bool] = lambda _: True,
    ) -> T:
        """Returns the value under `kind` and `key`.

        If it is missing, or `serves` rejects the remembered one, it is made and remembered. It is not
        remembered if the end of the budget cut its computation short. `most_entries` limits the values of
        this kind (0: the session's limit). Errors of `make` reach the caller.
        """
        values, work = self._of(kind), self.work
        entry = values.get(key)
        if entry is not None and serves(entry.value) and (not entry.spent or work.pay(entry.spent)):
            return cast(T, entry.value)
        work.begin((kind, key))
        try:
            value = make()
        finally:
            spent = work.end()
        if spent is not None and serves(value):
            values.put(key, _Value(value, spent), most_entries)
        return value

    def keep(
        self, namespace: Namespace[T], parts: Mapping[str, Any], make: Callable[[], T], most_entries: int = 0
    ) -> T:
        """Returns the value under `namespace` and `parts`; makes and stores it where it is missing.

        `parts` gives all that the value depends on, by name, as plain values (buildtool/base/plain.py). The
        value must not be None.
        """
        value = self.load(namespace, parts, most_entries)
        if value is None:
            value = make()
            self.store(namespace, parts, value, most_entries)
        return value

    def load(self, namespace: Namespace[T], parts: Mapping[str, Any], most_entries: int = 0) -> T | None:
        """Returns the value from the session or its keeper; None if neither has it."""
        key = self._key(namespace, parts)
        entry = self._of(namespace.name).get(key)
        if self.keeper is not None:
            self.keeper.count_memory(entry is not None)
        if entry is not None:
            return cast(T, entry.value)
        data = self.keeper.get(namespace.name, key, parts) if self.keeper is not None else None
        if data is None or self.keeper is None:
            return None
        try:
            value = namespace.unpack(data)
        except Exception:  # hostile bytes may raise any error
            self.keeper.refuse(namespace.name, key)
            return None
        self._of(namespace.name).put(key, _Value(value), most_entries)
        return value

    def store(
        self, namespace: Namespace[T], parts: Mapping[str, Any], value: T, most_entries: int = 0
    ) -> None:
        """Stores a value in the session and its keeper. If `pack` returns no bytes for it, only the session
        stores it.
        """
        key = self._key(namespace, parts)
        self.remember(namespace.name, key, lambda: value, most_entries)
        if self.keeper is not None and (data := namespace.pack(value)):
            self.keeper.put(namespace.name, key, data)

    def forget(self) -> None:
        """Forgets all values of the session. Values of the keeper stay."""
        self._kinds.clear()

    def _of(self, kind: str) -> Recent[Hashable, _Value]:
        return self._kinds.setdefault(kind, Recent(self._most))

    def _key(self, namespace: Namespace[T], parts: Mapping[str, Any]) -> str:
        """Returns the SHA-256 (hex) of all that the value depends on, including the digest of buildtool's
        code, or only its version if the namespace is not `by_code`.
        """
        code = self.keeper.code if self.keeper is not None and namespace.by_code else __version__
        content = [_SCHEMA, namespace.name, code, sorted(parts.items())]
        data = msgpack.packb(content, unicode_errors="surrogateescape")  # a file's name need not be UTF-8
        return hashlib.sha256(data).hexdigest()


@contextlib.contextmanager
def working(session: Session) -> Iterator[None]:
    """A context in which `current_session` returns `session`, for the request that this thread answers."""
    token = _at_work.set(session)
    try:
        yield
    finally:
        _at_work.reset(token)


def current_session() -> Session:
    """Returns the session of the current request, or a new one. Plugins, which get no session, call it."""
    return _at_work.get() or Session()


def remembered(method: Callable[Concatenate[S, P], T]) -> Callable[Concatenate[S, P], T]:
    """Decorates a method: the instance remembers the result for each tuple of positional arguments."""
    name = f"results of {method.__name__}"

    @wraps(method)
    def known(self: Any, *args: Any) -> T:
        results: dict[tuple[Any, ...], T] = self.__dict__.setdefault(name, {})
        if args not in results:
            results[args] = cast("Callable[..., T]", method)(self, *args)
        return results[args]

    return cast(Callable[Concatenate[S, P], T], known)
