"""Files for flash, read back by independent programs and parsers."""

import io
import itertools
import struct
import subprocess

import pytest
from elftools.elf.elffile import ELFFile
from hypothesis import given, settings
from hypothesis import strategies as st
from intelhex import IntelHex
from loaded import own_board
from needs import needs_tool
from probe import ROOT, BuildError, link, load_board

from buildtool.base.errors import UsageError
from buildtool.base.modes import Format
from buildtool.firmware.flashfiles import Piece, binary, check_formats, flash_files, intel_hex, suffixes, uf2
from buildtool.firmware.linkmap import explain_link_failure

F4 = 0x57755A57
EVERY = tuple(Format)
BLOCKS = 'erase_blocks = ["4x16K", "64K", "128K"]\n'
ONE_FLASH = f"""\
[memory.flash]
{BLOCKS}[roles]
weights = "flash"
[image]
uf2_family = {F4:#x}
"""


def read_uf2(data, family):
    """Address -> byte; checks by the format's own page that every block is whole and numbered."""
    assert len(data) % 512 == 0
    memory = {}
    blocks = [data[at : at + 512] for at in range(0, len(data), 512)]
    for number, block in enumerate(blocks):
        first, second, flags, address, size, own, count, of = struct.unpack_from("<8I", block)
        assert (first, second) == (0x0A324655, 0x9E5D5157)
        assert block[508:] == struct.pack("<I", 0x0AB16F30)
        assert flags & 0x2000 and of == family
        assert (own, count) == (number, len(blocks))
        assert size == 256 and address % 256 == 0
        for i in range(size):
            assert address + i not in memory
            memory[address + i] = block[32 + i]
    return memory


def read_hex(data):
    parsed = IntelHex(io.StringIO(data.decode()))
    return {address: parsed[address] for address in parsed.addresses()}


def spread(pieces):
    return {piece.address + i: byte for piece in pieces for i, byte in enumerate(piece.data)}


@st.composite
def pieces(draw):
    """Parts at any distance: touching, a byte apart, across 64 KB and 16 MB, up to the last address."""
    base = draw(st.sampled_from((0, 0xFFF0, 0x0800_0000, 0x20FF_FF00, 0xFFFE_0000)))
    at, parts = base, []
    for _ in range(draw(st.integers(1, 4))):
        data = draw(st.binary(min_size=1, max_size=300))
        if at + len(data) <= base + 0x20000:
            parts.append(Piece(at, data))
        at += len(data) + draw(st.sampled_from((0, 1, 15, 255, 5000)))
    return draw(st.permutations(parts))


@settings(max_examples=40)
@given(pieces())
def test_every_format_has_every_byte_and_0xff_between(parts):
    expected, start = spread(parts), min(parts).address
    assert read_hex(intel_hex(parts)) == expected
    blocks = read_uf2(uf2(parts, F4), F4)
    assert {address: byte for address, byte in blocks.items() if address in expected} == expected
    assert {byte for address, byte in blocks.items() if address not in expected} <= {0xFF}
    flat = binary(parts, start)
    assert len(flat) == max(expected) + 1 - start
    assert all(expected.get(start + i, 0xFF) == byte for i, byte in enumerate(flat))


def probe(folder, text="", tool="clang", more=()):
    """A board whose flash has code and weights, and the probe's firmware image for it."""
    board = load_board(own_board(folder, ONE_FLASH + text))
    return board, link(board, tool, [ROOT / "probe.c", ROOT / "probe_weights.S", *more], (), folder)


@pytest.fixture(scope="module")
def one_flash(tmp_path_factory):
    return probe(tmp_path_factory.mktemp("flash"))


def test_the_files_hold_what_objcopy_takes_from_the_image(one_flash, tmp_path):
    board, elf = one_flash
    files = flash_files(elf.read_bytes(), board, "net", EVERY)
    assert set(files) == {"net" + ending for ending in suffixes(board, EVERY)}
    copy = needs_tool("arm-none-eabi-objcopy")

    def copied(*words):
        subprocess.run([copy, *words, str(elf), "out"], cwd=tmp_path, check=True)
        return (tmp_path / "out").read_bytes()

    weights, rest = ("--only-section=.nn_weights",), ("--remove-section=.nn_weights",)
    for part, words in (("", ()), ("_weights", weights), ("_code", rest)):
        theirs = read_hex(copied(*words, "-O", "ihex"))
        assert theirs
        assert read_hex(files[f"net{part}.hex"]) == theirs
        blocks = read_uf2(files[f"net{part}.uf2"], F4)
        assert {address: blocks[address] for address in theirs} == theirs
        flat = copied(*words, "-O", "binary", "--gap-fill=0xff")
        assert files[f"net{part}.bin"] == flat
    assert files["net_weights.bin"][:16] == bytes(range(16))


