"""Images that are damaged or cut short end in an error that names the file."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

from buildtool.api import handle
from buildtool.base.errors import ToolError


@pytest.fixture(scope="module")
def program() -> bytes:
    """The bytes of a small program of this machine."""
    found = shutil.which("true")
    assert found is not None
    return Path(found).read_bytes()


def sizes(data: bytes) -> None:
    handle({"kind": "sizes", "board": "host", "elf": {"name": "net.elf", "data": data}})


def test_an_image_that_is_cut_short_is_refused(program: bytes) -> None:
    sizes(program)
    for length in (0, 3, 16, 40, 64, 1000, len(program) // 2, len(program) - 200):
        with pytest.raises(ToolError, match="not an ELF image") as caught:
            sizes(program[:length])
        assert caught.value.path == "net.elf"


def test_a_damaged_image_is_measured_or_refused(program: bytes) -> None:
    draw = random.Random(1)
    refused = 0
    for _ in range(60):
        damaged = bytearray(program)
        for _ in range(4):
            damaged[draw.choice([draw.randrange(64), -1 - draw.randrange(2000)])] = draw.randrange(256)
        try:
            sizes(bytes(damaged))
        except ToolError:
            refused += 1
    assert refused
