"""Linkers' maps: which object brings how many bytes to which section."""

from __future__ import annotations

from buildtool.firmware.linkmap import contributions

LLD = """\
     VMA      LMA     Size Align Out     In      Symbol
       0        0       8e     4 .text
       0        0       40     4         obj/019_startup.o:(.vectors)
       0        0       40     1                 vectors
      40       40       4e     4         /a b/(c)/000_net.o:(.text.net_init)
      41       41       4e     1                 net_init
      90       90       14     4 .rodata
      90       90       10     1         /a b/(c)/000_net.o:(.rodata.layout)
      a0       a0        4     4         <internal>:(.rodata.cst4)
"""
GNU = """\
Discarded input sections

 .text          0x00000000       0x10 obj/000_net.o

Linker script and memory map

LOAD obj/000_net.o
.text           0x00000000       0x8e
 *(.vectors)
 .vectors       0x00000000       0x40 obj/019_startup.o
 .text.a_function_with_a_long_name
                0x00000040       0x4e obj/000_net.o
                0x00000041                net_init
 *fill*         0x0000008e        0x2
.bss_of_a_long_name
                0x20000000       0x10
 .bss           0x20000000       0x10 obj/000_net.o
OUTPUT(x.elf elf32-littlearm)
"""


def test_the_map_of_lld() -> None:
    assert [share[:4] for share in contributions(LLD)] == [
        (".text", ".vectors", "obj/019_startup.o", 0x40),
        (".text", ".text.net_init", "/a b/(c)/000_net.o", 0x4E),
        (".rodata", ".rodata.layout", "/a b/(c)/000_net.o", 0x10),
        (".rodata", ".rodata.cst4", "<internal>", 4),
    ]


def test_the_map_of_gnu_ld() -> None:
    assert [share[:4] for share in contributions(GNU)] == [
        (".text", ".vectors", "obj/019_startup.o", 0x40),
        (".text", ".text.a_function_with_a_long_name", "obj/000_net.o", 0x4E),
        (".bss_of_a_long_name", ".bss", "obj/000_net.o", 0x10),
    ]


def test_constants_that_several_objects_share_are_told_apart() -> None:
    assert [share.is_merged for share in contributions(LLD)] == [False, False, False, True]


def test_a_text_that_is_no_map_has_nothing_in_it() -> None:
    assert contributions("") == []
    assert contributions("what\never .text 0x1 0x2 a.o\n") == []
