"""The answers about builds: a network's emitted sources, its firmware, and the sizes of a firmware image."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from buildtool.base.errors import BuildtoolError
from buildtool.base.files import File, uncut
from buildtool.base.locks import scratch

if TYPE_CHECKING:
    from buildtool.api.requests.kinds import Build, Bundle, Emit, Sizes
    from buildtool.api.requests.parts import Flashing
    from buildtool.base.session import Session
    from buildtool.emit.sources import Sources
    from buildtool.firmware.flashfiles import Signing
    from buildtool.firmware.planned import Planned
    from buildtool.schema.builds import BuildAnswer, EmitAnswer, NetworkNeeds, SizesAnswer
    from buildtool.target.types import Board

_MOST_KEY_BYTES = 1 << 16


def sources_of(request: Emit | Build | Bundle, session: Session) -> tuple[Planned, Sources, dict[str, bytes]]:
    """Returns a plan that fits, its emitted sources, and the contents of all emitted files by name.

    The files are the sources, the map of the arena and the plan.
    """
    from buildtool.firmware.firmware import arena_map
    from buildtool.firmware.golden import make_checks, refuse_guards
    from buildtool.firmware.planned import emit_sources, plan_or_read, refuse_unless_fits
    from buildtool.plan.codec import to_bytes

    planned = plan_or_read(request.model, request.target, request.options, request.lock, session)
    name = request.name or planned.model.name
    checks = make_checks(planned, request.checks)
    sources = emit_sources(planned, name, checks)
    refuse_unless_fits(planned, len(sources.image.data))
    refuse_guards(planned, request.checks.guards)
    arena = arena_map(sources.net, name, planned.plan, planned.graph, session)
    return planned, sources, {**sources.files, **arena, f"{sources.net}.plan": to_bytes(planned.plan)}


def needs(planned: Planned, sources: Sources) -> NetworkNeeds:
    """Returns what a planned network needs: memory, flash, and work.

    The work is the plan's, over the network's own work.
    """
    from buildtool.api.answers.simplified import count_removed
    from buildtool.base.modes import Level
    from buildtool.firmware.levels import reality
    from buildtool.plan.summary.fit import available_bytes

    plan, board, ram = planned.plan, planned.target.board, planned.options.ram
    room = available_bytes(board, plan.state_bytes)
    removed, channels = count_removed(planned.simplified)
    in_a_model = reality(board).level in (Level.MODEL, Level.SIMULATOR)
    return {
        "net": sources.net,
        "arena_bytes": plan.arena_bytes,
        "limit_bytes": room if ram is None else min(ram, room),
        "chip_bytes": sum(board.memory(name).size for name in board.holders) if in_a_model else 0,
        "state_bytes": plan.state_bytes,
        "weights_bytes": len(sources.image.data),
        "f": plan.f,
        "channels_removed": removed,
        "channels": channels,
    }


def emit(request: Emit, session: Session) -> EmitAnswer:
    """Returns the sources of a network for a board, and what else has to be compiled with them."""
    from buildtool.emit.sources import kernel_sources
    from buildtool.firmware.planned import notes
    from buildtool.firmware.tools import Origins
    from buildtool.target.kernels import include_folder, kernel_includes

    planned, sources, files = sources_of(request, session)
    inputs = (uncut(request.model), request.lock.file if request.lock else None)
    paths = [file.path for file in inputs if isinstance(file, File) and file.data is None]
    return {
        **needs(planned, sources),
        "files": files,
        "c_files": list(sources.c_files),
        "kernel_sources": [str(path) for path in kernel_sources(planned.plan, planned.target)],
        "include": str(include_folder()),
        "kernel_includes": [str(path) for path in kernel_includes(planned.target)],
        "depends": [*paths, *map(str, Origins.of(request.target, planned.target).files())],
        "notes": notes(planned),
    }


def build(request: Build, session: Session) -> BuildAnswer:
    """Returns the test firmware of a network: sources, firmware image, files for flash, report of sizes."""
    from buildtool.api.answers.estimate import facts
    from buildtool.firmware.firmware import build_firmware, compile_with_vendor, for_other_tools, map_of
    from buildtool.firmware.flashfiles import flash_files
    from buildtool.firmware.levels import board_of, reality_answer, reality_of_build
    from buildtool.firmware.linkmap import portable
    from buildtool.firmware.parts import parts
    from buildtool.firmware.sizes import size_report
    from buildtool.firmware.stack.need import refuse_unless_enough, stack_report
    from buildtool.firmware.tools import toolchain
    from buildtool.target.registry import plugin

    planned, sources, files = sources_of(request, session)
    board, net, family = planned.target.board, sources.net, plugin(planned.target.board)
    signing = _read_signing(request.flashing, board)
    with scratch() as folder:
        tools, place = toolchain(planned.choice, planned.target), Path(folder)
        firmware = build_firmware(sources, planned.plan, planned.target, tools, place, tell=session.tell)
        elf, table = firmware.elf.read_bytes(), portable(map_of(firmware.elf).read_bytes())
    linked = board_of(board, elf)
    report, stacks = size_report(elf, linked), stack_report(elf, linked, [net])
    if not planned.choice.debug:  # a debug build may be used to look into a stack overflow
        refuse_unless_enough(elf, board, net)
    files |= {f"{net}.elf": elf, f"{net}.map": table}
    files |= flash_files(elf, board, net, request.flashing.formats, signing)
    files |= for_other_tools(family, sources, planned.plan, planned.target)
    own = compile_with_vendor(family, net, files, session.tell)
    return {
        "net": net,
        "board": board.name,
        **reality_answer(reality_of_build(linked, own)),
        "compiler": own.compiler if own else firmware.compiler,
        "arena_bytes": planned.plan.arena_bytes,
        "state_bytes": planned.plan.state_bytes,
        "sizes": report,
        "parts": parts(elf, linked, [net], table.decode("utf-8", "replace")).parts,
        "stacks": stacks,
        "files": {**files, **(own.files if own else {})},
        **facts(planned),
    }


def _read_signing(flashing: Flashing, board: Board) -> Signing | None:
    """Returns the key and the version for signed firmware; None if it is not signed.

    Raises UsageError if the key cannot be read, or if the board does not have one of the formats.
    """
    from buildtool.firmware.flashfiles import Signing, check_formats

    key, signing = flashing.sign, None
    if key is not None:
        signing = Signing(key.read("the key", _MOST_KEY_BYTES), flashing.version)
    check_formats(board, flashing.formats, signed=key is not None)
    return signing


def sizes(request: Sizes, _session: Session) -> SizesAnswer:
    """Returns the bytes that a linked firmware image takes in each memory, and its files for flash."""
    from buildtool.firmware.flashfiles import flash_files
    from buildtool.firmware.levels import board_of, reality_answer, reality_of_build
    from buildtool.firmware.linkmap import map_text
    from buildtool.firmware.parts import parts
    from buildtool.firmware.run.identity import MOST_IMAGE_BYTES, networks
    from buildtool.firmware.sizes import size_report
    from buildtool.firmware.stack.need import stack_report
    from buildtool.target.choice import load_board

    board = load_board(request.board)
    signing = _read_signing(request.flashing, board)
    elf, table = request.elf.read("the image", MOST_IMAGE_BYTES), map_text(request.elf, request.map)
    try:
        nets = [network.net for network in networks(elf)]
        linked = board_of(board, elf)
        split = parts(elf, linked, nets, table)
        return {
            "board": board.name,
            **reality_answer(reality_of_build(linked, None)),
            "sizes": size_report(elf, linked),
            "parts": split.parts,
            "files_from": split.files_from,
            "stacks": stack_report(elf, linked, nets),
            "files": flash_files(elf, board, request.elf.stem, request.flashing.formats, signing),
            "note": board.note,
        }
    except BuildtoolError as error:
        raise error.at(path=request.elf.path) from None
