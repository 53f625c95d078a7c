"""The stack that Xtensa code needs: read from single instructions along their jumps, and from what ran."""

import pytest
from needs import needs_tool

from buildtool.api import handle
from buildtool.firmware.stack import xtensa
from buildtool.firmware.stack.body import Code

# Instructions as the disassembler prints them, their bytes, and bytes of stack; None: it cannot be told.
TAKEN = {
    "addi sp, sp, -16": ("12c1f0", 16),
    "addi sp, sp, -16; addi sp, sp, 16; ret.n": ("12c1f0 12c110 0df0", 16),
    "addmi sp, sp, -512": ("12d1fe", 512),
    "movi a9, 160; sub sp, sp, a9; add.n sp, sp, a9": ("92a0a0 9011c0 9a11", 160),
    "movi.n a9, -32; add.n sp, sp, a9": ("6c09 9a11", 32),
    "l32r a9, 0xffc; sub sp, sp, a9": ("91ffff 9011c0", 4660),
    "mov.n a15, sp; mov.n sp, a15": ("fd01 1d0f", 0),
    "moveqz a1, a1, a2 (a marker)": ("201183", 0),
    "j over what fills up; ret.n": ("c60000 12a000 00 0df0", 0),
    "sub sp, sp, a9": ("9011c0", None),
    "mov.n sp, a9": ("1d09", None),
    "movi a1, 0": ("12a000", None),
    "l32i.n a1, a2, 0": ("1802", None),
    "entry a1, 32": ("364100", None),
}


def body(text):
    data = bytes.fromhex(text)
    return xtensa.read_body(Code(0x1000, data), {0xFFC: 4660}.get)


@pytest.mark.parametrize("text", TAKEN)
def test_an_instruction_takes_what_it_does(text):
    code, taken = TAKEN[text]
    found = body(code)
    assert not found.is_indirect
    if taken is None:
        assert found.unknown
    else:
        assert (found.frame, found.unknown) == (taken, False)


def test_calls_jumps_and_calls_by_address_are_told_apart():
    found = body("c50f00 467e00")  # call0 0x1100; j 0x1200
    assert (found.calls, found.tails, found.is_indirect) == ({0x1100}, {0x1200}, False)
    found = body("41ffff c00400")  # l32r a4; callx0 a4
    assert (found.taken, found.is_indirect, found.unknown) == ({4660}, True, False)
    assert body("a00400").is_indirect  # jx a4


@pytest.mark.slow
def test_what_ran_took_no_more_than_is_told():
    needs_tool("xtensa-lx106-elf-gcc")
    request = {"model": "ds_cnn", "board": "esp8266"}
    (told,) = handle({"kind": "build", **request})["stacks"]
    ran = handle({"kind": "profile", **request})
    assert ran["stack_high_water"] <= told["needed"] <= 2 * ran["stack_high_water"]
