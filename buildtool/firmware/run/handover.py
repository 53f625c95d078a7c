"""Makes files and commands for other programs: a debugger and its server, or a tool that flashes.

This module starts none of these programs.
"""

from __future__ import annotations

from pathlib import Path

from buildtool.api.requests.kinds import Debug, Flash
from buildtool.base.errors import ToolError
from buildtool.base.session import Session
from buildtool.emit.sources import Sources
from buildtool.firmware.datasets.arrays import inputs_of, sequences
from buildtool.firmware.firmware import Firmware, arena_map, map_of
from buildtool.firmware.flashfiles import flash_files
from buildtool.firmware.levels import BOARD, board_of, reality, reality_answer
from buildtool.firmware.linkmap import portable
from buildtool.firmware.planned import Planned
from buildtool.firmware.run.attached import flashing, takes_binary
from buildtool.firmware.run.execute import (
    build_temporarily,
    image_of,
    input_file,
    open_image,
    plan_and_sources,
)
from buildtool.firmware.stack.need import stack_report
from buildtool.firmware.tools import Origins, debug_name
from buildtool.plan.codec import to_bytes
from buildtool.schema.runs import DebugAnswer, FlashAnswer
from buildtool.target.registry import plugin
from buildtool.target.types import DebugServer

INPUT = "input.bin"
OUTPUTS = ("output.bin", "report.txt")


def debugging(request: Debug, session: Session) -> DebugAnswer:
    """Returns the answer to a `debug` request; it starts no program."""
    planned, sources = plan_and_sources(request, session)
    board = planned.target.board
    find = getattr(plugin(board), "debug_server", None)
    if find is None:
        raise ToolError(f"the plugin of board '{board.name}' has no server for debuggers")
    server: DebugServer = find(board, request.port)
    inputs = inputs_of(request.inputs, planned.graph)
    files = {INPUT: input_file(planned.graph, inputs, sequences(planned.graph, len(inputs), 0))}
    with image_of(request, planned, sources, emulated=False) as firmware:
        if request.made is None:
            files |= _list_build_files(planned, sources, firmware)
        image = f"{sources.net}.elf" if request.made is None else str(firmware.elf)
        elf = firmware.elf.read_bytes()
        stacks = stack_report(elf, board, [sources.net])
    command = list(server.command)
    if server.image >= 0:
        command[server.image] = image
    connect = [f"target extended-remote 127.0.0.1:{request.port}", *server.connected]
    folders = Origins.of(planned.choice, planned.target).folders(planned.choice.cmsis_nn)
    return {
        "net": sources.net,
        "board": board.name,
        **reality_answer(BOARD if board.own_emulator is None else reality(board_of(board, elf))),
        "compiler": firmware.compiler,
        "port": request.port,
        "image": image,
        "files": files,
        "outputs": list(OUTPUTS),
        "server": command,
        "debuggers": list(server.debuggers),
        # in the language of GDB
        "sources": [
            f"set substitute-path {debug_name(name)} {_quote(str(place.resolve()))}"
            for name, place in folders.items()
        ],
        "commands": [*(connect if server.command else []), f"break {sources.net}_invoke"],
        "stacks": stacks,
    }


def _list_build_files(planned: Planned, sources: Sources, firmware: Firmware) -> dict[str, bytes]:
    """Returns the files of a build that the debugger or its user may need."""
    net = sources.net
    return {
        **sources.files,
        **arena_map(net, planned.model.name, planned.plan, planned.graph, planned.session),
        f"{net}.plan": to_bytes(planned.plan),
        f"{net}.elf": firmware.elf.read_bytes(),
        f"{net}.map": portable(map_of(firmware.elf).read_bytes()),
    }


def _quote(path: str) -> str:
    """Returns a path in quotes, as the debugger's commands need it."""
    return '"' + path.replace("\\", "\\\\").replace('"', '\\"') + '"'


# ---- flash ------------------------------------------------------------------------------------------


def flash(request: Flash, session: Session) -> FlashAnswer:
    """Returns the answer to a `flash` request; it flashes nothing."""
    planned, sources = plan_and_sources(request, session)
    board, net = planned.target.board, sources.net
    build = request.made
    image = f"{net}.elf" if build is None or build.elf.data is not None else build.elf.path
    how = flashing(board, Path(image), request.tool)
    files: dict[str, bytes] = {}
    if build is None:
        with build_temporarily(planned, sources) as firmware:
            elf, compiler = firmware.elf.read_bytes(), firmware.compiler
        plan = {f"{net}.plan": to_bytes(planned.plan)}
        files = {image: elf, **plan, **flash_files(elf, board, net)}
    else:
        with open_image(planned, sources, build.elf) as firmware:
            compiler = firmware.compiler
            if build.elf.data is not None:
                files = {image: build.elf.data}
            if takes_binary(how, Path(image)):  # the .bin file of this image may not have been built
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
