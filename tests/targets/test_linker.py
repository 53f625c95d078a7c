import dataclasses
import os

import pytest
from elftools.elf.elffile import ELFFile
from loaded import own_board
from needs import needs_tool
from paths import script
from probe import ARM, GCC, ROOT, BuildError, link, load_board, one_set, plugin, probe, report, run

from buildtool.api import handle
from buildtool.base.errors import ToolError
from buildtool.firmware.linkmap import explain_link_failure
from buildtool.firmware.run import execute
from buildtool.fronts.cli import main as cli
from buildtool.graph.tflite.writer import write_model
from buildtool.target.types import RunRequest
from buildtool.zoo.drawn import NetBuilder


def shrunk(board, name, size):
    """Returns `board` with another size for one memory."""
    memories = tuple(dataclasses.replace(m, size=size) if m.name == name else m for m in board.memories)
    return dataclasses.replace(board, memories=memories)


def inside(board, role, address, size):
    memory = board.memory(getattr(board, role))
    return memory.base <= address and address + size <= memory.base + memory.size


@pytest.mark.parametrize(("board", "tool"), ARM)
def test_every_section_lies_in_the_memory_of_its_role(board, tool):
    target = load_board(board)
    with probe(board, tool).open("rb") as file:
        elf = ELFFile(file)
        roles = {
            ".text": "code", ".rodata": "code", ".data": "data", ".bss": "data", ".stack": "data",
            ".nn_arena": "arena", ".nn_weights": "weights",
        }  # fmt: skip
        for section, role in roles.items():
            header = elf.get_section_by_name(section)
            assert header is not None, section
            assert header["sh_size"] > 0, section
            assert inside(target, role, header["sh_addr"], header["sh_size"]), section
        assert elf.get_section_by_name(".stack")["sh_size"] == target.stack_bytes + 256
        assert elf.get_section_by_name(".nn_weights").data()[:16] == bytes(range(16))
        loaded = [s for s in elf.iter_segments() if s["p_type"] == "PT_LOAD" and s["p_memsz"]]
        # Loaded segments lie in code or weights: start-up code copies globals from there.
        for segment in loaded:
            place = segment["p_paddr"], segment["p_filesz"]
            assert any(inside(target, role, *place) for role in ("code", "weights"))
            assert segment["p_filesz"] == segment["p_memsz"]
        symbols = elf.get_section_by_name(".symtab")
        first_words = elf.get_section_by_name(".text").data()[:8]
        top = symbols.get_symbol_by_name("__stack_top")[0]["st_value"]
        assert int.from_bytes(first_words[:4], "little") == top


@pytest.mark.parametrize("tool", ["clang", "gcc"])
@pytest.mark.parametrize(
    ("memory", "size", "role"), [("psram", 4096, "arena"), ("flash", 512, "code"), ("weights", 8, "weights")]
)
def test_an_overflow_is_told_in_the_board_s_terms(tool, memory, size, role, tmp_path):
    board = shrunk(load_board("cortex-m4"), memory, size)
    with pytest.raises(BuildError) as caught:
        link(board, tool, [ROOT / "probe.c", ROOT / "probe_weights.S"], (), tmp_path)
    error = explain_link_failure(str(caught.value), board)
    assert error is not None
    assert f"memory '{memory}' ({role}) of board 'cortex-m4'" in error.text
    if role == "arena":  # 4096 of arena and two guards
        assert "128 bytes too small: it needs 4224 and has 4K" in error.text


@pytest.mark.parametrize("tool", ["clang", "gcc"])
def test_a_board_with_one_flash_and_one_ram_links_and_runs(tool, tmp_path):
    """Roles may share a memory, as on an ordinary microcontroller."""
    sizes = 'stack_bytes = "4K"\n[memory.sram]\nsize = "16K"\n[memory.flash]\nsize = "32K"\n'
    path = own_board(tmp_path, f'{sizes}[roles]\narena = "sram"\nweights = "flash"')
    elf = link(load_board(path), tool, [ROOT / "probe.c", ROOT / "probe_weights.S"], (), tmp_path)
    result = run(path, elf, one_set("echo"))
    assert result.files["output.bin"] == bytes(2 * i for i in range(16))


