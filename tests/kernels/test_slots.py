"""Slots of weight images: which one is run after any cut of the power, any damage, any order of numbers.

The flash here is as flash is: an erase empties a block, a program clears bits of an empty unit. A cut
ends it before, after or in the middle of an operation, and what was being written then holds anything between
what was there and what was to be there.
"""

from __future__ import annotations

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


def kind(layout: bytes) -> Kind:
    """Of the images that `image` makes."""
    return Kind((ctypes.c_uint8 * 16)(*layout), PAYLOAD, 1, 1)


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


def image(seed: int, sequence: int = 0, layout: bytes = MINE) -> bytes:
    """An image as docs/images.md describes it."""
    payload = random.Random(seed).randbytes(PAYLOAD)
    numbers = (2, 64, PAYLOAD, zlib.crc32(payload), 1, 1, sequence)
    head = struct.pack("<4s7I16s12x", b"NTWI", *numbers, layout)
    return head + struct.pack("<I", zlib.crc32(head)) + payload


def resealed(data: bytes, place: int, change: int) -> bytes:
    """An image with one word of its header changed, whose CRC is right again."""
    head = bytearray(data[:60])
    struct.pack_into("<I", head, place, struct.unpack_from("<I", head, place)[0] ^ change)
    return bytes(head) + struct.pack("<I", zlib.crc32(head)) + data[64:]


@dataclasses.dataclass(frozen=True)
class Chip:
    """What a flash is like: `in_place`, whether it can be read by address; `memory` for the functions."""

    program: int = 16
    erase: int = 512
    slots: int = 2
    slot: int = 1536
    in_place: bool = True
    memory: int = 4096


class Flash:
    """A flash and the functions on it; `left` operations are done until the power goes."""

    def __init__(self, chip: Chip, library: ctypes.CDLL, content: bytes = b"") -> None:
        self.chip, self.library = chip, library
        size = chip.slots * chip.slot
        self.cells = (ctypes.c_uint8 * (size + 16))()
        self.start = ctypes.addressof(self.cells) + -ctypes.addressof(self.cells) % 16
        self.memory = (ctypes.c_uint8 * (chip.memory + 16))()
        self.fill(content.ljust(size, b"\xff"))
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

    def fill(self, content: bytes) -> None:
        """All of it."""
        ctypes.memmove(self.start, content, len(content))

    def content(self) -> bytes:
        """All of it."""
        return ctypes.string_at(self.start, self.chip.slots * self.chip.slot)

    def _spend(self, at: int, wanted: bytes) -> int:
        """One operation, whole or torn; where there is no power, nothing."""
        if self.left <= 0:
            return 1
        self.left -= 1
        self.done += 1
        if self.left == 0 and self.torn is not None:
            before = ctypes.string_at(self.start + at, len(wanted))
            # every bit that was to change has, or has not
            pairs = zip(before, wanted, strict=True)
            wanted = bytes(b ^ ((b ^ w) & self.torn.getrandbits(8)) for b, w in pairs)
        ctypes.memmove(self.start + at, wanted, len(wanted))
        return 0

    def _erase(self, _context, at: int) -> int:
        assert at % self.chip.erase == 0
        return self._spend(at, b"\xff" * self.chip.erase)

    def _program(self, _context, at: int, data: int) -> int:
        unit = self.chip.program
        assert at % unit == 0
        empty = ctypes.string_at(self.start + at, unit) == b"\xff" * unit
        assert empty or self.left <= 0, "programmed twice"
        wanted = ctypes.string_at(data, unit)
        if at <= self.stuck < at + unit:
            wanted = wanted[: self.stuck - at] + b"\xff" + wanted[self.stuck - at + 1 :]
        return self._spend(at, wanted)

    def _read(self, _context, at: int, to: int, count: int) -> int:
        ctypes.memmove(to, self.start + at, count)
        return 0

    def picked(self, layout: bytes = MINE) -> tuple[int, bytes]:
        """Status, and the payload that is run."""
        slot = c_uint32(99)
        status = self.library.nn_slots_pick(byref(self.description), byref(kind(layout)), byref(slot))
        if status != OK:
            return status, b""
        start = slot.value * self.chip.slot + 64
        return status, self.content()[start : start + PAYLOAD]

    def update(self, data: bytes, pieces: int = 100, layout: bytes = MINE) -> int:
        """The whole procedure, as an application does it: it stops at the first error."""
        state = (ctypes.c_uint8 * 128)()
        wanted = kind(layout)
        status = self.library.nn_slots_begin(state, byref(self.description), byref(wanted))
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


