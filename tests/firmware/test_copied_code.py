"""Kernels and weights that start-up code copies into a RAM: they run and are read there."""

import pytest
from boardruns import exact
from elftools.elf.elffile import ELFFile
from loaded import own_board
from paths import ROOT

from buildtool.api import handle
from buildtool.base.errors import BuildtoolError, ToolError, UsageError
from buildtool.firmware.run.cycles import find_timer
from buildtool.options.values import TargetChoice
from buildtool.target.choice import load_target, with_kernels_in, with_weights_in
from buildtool.target.registry import load_board

EXAMPLES = ROOT / "examples/mlperf_tiny/boards"
L4R5ZI = str(EXAMPLES / "nucleo-l4r5zi-ram.toml")
# A Cortex-M4 whose flash lets the core wait for all that it does not read from RAM.
SLOW = """
[memory.flash]
wait_cycles = 5
[memory.sram]
size = "2M"
wait_cycles = 0
[memory.fast]
kind = "ram"
base = 0x20200000
size = "1M"
wait_cycles = 0
[memory.weights]
wait_cycles = 5
[roles]
arena = "sram"
"""


@pytest.mark.parametrize("board", sorted(EXAMPLES.glob("*.toml")), ids=lambda path: path.stem)
@pytest.mark.parametrize("toolchain", ["clang", pytest.param("gcc", marks=pytest.mark.slow)])
def test_a_firmware_image_stores_in_flash_what_runs_in_ram(board, toolchain, tmp_path):
    answer = handle({"kind": "build", "model": "ds_cnn", "board": str(board), "toolchain": toolchain})
    files = dict(answer["files"])
    path = tmp_path / "image.elf"
    path.write_bytes(files["ds_cnn.elf"])
    chosen = load_target(TargetChoice(str(board))).board
    flash, flashed = chosen.memory("flash"), files["ds_cnn.bin"]
    copied = {".nn_weights": chosen.weights, ".nn_kernels": chosen.kernels}
    with path.open("rb") as file:
        elf = ELFFile(file)
        for name, memory in copied.items():
            section = elf.get_section_by_name(name)
            if not memory:
                assert section is None
                continue
            ram = chosen.memory(memory)
            assert ram.base <= section["sh_addr"] <= ram.base + ram.size - section["sh_size"]
            stored = (s for s in elf.iter_segments() if s["p_filesz"] and s["p_vaddr"] == section["sh_addr"])
            (load,) = (s["p_paddr"] for s in stored)
            assert flashed[load - flash.base :].startswith(section.data())
            symbols = elf.get_section_by_name(".symtab")
            assert symbols.get_symbol_by_name(f"_{name}_load".replace(".", "_"))[0]["st_value"] == load
    assert flashed[:4] != b"\0\0\0\0"  # the stack's top: the vectors are first
    (row,) = (row for row in answer["sizes"] if row["memory"] == "flash")
    assert {f"{name} (stored)" for name in copied if copied[name]} <= {s["name"] for s in row["sections"]}


@pytest.mark.slow
@pytest.mark.parametrize("board", sorted(EXAMPLES.glob("*.toml")), ids=lambda path: path.stem)
def test_every_tensor_is_exact(board):
    exact("ds_cnn", str(board), {})


@pytest.mark.slow
def test_what_runs_and_is_read_in_ram_does_not_wait_for_flash(tmp_path):
    board = own_board(tmp_path, SLOW)
    if isinstance(timer := find_timer(load_board(board)), str):
        pytest.skip(f"needs llvm-mca: {timer}")
    profile = {"kind": "profile", "model": "ds_cnn", "board": board}

    def waits(**settings):
        answer = handle({**profile, **settings})
        assert answer["exact"]
        parts = answer["estimated_by"]["parts"]
        return parts["code"], parts["data"]

    code, data = waits()
    code_of_ram, _ = waits(kernels_in="fast")
    _, data_of_ram = waits(kernels_in="fast", weights_in="fast")
    assert code_of_ram < code / 100  # what calls the kernels stays in flash
    assert data_of_ram < data / 50  # tables of constants stay there, too


@pytest.mark.parametrize(
    ("board", "names", "says"),
    [
        ("cortex-m4", {"kernels_in": "tcm"}, "memory 'tcm' does not exist"),
        ("cortex-m4", {"kernels_in": "psram"}, "must be a RAM without the arena"),
        ("cortex-m4", {"weights_in": "psram"}, "cannot hold the weights"),
        ("hifive1", {"kernels_in": "ram"}, "the start-up code of board 'hifive1' copies no kernels"),
        ("hifive1", {"weights_in": "ram"}, "cannot hold the weights"),
        ("host", {"kernels_in": "fast"}, "copies no kernels"),
    ],
)
def test_other_memories_are_refused_and_the_right_ones_named(board, names, says):
    loaded, ((option, name),) = load_board(board), names.items()
    choose = with_kernels_in if option == "kernels_in" else with_weights_in
    with pytest.raises(UsageError, match=says) as caught:
        choose(loaded, name)
    assert caught.value.option == option
    for hint in caught.value.hints:
        choose(loaded, dict(hint.settings)[option])


def test_weights_that_are_updated_apart_stay_in_flash(tmp_path):
    apart = own_board(tmp_path, '[image]\nweights_start = "64K"')
    with pytest.raises(UsageError, match="cannot hold the weights"):
        with_weights_in(load_board(apart), "sram")


def test_a_role_in_a_board_s_file_is_checked_as_the_option_is(tmp_path):
    board = own_board(tmp_path, '[roles]\nkernels = "flash"')
    with pytest.raises(BuildtoolError, match="memory 'flash' is rom; it must be ram"):
        load_board(board)
    board = own_board(tmp_path, '[roles]\nkernels = "psram"')
    with pytest.raises(UsageError, match="must be a RAM without the arena"):
        load_target(TargetChoice(board))


def test_kernels_that_their_ram_cannot_hold_are_refused_by_name(tmp_path):
    text = '[memory.tcm]\nkind = "ram"\nbase = 0x20380000\nsize = "1K"\n[memory.sram]\nsize = "64K"'
    board = own_board(tmp_path, text)
    with pytest.raises(ToolError, match=r"memory 'tcm' \(kernels\) .* too small") as caught:
        handle({"kind": "build", "model": "autoencoder", "board": board, "kernels_in": "tcm"})
    assert "kernels_in" in caught.value.hint


def test_start_up_code_that_copies_nothing_finds_weights_where_the_loader_puts_them(tmp_path):
    board = own_board(tmp_path, '[roles]\nweights = "sram"', base="qemu-virt-rv32")
    exact("magic_wand", board, {})