# ---- firmware images of boards -----------------------------------------------------------------------


def test_the_stack_is_measured_to_a_word_and_globals_lie_in_the_chips_memories():
    path = probe("esp8266", "gcc")
    runs = (run("esp8266", path, one_set("stack", n)) for n in (400, 1600))
    small, large = (report(result)["stack_high_water"] for result in runs)
    assert large - small == 1200
    with path.open("rb") as file:
        elf = ELFFile(file)
        code = elf.get_section_by_name(".text")
        assert elf["e_machine"] == "EM_XTENSA"
        assert elf["e_entry"] == code["sh_addr"] == 0x40200000  # where the emulator starts
        assert elf.get_section_by_name(".bss")["sh_addr"] >= 0x3FFE8000


def test_without_espressifs_gcc_the_esp32_is_planned_and_emitted_and_a_build_says_how_to_get_it(
    tmp_path, capsys, monkeypatch
):
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    for board in ("esp32", "esp32-s3"):
        assert cli.run(["emit", "ds_cnn", "--board", board, "--out", str(tmp_path / board)]) == 0
    assert (tmp_path / "esp32-s3/ds_cnn.c").is_file()
    assert cli.run(["build", "ds_cnn", "--board", "esp32-s3", "--out", str(tmp_path / "built")]) == 1
    errors = capsys.readouterr().err
    assert "the compiler xtensa-esp32s3-elf-gcc was not found" in errors
    assert "crosstool-NG" in errors
    assert not (tmp_path / "built").exists()


@pytest.mark.slow
def test_with_a_stand_in_for_espressifs_gcc_an_image_is_built_and_not_run(tmp_path, monkeypatch):
    """The LX106's compiler has the other's name: this tests the commands, not what they produce."""
    compiler = tmp_path / "bin/xtensa-esp32-elf-gcc"
    compiler.parent.mkdir()
    for tool in ("gcc", "ar"):
        real = needs_tool(GCC["xtensa"]).removesuffix("gcc") + tool
        script(compiler.with_name(f"xtensa-esp32-elf-{tool}"), f'exec {real} "$@"')
    monkeypatch.setenv("PATH", f"{compiler.parent}{os.pathsep}{os.environ['PATH']}")
    built_and_not_run("esp32", "gcc", "EM_XTENSA", {".text": "irom", ".nn_weights": "drom", ".bss": "dram"})


def built_and_not_run(name, tool, machine, sections):
    board, elf = load_board(name), probe(name, tool)
    with elf.open("rb") as file:
        image = ELFFile(file)
        assert image["e_machine"] == machine
        for section, memory in sections.items():
            header, place = image.get_section_by_name(section), board.memory(memory)
            assert place.base <= header["sh_addr"] < place.base + place.size
    with pytest.raises(ToolError, match=f"board '{name}' has no emulator"):
        plugin(board).run(board, elf, RunRequest({}, ()))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("base", "kernel"), [("cortex-m55", "conv2d_mve"), pytest.param("qemu-virt-rv32", "conv2d_riscv")]
)
def test_a_stack_that_is_too_small_names_the_operator_and_its_kernel(base, kernel, tmp_path, monkeypatch):
    """Where stack frames cannot be read from the code, running it finds the overflow."""
    monkeypatch.setattr(execute, "refuse_unless_enough", lambda *args: None)
    net = NetBuilder(1)
    x = net.conv(net.input((1, 10, 10, 4)), 8, kernel=(3, 3))
    model = tmp_path / "net.tflite"
    model.write_bytes(write_model(net.graph([net.conv(x, 8, kernel=(3, 3))])))
    board = own_board(tmp_path, "stack_bytes = 512", base)
    with pytest.raises(ToolError, match="after a stack overflow") as caught:
        handle({"kind": "validate", "model": str(model), "board": board})
    assert f"while kernel '{kernel}' computed CONV_2D" in caught.value.text
    assert caught.value.operator.startswith("#0 CONV_2D")
    assert caught.value.hint == "the board's file reserves 512 bytes of stack"
