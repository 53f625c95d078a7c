"""What a board's flash gets: test firmware that answers over a wire, and the command that brings it there."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from buildtool.firmware.flashing.files import files as flash_files
from buildtool.firmware.run.desk import flashing, takes_binary
from buildtool.firmware.run.execute import built, linked
from buildtool.firmware.run.subject import subject
from buildtool.plan.codec import to_bytes

if TYPE_CHECKING:
    from buildtool.api.requests.kinds import Flash
    from buildtool.base.session import Session
    from buildtool.schema.runs import FlashAnswer


def flashed(request: Flash, session: Session) -> FlashAnswer:
    """The answer to a `flash` request; nothing is flashed."""
    made, sources = subject(request, session)
    board, net = made.target.board, sources.net
    given = request.made
    image = f"{net}.elf" if given is None or given.elf.data is not None else given.elf.path
    how = flashing(board, Path(image), request.tool)
    files: dict[str, bytes] = {}
    if given is None:
        with built(made, sources) as firmware:
            elf, compiler = firmware.elf.read_bytes(), firmware.compiler
        plan = {f"{net}.plan": to_bytes(made.plan)}
        files = {image: elf, **plan, **flash_files(elf, board, net)}
    else:
        with linked(made, sources, given.elf) as firmware:
            compiler = firmware.compiler
            if given.elf.data is not None:
                files = {image: given.elf.data}
            if takes_binary(how, Path(image)):  # one of this very image, whatever formats were built
                how = flashing(board, Path(f"{net}.elf"), request.tool)
                files |= {f"{net}.bin": flash_files(firmware.elf.read_bytes(), board, net)[f"{net}.bin"]}
    return {
        "net": net,
        "board": board.name,
        "compiler": compiler,
        "image": image,
        "files": files,
        "tool": how.tool,
        "is_there": how.is_there,
        "install": how.install,
        "command": list(how.command),
    }
