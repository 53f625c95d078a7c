"""`boards new`: a board file from what vendors publish about a chip."""

import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from buildtool.api import handle
from buildtool.base.errors import UsageError
from buildtool.fronts.cli import main as cli
from buildtool.target.chipfiles.newboard import new_board
from buildtool.target.chipfiles.reading import given_memory, merged_facts
from buildtool.target.hardware import MemoryKind
from buildtool.target.registry import load_board

# One invented chip, as four kinds of file describe it: 512 KB of flash, 96 KB and 32 KB of RAM.
SVD = """<?xml version="1.0"?>
<device><name>MC5</name><cpu><name>CM4</name><fpuPresent>false</fpuPresent></cpu><peripherals>
<peripheral><name>USART1</name><baseAddress>0x40011000</baseAddress></peripheral>
<peripheral><name>TIM2</name><baseAddress>0x40000000</baseAddress></peripheral></peripherals></device>
"""
PACK = """<?xml version="1.0"?>
<package><devices><family Dfamily="MC"><processor Dcore="Cortex-M4" Dfpu="NO_FPU"/>
<memory id="IROM1" start="0x08000000" size="0x80000" startup="1" default="1"/><subFamily DsubFamily="MC5">
<processor Dclock="84000000"/><memory id="IRAM1" start="0x20000000" size="0x18000"/>
<device Dname="MC5AB"><memory id="IRAM2" start="0x10000000" size="0x8000"/></device>
<device Dname="MC5CD"/></subFamily></family></devices></package>
"""
DTSI = """/* the chip */
/ { cpus { #address-cells = <1>;
        cpu0: cpu@0 { device_type = "cpu"; compatible = "arm,cortex-m4"; reg = <0>; }; };
    chosen { zephyr,sram = &sram0; zephyr,flash = &flash0; };
    sram1: memory@10000000 { compatible = "mmio-sram"; reg = <0x10000000 DT_SIZE_K(32)>; };
    sram0: memory@20000000 { compatible = "mmio-sram"; };
    soc { flash-controller@40022000 { reg = <0x40022000 0x400>;
        flash0: flash@8000000 { compatible = "soc-nv-flash"; erase-block-size = <2048>; };
        usart1: serial@40011000 { reg = <0x40011000 0x400>; status = "disabled"; }; }; };
};
"""
DTS = """/dts-v1/;
#include "mc5.dtsi"
#include <somewhere/else.dtsi>
/ { compatible = "vendor,mc5"; };
&sram0 { reg = <0x20000000 (96 * 1024)>; };
&flash0 { reg = <0x08000000 DT_SIZE_K(512)>; };
&rcc { clock-frequency = <DT_FREQ_M(84)>; };
"""
LD = """_size = 96K; /* RAM : ORIGIN = 0, LENGTH = 1 */
MEMORY
{
  FLASH (rx)  : ORIGIN = 0x08000000, LENGTH = 512K
  RAM (xrw)   : org = 0x20000000, len = _size
  CCMRAM (rw) : ORIGIN = ORIGIN(FLASH) * 2, l = 0x8000
  HEAP (rw)   : ORIGIN = ORIGIN(RAM), LENGTH = __heap_size
}
"""
MEMORIES = {(0x08000000, 512 << 10, "rom"), (0x20000000, 96 << 10, "ram"), (0x10000000, 32 << 10, "ram")}


def written(folder, **files):
    """Writes files and returns their paths; `_` in the name of an argument is the dot of the file's name."""
    paths = []
    for name, text in files.items():
        paths.append(folder / name.replace("_", "."))
        paths[-1].write_text(text)
    return paths


def board(folder, paths, chip="", core=""):
    text = new_board(merged_facts(paths, chip, ()), [path.name for path in paths], core)
    (folder / "new.toml").write_text(text)
    return load_board(str(folder / "new.toml")), text


