import dataclasses

import pytest
from elftools.elf.elffile import ELFFile
from probe import ARM, ROOT, BuildError, link, load_board, one_set, probe, run

from buildtool.firmware.linkmap import explain_link_failure
from buildtool.target.types import Board


def shrunk(board: Board, name: str, size: int) -> Board:
    """`board` with one memory of another size."""
    memories = tuple(dataclasses.replace(m, size=size) if m.name == name else m for m in board.memories)
    return dataclasses.replace(board, memories=memories)


def inside(board: Board, role: str, address: int, size: int) -> bool:
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
            found = elf.get_section_by_name(section)
            assert found is not None, section
            assert found["sh_size"] > 0, section
            assert inside(target, role, found["sh_addr"], found["sh_size"]), section
        assert elf.get_section_by_name(".stack")["sh_size"] == target.stack_bytes + 256
        assert elf.get_section_by_name(".nn_weights").data()[:16] == bytes(range(16))
        loaded = [s for s in elf.iter_segments() if s["p_type"] == "PT_LOAD" and s["p_memsz"]]
        # What is loaded goes to code or weights: globals are copied from there at start-up.
        for segment in loaded:
            roles_ = [
                r for r in ("code", "weights") if inside(target, r, segment["p_paddr"], segment["p_filesz"])
            ]
            assert roles_
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
        assert "128 bytes too small: 4224 needed, 4K there" in error.text


def test_other_linker_errors_are_not_explained():
    assert explain_link_failure("undefined symbol: nn_conv2d_s8", load_board("cortex-m4")) is None


@pytest.mark.parametrize("tool", ["clang", "gcc"])
def test_a_board_with_one_flash_and_one_ram_links_and_runs(tool, tmp_path):
    """Roles may share memories, as on an ordinary microcontroller."""
    path = tmp_path / "small.toml"
    path.write_text(
        'extends = "cortex-m4"\nstack_bytes = "4K"\n'
        '[memory.sram]\nsize = "16K"\n[memory.flash]\nsize = "32K"\n'
        '[roles]\narena = "sram"\nweights = "flash"\n'
    )
    board = load_board(str(path))
    elf = link(board, tool, [ROOT / "probe.c", ROOT / "probe_weights.S"], (), tmp_path)
    result = run(str(path), elf, one_set("echo"))
    assert result.files["output.bin"] == bytes(2 * i for i in range(16))
