"""What the checkout says of targets, read once a test process: no test changes a file of the checkout.

Thousands of requests name the same few boards, and each reads catalogues and makes a target in a session of
its own. A daemon's session keeps them in the same way, by the same keys.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from pathlib import Path

from paths import ROOT

from buildtool.target import registry
from buildtool.target.family import Catalogue
from buildtool.target.types import Board, Requantise, Target

Read = Callable[[Path], Catalogue]
Load = Callable[..., Board]
Make = Callable[..., Target]


def read_once(read: Read) -> Read:
    """`read`, which reads a folder of the checkout at its first call alone, and any other folder at each."""
    known = functools.cache(read)

    @functools.wraps(read)
    def load_family(folder: Path) -> Catalogue:
        return known(folder) if folder.is_relative_to(ROOT) else read(folder)

    return load_family


def made_once(make: Make) -> Make:
    """`make`, which makes the target of a board once where all of it comes from the checkout."""
    known, own = functools.cache(make), registry._own_plugins

    @functools.cache
    def families() -> frozenset[str]:
        return frozenset(registry._folders(own().values()))

    @functools.wraps(make)
    def make_target(
        board: Board, libraries: Mapping[str, str] | None = None, requantise: Requantise = Requantise.EXACT
    ) -> Target:
        if libraries or registry._own_plugins is not own:
            return make(board, libraries, requantise)
        if board.family not in own() or not families().issuperset(board.core.families):
            return make(board, libraries, requantise)
        return known(board, None, requantise)

    return make_target


def loaded_once(load: Load) -> Load:
    """`load`, which reads a board of the checkout that is named once; it reads any other one at each call."""
    known, own = functools.cache(load), registry._own_plugins

    @functools.cache
    def names() -> frozenset[str]:
        return frozenset(path.stem for plugin in own().values() for path in plugin.board_files())

    @functools.wraps(load)
    def load_board(name_or_path: str, data: bytes | None = None) -> Board:
        if data is not None or registry._own_plugins is not own or name_or_path not in names():
            return load(name_or_path, data)
        return known(name_or_path)

    return load_board
