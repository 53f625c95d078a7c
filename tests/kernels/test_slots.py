"""Slots of weight images: the one that runs after a power cut, after damage, and with any sequence numbers.

The flash is a model: an erase empties a block, a program clears bits of an empty unit. A power cut may come
before, after or during an operation; during a write, each bit then has its old or its new value.
"""

import ctypes
import dataclasses
import random
import re
import struct
import subprocess
import zlib
from ctypes import CFUNCTYPE, POINTER, byref, c_int, c_size_t, c_uint32, c_void_p

import pytest
from ckernels import runtime
from needs import needs_tool
from paths import KERNELS, ROOT

OK, IMAGE, VERSION, LAYOUT, CRC, NO_SLOT, FLASH, SLOTS = 0, 2, 3, 4, 5, 8, 9, 10
MINE, OTHER = bytes(range(16)), bytes(range(1, 17))
PAYLOAD = 1040
ERASE = CFUNCTYPE(c_int, c_void_p, c_uint32)
PROGRAM = CFUNCTYPE(c_int, c_void_p, c_uint32, c_void_p)
READ = CFUNCTYPE(c_int, c_void_p, c_uint32, c_void_p, c_uint32)


class Kind(ctypes.Structure):
    """nn_image_kind."""

    _fields_ = [
        ("layout", ctypes.c_uint8 * 16),
        *((name, c_uint32) for name in ("payload_bytes", "inputs", "outputs")),
    ]

    @classmethod
    def of(cls, layout):
        """Returns the kind of the weight images that `image` makes."""
        return cls((ctypes.c_uint8 * 16)(*layout), PAYLOAD, 1, 1)


class Slots(ctypes.Structure):
    """nn_slots."""

    _fields_ = [
        ("base", c_void_p),
        *((name, c_uint32) for name in ("slots", "slot_bytes", "erase_bytes", "program_bytes")),
        ("erase", ERASE),
        ("program", PROGRAM),
        ("read", READ),
        ("context", c_void_p),
        ("memory", c_void_p),
        ("memory_bytes", c_size_t),
    ]


def image(seed, sequence=0, layout=MINE):
    """Makes a weight image as docs/reference/weight-image.md describes it."""
    payload = random.Random(seed).randbytes(PAYLOAD)
    numbers = (2, 64, PAYLOAD, zlib.crc32(payload), 1, 1, sequence)
    head = struct.pack("<4s7I16s12x", b"NTWI", *numbers, layout)
    return head + struct.pack("<I", zlib.crc32(head)) + payload


def resealed(data, place, change):
    """Returns a weight image with one word of its header changed, and a right CRC."""
    head = bytearray(data[:60])
    struct.pack_into("<I", head, place, struct.unpack_from("<I", head, place)[0] ^ change)
    return bytes(head) + struct.pack("<I", zlib.crc32(head)) + data[64:]


@dataclasses.dataclass(frozen=True)
class Chip:
    """The sizes of a flash. `in_place`: it can be read by address. `memory`: bytes for the functions."""

    program: int = 16
    erase: int = 512
    slots: int = 2
    slot: int = 1536
    in_place: bool = True
    memory: int = 4096


