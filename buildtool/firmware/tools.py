"""The compiler that a request asks for, for a debugger or not."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from buildtool.base.errors import UsageError, suggest
from buildtool.firmware.depends import Origins
from buildtool.options.values import ANY_WIRE, TargetChoice
from buildtool.target import registry
from buildtool.target.choice import wire_of
from buildtool.target.debugging import debuggable
from buildtool.target.plugin import Harness, TargetPlugin
from buildtool.target.types import Board, Target, Toolchain, Wiring


def toolchain(choice: TargetChoice, target: Target) -> Toolchain:
    """The compiler of a choice, as the plugin of its `target` sets it up; ToolError where it is missing."""
    tools = registry.toolchain(target, choice.toolchain)
    wire = wire_of(choice, target.board)
    if wire:
        wiring = _wiring(target, wire, "on" if choice.wire == ANY_WIRE else "wire")
        tools = dataclasses.replace(tools, cflags=(*tools.cflags, *wiring.cflags), wiring=wiring)
    if not choice.debug:
        return tools
    return debuggable(tools, Origins.of(choice, target).folders(choice.cmsis_nn))


def harness(plugin: TargetPlugin, board: Board, tools: Toolchain) -> Harness:
    """The test firmware's own sources: the plugin's, or those for a wire."""
    if tools.wiring is None:
        return plugin.harness(board)
    sources, includes = tools.wiring.sources, tools.wiring.includes
    return Harness(tuple(map(Path, sources)), tuple(map(Path, includes)))


def _wiring(target: Target, wire: str, option: str) -> Wiring:
    """What a wire takes of the board's plugin; UsageError about `option`, which asked for it."""
    board = target.board
    make = getattr(registry.plugin(board), "wiring", None)
    if make is None:
        text = f"test firmware for board '{board.name}' answers over no wire"
        raise UsageError(text, option=option, hint=suggest(**{option: None}))
    found: Wiring = make(board, wire)
    return found
