"""A run on an attached board: its flash is written, then it answers over a wire."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

from buildtool.api.requests.parts import OnDesk
from buildtool.base.errors import Hint, ToolError, UsageError, suggest
from buildtool.base.locks import scratch
from buildtool.firmware.flashfiles import flash_files
from buildtool.firmware.planned import Planned
from buildtool.target.choice import wire_of
from buildtool.target.registry import plugin
from buildtool.target.types import Board, Desk, Flashing, RunRequest, RunResult

FLASH_SECONDS = 300.0
SHOWN_LINES = 12  # of a tool's output


def run_attached(made: Planned, image: Path, request: RunRequest, wanted: OnDesk) -> RunResult:
    """Runs the image over the wire that the request chose; ToolError, ProgramError."""
    board = made.target.board
    if not (wanted.is_emulated or wanted.is_flashed):
        made.session.tell(f"flashing {board.name}")
        with flashable(board, image, wanted.tool) as how:
            flash(how, image)
    made.session.tell(f"waiting for {board.name}")
    wire = Desk(wire_of(made.choice, board), wanted.port, wanted.is_emulated)
    return cast(RunResult, _method(board, "run_on_board", "on")(board, image, request, wire))


def flashing(board: Board, image: Path, tool: str) -> Flashing:
    """The plugin's way to write an image to the board's flash; UsageError if it has none."""
    return cast(Flashing, _method(board, "flashing", "board")(board, image, tool))


def takes_binary(how: Flashing, image: Path) -> bool:
    """Whether the tool takes the image's .bin file, which may be missing or of another image."""
    return str(image.with_suffix(".bin")) in how.command


@contextmanager
def flashable(board: Board, image: Path, tool: str) -> Iterator[Flashing]:
    """As `flashing`; the files that the tool takes exist until the context ends."""
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
    """Flashes a board; ToolError where the tool is missing or fails, with the line to run by hand."""
    line = shlex.join(how.command)
    if not how.is_there:
        other = "or write it with --out: buildtool flash; run the line that it says, then validate --flashed"
        text = f"the program {how.tool} that flashes the board was not found"
        raise ToolError(text, hint=[Hint(how.install), Hint(other)])
    try:
        done = subprocess.run(
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
    if done.returncode:
        said = done.stdout.decode("utf-8", "replace").strip().splitlines()[-SHOWN_LINES:]
        text = "".join(f"\n    {one}" for one in said)
        raise ToolError(
            f"{how.tool} ended with exit status {done.returncode}:{text}",
            hint="check the cable, the board's power, and that no other program uses the probe",
        )


def _method(board: Board, name: str, option: str) -> Any:
    found = getattr(plugin(board), name, None)
    if found is None:
        text = f"board '{board.name}' is not a board on a desk"
        hint = suggest(on=None) if option == "on" else "choose a board that has a flash"
        raise UsageError(text, option=option, hint=hint)
    return found