@pytest.mark.parametrize(
    ("files", "chip", "core", "clock"),
    [
        ({"a_svd": SVD, "b_ld": LD}, "", "", 0),
        ({"a_pdsc": PACK}, "mc5ab", "", 84_000_000),
        ({"a_ld": LD}, "", "cortex-m4", 0),
        ({"a_dts": DTS}, "", "", 84_000_000),
    ],
)
def test_every_kind_of_file_gives_the_same_memories_and_a_board_that_plans(
    tmp_path, files, chip, core, clock
):
    (tmp_path / "mc5.dtsi").write_text(DTSI)
    made, text = board(tmp_path, written(tmp_path, **files), chip, core)
    assert {(m.base, m.size, str(m.kind)) for m in made.memories} == MEMORIES
    assert [made.memory(name).base for name in (made.code, made.arena)] == [0x08000000, 0x20000000]
    assert (made.core.name, made.clock_hz) == ("cortex-m4", clock)
    has_no_fpu = "a_svd" in files or "a_pdsc" in files
    assert made.core.has_float_unit is not has_no_fpu
    assert made.in_emulator().memory(made.code).base == 0
    assert ("at 0x40011000" in text) == ("a_svd" in files or "a_dts" in files)
    if "a_dts" in files:
        assert made.memory("flash0").erase == ((1, 2048),)
        assert "not found beside the file: somewhere/else.dtsi" in text.replace("\n#", "")
        (tmp_path / "mc5.dtsi").write_text(DTSI.replace("= &sram0", "= &sram1"))
        assert board(tmp_path, [tmp_path / "a.dts"])[0].arena == "sram1"
    plan = handle({"kind": "plan", "model": "ds_cnn", "board": str(tmp_path / "new.toml")})
    assert plan["arena_bytes"] < 96 << 10


BOMB = '<!DOCTYPE x [<!ENTITY a "b"><!ENTITY c "&a;&a;">]><device><name>&c;</name></device>'
WRONG = [
    ("a_svd", SVD, "a memory for code is missing; known memories: none: a CMSIS-SVD has peripherals"),
    ("a_svd", BOMB, "the SVD file has a document type (DTD)"),
    ("a_svd", SVD[:-9], "the SVD file is not XML"),
    ("a_svd", PACK, "this is not an SVD file: its root is <package>"),
    ("a_pdsc", PACK, "the pack has 2 chips"),
    ("a_pdsc", SVD, "this is not a pack description"),
    ("a_pdsc", "<package/>", "this pack describes no chips"),
    (
        "a_pdsc",
        f"<package><devices><family>{'<device>' * 5000}{'</device>' * 5000}</family></devices></package>",
        "this pack describes no chips",
    ),
    ("a_ld", LD, "the files do not name the core"),
    ("a_ld", "SECTIONS {}", "this linker script has no MEMORY command that can be read"),
    ("a_ld", "MEMORY { RAM : ORIGIN = X, LENGTH = Y }", "sizes of RAM are symbols"),
    ("a_dts", "hello", "this is not a device tree"),
    ("a_dts", "/ { a {", "the device tree ends within a node"),
    ("a_dts", "/ {" + "a {" * 40, "nested more than 32 levels"),
    ("a_dts", DTSI.replace("m4", "m23"), "buildtool has no core 'cortex-m23'"),
    ("a_txt", "", "what kind of file is this? Its name ends in '.txt'"),
]


@pytest.mark.parametrize(("name", "text", "says"), WRONG)
def test_a_file_that_does_not_tell_enough_is_refused_and_the_error_says_why(tmp_path, name, text, says):
    with pytest.raises(UsageError) as caught:
        board(tmp_path, written(tmp_path, **{name: text}))
    assert says in str(caught.value)
    assert not (tmp_path / "new.toml").exists()


DEEP = "/ { n0: n0 { }; };" + "".join(f"&n{i} {{ n{i + 1}: n{i + 1} {{ }}; }};\n" for i in range(3000))
DELETED = "".join(f"/delete-node/ &x{i};" for i in range(5000))
BLANKS = " " * 12_000
HOSTILE: list[tuple[str, str, str]] = [  # a file's ending, its text, what the board's file or the error says
    ("svd", SVD.replace("USART1", "USART\x7f1\x85[core]"), "serial ports: USART 1 [core] at"),
    ("svd", SVD.replace("MC5", "M" * 400), "M" * 400),
    ("dts", DTSI + DEEP, "a memory for code is missing"),
    ("dts", f'#include "{"a" * 300}.dtsi"\n{DTS}', "a" * 300),
    ("dts", '#include "a\x01.dtsi"\n' + DTS, "a .dtsi"),
    ("dts", DTS.replace("(512)", f"({'9' * 5000})"), "a memory for code is missing"),
    ("dts", "/*" * 200_000, "this is not a device tree"),
    ("dts", "<" * 200_000, "this is not a device tree"),
    ("dts", '"' + '\\"' * 100_000, "this is not a device tree"),
    ("ld", f"MEMORY {{ A : ORIGIN = {BLANKS}}}", "it has no regions"),
    ("ld", f"MEMORY {{ A : ORIGIN = 0, LENGTH = {BLANKS}x}}", "sizes of A are symbols"),
    ("ld", LD + "\n" * 60_000, "[memory.ccmram]"),
    ("dts", DTSI + "".join(f"/ {{ x{i}: x{i} {{}}; }};" for i in range(5000)) + DELETED, "is missing"),
    ("ld", f"MEMORY {{ {'a' * 16_000} }}", "it has no regions"),
    ("ld", LD.replace("0x8000\n", "1is 2\n"), "Not numbers, so left out: CCMRAM, HEAP."),
    ("pdsc", PACK.replace('id="IRAM1"', 'name="1st" access="rw"'), 'arena = "memory_1st"'),
    ("ld", "a=b\n" * 40_000, "no MEMORY command"),
    ("ld", "MEMORY {" * 20_000, "no MEMORY command"),
    ("ld", "/*" * 100_000, "no MEMORY command"),
]


