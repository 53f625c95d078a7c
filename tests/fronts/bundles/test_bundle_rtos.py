"""The CMake files of docs/zephyr-esp-idf.md, run with stand-ins for what Zephyr and ESP-IDF would bring.

The stand-ins say what their functions do as far as these files use them. That the real ones take a folder is
not shown by this.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from made_up import SHOWS, scores
from needs import needs_tool
from paths import ROOT
from programs import said

from buildtool.fronts.cli.main import run

PAGE = (ROOT / "docs/zephyr-esp-idf.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"(?ms)^```cmake\n(.*?)^```$", PAGE)
MAIN = (
    (ROOT / "examples/newlib_firmware/main.c")
    .read_text()
    .replace("keywords", "wake")
    .replace("KEYWORDS", "WAKE")
)

# find_package(Zephyr) makes the library `app`, whose sources end in the program zephyr.elf, and the flags.
ZEPHYR = """\
add_library(zephyr_interface INTERFACE)
target_compile_definitions(zephyr_interface INTERFACE KERNEL=1)
target_compile_options(zephyr_interface INTERFACE -O1)
enable_language(C)
file(WRITE ${CMAKE_BINARY_DIR}/empty.c "")
add_library(app STATIC)
add_executable(zephyr.elf ${CMAKE_BINARY_DIR}/empty.c)
target_link_libraries(zephyr.elf PRIVATE -Wl,--whole-archive app -Wl,--no-whole-archive)
"""
# A component without sources is an interface library of its name.
IDF = """\
cmake_minimum_required(VERSION 3.16)
project(app LANGUAGES C)
macro(idf_component_register)
  set(COMPONENT_LIB __idf_nn)
  add_library(${COMPONENT_LIB} INTERFACE)
endmacro()
add_subdirectory(components/nn)
add_executable(app main.c)
target_link_libraries(app PRIVATE __idf_nn)
"""


@pytest.fixture(scope="module")
def networks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("rtos") / "networks"
    words = ["build", "ds_cnn", "--board", "host", "--name", "wake", "--bundle", "--out", str(out)]
    assert run(words) == 0
    return out


def built(folder: Path, *words: str) -> str:
    """What the program says that a project builds."""
    build = folder / "build"
    said(folder, needs_tool("cmake"), "-S", folder, "-B", build, *words)
    said(folder, "cmake", "--build", build, "-j2")
    program = next(path for name in ("zephyr.elf", "app") if (path := build / name).is_file())
    return subprocess.run([program], capture_output=True, text=True, check=True).stdout


@pytest.mark.slow
def test_zephyrs_file_builds_with_a_stand_in(networks: Path, tmp_path: Path) -> None:
    (tmp_path / "networks").symlink_to(networks)
    (tmp_path / "main.c").write_text(MAIN)
    (tmp_path / "CMakeLists.txt").write_text(BLOCKS[0])
    (tmp_path / "stand_in").mkdir()
    (tmp_path / "stand_in/ZephyrConfig.cmake").write_text(ZEPHYR)
    shown = built(tmp_path, f"-DZephyr_DIR={tmp_path}/stand_in")
    assert re.findall(SHOWS, shown) == [scores()]


@pytest.mark.slow
def test_esp_idfs_file_builds_with_a_stand_in(networks: Path, tmp_path: Path) -> None:
    component = tmp_path / "components/nn"
    component.mkdir(parents=True)
    (component / "networks").symlink_to(networks)
    (component / "CMakeLists.txt").write_text(BLOCKS[1])
    (tmp_path / "main.c").write_text(MAIN)
    (tmp_path / "CMakeLists.txt").write_text(IDF)
    assert re.findall(SHOWS, built(tmp_path)) == [scores()]
