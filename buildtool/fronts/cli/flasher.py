"""`buildtool flash`: brings an image into a board's flash by somebody else's tool, or says how."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from buildtool.base.errors import Hint, ToolError

if TYPE_CHECKING:
    from buildtool.schema.runs import FlashAnswer


def text(answer: FlashAnswer, folder: Path) -> str:
    """What is flashed, and by which command."""
    return "\n".join(
        [
            f"{answer['net']} for {answer['board']}, compiled by {answer['compiler']}: "
            f"{folder / answer['image']}",
            f"flashing: {shlex.join(answer['command'])}",
        ]
    )


def line(answer: FlashAnswer, folder: Path) -> str:
    """The line for a shell that flashes the image."""
    return f"cd {shlex.quote(str(folder.absolute()))} && {shlex.join(answer['command'])}"


def flash(answer: FlashAnswer, folder: Path) -> int:
    """Flashes; 0. ToolError where the tool is not there (with the line to run) or fails."""
    tool = answer["tool"]
    if not answer["is_there"]:
        what = f"the program {tool} that flashes the board was not found; the image is there"
        hints = [Hint(answer["install"]), Hint(f"then, or where it is installed: {line(answer, folder)}")]
        raise ToolError(what, hint=hints)
    try:
        done = subprocess.run(answer["command"], cwd=folder, stdin=subprocess.DEVNULL, check=False)
    except OSError as error:
        raise ToolError(f"{tool} cannot be started: {error.strerror}", path=answer["command"][0]) from None
    if done.returncode:
        hint = "check the cable, the board's power, and that no other program has the probe"
        raise ToolError(f"{tool} ended with exit status {done.returncode}", hint=hint)
    return 0