@pytest.mark.parametrize(("ending", "text", "says"), HOSTILE, ids=range(len(HOSTILE)))
def test_a_hostile_file_is_soon_read_or_refused(tmp_path, ending, text, says):
    (tmp_path / "mc5.dtsi").write_text(DTSI)
    paths = written(tmp_path, **{f"a_{ending}": text}, b_ld=LD)[: 2 if ending == "svd" else 1]
    try:
        answer = board(tmp_path, paths, "MC5AB" * (ending == "pdsc"), "cortex-m4")[1]
    except UsageError as error:
        answer = str(error)
    assert says in " ".join(answer.replace("\n#", "").split())


def test_what_is_no_file_is_refused(tmp_path):
    os.mkfifo(tmp_path / "a.svd")
    with pytest.raises(UsageError, match="not a regular file"):
        merged_facts([tmp_path / "a.svd"], "", ())


def test_given_memories_and_those_of_files_have_different_names(tmp_path):
    paths = written(tmp_path, a_ld="MEMORY { ram (rx) : ORIGIN = 0x08000000, LENGTH = 512K }")
    facts = merged_facts(paths, "", [given_memory("0x20000000:96K", MemoryKind.RAM)])
    assert [region.name for region in facts.regions] == ["ram2", "ram"]
    assert 'arena = "ram2"' in new_board(facts, ["a.ld"], "cortex-m4")


def test_files_that_name_different_cores_are_told_apart(tmp_path):
    (tmp_path / "mc5.dtsi").write_text(DTSI)
    text = board(tmp_path, written(tmp_path, a_dts=DTS, b_svd=SVD.replace("CM4", "CM7")))[1]
    assert "cores/cortex-m4" in text and "b.svd names another core, cortex-m7" in text.replace("\n#", "")


@given(at=st.integers(0, 900), kind=st.sampled_from(["svd", "pdsc", "dtsi", "ld"]), put=st.binary(max_size=6))
@settings(deadline=None, max_examples=120)
def test_a_damaged_file_is_read_or_refused(tmp_path_factory, at, kind, put):
    text = {"svd": SVD, "pdsc": PACK, "dtsi": DTSI, "ld": LD}[kind].encode()
    path = tmp_path_factory.mktemp("damaged") / f"a.{kind}"
    path.write_bytes(text[:at] + put + text[at + len(put) :])
    try:
        new_board(merged_facts([path], "MC5AB", ()), ["a"], "cortex-m4")
    except UsageError as error:
        assert error.text


def test_a_chips_name_is_no_part_of_the_files_syntax(tmp_path):
    paths = written(tmp_path, a_svd=SVD.replace("MC5", 'x"\n[core]\nname = 3'), b_ld=LD)
    made, text = board(tmp_path, paths)
    assert made.core.name == "cortex-m4" and "x__" in text


def test_the_command_writes_a_new_file_alone(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    written(tmp_path, mc5_svd=SVD)
    memories = ["--flash", "0x08000000:512K", "--ram", "0x20000000:96K"]
    assert cli.run(["boards", "new", "--from", "mc5.svd", *memories]) == 0
    assert "written: mc5.toml" in capsys.readouterr().out
    assert load_board("mc5.toml").memory("ram").size == 96 << 10
    before = (tmp_path / "mc5.toml").read_bytes()
    assert cli.run(["boards", "new", "--from", "mc5.svd", *memories]) == 2
    assert "the file exists" in capsys.readouterr().err
    assert (tmp_path / "mc5.toml").read_bytes() == before
    for wrong, says in (
        (["new"], "nothing is known about the chip"),
        (["new", "--from", "none.svd"], "cannot read the file"),
        (["new", "--core", "cortex-m4", "--flash", "0:1Q", "--ram", "0x20000000:1K"], "is not ADDRESS:SIZE"),
        (["new", "--from", "mc5.svd", "--chip", "MC5"], "it selects a chip of a pack"),
        (["--chip", "x"], "--chip is of 'buildtool boards new'"),
    ):
        assert cli.run(["boards", *wrong]) == 2
        assert says in capsys.readouterr().err
    assert {path.name for path in tmp_path.iterdir()} == {"mc5.svd", "mc5.toml"}