class Flash:
    """A flash and the functions that use it; the power is cut after `left` operations."""

    def __init__(self, chip, library, content=b""):
        self.chip, self.library = chip, library
        size = chip.slots * chip.slot
        self.cells = (ctypes.c_uint8 * (size + 16))()
        self.start = ctypes.addressof(self.cells) + -ctypes.addressof(self.cells) % 16
        self.memory = (ctypes.c_uint8 * (chip.memory + 16))()
        ctypes.memmove(self.start, content.ljust(size, b"\xff"), size)
        self.left, self.torn, self.done, self.stuck = 1 << 30, random.Random(0), 0, -1
        memory = ctypes.addressof(self.memory)
        self.hooks = ERASE(self._erase), PROGRAM(self._program), READ(self._read)
        self.description = Slots(
            self.start if chip.in_place else None,
            *(chip.slots, chip.slot, chip.erase, chip.program),
            *self.hooks,
            None,
            memory + -memory % 16,
            chip.memory,
        )

    def content(self):
        return ctypes.string_at(self.start, self.chip.slots * self.chip.slot)

    def _spend(self, at, content):
        """Performs one operation, completely or in part; none without power."""
        if self.left <= 0:
            return 1
        self.left -= 1
        self.done += 1
        if self.left == 0 and self.torn is not None:
            before = ctypes.string_at(self.start + at, len(content))
            # each bit that should change has its old or its new value
            pairs = zip(before, content, strict=True)
            content = bytes(b ^ ((b ^ w) & self.torn.getrandbits(8)) for b, w in pairs)
        ctypes.memmove(self.start + at, content, len(content))
        return 0

    def _erase(self, _context, at):
        assert at % self.chip.erase == 0
        return self._spend(at, b"\xff" * self.chip.erase)

    def _program(self, _context, at, data):
        unit = self.chip.program
        assert at % unit == 0
        empty = ctypes.string_at(self.start + at, unit) == b"\xff" * unit
        assert empty or self.left <= 0, "programmed twice"
        content = ctypes.string_at(data, unit)
        if at <= self.stuck < at + unit:
            content = content[: self.stuck - at] + b"\xff" + content[self.stuck - at + 1 :]
        return self._spend(at, content)

    def _read(self, _context, at, to, count):
        ctypes.memmove(to, self.start + at, count)
        return 0

    def picked(self, layout=MINE):
        """Returns the status, and the payload of the weight image that runs."""
        slot = c_uint32(99)
        status = self.library.nn_slots_pick(byref(self.description), byref(Kind.of(layout)), byref(slot))
        start = slot.value * self.chip.slot + 64
        return status, self.content()[start : start + PAYLOAD] if status == OK else b""

    def runs(self, seed):
        """Whether `image(seed)` is the one that runs."""
        return self.picked() == (OK, image(seed)[64:])

    def update(self, data, pieces=100, layout=MINE):
        """Updates as an application does, up to the first error; returns the status."""
        state, kind = (ctypes.c_uint8 * 128)(), Kind.of(layout)
        status = self.library.nn_slots_begin(state, byref(self.description), byref(kind))
        for begin in range(0, len(data), pieces):
            if status == OK:
                part = data[begin : begin + pieces]
                status = self.library.nn_slots_write(state, part, len(part))
        return status if status != OK else int(self.library.nn_slots_end(state))


CHIPS = (
    Chip(),
    Chip(program=2, erase=128, slot=1280),
    Chip(program=256, slots=3, memory=512),
    Chip(program=32, in_place=False, memory=96),
    Chip(program=128, in_place=False, slots=4, memory=9600),
)


BESIDE = {  # the image in the other slot: an older one, or newer ones that this firmware must not run
    "older": image(3, 7),
    "of other inputs": resealed(image(3, 9), 20, 1),
    "of a later version": resealed(image(3, 9), 48, 1),
}