def test_the_weights_begin_with_an_erase_block(one_flash):
    _, elf = one_flash
    image = ELFFile(io.BytesIO(elf.read_bytes()))
    address = image.get_section_by_name(".nn_weights")["sh_addr"]
    end = image.get_section_by_name(".symtab").get_symbol_by_name("__code_end")[0]["st_value"]
    starts = list(itertools.accumulate([16384] * 4 + [65536] + [131072] * 30, initial=0))
    assert address == min(start for start in starts if start >= end) > 0


def filled(folder, size):
    """A source that adds `size` bytes to the code's memory; no linker leaves them out."""
    path = folder / "fill.S"
    path.write_text(f'.section .vectors, "a"\n.space {size}\n.section .note.GNU-stack, "", %progbits\n')
    return path


@pytest.mark.slow
@pytest.mark.parametrize(
    ("size", "tool"),
    [(60_000, "clang"), (65_500, "gcc"), (70_000, "clang"), (131_072, "gcc"), (262_000, "clang")],
)
def test_whatever_the_code_s_size_is(size, tool, tmp_path):
    """The code ends in the small blocks, in the large one or behind it, at a boundary or beside it."""
    test_the_weights_begin_with_an_erase_block(probe(tmp_path, "", tool, [filled(tmp_path, size)]))


def test_a_partition_and_a_boot_loader_have_their_places(tmp_path):
    text = 'code_start = "32K"\nweights_start = "256K"\nslots = 2\nslot_bytes = "128K"'
    board, elf = probe(tmp_path, text)
    memory = read_hex(flash_files(elf.read_bytes(), board, "net", (Format.HEX,))["net.hex"])
    assert min(memory) == 32 * 1024
    assert [memory[256 * 1024 + i] for i in range(16)] == list(range(16))
    flat = flash_files(elf.read_bytes(), board, "net")
    assert flat["net_code.bin"][:4] == bytes(memory[32 * 1024 + i] for i in range(4))
    assert flat["net_weights.bin"][:16] == bytes(range(16))
    assert len(flat["net.bin"]) == 224 * 1024 + len(flat["net_weights.bin"])


@pytest.mark.parametrize("tool", ["clang", pytest.param("gcc", marks=pytest.mark.slow)])
def test_firmware_that_reaches_into_the_partition_is_told_in_the_board_s_terms(tool, tmp_path):
    text = ONE_FLASH.replace(BLOCKS, 'erase_blocks = ["4K"]\n') + 'weights_start = "16K"\n'
    board = load_board(own_board(tmp_path, text, name="small"))
    sources = [ROOT / "probe.c", ROOT / "probe_weights.S", filled(tmp_path, 20_000)]
    with pytest.raises(BuildError) as caught:
        link(board, tool, sources, (), tmp_path)
    error = explain_link_failure(str(caught.value), board)
    assert error is not None
    assert error.text.startswith("memory 'flash' (code) from 0x0 on of board 'small' is ")
    assert error.text.endswith(" and has 16K")
    assert "[image]" in error.hint


def test_what_a_board_cannot_be_flashed_with_is_refused():
    with pytest.raises(UsageError, match="the UF2 family number of board 'cortex-m4' is not known") as caught:
        check_formats(load_board("cortex-m4"), [Format.UF2])
    assert "uf2_family" in caught.value.hint
    with pytest.raises(UsageError, match="is a program of this machine and is not flashed"):
        check_formats(load_board("host"), [Format.HEX])
    with pytest.raises(UsageError, match="has no slot for MCUboot"):
        check_formats(load_board("nucleo-f412zg"), [Format.BIN], signed=True)
    check_formats(load_board("nucleo-f412zg"), EVERY)
    # MCUboot's tools do not read UF2, but --sign still has an effect.
    assert "_signed.bin" in suffixes(load_board("nucleo-f412zg"), [Format.UF2], signed=True)
    check_formats(load_board("host"), [Format.BIN])


def test_a_binary_begins_with_the_firmware_where_the_weights_lie_before_it(tmp_path):
    board, elf = probe(tmp_path, 'code_start = "512K"\nweights_start = "16K"')
    files = flash_files(elf.read_bytes(), board, "net", EVERY)
    assert files["net.bin"] == files["net_code.bin"]
    assert files["net_weights.bin"][:16] == bytes(range(16))
    assert min(read_hex(files["net.hex"])) == board.memory("flash").base + 0x4000
