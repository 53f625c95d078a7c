"""Images of boards: where their parts lie, how deep their stack was, what is built and not run."""

import os

import pytest
from elftools.elf.elffile import ELFFile
from loaded import own_board
from needs import needs_tool
from paths import script
from probe import GCC, load_board, one_set, plugin, probe, report, run

from buildtool.api import handle
from buildtool.base.errors import ToolError
from buildtool.firmware.run import execute
from buildtool.fronts.cli import main as cli
from buildtool.graph.tflite.writer import write_model
from buildtool.target.types import RunRequest
from buildtool.zoo.drawn import NetBuilder


def test_the_stack_is_measured_to_a_word_and_globals_lie_in_the_chips_memories():
    path = probe("esp8266", "gcc")
    small, large = (
        report(run("esp8266", path, one_set("stack", n)))["stack_high_water"] for n in (400, 1600)
    )
    assert large - small == 1200
    with path.open("rb") as file:
        elf = ELFFile(file)
        code = elf.get_section_by_name(".text")
        assert elf["e_machine"] == "EM_XTENSA"
        assert elf["e_entry"] == code["sh_addr"] == 0x40200000  # where the emulator is told to begin
        assert elf.get_section_by_name(".bss")["sh_addr"] >= 0x3FFE8000


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
        real = needs_tool(GCC["xtensa"]).removesuffix("gcc") + tool
        script(named.with_name(f"xtensa-esp32-elf-{tool}"), f'exec {real} "$@"')
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


def test_an_image_for_the_esp32_c3_is_built_and_not_run():
    board = load_board("esp32-c3")
    elf = probe("esp32-c3", "clang")
    with elf.open("rb") as file:
        image = ELFFile(file)
        assert image["e_machine"] == "EM_RISCV"
        flash = board.memory("flash")
        assert flash.base <= image.get_section_by_name(".text")["sh_addr"] < flash.base + flash.size
    with pytest.raises(ToolError, match="board 'esp32-c3' has no emulator"):
        plugin(board).run(board, elf, RunRequest({}, ()))


def test_another_compiler_is_refused():
    board = load_board("qemu-virt-rv32")
    with pytest.raises(ToolError, match="board 'qemu-virt-rv32' has no toolchain 'gcc'"):
        plugin(board).toolchain(board, "gcc")


@pytest.mark.parametrize(
    ("base", "kernel"), [("cortex-m55", "conv2d_mve"), pytest.param("qemu-virt-rv32", "conv2d_riscv")]
)
def test_a_stack_that_is_too_small_names_the_operator_and_its_kernel(base, kernel, tmp_path, monkeypatch):
    """Where code cannot be read for its frames, the overflow is found by running it."""
    monkeypatch.setattr(execute, "refuse_unless_enough", lambda *args: None)
    net = NetBuilder(1)
    x = net.conv(net.input((1, 10, 10, 4)), 8, kernel=(3, 3))
    model = tmp_path / "net.tflite"
    model.write_bytes(write_model(net.graph([net.conv(x, 8, kernel=(3, 3))])))
    request = {
        "kind": "validate",
        "model": str(model),
        "board": own_board(tmp_path, "stack_bytes = 512", base),
    }
    with pytest.raises(ToolError, match="after a stack overflow") as caught:
        handle(request)
    assert f"while kernel '{kernel}' computed CONV_2D" in caught.value.text
    assert caught.value.operator.startswith("#0 CONV_2D")
    assert caught.value.hint == "the board's file gives the stack 512 bytes"
