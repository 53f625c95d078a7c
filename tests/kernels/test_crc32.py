"""The runtime's CRC equals zlib's for any data, in any pieces, with and without scratch."""

import ctypes
import random
import re
import struct
import subprocess
import zlib

import pytest
from ckernels import RUNTIME, runtime
from needs import needs_tool
from paths import KERNELS, TESTS
from paths import ROOT as ROOT_OF_ALL
from probe import ROOT, link, load_board, one_set, run

SCRATCH = 1200
BYTES = 1 << 16  # data on a board


@pytest.mark.parametrize("tool", ["gcc", pytest.param("clang", marks=pytest.mark.slow)])
def test_it_is_zlib_s(tool):
    """Lengths around the words that are not folded (300) and the limit (900 words), at any alignment."""
    library, draw = runtime(tool), random.Random(5)
    lengths = [0, 1, 3, 4, 15, 64, 1199, *range(3598, 3605), 4180, 4444, 20_001]
    for length in lengths:
        for head in range(4):
            data = draw.randbytes(head + length)
            place = ctypes.create_string_buffer(data, len(data) + 1)
            before = draw.choice((0, 1, 0xFFFFFFFF, draw.getrandbits(32)))
            for scratch in (None, bytes(SCRATCH), b"\xa5" * SCRATCH):
                ring = scratch and ctypes.create_string_buffer(scratch, SCRATCH)
                crc = library.nn_crc32(before, ctypes.byref(place, head), length, ring)
                assert crc == zlib.crc32(data[head:], before), (length, head, before)


# The CRC unit of an STM32F4, after its reference manual: words, most significant bit first, no reversal.
UNIT = """\
#include <stdint.h>
struct Unit {
    uint32_t held = 0;
    void operator=(uint32_t word) {
        held ^= word;
        for (int i = 0; i < 32; i++) held = held << 1 ^ (held >> 31 ? 0x04C11DB7U : 0U);
    }
    operator uint32_t() const { return held; }
};
struct Control { Unit *unit; void operator=(uint32_t reset) { if (reset & 1U) unit->held = 0xFFFFFFFFU; } };
static Unit unit;
static struct { Unit &DR; Control CR; } registers = {unit, {&unit}};
static struct { uint32_t AHB1ENR; } clocks;
#define CRC (&registers)
#define RCC (&clocks)
#define RCC_AHB1ENR_CRCEN (1U << 12)
#define CRC_CR_RESET 1U
static uint32_t __RBIT(uint32_t x) {
    uint32_t y = 0;
    for (int i = 0; i < 32; i++) y |= (x >> i & 1U) << (31 - i);
    return y;
}
"""


def test_the_page_s_function_for_a_chip_s_unit_is_right_in_a_model_of_it(tmp_path):
    page = (ROOT_OF_ALL / "docs/reference/weight-image.md").read_text()
    (block,) = [text for text in re.findall(r"(?ms)^```c\n(.*?)^```$", page) if "CRC->DR" in text]
    (tmp_path / "stm32f4xx.h").write_text(UNIT)
    (tmp_path / "own.cpp").write_text(block)
    flags = ("-fpermissive", "-w", "-O1", "-shared", "-fPIC", f"-I{KERNELS / 'include'}", "-I.")
    subprocess.run([needs_tool("g++"), *flags, "own.cpp", "-o", "own.so"], cwd=tmp_path, check=True)
    own = ctypes.CDLL(str(tmp_path / "own.so")).nn_crc32
    own.restype, own.argtypes = ctypes.c_uint32, runtime("gcc").nn_crc32.argtypes
    draw = random.Random(2)
    for length in (0, 1, 3, 4, 5, 60, 64, 1021):
        data, before = draw.randbytes(length), draw.choice((0, draw.getrandbits(32)))
        assert own(before, data, length, None) == zlib.crc32(data, before)


@pytest.mark.slow
def test_a_function_of_the_application_takes_the_place_of_ours(tmp_path):
    """The order of objects does not matter, as with a runtime in an archive."""
    (tmp_path / "app.c").write_text("""\
#include "nn_image.h"
uint32_t nn_crc32(uint32_t crc, const void *data, uint32_t bytes, void *scratch) {
    (void)crc, (void)data, (void)scratch;
    return bytes ^ 7U;
}
int main(void) {
    const nn_image_header header = {
        NN_IMAGE_MAGIC, NN_IMAGE_VERSION, 64, 16, 0, 0, 0, 0, {0}, {0}, 60 ^ 7};
    const nn_image_kind kind = {{0}, 16, 0, 0};
    return (int)nn_image_check_header(&header, &kind);
}
""")
    sources = [KERNELS / "runtime" / name for name in RUNTIME]
    words = ("-std=c99", "-Wall", "-Wextra", "-Werror", f"-I{KERNELS / 'include'}")
    for order in (["app.c", *sources], [*sources, "app.c"]):
        subprocess.run([needs_tool("gcc"), *words, *order, "-o", "app"], cwd=tmp_path, check=True)
        assert subprocess.run([tmp_path / "app"], check=False).returncode == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("board", "tool", "most"),
    [("cortex-m4", "gcc", 3.5), ("cortex-m55", "clang", 1.2), ("qemu-virt-rv32", "clang", 3.4)],
)
def test_on_a_core_it_costs_what_the_page_says(board, tool, most, tmp_path):
    """Executed instructions per byte, with scratch; without it 9 to 16 (docs/reference/weight-image.md)."""
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