BESIDE = {  # what an update goes over: an older image, newer ones that no firmware of this network may run
    "older": image(3, 7),
    "of other inputs": resealed(image(3, 9), 20, 1),
    "of a later version": resealed(image(3, 9), 48, 1),
}


@pytest.mark.parametrize("beside", BESIDE)
@pytest.mark.parametrize(
    "chip", [CHIPS[0], *(pytest.param(chip, marks=pytest.mark.slow) for chip in CHIPS[1:])], ids=str
)
def test_a_cut_anywhere_leaves_a_network_that_runs(chip, beside):
    """Before, after and in every operation; then the update is done again."""
    library = runtime("clang" if chip.program > 16 else "gcc")
    old, new = image(1), image(2)
    content = BESIDE[beside].ljust(chip.slot, b"\0") + image(1, 8).ljust(chip.slot, b"\0")
    whole = Flash(chip, library, content)
    assert whole.picked() == (OK, old[64:])
    assert whole.update(new) == OK
    assert whole.picked() == (OK, new[64:])
    total = whole.done
    assert total > chip.slot // chip.erase + PAYLOAD // chip.program
    step = max(1, total // 25)  # of a few bytes at a time, not every one of a thousand
    cuts = {*range(0, total + 1, step), *range(max(0, total - 66), total + 1)}
    for cut in sorted(cuts):
        for torn in (False, True):
            flash = Flash(chip, library, content)
            flash.left, flash.torn = cut, random.Random(cut) if torn else None
            finished = cut == total and not torn
            assert (flash.update(new) == OK) == finished
            assert flash.picked() == (OK, new[64:] if finished else old[64:])
            flash.left = 1 << 30
            assert flash.update(image(4)) == OK
            assert flash.picked() == (OK, image(4)[64:])


def test_damage_of_the_newest_image_brings_the_one_before_back():
    chip, library = Chip(slots=3), runtime("gcc")
    content = b"".join(image(n, n).ljust(chip.slot, b"\xff") for n in (5, 6, 7))
    for at in [*range(64), 64, 700, 64 + PAYLOAD - 1]:  # anywhere in the header, and in the payload
        flash = Flash(chip, library, content)
        damaged = bytearray(content)
        damaged[2 * chip.slot + at] ^= 1 << at % 8
        flash.fill(bytes(damaged))
        assert flash.picked() == (OK, image(6)[64:])
        damaged[chip.slot + at] ^= 0x40
        flash.fill(bytes(damaged))
        assert flash.picked() == (OK, image(5)[64:])
        damaged[at] ^= 2
        flash.fill(bytes(damaged))
        assert flash.picked() == (NO_SLOT, b"")


WORDS = {
    **{0: IMAGE, 4: VERSION, 8: VERSION, 12: LAYOUT, 20: LAYOUT, 24: LAYOUT},
    **dict.fromkeys(range(32, 48, 4), LAYOUT),
    **dict.fromkeys(range(48, 60, 4), VERSION),
}


@pytest.mark.parametrize("change", [1, 16, 0x80000000, 0xFFFFFFFF])
def test_a_sealed_header_that_says_something_else_neither_runs_nor_is_written(change):
    chip, library = Chip(), runtime("gcc")
    assert sorted(WORDS) == [place for place in range(0, 60, 4) if place not in (16, 28)]
    for place, status in WORDS.items():
        strange = resealed(image(2, 2), place, change)
        flash = Flash(chip, library, image(1, 1).ljust(chip.slot, b"\xff") + strange)
        assert flash.picked() == (OK, image(1)[64:])
        before = flash.content()
        assert flash.update(strange) == status
        assert (flash.content(), flash.done) == (before, 0)
        assert flash.update(image(4)) == OK  # over the strange one
        assert flash.picked() == (OK, image(4)[64:])
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
    assert flash.picked() == (OK, image(newest)[64:])
    assert flash.update(image(9)) == OK
    assert flash.picked() == (OK, image(9)[64:])
    sequences = [
        struct.unpack_from("<I", flash.content(), n * chip.slot + 28)[0] for n in range(len(numbers))
    ]
    assert (numbers[newest] + 1) % (1 << 32) in sequences
    assert numbers[newest] in sequences  # the one that ran is still there


def test_many_updates_use_every_slot_in_turn():
    chip, library = Chip(slots=3), runtime("gcc")
    flash = Flash(chip, library)
    assert flash.picked() == (NO_SLOT, b"")
    for n in range(7):
        assert flash.update(image(n), pieces=1 + 37 * n) == OK
        assert flash.picked() == (OK, image(n)[64:])
    assert [flash.content()[n * chip.slot + 64 :][:PAYLOAD] for n in range(3)] == [
        image(n)[64:] for n in (6, 4, 5)
    ]


def test_a_strange_image_changes_nothing():
    chip, library = Chip(), runtime("gcc")
    flash = Flash(chip, library, image(1, 1).ljust(chip.slot, b"\xff") + image(2, 2))
    before = flash.content()
    assert flash.update(image(3, layout=OTHER)) == LAYOUT
    assert flash.update(bytes(64)) == IMAGE
    assert flash.update(image(3)[:40]) == IMAGE  # too short
    broken = bytearray(image(3))
    broken[29] ^= 1  # its own number
    assert flash.update(bytes(broken)) == CRC
    assert flash.content() == before
    assert flash.done == 0
    assert flash.picked(OTHER) == (NO_SLOT, b"")


def test_damage_on_the_way_is_no_update():
    chip, library = Chip(), runtime("gcc")
    flash = Flash(chip, library, image(1, 1).ljust(chip.slot, b"\xff"))
    broken = bytearray(image(3))
    broken[900] ^= 1
    for data, status in ((bytes(broken), CRC), (image(3)[:-1], IMAGE), (image(3) + b"\0", IMAGE)):
        assert flash.update(data) == status
        assert flash.picked() == (OK, image(1)[64:])
    flash.stuck = chip.slot + 333  # a byte that cannot be written
    assert flash.update(image(3)) == FLASH
    assert flash.picked() == (OK, image(1)[64:])


@pytest.mark.parametrize(
    "wrong",
    [
        {"slots": 1},
        {"slots": 17},
        {"slot": 1024},
        {"slot": 1540},
        {"program": 24},
        {"program": 0},
        {"erase": 0},
        {"erase": 24},
        {"memory": 79},
    ],
)
def test_slots_that_cannot_be_are_refused(wrong):
    good, library = Chip(), runtime("gcc")
    flash = Flash(good, library, image(1))
    made = dataclasses.replace(good, **wrong)
    found = flash.description
    found.slots, found.slot_bytes = made.slots, made.slot
    found.erase_bytes, found.program_bytes, found.memory_bytes = made.erase, made.program, made.memory
    assert flash.picked() == (SLOTS, b"")
    assert flash.update(image(2)) == SLOTS
    assert flash.done == 0


def test_the_page_s_program_compiles(tmp_path):
    page = (ROOT / "docs/images.md").read_text()
    (block,) = [text for text in re.findall(r"(?ms)^```c\n(.*?)^```$", page) if "nn_slots_begin" in text]
    (tmp_path / "net.h").write_text(
        '#include "nn_image.h"\n#define NET_IMAGE_KIND {{1, 2}, 64, 1, 1}\n'
        "static int8_t arena[16], piece[16];\nstatic uint32_t bytes;\n"
        "int erase_block(void *, uint32_t), write_unit(void *, uint32_t, const void *);\n"
        "int receive(void *, uint32_t *);\nnn_status net_init(void *, size_t, const void *);\n"
        "nn_status start(void), update(void);\n"
    )
    (tmp_path / "own.c").write_text(block)
    words = ("-std=c99", "-Wall", "-Wextra", "-Werror", f"-I{KERNELS / 'include'}", "-I.", "-c", "own.c")
    subprocess.run([needs_tool("gcc"), *words], cwd=tmp_path, check=True)


def test_newest_goes_from_slot_to_slot():
    """For an application whose init checks the contents: each slot with a header of ours, once."""
    chip, library = Chip(slots=3), runtime("gcc")
    content = b"".join(image(n, n).ljust(chip.slot, b"\xff") for n in (6, 8, 7))
    flash = Flash(chip, library, content)
    tried, slot, found = c_uint32(0), c_uint32(0), []
    library.nn_slots_newest.argtypes = [c_void_p, c_void_p, POINTER(c_uint32), POINTER(c_uint32)]
    while library.nn_slots_newest(byref(flash.description), byref(kind(MINE)), tried, slot) == OK:
        found.append(slot.value)
    assert found == [1, 2, 0]
