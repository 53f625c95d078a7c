"""Prints what analyze counts beside what is linked: python benchmarks/footprints.py [NETWORK...]

For every network (without names: those of the zoo) and every board with memories of its own (--board: only
these):

- Exact figures have to equal the sections of the image that a build links, to the byte.
- The upper bound from recorded sizes must not be too low; its largest excess in any memory is shown.
- Stack: what the linked image's invoke takes by its machine code, and what the header states.

A figure that is wrong ends the run with an error. Nothing is written.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from buildtool import zoo
from buildtool.base.errors import ToolError
from buildtool.base.modes import Objective
from buildtool.base.session import Session
from buildtool.emit.sources import Sources, emit
from buildtool.firmware.bound import bound
from buildtool.firmware.counting import link_anyway, link_footprint
from buildtool.firmware.firmware import build_firmware
from buildtool.firmware.needs import Footprint
from buildtool.firmware.planned import prepare
from buildtool.firmware.sizes import list_sections, open_elf
from buildtool.firmware.stack.need import Stacks
from buildtool.options.values import PlanOptions
from buildtool.plan.choose.choose import nearest
from buildtool.plan.models import Network, load_network
from buildtool.target.hardware import Core
from buildtool.target.registry import board_names, load_board, load_target, toolchain


def boards() -> list[str]:
    """Returns the names of the boards for which images are linked."""
    return [name for name in board_names() if not load_board(name).is_native]


def ends(elf: bytes, board: str) -> dict[str, int]:
    """Returns for each memory the bytes from its base to the end of its last section in a linked image."""
    found: dict[str, int] = {}
    (stored,) = open_elf(elf).get_section_by_name(".symtab").get_symbol_by_name("__data_load")
    for memory in load_board(board).memories:
        if memory.name == load_board(board).code:  # aligned for initial values, also where there are none
            found[memory.name] = stored["st_value"] - memory.base
        for section in list_sections(open_elf(elf)):
            for address in {section.address, section.load_address}:
                if memory.base <= address < memory.base + memory.size:
                    found[memory.name] = max(found.get(memory.name, 0), address + section.size - memory.base)
    return found


def excess(above: Footprint, exact: Footprint, title: str) -> str:
    """Returns the memory whose bound `above` exceeds the exact size most, and by how many per cent."""
    found = []
    for use in above.uses:
        there = exact.use(use.memory)
        if use.bytes < there.bytes:
            raise SystemExit(f"{title}: the bound\n  {use}\nis below\n  {there}")
        found.append((use.bytes / max(1, there.bytes) - 1, use.memory))
    most, memory = max(found)
    return f"+{100 * most:.1f} % ({memory})"


def stack(elf: bytes, sources: Sources, core: Core, title: str) -> str:
    """Returns the stack that the linked invoke needs, and the size in the header.

    Raises SystemExit if the size in the header is smaller.
    """
    need = Stacks(open_elf(elf), core.vector_bits // 8).need(f"{sources.net}_invoke")
    header = sources.files[f"{sources.net}.h"].decode()
    stated = re.search(r"^#define \w+_STACK_BYTES (\d+)$", header, flags=re.MULTILINE)
    if need is None or stated is None or need > int(stated[1]):
        raise SystemExit(f"{title}: the invoke takes {need} bytes of stack, the header states {stated}")
    return f"{need:,}, {int(stated[1]):,}"


def row(network: Network, board: str, name: str, options: PlanOptions) -> str:
    """Returns the table row of a network on a board; raises SystemExit if a figure is wrong."""
    session, target = Session(), load_target(board)
    graph, plan = nearest(prepare(network, target, options, session))
    sources = emit(graph, plan, target, network.model.name, session)
    tools = toolchain(target, name)
    exact = link_footprint(sources, plan, target, tools)
    with TemporaryDirectory() as folder:
        elf = link_anyway(sources, plan, target, tools, Path(folder)).elf
    above = bound(sources, plan, target, tools.identity)
    title = f"{network.model.name} on {board}"
    with TemporaryDirectory() as folder:
        try:
            image = build_firmware(sources, plan, target, tools, Path(folder)).elf.read_bytes()
        except ToolError:
            image = b""
    if image and {use.memory: use.bytes for use in exact.uses} != ends(image, board):
        raise SystemExit(f"{title}: {exact} differs from the linked image, {ends(image, board)}")
    most = max(exact.uses, key=lambda use: use.bytes / target.board.memory(use.memory).size)
    cells = [
        f"`{network.model.name}`",
        board,
        "yes" if image else "no",
        f"{most.memory} {most.bytes:,}",
        "none" if above is None else f"{above.use(most.memory).bytes:,}",
        "" if above is None else excess(above, exact, title),
        stack(elf, sources, target.board.core, title),
    ]
    return f"| {' | '.join(cells)} |"


def lines(
    networks: Sequence[str], names: Sequence[str], toolchain_: str, options: PlanOptions
) -> Iterator[str]:
    """Yields the lines of the table, each as soon as it is known."""
    yield "| network | board | links | fullest memory | its bound | furthest above | stack, in the header |"
    yield "| --- | --- | --- | ---: | ---: | ---: | ---: |"
    for name in networks:
        network = load_network(name, Session())
        for board in names:
            yield row(network, board, toolchain_, options)


def main() -> None:
    """Prints the table for the given networks and boards, or for all."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("networks", nargs="*", metavar="NETWORK")
    parser.add_argument("--board", action="append", default=[])
    parser.add_argument("--toolchain", default="")
    parser.add_argument("--least-memory", action="store_true", help="plans with the least memory")
    given = parser.parse_args()
    options = PlanOptions(objective=Objective.RAM) if given.least_memory else PlanOptions()
    for line in lines(given.networks or zoo.names(), given.board or boards(), given.toolchain, options):
        print(line, flush=True)


if __name__ == "__main__":
    main()
