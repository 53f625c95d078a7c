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
Make = Callable[..., Target]


def read_once(read: Read) -> Read:
    """`read`, which reads a folder of the checkout at its first call alone, and any other folder at each."""
    known = functools.cache(read)

    @functools.wraps(read)
    def load_family(folder: Path) -> Catalogue:
        return known(folder) if folder.is_relative_to(ROOT) else read(folder)

    return load_family


def made_once(make: Make) -> Make:
    """`make`, which makes a target once for a board, but for libraries and where plugins of others are."""
    known, own = functools.cache(make), registry._own_plugins

    @functools.wraps(make)
    def make_target(
        board: Board, libraries: Mapping[str, str] | None = None, requantise: Requantise = Requantise.EXACT
    ) -> Target:
        if libraries or registry._own_plugins is not own or registry._other_plugins():
            return make(board, libraries, requantise)
        return known(board, None, requantise)

    return make_target
