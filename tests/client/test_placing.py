"""A weight image is written where a symbol of a linked program says. Nothing else in the program changes."""

import contextlib
import functools
import io
import random
import subprocess
import tempfile
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile
from needs import needs_tool

from buildtool.base.errors import ToolError
from buildtool.client import place

# 32 and 64 bits, both orders of bytes.
MACHINES = ["arm-none-eabi", "armeb-none-eabi", "x86_64-linux-gnu", "powerpc64-linux-gnu"]
SOURCE = """
    .section .other, "a", %progbits
    .byte 1, 2, 3
    .section .nn_weights, "a", %progbits
    .byte 7, 7, 7, 7
    .global net_weights
    .type net_weights, %object
    .size net_weights, 16
net_weights:
    .space 16
    .byte 9, 9, 9, 9
    .bss
    .global net_room
    .size net_room, 16
net_room:
    .space 16
"""


@functools.cache
def program(machine, text=SOURCE):
    """Returns an ELF file for the machine."""
    with tempfile.TemporaryDirectory() as name:
        source, object_file = Path(name, "room.s"), Path(name, "room.o")
        source.write_text(text.replace("%", "@") if "arm" not in machine else text)
        command = [needs_tool("clang"), f"--target={machine}", "-c", str(source), "-o", str(object_file)]
        subprocess.run(command, check=True)
        return object_file.read_bytes()


@pytest.mark.parametrize("machine", MACHINES)
def test_the_symbols_bytes_are_the_weights_and_no_others_change(machine):
    before, weights = program(machine), bytes(range(100, 116))
    after = place(before, "net_weights", weights)
    section = ELFFile(io.BytesIO(after)).get_section_by_name(".nn_weights").data()
    assert section == bytes([7] * 4) + weights + bytes([9] * 4)
    at = after.index(weights)
    assert after[:at] == before[:at]
    assert after[at + 16 :] == before[at + 16 :]
    assert place(after, "net_weights", bytes(16)) == before


@pytest.mark.parametrize(
    ("symbol", "size", "said"),
    [
        ("net_weights", 15, "has 16 bytes reserved at 'net_weights', but the weight image has 15"),
        ("net_weights", 0, "16 bytes reserved"),
        ("net_weight", 16, "no symbol 'net_weight'"),
        ("net_weights_", 16, "no symbol"),
        ("net_room", 16, "no bytes for 'net_room'"),
    ],
)
def test_what_does_not_fit_is_refused(symbol, size, said):
    with pytest.raises(ToolError, match=said):
        place(program(MACHINES[0]), symbol, bytes(size))


@pytest.mark.parametrize("machine", MACHINES[1:3])
def test_damaged_images_are_refused_or_keep_their_length(machine):
    rng, whole = random.Random(machine), program(machine)
    for cut in range(0, len(whole), 7):
        with pytest.raises(ToolError):
            place(whole[:cut], "net_weights", bytes(16))
    for _ in range(3000):
        damaged = bytearray(whole)
        for _ in range(rng.randint(1, 4)):
            damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        with contextlib.suppress(ToolError):
            assert len(place(bytes(damaged), "net_weights", bytes(16))) == len(whole)


def test_a_static_variable_of_the_same_name_is_left_alone():
    """Local symbols come first in a table. The global one counts; several local ones are refused."""
    mine = '.section .mine, "a", %progbits\nnet_weights:\n.space 16\n.size net_weights, 16\n'
    other = '.section .yours, "a", %progbits\nother:\n.space 16\n.size other, 16\n'
    # an assembler writes one symbol per name, a linker any number: this writes the name over another one
    text = SOURCE.replace("net_weights", "net_weightz") + mine + other
    linked = bytearray(program("arm-none-eabi", text))
    table = ELFFile(io.BytesIO(bytes(linked))).get_section_by_name(".symtab")
    named = {symbol.name: number for number, symbol in enumerate(table.iter_symbols())}
    start, each = table["sh_offset"], table["sh_entsize"]
    words = {name: start + each * named[name] for name in ("net_weights", "net_weightz", "other")}
    assert named["net_weights"] < named["net_weightz"]
    string = linked[words["net_weights"] : words["net_weights"] + 4]
    linked[words["net_weightz"] : words["net_weightz"] + 4] = string
    after = ELFFile(io.BytesIO(place(bytes(linked), "net_weights", b"w" * 16)))
    assert after.get_section_by_name(".mine").data() == bytes(16)
    assert b"w" * 16 in after.get_section_by_name(".nn_weights").data()
    linked[words["net_weightz"] : words["net_weightz"] + 4] = bytes(4)
    assert b"w" * 16 in place(bytes(linked), "net_weights", b"w" * 16)  # made local by the linker
    linked[words["other"] : words["other"] + 4] = string
    with pytest.raises(ToolError, match="several symbols 'net_weights'"):
        place(bytes(linked), "net_weights", bytes(16))
