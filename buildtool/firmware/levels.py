"""Says in answers how close a run or a build is to the real board: a level, and a few words."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

from buildtool.base.modes import Level
from buildtool.schema.boards import LevelAnswer
from buildtool.target.plugin import VendorBuild
from buildtool.target.registry import plugin
from buildtool.target.types import Board, Reality

HOST = Reality(Level.HOST, "host")
EMULATED = Reality(Level.EMULATOR, "emulated")
BOARD = Reality(Level.BOARD, "on the board")


def reality(board: Board, toolchain: str = "") -> Reality:
    """Returns how close a run without an attached board is to the real board.

    The board's plugin may answer, for programs of `toolchain` ("": the board's first one). Otherwise the
    answer follows from the emulator in the board's file.
    """
    own = getattr(plugin(board), "reality", None)
    if own is not None:
        return cast(Reality, own(replace(board, toolchains=(toolchain,)) if toolchain else board))
    return HOST if board.is_native else EMULATED


def is_native(board: Board, toolchain: str = "") -> bool:
    """Whether the programs of the toolchain ("": the board's first one) are programs of this machine."""
    return reality(board, toolchain).level in (Level.HOST, Level.MODEL)


def board_of(board: Board, image: bytes) -> Board:
    """Returns the board as it is for a given firmware image, with only the toolchains that make such images.

    It differs from `board` only if the board's toolchains make different kinds of images.
    """
    own = getattr(plugin(board), "board_of", None)
    return board if own is None else cast(Board, own(board, image))


def reality_of_build(board: Board, own: VendorBuild | None) -> Reality:
    """Returns how close a build is to the real board.

    A build counts as compiled for the chip, unless the board's firmware runs on this machine. `board` is the
    result of `board_of`. `own` is a build by the chip maker's own tool, None without one.
    """
    if own is not None:
        return Reality(Level.COMPILED, "compiled by the vendor's tool")
    run = reality(board)
    runs_here = run.level in (Level.HOST, Level.MODEL, Level.SIMULATOR)
    return run if runs_here else Reality(Level.COMPILED, "compiled, not run")


def reality_answer(run: Reality) -> LevelAnswer:
    """Returns the level as part of an answer."""
    return {"level": str(run.level), "level_text": run.text}