@pytest.mark.parametrize("beside", BESIDE)
@pytest.mark.parametrize(
    "chip", [CHIPS[0], *(pytest.param(chip, marks=pytest.mark.slow) for chip in CHIPS[1:])], ids=str
)
def test_a_cut_anywhere_leaves_a_network_that_runs(chip, beside):
    """The cut is before, after or during every operation; then the update is repeated."""
    library = runtime("clang" if chip.program > 16 else "gcc")
    content = BESIDE[beside].ljust(chip.slot, b"\0") + image(1, 8).ljust(chip.slot, b"\0")
    whole = Flash(chip, library, content)
    assert whole.runs(1)
    assert whole.update(image(2)) == OK
    assert whole.runs(2)
    total = whole.done
    assert total > chip.slot // chip.erase + PAYLOAD // chip.program
    step = max(1, total // 25)  # only some of the cuts where there are thousands of small operations
    cuts = {*range(0, total + 1, step), *range(max(0, total - 66), total + 1)}
    for cut in sorted(cuts):
        for torn in (False, True):
            flash = Flash(chip, library, content)
            flash.left, flash.torn = cut, random.Random(cut) if torn else None
            finished = cut == total and not torn
            assert (flash.update(image(2)) == OK) == finished
            assert flash.runs(2 if finished else 1)
            flash.left = 1 << 30
            assert flash.update(image(4)) == OK
            assert flash.runs(4)


def test_damage_of_the_newest_image_brings_the_one_before_back():
    chip, library = Chip(slots=3), runtime("gcc")
    content = b"".join(image(n, n).ljust(chip.slot, b"\xff") for n in (5, 6, 7))
    for at in [*range(64), 64, 700, 64 + PAYLOAD - 1]:  # in the header and in the payload
        damaged = bytearray(content)
        damaged[2 * chip.slot + at] ^= 1 << at % 8
        assert Flash(chip, library, bytes(damaged)).runs(6)
        damaged[chip.slot + at] ^= 0x40
        assert Flash(chip, library, bytes(damaged)).runs(5)
        damaged[at] ^= 2
        assert Flash(chip, library, bytes(damaged)).picked() == (NO_SLOT, b"")


WORDS = {
    **{0: IMAGE, 4: VERSION, 8: VERSION, 12: LAYOUT, 20: LAYOUT, 24: LAYOUT},
    **dict.fromkeys(range(32, 48, 4), LAYOUT),
    **dict.fromkeys(range(48, 60, 4), VERSION),
}


def flash_with_one(behind=b""):
    """Returns a flash with a weight image in its first slot, and `behind` after it."""
    chip = Chip()
    return Flash(chip, runtime("gcc"), image(1, 1).ljust(chip.slot, b"\xff") + behind)


@pytest.mark.parametrize("change", [1, 16, 0x80000000, 0xFFFFFFFF])
def test_a_sealed_header_that_says_something_else_neither_runs_nor_is_written(change):
    assert sorted(WORDS) == [place for place in range(0, 60, 4) if place not in (16, 28)]
    for place, status in WORDS.items():
        strange = resealed(image(2, 2), place, change)
        flash = flash_with_one(strange)
        assert flash.runs(1)
        before = flash.content()
        assert flash.update(strange) == status
        assert (flash.content(), flash.done) == (before, 0)
        assert flash.update(image(4)) == OK  # replaces the strange one
        assert flash.runs(4)
        assert flash.content()[:64] == image(1, 1)[:64]


@pytest.mark.parametrize(
    ("numbers", "newest"),
    [
        ((0, 1), 1),
        ((1, 0), 0),
        ((0xFFFFFFFF, 0), 1),
        ((3, 0xFFFFFFFE), 0),
        ((0x7FFFFFFF, 0x80000000), 1),
        ((5, 5), 0),
        ((0xFFFFFFFE, 0xFFFFFFFF, 0), 2),
        ((1, 0xFFFFFFFF, 0), 0),
    ],
)
def test_numbers_go_round(numbers, newest):
    chip, library = Chip(slots=len(numbers)), runtime("gcc")
    content = b"".join(image(n, number).ljust(chip.slot, b"\xff") for n, number in enumerate(numbers))
    flash = Flash(chip, library, content)
    assert flash.runs(newest)
    assert flash.update(image(9)) == OK
    assert flash.runs(9)
    starts = range(0, len(numbers) * chip.slot, chip.slot)
    sequences = {struct.unpack_from("<I", flash.content(), start + 28)[0] for start in starts}
    assert {numbers[newest], (numbers[newest] + 1) % (1 << 32)} <= sequences  # the old image is still there


def test_many_updates_use_every_slot_in_turn():
    chip, library = Chip(slots=3), runtime("gcc")
    flash = Flash(chip, library)
    assert flash.picked() == (NO_SLOT, b"")
    for n in range(7):
        assert flash.update(image(n), pieces=1 + 37 * n) == OK
        assert flash.runs(n)
    slots = [flash.content()[n * chip.slot + 64 :][:PAYLOAD] for n in range(3)]
    assert slots == [image(n)[64:] for n in (6, 4, 5)]


def broken(at, data=image(3)):  # noqa: B008
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


@pytest.mark.parametrize(
    ("data", "status", "is_written"),
    [
        (image(3, layout=OTHER), LAYOUT, False),
        (bytes(64), IMAGE, False),
        (image(3)[:40], IMAGE, False),
        (broken(29), CRC, False),  # in its sequence number
        (broken(900), CRC, True),
        (image(3)[:-1], IMAGE, True),
        (image(3) + b"\0", IMAGE, True),
    ],
)
def test_a_wrong_image_is_no_update(data, status, is_written):
    """One with a wrong header does not change the flash."""
    flash = flash_with_one()
    before = flash.content()
    assert flash.update(data) == status
    assert (flash.done > 0, flash.content() != before) == (is_written, is_written)
    assert flash.runs(1)
    assert flash.picked(OTHER) == (NO_SLOT, b"")


def test_a_byte_that_cannot_be_written_is_no_update():
    flash = flash_with_one()
    flash.stuck = flash.chip.slot + 333
    assert flash.update(image(3)) == FLASH
    assert flash.runs(1)


WRONG = {"slots": (1, 17), "slot": (1024, 1540), "program": (24, 0), "erase": (0, 24), "memory": (79,)}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name in WRONG for value in WRONG[name]])
def test_slots_that_cannot_be_are_refused(name, value):
    flash = Flash(Chip(), runtime("gcc"), image(1))
    chip = dataclasses.replace(Chip(), **{name: value})
    description = flash.description
    description.slots, description.slot_bytes = chip.slots, chip.slot
    description.erase_bytes, description.program_bytes, description.memory_bytes = (
        chip.erase,
        chip.program,
        chip.memory,
    )
    assert flash.picked() == (SLOTS, b"")
    assert flash.update(image(2)) == SLOTS
    assert flash.done == 0


