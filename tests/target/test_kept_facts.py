"""What a board file keeps of the board that it extends is said where the chip is another."""

import pytest
from loaded import own_board

from buildtool.api import handle
from buildtool.base.errors import TargetError
from buildtool.target.registry import board_names, load_board

OTHER = '[memory.ram]\nsize = "96K"\n'
STATED = {
    "clock_hz": "clock_hz = 84000000\n",
    "chip": '[chip]\nsettings = ["CHIP_PLL_M=8"]\n',
    "uart": "[uart]\nbase = 0x40011000\n",
    "probe": '[probe]\npyocd = ["--target", "other"]\n',
}


def note(folder, text, extends="nucleo-f412zg"):
    return load_board(own_board(folder, text, extends)).note


def test_no_board_of_buildtools_keeps_anothers_clock():
    assert [name for name in board_names() if "but kept are" in load_board(name).note] == []


def test_facts_of_another_chip_are_named_until_they_are_stated_or_left_out(tmp_path):
    kept = note(tmp_path, OTHER)
    says = ["clock_hz = 100000000", "[chip] stm32f4", "[uart] stm32_usart", "[probe]"]
    assert all(f"{each} of nucleo-f412zg" in kept for each in says)
    assert 'without = ["clock_hz", "chip", "uart", "probe"]' in kept
    for fact, text in STATED.items():
        left = note(tmp_path, text + OTHER)
        assert f'"{fact}"' not in left and len(left) < len(kept)
    assert note(tmp_path, STATED["clock_hz"] + OTHER + "".join(list(STATED.values())[1:])) == ""
    board = load_board(
        own_board(tmp_path, f'without = ["clock_hz", "chip", "uart", "probe"]\n{OTHER}', "nucleo-f412zg")
    )
    assert (board.note, board.clock_hz, board.chip, board.uart, board.probe) == ("", 0, None, None, None)
    path = own_board(tmp_path, OTHER, "nucleo-f412zg")
    assert "but kept are clock_hz" in handle({"kind": "plan", "model": "ds_cnn", "board": path})["note"]


@pytest.mark.parametrize(
    ("extends", "text", "is_said"),
    [
        ("nucleo-f412zg", 'reserved_bytes = "16K"', False),
        ("nucleo-f412zg", '[memory.sdram]\nkind = "ram"\nbase = 0xD0000000\nsize = "8M"', False),
        ("nucleo-f412zg", "[memory.ram]\nbase = 0x20010000", True),
        ("nucleo-f412zg", '[core]\nname = "mine"', True),
        ("cortex-m4", '[memory.psram]\nsize = "256K"', False),  # less of an emulated machine's memory
        ("cortex-m4", '[memory.sram]\nbase = 0x20100000\nsize = "64K"', True),
    ],
)
def test_what_makes_another_chip(tmp_path, extends, text, is_said):
    assert ("but kept are" in note(tmp_path, text, extends)) == is_said


def test_tables_are_left_out_and_several_files_are_extended(tmp_path):
    text = 'without = ["memory.psram", "memory.weights", "roles"]\n[roles]\n'
    roles = "".join(f'{role} = "{memory}"\n' for role, memory in [("code", "flash"), ("data", "sram")])
    board = load_board(own_board(tmp_path, f'{text}{roles}arena = "sram"\nweights = "flash"', "cortex-m4"))
    assert [memory.name for memory in board.memories] == ["flash", "sram"]
    path = tmp_path / "both.toml"
    path.write_text('extends = ["cortex-m3", "cores/cortex-m0plus"]\ntitle = "x"\n')
    assert (load_board(str(path)).core.isa, load_board(str(path)).memory("psram").size) == (
        "armv6-m",
        8 << 20,
    )
    for wrong, says in [
        ('without = ["memory.psrm"]', "without: there is no 'psrm' to leave out"),
        ('without = "uart"', "without: must be a list of strings"),
        ('extends = ["cortex-m3", "cores/m0"]', "extends: unknown core 'm0'"),
        ('extends = ["cortex-m3", 3]', "extends: must be a board's name or a path, not 3"),
    ]:
        path.write_text(wrong if "extends" in wrong else f'extends = "cortex-m4"\n{wrong}')
        with pytest.raises(TargetError) as caught:
            load_board(str(path))
        assert says in str(caught.value)
