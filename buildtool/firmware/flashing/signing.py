"""Firmware signed for the boot loader MCUboot, by the project's own tool, imgtool (an extra)."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from buildtool.base.errors import ToolError
from buildtool.base.scratch import scratch
from buildtool.firmware.flashing.formats import Piece, binary
from buildtool.target.types import Board

_MOST_SHOWN = 300  # characters of what imgtool said
_ENDS = 60.0  # seconds after which it is not waited for


@dataclass(frozen=True)
class Signing:
    """What firmware is signed with: a private key as PEM, and the version that its header has."""

    key: bytes
    version: str = "0.0.0"

    def signed(self, code: list[Piece], board: Board) -> Piece:
        """The firmware with MCUboot's header and trailer, at the start of its slot.

        ToolError where imgtool is missing or refuses; the board has a slot.
        """
        boot = board.image.mcuboot
        assert boot is not None
        if find_spec("imgtool") is None:
            raise ToolError(
                "imgtool, which signs images for MCUboot, is not installed",
                hint="run: pip install imgtool",
            )
        slot = board.memory(board.code).base + board.image.code_start
        plain = binary(code, slot + boot.header_bytes)
        with scratch() as name:
            folder = Path(name)
            (folder / "key.pem").touch(0o600)
            (folder / "key.pem").write_bytes(self.key)
            (folder / "code.bin").write_bytes(plain)
            words = [
                *(sys.executable, "-P", "-m", "imgtool.main", "sign", "--key", "key.pem"),
                *("--header-size", str(boot.header_bytes), "--pad-header", "--align", str(boot.align)),
                *("--slot-size", str(boot.slot_bytes), "--version", self.version),
                *("code.bin", "signed.bin"),
            ]
            self._run(words, folder)
            return Piece(slot, (folder / "signed.bin").read_bytes())

    def _run(self, words: list[str], folder: Path) -> None:
        try:
            done = subprocess.run(
                words,
                cwd=folder,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=_ENDS,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise ToolError(f"imgtool did not sign the firmware: {error}") from None
        if done.returncode == 0 and (folder / "signed.bin").is_file():
            return
        said = [line.strip() for line in (done.stderr or done.stdout).splitlines() if line.strip()]
        last = said[-1][:_MOST_SHOWN] if said else "it said nothing"  # behind a trace
        hint = "check the key: an unencrypted private key of ed25519, ECDSA or RSA, as PEM"
        if re.search(r"exceeds|too large|Image size", last):
            hint = "make the network or the firmware smaller, or slot_bytes of [image.mcuboot] larger"
        raise ToolError(f"imgtool did not sign the firmware: {last}", hint=hint)
