"""How close a run is to the real board, for answers: the level, and a few words."""

from __future__ import annotations

from typing import cast

from buildtool.base.modes import Level
from buildtool.schema.boards import LevelAnswer
from buildtool.target.plugin import VendorBuild
from buildtool.target.registry import plugin
from buildtool.target.types import Board, Reality

HOST = Reality(Level.HOST, "host")
EMULATED = Reality(Level.EMULATOR, "emulated")
BOARD = Reality(Level.BOARD, "on the board")


def reality(board: Board) -> Reality:
    """Returns how close a run without an attached board is to the real board.

    The board's plugin may say so. Otherwise it follows from the emulator in the board's file.
    """
    own = getattr(plugin(board), "reality", None)
    if own is not None:
        return cast(Reality, own(board))
    return HOST if board.emulator is not None and board.emulator.kind == "native" else EMULATED


def reality_of_build(board: Board, own: VendorBuild | None) -> Reality:
    """Returns how close a build is to the real board.

    It was compiled for the chip, unless the board's firmware runs on this machine. `own` is a build by
    the vendor's tool.
    """
    if own is not None:
        return Reality(Level.COMPILED, "compiled by the vendor's tool")
    run = reality(board)
    return run if run.level in (Level.HOST, Level.MODEL) else Reality(Level.COMPILED, "compiled, not run")


def reality_answer(run: Reality) -> LevelAnswer:
    """The level as part of an answer."""
    return {"level": str(run.level), "level_text": run.text}
