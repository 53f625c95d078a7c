"""`buildtool flash`: the command from the board's file, and messages. The tools are stubs."""

from pathlib import Path

import pytest
from buildtool_plugins.baremetal.probe import flashing
from paths import ROOT, script

from buildtool.base.errors import ToolError, UsageError
from buildtool.base.toml import read_toml
from buildtool.firmware.run import attached
from buildtool.fronts.cli import debugger
from buildtool.target.board_file import WHAT, parse_board
from buildtool.target.registry import load_board

IMAGE = Path("out/net.elf")


def test_the_first_tool_that_is_there_flashes_with_the_words_of_the_boards_file(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    board = load_board("nucleo-f767zi")
    missing = flashing(board, IMAGE)
    assert (missing.tool, missing.is_there, missing.command[0]) == ("openocd", False, "openocd")
    assert missing.command[-1] == "program {out/net.elf} verify reset exit"
    script(tmp_path / "pyocd", "")
    how = flashing(board, IMAGE)
    assert (how.tool, how.is_there) == ("pyocd", True)
    assert how.command[1:3] == ("load", "--no-wait") and how.command[-1] == "out/net.elf"
    assert flashing(board, IMAGE, "openocd").tool == "openocd"
    with pytest.raises(UsageError, match="has no options for 'xflash'"):
        flashing(board, IMAGE, "xflash")
    with pytest.raises(UsageError, match="names no tool that flashes it"):
        flashing(load_board("cortex-m4"), IMAGE)


def test_other_tools_get_the_files_that_they_take():
    table = read_toml(ROOT / "plugins/buildtool_plugins/riscv/boards/hifive1.toml", WHAT)
    probe = {"esptool": ["--chip", "esp32c3"], "xflash": ["--target", "XK-EVK-XU316"]}
    board = parse_board({**table, "probe": probe}, "mine", "mine.toml")
    assert flashing(board, IMAGE, "esptool").command[-3:] == ("write_flash", "0x0", "out/net.bin")
    assert flashing(board, IMAGE, "xflash").command[-1] == "out/net.xe"


def test_a_tool_for_binaries_gets_one_of_the_very_image(tmp_path, monkeypatch):
    """The .bin comes from the firmware image. A .bin beside it may be another build's."""
    monkeypatch.setattr(attached, "flash_files", lambda data, board, stem: {f"{stem}.bin": data + b"!"})
    table = read_toml(ROOT / "plugins/buildtool_plugins/riscv/boards/hifive1.toml", WHAT)
    probe = {"esptool": ["--chip", "esp32c3"], "openocd": ["-f", "x.cfg"]}
    board = parse_board({**table, "probe": probe}, "mine", "mine.toml")
    image = tmp_path / "net.elf"
    image.write_bytes(b"image")
    (tmp_path / "net.bin").write_bytes(b"old")
    with attached.flashable(board, image, "esptool") as how:
        assert Path(how.command[-1]).read_bytes() == b"image!"
    assert (tmp_path / "net.bin").read_bytes() == b"old"
    with attached.flashable(board, image, "openocd") as how:
        assert str(image) in how.command[-1]


ANSWER = {"net": "net", "board": "b", "compiler": "c", "image": "net.elf", "tool": "openocd"}
ANSWER |= {"install": "apt-get install openocd", "is_there": True}


def test_a_tool_runs_in_the_folder_and_what_is_missing_or_fails_is_told(tmp_path):
    script(tmp_path / "tool", "pwd > where; exit 3")
    answer = {**ANSWER, "command": [str(tmp_path / "tool"), "a b"]}
    with pytest.raises(ToolError, match="openocd ended with exit status 3"):
        debugger.flash(answer, tmp_path)  # type: ignore[arg-type]
    assert (tmp_path / "where").read_text().strip() == str(tmp_path)
    with pytest.raises(ToolError, match="was not found") as caught:
        debugger.flash({**answer, "is_there": False}, tmp_path)  # type: ignore[arg-type]
    assert f"cd {tmp_path} && {tmp_path}/tool 'a b'" in caught.value.hint
    with pytest.raises(ToolError, match="cannot be started"):
        debugger.flash({**answer, "command": ["/no/tool"]}, tmp_path)  # type: ignore[arg-type]
    script(tmp_path / "tool", "")
    assert debugger.flash(answer, tmp_path) == 0  # type: ignore[arg-type]
    assert "flashing: " in debugger.flash_text(answer, tmp_path)  # type: ignore[arg-type]