def test_the_page_s_program_compiles(tmp_path):
    page = (ROOT / "docs/guides/weight-updates.md").read_text()
    (block,) = [text for text in re.findall(r"(?ms)^```c\n(.*?)^```$", page) if "nn_slots_begin" in text]
    (tmp_path / "net.h").write_text("""\
#include "nn_image.h"
#define NET_IMAGE_KIND {{1, 2}, 64, 1, 1}
static int8_t arena[16], piece[16];
static uint32_t bytes;
int erase_block(void *, uint32_t), write_unit(void *, uint32_t, const void *), receive(void *, uint32_t *);
nn_status net_init(void *, size_t, const void *), start(void), update(void);
""")
    (tmp_path / "own.c").write_text(block)
    words = ("-std=c99", "-Wall", "-Wextra", "-Werror", f"-I{KERNELS / 'include'}", "-I.", "-c", "own.c")
    subprocess.run([needs_tool("gcc"), *words], cwd=tmp_path, check=True)


def test_newest_goes_from_slot_to_slot():
    """For applications whose init checks the contents: returns each slot with a valid header once."""
    chip, library = Chip(slots=3), runtime("gcc")
    content = b"".join(image(n, n).ljust(chip.slot, b"\xff") for n in (6, 8, 7))
    flash = Flash(chip, library, content)
    tried, slot, slots = c_uint32(0), c_uint32(0), []
    library.nn_slots_newest.argtypes = [c_void_p, c_void_p, POINTER(c_uint32), POINTER(c_uint32)]
    while library.nn_slots_newest(byref(flash.description), byref(Kind.of(MINE)), tried, slot) == OK:
        slots.append(slot.value)
    assert slots == [1, 2, 0]
