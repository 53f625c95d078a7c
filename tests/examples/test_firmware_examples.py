"""Applications with a C library, a compiler and a build of their own print what the reference gives."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from made_up import SHOWS, reference, scores
from needs import needs_tool
from onecompile import once_compiled
from paths import ROOT
from programs import SCONS, copied, said

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def compilers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return once_compiled(tmp_path_factory)


def test_an_application_with_newlib_prints_through_stdio(tmp_path: Path, compilers: dict[str, str]) -> None:
    needs_tool("arm-none-eabi-gcc")
    needs_tool("qemu-system-arm")
    folder = copied("newlib_firmware", tmp_path / "firmware")
    shown = said(folder, *SCONS, "-j2", "run", environment=compilers)
    assert re.findall(SHOWS, shown) == [scores()]
    assert "warning" not in shown
    assert said(folder, *SCONS, "build/app.elf", environment=compilers).count("up to date") == 1


def picture() -> np.ndarray:
    """As camera.c makes it, with 128 taken off."""
    rows, places = np.arange(32).reshape(32, 1), np.arange(96).reshape(1, 96)
    pixels = ((rows * 7 + places * places * 3) % 256 - 128).astype(np.int8)
    return pixels.reshape(1, 32, 32, 3)


def test_a_camera_streams_its_rows(tmp_path: Path, compilers: dict[str, str]) -> None:
    needs_tool("qemu-system-arm")
    folder = copied("camera_firmware", tmp_path / "firmware")
    shown = said(folder, *SCONS, "-j2", "run", environment=compilers)
    expected = reference("mobilenetv2:size=32,alpha=0.35,classes=10", picture())
    assert re.findall(SHOWS, shown) == [expected]
    rows, pauses = map(int, re.findall(r"rows (\d+) pauses (\d+)", shown)[0])
    assert rows == 2 * 32 and pauses > 2


def test_a_cxx17_application_is_built_by_make_from_a_bundle(tmp_path: Path) -> None:
    needs_tool("arm-none-eabi-gcc")
    needs_tool("qemu-system-arm")
    folder = copied("bundle_firmware", tmp_path / "firmware")
    words = ("build", "ds_cnn", "--board", "cortex-m4", "--name", "keywords", "--bundle", "--out", "networks")
    said(folder, sys.executable, "-m", "buildtool", *words)
    shown = said(folder, "make", "-s", "-j2", "run")
    assert re.findall(SHOWS, shown) == [scores()]
    assert "warning" not in shown
    assert subprocess.run(["make", "-q"], cwd=folder, check=False).returncode == 0


def test_what_examples_have_in_common_is_the_same() -> None:
    """Each stands as it would in a repository of its own."""
    for one, other, names in (
        ("newlib_firmware", "bundle_firmware", ["startup.c"]),
        ("keyword_firmware", "camera_firmware", ["print.h", "print_host.c", "print_semihosting.c"]),
    ):
        for name in names:
            assert (ROOT / "examples" / one / name).read_bytes() == (
                ROOT / "examples" / other / name
            ).read_bytes()
