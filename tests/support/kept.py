"""Caches for a run of the tests.

Compiled objects and helper programs are in the user's cache. Boards and kernel families of the checkout are
read once per process: thousands of requests name the same few boards, and no test changes their files.
"""

import atexit
import functools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from paths import ROOT

from buildtool.base.compiler import Identity
from buildtool.base.folders import cache_folder
from buildtool.base.session import Session
from buildtool.base.store.cache import Cache
from buildtool.target import registry
from buildtool.target.family import Catalogue
from buildtool.target.types import Board, Requantise, Target

LEVELS = ("objects", "programs")
_AT_ONCE = 40  # requests for a session before new entries are written


class Fallback:
    """Replaces `current_session`: adds the user's cache to sessions that have none."""

    def __init__(self, current_session: Callable[[], Session]) -> None:
        self.real, self._calls = getattr(current_session, "real", current_session), 0
        self._open = functools.cache(lambda folder: Cache(folder, "tests", levels=LEVELS))
        self._flushed: list[Cache] = []
        atexit.register(self._flush)

    def __call__(self) -> Session:
        current, folder = self.real(), cache_folder()
        if current.keeper is not None or folder is None:
            return current
        self._calls += 1
        if self._calls % _AT_ONCE == 0:
            self._flush()
        return self._session(folder)

    @functools.cache  # noqa: B019 - it lives as long as the process
    def _session(self, folder: Path) -> Session:
        keeper = self._open(folder)
        self._flushed.append(keeper)
        return Session(keeper=keeper)

    def _flush(self) -> None:
        for keeper in self._flushed:
            keeper.flush()


Identify = Callable[..., Identity | None]


def asked_once(identify: Identify) -> Identify:
    """Returns `identify` with a cache, so that each process runs a compiler once.

    One test runs conftest again in the same process: then `identify` has its cache already.
    """
    if hasattr(identify, "__wrapped__"):
        return identify
    cached = functools.cache(lambda command, variables, ldflags: identify(command, dict(variables), ldflags))

    @functools.wraps(identify)
    def asked(
        command: Sequence[str], variables: dict[str, str], ldflags: Sequence[str] | None = None
    ) -> Identity | None:
        flags = None if ldflags is None else tuple(ldflags)
        return cached(tuple(command), tuple(sorted(variables.items())), flags)

    return asked


Read = Callable[[Path], Catalogue]
Load = Callable[..., Board]
Make = Callable[..., Target]


def read_once(read: Read) -> Read:
    """Returns `read` with a cache for the folders of the checkout."""
    cached = functools.cache(read)

    @functools.wraps(read)
    def load_family(folder: Path) -> Catalogue:
        return cached(folder) if folder.is_relative_to(ROOT) else read(folder)

    return load_family


def made_once(make: Make) -> Make:
    """Returns `make` with a cache for targets that come from the checkout alone."""
    cached, own = functools.cache(make), registry._own_plugins

    @functools.cache
    def families() -> frozenset[str]:
        return frozenset(registry._collect_folders(own().values()))

    @functools.wraps(make)
    def make_target(
        board: Board, libraries: Mapping[str, str] | None = None, requantise: Requantise = Requantise.EXACT
    ) -> Target:
        if libraries or registry._own_plugins is not own:
            return make(board, libraries, requantise)
        if board.family not in own() or not families().issuperset(board.core.families):
            return make(board, libraries, requantise)
        return cached(board, None, requantise)

    return make_target


def loaded_once(load: Load) -> Load:
    """Returns `load` with a cache for the boards of the checkout."""
    cached, own = functools.cache(load), registry._own_plugins

    @functools.cache
    def names() -> frozenset[str]:
        return frozenset(path.stem for plugin in own().values() for path in plugin.board_files())

    @functools.wraps(load)
    def load_board(name_or_path: str, data: bytes | None = None) -> Board:
        if data is not None or registry._own_plugins is not own or name_or_path not in names():
            return load(name_or_path, data)
        return cached(name_or_path)

    return load_board
