"""Runs firmware on an attached board: its flash is written, then the board answers over a link."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

from buildtool.api.requests.parts import AttachedRun
from buildtool.base.errors import Hint, ToolError, UsageError, suggest
from buildtool.base.locks import scratch
from buildtool.firmware.flashfiles import flash_files
from buildtool.firmware.planned import Planned
from buildtool.target.choice import link_of
from buildtool.target.registry import plugin
from buildtool.target.types import Board, BoardLink, Flashing, RunRequest, RunResult

FLASH_SECONDS = 300.0
SHOWN_LINES = 12  # of a tool's output


def run_attached(planned: Planned, image: Path, request: RunRequest, attached: AttachedRun) -> RunResult:
    """Runs the firmware image over a link. An attached board is flashed first, unless it already has the
    image.

    Raises ToolError if a tool or the link fails, and ProgramError if the firmware does.
    """
    board = planned.target.board
    if not (attached.is_emulated or attached.is_flashed):
        planned.session.tell(f"flashing {board.name}")
        with flashable(board, image, attached.tool) as how:
            flash(how, image)
    planned.session.tell(f"waiting for {board.name}")
    wire = BoardLink(link_of(planned.choice, board), attached.port, attached.is_emulated)
    return cast(RunResult, _find_method(board, "run_on_board", "on")(board, image, request, wire))


def flashing(board: Board, image: Path, tool: str) -> Flashing:
    """Returns the command with which the board's plugin writes an image to flash. `tool` names a program ("":
    the preferred one). Raises UsageError if the plugin has no such command.
    """
    return cast(Flashing, _find_method(board, "flashing", "board")(board, image, tool))


def takes_binary(how: Flashing, image: Path) -> bool:
    """Whether the tool reads the .bin file beside the image. This file may be missing or belong to another
    image.
    """
    return str(image.with_suffix(".bin")) in how.command


@contextmanager
def flashable(board: Board, image: Path, tool: str) -> Iterator[Flashing]:
    """A context with the result of `flashing`, in which the files that the tool reads exist."""
    how = flashing(board, image, tool)
    if not takes_binary(how, image):
        yield how
        return
    with scratch() as name:
        copy = Path(name) / image.name
        for file, data in flash_files(image.read_bytes(), board, image.stem).items():
            (copy.parent / file).write_bytes(data)
        yield flashing(board, copy, tool)


def flash(how: Flashing, image: Path) -> None:
    """Flashes a board. Raises ToolError if the tool is missing or fails."""
    line = shlex.join(how.command)
    if not how.is_there:
        other = "or write it with --out: buildtool flash; run its command, then validate --flashed"
        text = f"the program {how.tool}, which flashes the board, was not found"
        raise ToolError(text, hint=[Hint(how.install), Hint(other)])
    try:
        process = subprocess.run(
            how.command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=FLASH_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise ToolError(f"{how.tool} did not end within {FLASH_SECONDS:g} s: {line}") from None
    except OSError as error:
        raise ToolError(f"{how.tool} cannot be started: {error.strerror}", path=how.command[0]) from None
    if process.returncode:
        lines = process.stdout.decode("utf-8", "replace").strip().splitlines()[-SHOWN_LINES:]
        text = "".join(f"\n    {one}" for one in lines)
        raise ToolError(
            f"{how.tool} ended with exit status {process.returncode}:{text}",
            hint="check the cable, the board's power, and that no other program uses the probe",
        )


def _find_method(board: Board, name: str, option: str) -> Any:
    method = getattr(plugin(board), name, None)
    if method is None:
        text = f"board '{board.name}' cannot be attached to this machine"
        hint = suggest(on=None) if option == "on" else "choose a board with flash memory"
        raise UsageError(text, option=option, hint=hint)
    return method
