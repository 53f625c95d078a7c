"""Xtensa boards: counting, exceptions, the helpers that gcc calls, boards that need Espressif's gcc."""

import ctypes
import os
import stat
import subprocess

import pytest
from buildtool_plugins import xtensa
from elftools.elf.elffile import ELFFile
from needs import needs_tool
from probe import load_board, one_set, plugin, probe, report, run

from buildtool.base.errors import ToolError
from buildtool.fronts.cli import main as cli
from buildtool.target.types import RunRequest

GCC = "xtensa-lx106-elf-gcc"
FOLDER = xtensa.plugin.board_files()[0].parents[1]
NUMBERS = (
    0,
    1,
    -1,
    3,
    -7,
    255,
    0xFFFF,
    0x10000,
    -0x8001,
    0x12345678,
    2**31 - 1,
    -(2**31),
    0xDEADBEEF - 2**32,
)


def built():
    needs_tool(GCC)
    needs_tool("qemu-system-xtensa")
    return probe("esp8266", "gcc")


def test_counts_are_those_of_the_hand_written_assembly():
    """The numbers are read off tests/targets/probe/probe.c."""
    found = run("esp8266", built(), one_set("count"), count=True)
    assert found.counts == {70: 202, 4095: 4}
    assert found.total_instructions == 202 + 4 + 2  # two between two operators


@pytest.mark.parametrize(
    ("action", "value", "code", "says"),
    [
        ("wild_store", 0x20000000, 115, "load or store bus error at .* address=0x20000000"),
        ("wild_store", 0x3FFE8001, 109, "unaligned load or store at .* address=0x3ffe8001"),
        ("undefined", 0, 100, "illegal instruction at pc=0x4020[0-9a-f]{4} .* exccause=0x00000000"),
        ("recurse", 0, 165, "debug exception after a stack overflow"),
    ],
)
def test_an_exception_is_reported_with_its_registers(action, value, code, says):
    with pytest.raises(ToolError, match=rf"(?s)on esp8266 ended with exit code {code}.*fault: {says}"):
        run("esp8266", built(), one_set(action, value), timeout=60)


def test_the_stack_is_measured_to_a_word_and_globals_lie_in_the_chips_memories():
    small, large = (
        report(run("esp8266", built(), one_set("stack", n)))["stack_high_water"] for n in (400, 1600)
    )
    assert large - small == 1200
    with built().open("rb") as file:
        elf = ELFFile(file)
        code = elf.get_section_by_name(".text")
        assert elf["e_machine"] == "EM_XTENSA"
        assert elf["e_entry"] == code["sh_addr"] == 0x40200000  # where the emulator is told to begin
        assert elf.get_section_by_name(".bss")["sh_addr"] >= 0x3FFE8000


@pytest.fixture(scope="module")
def products(tmp_path_factory):
    """The helpers compiled for this machine, under names that are not the compiler's own."""
    path = tmp_path_factory.mktemp("products") / "products.so"
    names = ("__umulsidi3", "__muldi3", "__udivsi3", "__umodsi3", "__divsi3", "__modsi3")
    renamed = [f"-D{name}=test{name}" for name in names]
    command = ["gcc", "-std=gnu99", "-O2", "-shared", "-fPIC", *renamed, FOLDER / "products.c", "-o", path]
    subprocess.run(command, check=True)
    return ctypes.CDLL(str(path))


def test_products_and_quotients(products):
    def call(name, a, b, kind, result):
        function = getattr(products, "test" + name)
        function.restype, function.argtypes = result, [kind, kind]
        return function(a, b)

    natural, whole = ctypes.c_uint32, ctypes.c_int32
    for a in NUMBERS:
        for b in NUMBERS:
            na, nb = a % 2**32, b % 2**32
            assert call("__umulsidi3", na, nb, natural, ctypes.c_uint64) == na * nb
            wide_a, wide_b = a * 0x1_0000_0003, b * 0x7_0000_0001
            product = call("__muldi3", wide_a, wide_b, ctypes.c_int64, ctypes.c_int64)
            assert product == (wide_a * wide_b + 2**63) % 2**64 - 2**63
            if b:
                assert call("__udivsi3", na, nb, natural, natural) == na // nb
                assert call("__umodsi3", na, nb, natural, natural) == na % nb
                quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
                assert call("__divsi3", a, b, whole, whole) == (quotient + 2**31) % 2**32 - 2**31
                assert call("__modsi3", a, b, whole, whole) == a - quotient * b


def test_without_espressifs_gcc_the_esp32_is_planned_and_emitted_and_a_build_says_how_to_get_it(
    tmp_path, capsys, monkeypatch
):
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    for board in ("esp32", "esp32-s3"):
        assert cli.run(["emit", "ds_cnn", "--board", board, "--out", str(tmp_path / board)]) == 0
    assert (tmp_path / "esp32-s3/ds_cnn.c").is_file()
    assert cli.run(["build", "ds_cnn", "--board", "esp32-s3", "--out", str(tmp_path / "built")]) == 1
    said = capsys.readouterr().err
    assert "the compiler xtensa-esp32s3-elf-gcc was not found" in said
    assert "crosstool-NG" in said
    assert not (tmp_path / "built").exists()


@pytest.mark.slow
def test_with_a_stand_in_for_espressifs_gcc_an_image_is_built_and_not_run(tmp_path, monkeypatch):
    """The LX106's compiler under the other's name: it shows what is called, not what comes out of it."""
    named = tmp_path / "bin/xtensa-esp32-elf-gcc"
    named.parent.mkdir()
    for tool in ("gcc", "ar"):
        path = named.with_name(f"xtensa-esp32-elf-{tool}")
        path.write_text(f'#!/bin/sh\nexec {needs_tool(GCC).removesuffix("gcc")}{tool} "$@"\n')
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{named.parent}{os.pathsep}{os.environ['PATH']}")
    board = load_board("esp32")
    elf = probe("esp32", "gcc")
    with elf.open("rb") as file:
        image = ELFFile(file)
        for section, memory in ((".text", "irom"), (".nn_weights", "drom"), (".bss", "dram")):
            found, there = image.get_section_by_name(section), board.memory(memory)
            assert there.base <= found["sh_addr"] < there.base + there.size
    with pytest.raises(ToolError, match="board 'esp32' has no emulator"):
        plugin(board).run(board, elf, RunRequest({}, ()))
