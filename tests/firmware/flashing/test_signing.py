"""Firmware signed for MCUboot passes imgtool's own check, and the same key gives the same bytes."""

from __future__ import annotations

import dataclasses
import struct
import subprocess

import pytest
from loaded import own_board
from needs import needs_tool
from probe import ROOT, link, load_board

from buildtool.base.errors import ToolError
from buildtool.base.modes import Format
from buildtool.firmware.flashfiles import Signing, flash_files

pytestmark = pytest.mark.slow

BOARD = """\
[memory.flash]
erase_blocks = ["4K"]
[roles]
weights = "flash"
[image]
code_start = "64K"
[image.mcuboot]
slot_bytes = "64K"
"""


@pytest.fixture(scope="module")
def linked(tmp_path_factory):
    folder = tmp_path_factory.mktemp("signed")
    board = load_board(own_board(folder, BOARD))
    return board, link(board, "clang", [ROOT / "probe.c", ROOT / "probe_weights.S"], (), folder).read_bytes()


def new_key(folder):
    path = folder / "key.pem"
    words = [needs_tool("imgtool"), "keygen", "--type", "ed25519", "--key", path]
    subprocess.run(words, check=True, capture_output=True)
    return path


def test_signed_firmware_is_what_mcuboot_checks(linked, tmp_path):
    (board, elf), key = linked, new_key(tmp_path)
    signing = Signing(key.read_bytes(), "1.2.3+4")
    files = flash_files(elf, board, "net", tuple(Format)[:2], signing)
    signed = files["net_signed.bin"]
    assert flash_files(elf, board, "net", signing=signing)["net_signed.bin"] == signed
    (tmp_path / "signed.bin").write_bytes(signed)
    words = [needs_tool("imgtool"), "verify", "--key", key, tmp_path / "signed.bin"]
    output = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    assert "Image was correctly validated" in output and "1.2.3+4" in output
    magic, _, header, _, size = struct.unpack_from("<IIHHI", signed)
    assert (magic, header) == (0x96F3B83D, 512)
    assert signed[512 : 512 + size] == files["net_code.bin"]
    (tmp_path / "signed.bin").write_bytes(signed[:600] + bytes([signed[600] ^ 1]) + signed[601:])
    assert subprocess.run(words, check=False, capture_output=True).returncode != 0
    assert files["net_signed.hex"].startswith(b":020000040001F9\n:10000000" + b"3DB8F396")
    # The weights are behind the slot, and the firmware's first word is behind its header.
    assert files["net_weights.hex"].startswith(b":020000040002F8\n:1000000000010203")


def test_what_imgtool_refuses_is_told(linked, tmp_path):
    needs_tool("imgtool")
    board, elf = linked
    with pytest.raises(ToolError, match="imgtool did not sign the firmware") as caught:
        flash_files(elf, board, "net", signing=Signing(b"no key"))
    assert "private key" in caught.value.hint
    small = dataclasses.replace(board.image.mcuboot, slot_bytes=4096)
    tight = dataclasses.replace(board, image=dataclasses.replace(board.image, mcuboot=small))
    with pytest.raises(ToolError, match="imgtool did not sign the firmware") as caught:
        flash_files(elf, tight, "net", signing=Signing(new_key(tmp_path).read_bytes()))
    assert "slot_bytes" in caught.value.hint
