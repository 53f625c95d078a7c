"""A session: values that were computed once, kept for as long as the session lives.

It is made where a request comes in, and passed to whatever may reuse a value. Keys are canonical values
(digests, tuples of numbers), never an object's identity, so that equal questions share one answer. Nothing
else in the project remembers anything between calls. A keeper (buildtool/base/store/cache.py) keeps values
for later processes, as bytes under a key of all that they depend on, the code included.
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

MOST_ENTRIES = 64  # of one kind
_SCHEMA = 1  # of keys


@dataclass(frozen=True)
class Level(Generic[T]):
    """A kind of value that outlives a process: its name (lower-case letters), and its bytes.

    `by_code`: buildtool's code is a part of its key. `pack` gives b"" for a value that shall not outlive the
    session. `unpack` raises for bytes that are no such value; then it is made anew.
    """

    name: str
    pack: Callable[[T], bytes]
    unpack: Callable[[bytes], T]
    by_code: bool = True


class _Value(NamedTuple):
    """What is remembered, and what was spent on it, if anything."""

    value: Any
    spent: tuple[Spent, ...] = ()


class Session:
    """Values by kind and key: of each kind the ones used last, and some by a `keeper` as well.
    `progress` hears of steps that may take a while; `work`: what a request may still spend.
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
        """Says what begins now, to whoever listens."""
        if self.progress is not None:
            self.progress(text)

    @contextlib.contextmanager
    def budget(self, most: float) -> Iterator[Work]:
        """Makes `work` a budget of `most` units for a while."""
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
        """The value kept under `kind` and `key`; made, and kept, where there is none, or it does not `serve`.
        `most_entries`: of this kind. What `make` raises reaches the caller; what the budget cut short is not
        kept.
        """
        known, work = self._of(kind), self.work
        found = known.get(key)
        if found is not None and serves(found.value) and (not found.spent or work.pay(found.spent)):
            return cast(T, found.value)
        work.begin((kind, key))
        try:
            value = make()
        finally:
            took = work.end()
        if took is not None and serves(value):
            known.put(key, _Value(value, took), most_entries)
        return value

    def keep(
        self, level: Level[T], parts: Mapping[str, Any], make: Callable[[], T], most_entries: int = 0
    ) -> T:
        """As `remember`, and by the keeper as well; no value is None.
        `parts`: all that the value depends on, by name, as plain values (buildtool/base/plain.py).
        """
        value = self.kept(level, parts, most_entries)
        if value is None:
            value = make()
            self.hold(level, parts, value, most_entries)
        return value

    def kept(self, level: Level[T], parts: Mapping[str, Any], most_entries: int = 0) -> T | None:
        """The value that is kept; None where there is none."""
        key = self._key(level, parts)
        known = self._of(level.name).get(key)
        if known is not None:
            return cast(T, known.value)
        data = self.keeper.get(level.name, key, parts) if self.keeper is not None else None
        if data is None or self.keeper is None:
            return None
        try:
            value = level.unpack(data)
        except Exception:  # whatever hostile bytes bring about: they are no value of ours
            self.keeper.refuse(level.name, key)
            return None
        self._of(level.name).put(key, _Value(value), most_entries)
        return value

    def hold(self, level: Level[T], parts: Mapping[str, Any], value: T, most_entries: int = 0) -> None:
        """Keeps a value from now on; where `pack` has no bytes for it, in the session alone."""
        key = self._key(level, parts)
        self.remember(level.name, key, lambda: value, most_entries)
        if self.keeper is not None and (data := level.pack(value)):
            self.keeper.put(level.name, key, data)

    def forget(self) -> None:
        """Forgets all values; what a keeper has stays."""
        self._kinds.clear()

    def _of(self, kind: str) -> Recent[Hashable, _Value]:
        return self._kinds.setdefault(kind, Recent(self._most))

    def _key(self, level: Level[T], parts: Mapping[str, Any]) -> str:
        """SHA-256 (hex) of all that the value depends on: the code included, or else its version."""
        code = self.keeper.code if self.keeper is not None and level.by_code else __version__
        said = [_SCHEMA, level.name, code, sorted(parts.items())]
        data = msgpack.packb(said, unicode_errors="surrogateescape")  # a name of a file need not be UTF-8
        return hashlib.sha256(data).hexdigest()


@contextlib.contextmanager
def working(session: Session) -> Iterator[None]:
    """Until this ends, `session` is that of the request that this thread is at work on."""
    token = _at_work.set(session)
    try:
        yield
    finally:
        _at_work.reset(token)


def at_work() -> Session:
    """The session of the request at work, or a new one: for plugins, whom nobody hands a session."""
    return _at_work.get() or Session()


def remembered(method: Callable[Concatenate[S, P], T]) -> Callable[Concatenate[S, P], T]:
    """The method, which computes each result once: the instance keeps them by the positional arguments."""
    name = f"results of {method.__name__}"

    @wraps(method)
    def known(self: Any, *args: Any) -> T:
        results: dict[tuple[Any, ...], T] = self.__dict__.setdefault(name, {})
        if args not in results:
            results[args] = cast(Callable[..., T], method)(self, *args)
        return results[args]

    return cast(Callable[Concatenate[S, P], T], known)
