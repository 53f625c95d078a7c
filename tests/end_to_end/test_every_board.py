"""Every board plans and links a small network: the program's sections lie in the board's own memories."""

import functools
import io
from pathlib import Path

import pytest
from boardruns import file_of
from elftools.elf.elffile import ELFFile
from needs import needs_tool

from buildtool.api import handle
from buildtool.base.session import Session
from buildtool.target.partitions import regions
from buildtool.target.registry import board_names, load_board
from buildtool.zoo.drawn import NetBuilder

PROGRAMS = {"clang": "clang", "gcc": "xtensa-lx106-elf-gcc"}  # of the boards' default toolchains
FOREIGN = ("esp32", "esp32-s3", "esp32-s3-psram")  # built by compilers that no registry has
LINKED = [
    name
    for name in board_names()
    if name not in FOREIGN and not load_board(name).is_native and load_board(name).family != "xcore"
]
WIRED = [name for name in LINKED if load_board(name).uart and load_board(name).chip]
ROLES = {
    **{".text": "code", ".rodata": "code", ".data": "data", ".bss": "data", ".stack": "data"},
    **{".nn_arena": "arena", ".nn_weights": "weights"},
}
SESSION = Session()


@functools.cache
def network(folder: Path) -> str:
    net = NetBuilder(4, "small")
    return file_of(net.graph([net.dense(net.input((1, 24)), 3)]), folder, "small")


def linked(board, folder):
    """The test firmware, with the drivers of a product's serial port."""
    needs_tool(PROGRAMS[load_board(board).toolchains[0]])
    wire = {"wire": "serial"} if board in WIRED else {}
    answer = handle({"kind": "build", "model": network(folder), "board": board, **wire}, SESSION)
    return ELFFile(io.BytesIO(answer["files"]["small.elf"]))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("small")


@pytest.mark.slow
@pytest.mark.parametrize("name", LINKED)
def test_sections_lie_in_the_memories_of_their_roles_and_a_serial_port_has_its_drivers(name, folder):
    board, elf = load_board(name), linked(name, folder)
    places = {region.name: (region.origin, region.origin + region.size) for region in regions(board)}
    for section, role in ROLES.items():
        header = elf.get_section_by_name(section)
        if header is None or not header["sh_size"]:
            assert section in (".data", ".rodata"), section
            continue
        low, high = places[getattr(board, role)]
        assert low <= header["sh_addr"] and header["sh_addr"] + header["sh_size"] <= high, section
    weights = elf.get_section_by_name(".nn_weights")["sh_addr"]
    if board.weights == board.code and board.memory(board.code).erase:
        offset = weights - board.memory(board.code).base
        count, block = board.memory(board.code).erase[0]
        assert offset % block == 0 or offset > count * block
    symbols = elf.get_section_by_name(".symtab")
    for function in ("chip_start", "chip_core_hz", "wire_start", "wire_get", "wire_put"):
        assert name not in WIRED or symbols.get_symbol_by_name(function), function
