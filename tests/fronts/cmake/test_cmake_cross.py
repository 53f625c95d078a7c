"""Projects for a microcontroller: the example with the board's toolchain file, and compilers of one's own."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from cmakeprojects import CMakeProject, cmake_dir  # noqa: F401 - a fixture
from made_up import best, scores
from needs import needs_tool
from paths import ROOT, TESTS

pytestmark = pytest.mark.slow

EXAMPLE = ROOT / "examples/cmake_firmware"
OWN = """\
cmake_minimum_required(VERSION 3.20)
project(own C)
enable_testing()
add_subdirectory("${PACKAGE}" buildtool)
buildtool_add_network(net MODEL ds_cnn BOARD ${BOARD})
buildtool_add_firmware(firmware NETWORK net)
"""
GCC = """\
set(CMAKE_SYSTEM_NAME Generic)
set(CMAKE_C_COMPILER arm-none-eabi-gcc)
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
set(CMAKE_C_FLAGS_INIT "-mcpu=${CPU} -mthumb ${FLOATS}")
"""


def test_the_examples_preset_builds_its_programs_which_print_the_references_scores(
    tmp_path: Path,
    cmake_dir: str,  # noqa: F811
) -> None:
    folder = tmp_path / "firmware"
    shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns("build"))
    project = CMakeProject(folder, cmake_dir, environment={"BUILDTOOL_CMAKE_DIR": cmake_dir})
    project.build_folder = folder / "build/cortex-m4"
    for words in (
        ["--preset", "cortex-m4", "-DBUILDTOOL_OPTIMIZE=-O1"],
        ["--build", "--preset", "cortex-m4"],
    ):
        done = project._run("cmake", *words)
        assert done.returncode == 0, done.stdout
    assert project.build() == []
    said = project.tested("--verbose")
    assert "100% tests passed" in said and "EQUAL to LiteRT" in said
    assert said.count(f"scores: {scores()}\n") == said.count(f"keyword {best()}\n") == 2  # in C and in C++


def test_a_project_with_gcc_of_its_own_links_newlib_and_the_kernels_of_cmsis_nn(
    tmp_path: Path,
    cmake_dir: str,  # noqa: F811
) -> None:
    needs_tool("arm-none-eabi-gcc")
    text = OWN.replace("BOARD ${BOARD}", f'BOARD board.toml CMSIS_NN "{TESTS}/support/cmsis_nn"')
    text = text.replace("NETWORK net)", "NETWORK net FORMAT hex bin)")
    text += 'add_executable(app main.c)\ntarget_link_libraries(app PRIVATE net "--specs=nosys.specs")\n'
    floats = "-mfloat-abi=hard -mfpu=fpv4-sp-d16"
    project = CMakeProject(
        tmp_path / "own",
        cmake_dir,
        text,
        PACKAGE=cmake_dir,
        CMAKE_TOOLCHAIN_FILE="gcc.cmake",
        BUILDTOOL_OPTIMIZE="-O1",
    )
    (tmp_path / "own/gcc.cmake").write_text(GCC.replace("${CPU}", "cortex-m4").replace("${FLOATS}", floats))
    (tmp_path / "own/board.toml").write_text('extends = "cortex-m4"\n')
    (tmp_path / "own/main.c").write_text(
        '#include "net.h"\n#include <stdio.h>\nstatic int8_t arena[NET_ARENA_BYTES];\n'
        "int main(void) {\n    nn_status status = net_init(arena, sizeof arena, net_weights);\n"
        '    printf("%d %d\\n", (int)status, (int)net_invoke());\n    return 0;\n}\n'
    )
    project.configure()
    ran = project.build()
    (library,) = project.build_folder.glob("libbuildtool_kernels_*_library.a")
    assert b"stand_in_s8.o" in library.read_bytes()
    assert "Linking C executable app" in ran
    assert "_cmsis_nn(" in (project.build_folder / "buildtool/net/net.c").read_text()
    said = project.tested("--verbose")
    assert "EQUAL to LiteRT" in said and ", gcc 1" in said
    made = project.build_folder / "buildtool/firmware"
    assert {path.name for path in made.iterdir() if path.suffix in (".hex", ".bin", ".uf2")} == {
        *("net.hex", "net_weights.hex", "net_code.hex", "net.bin", "net_weights.bin")
    }


def test_a_format_that_the_board_has_not_is_told_in_cmakes_words(tmp_path: Path, cmake_dir: str) -> None:  # noqa: F811
    text = OWN.replace("NETWORK net)", "NETWORK net FORMAT uf2)")
    said = CMakeProject(tmp_path / "host", cmake_dir, text, PACKAGE=cmake_dir, BOARD="host").refused()
    assert "is a program of this machine and is not flashed" in said and "without FORMAT" in said


def test_a_compiler_for_another_core_is_refused(tmp_path: Path, cmake_dir: str) -> None:  # noqa: F811
    boards = f"{cmake_dir}/boards"
    project = CMakeProject(tmp_path / "m4", cmake_dir, OWN, PACKAGE=cmake_dir, BOARD="cortex-m4")
    said = project.refused()
    assert (
        "buildtool_add_network(net): error: the compiler cannot compile for the core of board 'cortex-m4'"
        in said
    )
    assert "-DCMAKE_TOOLCHAIN_FILE=$(buildtool --cmake-dir)/boards/cortex-m4.cmake" in said

    shutil.rmtree(project.build_folder)
    project.variables["CMAKE_TOOLCHAIN_FILE"] = f"{boards}/cortex-m55.cmake"
    assert "do not select the core of board 'cortex-m4' (__ARM_ARCH" in project.refused()
    project.variables["BOARD"] = "host"
    assert "the board 'host' is this machine, but CMake compiles for another machine" in project.refused()


def test_the_toolchain_file_of_a_users_board_tells_when_its_flags_have_changed(
    tmp_path: Path,
    cmake_dir: str,  # noqa: F811
) -> None:
    folder = tmp_path / "own"
    toolchain = {"CMAKE_TOOLCHAIN_FILE": f"{cmake_dir}/buildtoolBoard.cmake"}
    project = CMakeProject(folder, cmake_dir, OWN, PACKAGE=cmake_dir, **toolchain)
    assert "this toolchain file needs -DBUILDTOOL_BOARD=" in project.refused()
    shutil.rmtree(project.build_folder)
    project.variables |= {"BUILDTOOL_BOARD": "board.toml", "BOARD": "board.toml"}
    (folder / "board.toml").write_text('extends = "cortex-m4"\n')
    assert "have changed" not in project.configure()
    (folder / "board.toml").write_text('extends = "mps2-an500"\n')
    assert "have changed since this folder was" in project.configure()
