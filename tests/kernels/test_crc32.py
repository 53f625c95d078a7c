"""The CRC of the runtime: zlib's on any data, in any pieces, with and without scratch."""

from __future__ import annotations

import ctypes
import random
import struct
import zlib

import pytest
from paths import KERNELS, TESTS
from probe import ROOT, link, load_board, one_set, run
from runtimelib import runtime

SCRATCH = 1200
BYTES = 1 << 16  # of the data on a board


@pytest.mark.parametrize("tool", ["gcc", "clang"])
def test_it_is_zlib_s(tool):
    """Lengths around the words that stay (300) and the limit (900 words); data that begins anywhere."""
    library, draw = runtime(tool), random.Random(5)
    lengths = [0, 1, 3, 4, 15, 64, 1199, *range(3597, 3608), 3600 + 4 * 145, 3600 + 4 * 211, 7199, 40_001]
    for length in lengths:
        for head in range(4):
            data = draw.randbytes(head + length)
            place = ctypes.create_string_buffer(data, len(data) + 1)
            before = draw.choice((0, 1, 0xFFFFFFFF, draw.getrandbits(32)))
            for scratch in (None, bytes(SCRATCH), b"\xa5" * SCRATCH):
                ring = scratch and ctypes.create_string_buffer(scratch, SCRATCH)
                found = library.nn_crc32(before, ctypes.byref(place, head), length, ring)
                assert found == zlib.crc32(data[head:], before), (length, head, before)


def test_every_word_of_long_data_counts():
    """A single bit, anywhere in data that is folded: another CRC, and the right one."""
    library, ring = runtime("gcc"), ctypes.create_string_buffer(SCRATCH)
    for bit in range(0, 8 * 6000, 1009):
        data = bytearray(6000)
        data[bit // 8] = 1 << bit % 8
        found = library.nn_crc32(0, bytes(data), len(data), ring)
        assert found == zlib.crc32(data) != zlib.crc32(bytes(6000))


def test_pieces_are_joined():
    library, ring = runtime("gcc"), ctypes.create_string_buffer(SCRATCH)
    data, crc = random.Random(1).randbytes(20_000), 0
    for begin, end in ((0, 5000), (5000, 5001), (5001, 13_000), (13_000, 20_000)):
        crc = library.nn_crc32(crc, data[begin:end], end - begin, ring)
    assert crc == zlib.crc32(data)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("board", "tool", "most"),
    [("cortex-m4", "gcc", 3.5), ("cortex-m55", "clang", 1.2), ("qemu-virt-rv32", "clang", 3.4)],
)
def test_on_a_core_it_costs_what_the_page_says(board, tool, most, tmp_path):
    """Executed instructions a byte, with scratch; without it 9 to 16 (docs/images.md)."""
    sources = [TESTS / "kernels/crc_board/crc_on_board.c", KERNELS / "runtime/nn_crc32.c"]
    elf = link(load_board(board), tool, [*sources, ROOT / "probe_weights.S"], (), tmp_path)
    result = run(board, elf, one_set("echo"), count=True)
    state, words = 1, []
    for _ in range(BYTES // 4):
        state = (state * 1664525 + 1013904223) & 0xFFFFFFFF
        words.append(state)
    crc = zlib.crc32(struct.pack(f"<{len(words)}I", *words))
    assert struct.unpack_from("<2I", result.files["output.bin"]) == (crc, crc)
    fast, slow = (result.counts[i] / BYTES for i in (1, 2))
    assert fast <= most
    assert slow <= 16.1
