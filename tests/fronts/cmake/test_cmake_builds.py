"""CMake projects on this machine: what runs when something has changed, under each generator."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from buildtool_plugins.tools.find import find_host_compiler
from cmakeprojects import RULE, CMakeProject, cmake_dir  # noqa: F401 - a fixture
from needs import needs_tool
from retrained import retrained_model
from twonetworks import adding, called_kernels
from zeronet import small

from buildtool import zoo
from buildtool.api import handle
from buildtool.fronts.cli import main as cli

pytestmark = pytest.mark.slow

PROJECT = """\
cmake_minimum_required(VERSION 3.20)
project(app C)
enable_testing()
find_package(buildtool 0.1 CONFIG REQUIRED)
set(RAM "" CACHE STRING "")
buildtool_add_network(wake_word MODEL models/wake.tflite BOARD board.toml RAM "${RAM}")
buildtool_add_network(second MODEL models/second.tflite BOARD board.toml IMAGE resident)
buildtool_add_firmware(firmware NETWORK wake_word)
add_executable(app main.c)
target_link_libraries(app PRIVATE wake_word second)
"""
MAIN = Path(__file__).with_name("two_networks.c")
EMITTED = "Planning network wake_word"
SOURCES = "Sources of network "
PLAN = "Plan of network "
COMPILED = "Building C object CMakeFiles/"
KERNEL = f"{COMPILED}buildtool_kernels_"
CHOSEN = "Choosing the kernels that networks call"
WEIGHTS = f"{COMPILED}wake_word.dir/buildtool/wake_word/wake_word_weights.S.o"
CODE = f"{COMPILED}wake_word.dir/buildtool/wake_word/wake_word.c.o"
LINKED = {
    "Linking C static library libwake_word.a",
    "Linking C executable app",
    "Linking C executable buildtool/firmware/wake_word.elf",
    "Sizes of firmware",
}


def new_project(folder: Path, cmake_dir: str, generator: str) -> CMakeProject:  # noqa: F811
    """A project that has been built."""
    wrapper = folder.parent / "cc"
    wrapper.write_text(f'#!/bin/sh\nexec {shlex.quote(find_host_compiler())} "$@"\n')
    wrapper.chmod(0o755)
    more = {"BUILDTOOL_OPTIMIZE": "-O0", "CMAKE_C_COMPILER": str(wrapper)}
    project = CMakeProject(folder, cmake_dir, PROJECT, generator=generator, **more)
    (folder / "models").mkdir()
    (folder / "models/wake.tflite").write_bytes(zoo.build("ds_cnn"))
    (folder / "models/second.tflite").write_bytes(small())
    shutil.copy(MAIN, folder / "main.c")
    (folder / "board.toml").write_text('extends = "host"\n')
    project.configure()
    ran = project.build()
    assert {EMITTED, WEIGHTS, CODE, *LINKED} <= set(ran)
    kernels = [line for line in ran if line.startswith(KERNEL)]
    assert len(kernels) == 1 and len(ran) < 50  # once, for both networks, and no file for each kernel
    assert compiled_kernels(project) == called_kernels(project.build_folder, "wake_word", "second")
    return project


def compiled_kernels(project: CMakeProject) -> set[str]:
    """The objects of kernels in the library."""
    (library,) = project.build_folder.rglob("libbuildtool_kernels_*.a")
    members = subprocess.run([needs_tool("ar"), "t", library], capture_output=True, text=True, check=True)
    objects = {path.name: path for path in library.parent.glob("CMakeFiles/buildtool_kernels_*/**/nn_*.o")}
    names = [objects[name] for name in members.stdout.split() if not name.startswith("sources.")]
    assert len(set(names)) == len(names)
    return {f"{path.parent.name}/{path.name}" for path in names}


def made_at(project: CMakeProject) -> dict[str, int]:
    """When each object of a kernel was written."""
    objects = project.build_folder.glob("CMakeFiles/buildtool_kernels_*/**/nn_*.o")
    return {f"{path.parent.name}/{path.name}": path.stat().st_mtime_ns for path in objects}


def nothing_is_left(project: CMakeProject) -> None:
    said = project.said()
    assert not RULE.findall(said), said
    assert "CMake" not in said


def ran(project: CMakeProject) -> set[str]:
    """What a change makes run; then nothing is left to do."""
    found = set(project.build())
    nothing_is_left(project)
    following = {line for line in found if line.startswith((SOURCES, PLAN))}
    planned = [line.split()[-1] for line in found if line.startswith("Planning ")]
    rules = (PLAN, SOURCES) if "Ninja" in project.generator else (PLAN,)
    assert following == {f"{rule}{name}" for name in planned for rule in rules}
    return {line for line in found - following if "Re-running CMake" not in line}


def both_networks_run_in_one_program(built: CMakeProject) -> None:
    done = subprocess.run([built.build_folder / "app"], capture_output=True, text=True, check=True)
    assert len(done.stdout.split()) == 2


def the_sources_are_those_of_emit(built: CMakeProject, out: Path) -> None:
    model, board = built.folder / "models/wake.tflite", built.folder / "board.toml"
    assert cli.run(["emit", f"{model}", "-b", f"{board}", "--name", "wake_word", "--out", f"{out}"]) == 0
    ours = built.build_folder / "buildtool/wake_word"
    names = sorted(path.name for path in ours.iterdir())
    assert names == sorted(path.name for path in out.iterdir()) and "wake_word_weights.bin" in names
    assert all((ours / name).read_bytes() == (out / name).read_bytes() for name in names)


def its_targets_run_the_firmware_and_compare_it_with_the_reference(built: CMakeProject) -> None:
    said = built.said("--target", "wake_word_validate", "wake_word_run")
    assert "EQUAL to LiteRT" in said and "depthwise" in said
    report = built.build_folder / "buildtool/firmware/sizes.txt"
    assert ".nn_weights" in report.read_text()


def other_weights_assemble_one_file(built: CMakeProject) -> None:
    model = built.folder / "models/wake.tflite"
    model.write_bytes(retrained_model(model.read_bytes()))
    assert ran(built) == {EMITTED, WEIGHTS, *LINKED}


def the_programs_own_source_is_all_that_is_compiled(built: CMakeProject) -> None:
    os.utime(built.folder / "main.c")
    assert ran(built) == {f"{COMPILED}app.dir/main.c.o", "Linking C executable app"}


def another_limit_plans_this_network_alone(built: CMakeProject) -> None:
    said = built_with(built, "8700")
    (line,) = re.findall(r"(?m)^wake_word: arena ([\d,]+) of 8,700 bytes, weights [\d,]+, F 1\.\d{3}$", said)
    header = (built.build_folder / "buildtool/wake_word/wake_word.h").read_text()
    assert f"#define WAKE_WORD_ARENA_BYTES {line.replace(',', '')}\n" in header
    found = {rule for rule in RULE.findall(said) if "Re-running CMake" not in rule}
    # the program's own file includes the header, which has other numbers
    assert {EMITTED, CODE, f"{COMPILED}app.dir/main.c.o", *LINKED} <= found
    assert not any("second" in line or "kernels" in line for line in found)


def built_with(built: CMakeProject, ram: str, *, fails: bool = False) -> str:
    """What a build with another limit says."""
    built.variables["RAM"] = ram
    built.configure()
    return built.said(fails=fails)


def a_limit_that_is_too_small_is_told_in_short(built: CMakeProject) -> None:
    said = built_with(built, "3K", fails=True)
    assert re.search(r"(?m): error: .* \[PLAN\]\n  hint: RAM \d+ \(the smallest arena: F ", said)
    # Ninja prints the outputs and the command of a rule that fails.
    (outputs, command) = re.findall(r"(?m)^FAILED: (?:\[code=1\] )?(.*)\n(.*)$", said)[0]
    assert re.fullmatch(r"buildtool/wake_word\.stamp .*/buildtool/wake_word\.stamp ", outputs)
    assert "--" not in command.partition(" && ")[2]
    assert "wake_word: arena " in built_with(built, "")


def a_changed_board_configures_anew_and_plans_both_networks(built: CMakeProject) -> None:
    board = built.folder / "board.toml"
    board.write_text(board.read_text() + "# a remark\n")
    assert ran(built) == {EMITTED, "Planning network second"}


def weights_of(built: CMakeProject) -> bytes:
    return (built.build_folder / "buildtool/wake_word/wake_word_weights.bin").read_bytes()


def a_link_that_is_switched_to_an_older_file_is_another_model(built: CMakeProject) -> None:
    """And so is the file that is put back."""
    model, before = built.folder / "models/wake.tflite", weights_of(built)
    model.replace(model.with_name("a.tflite"))
    other = model.with_name("b.tflite")
    other.write_bytes(retrained_model(model.with_name("a.tflite").read_bytes(), seed=7))
    for path in (other, other.with_name("a.tflite")):
        os.utime(path, (1e9, 1e9))
    model.symlink_to("a.tflite")
    assert built.build() == []
    model.unlink()
    model.symlink_to("b.tflite")
    assert ran(built) == {EMITTED, WEIGHTS, *LINKED}
    assert weights_of(built) != before
    if built.generator == "Ninja":
        model.unlink()
        other.with_name("a.tflite").replace(model)
        assert ran(built) == {EMITTED, WEIGHTS, *LINKED}
        assert weights_of(built) == before


def another_network_compiles_only_the_kernels_that_it_adds(built: CMakeProject) -> None:
    lists, before = built.folder / "CMakeLists.txt", compiled_kernels(built)
    text = lists.read_text()
    (built.folder / "sub").mkdir()
    (built.folder / "sub/third.tflite").write_bytes(adding())
    third = "buildtool_add_network(third MODEL third.tflite BOARD ../board.toml)\n"
    (built.folder / "sub/CMakeLists.txt").write_text(third)
    for again in (False, True):  # with times that are older than those of the build without it
        lists.write_text(f"{text}add_subdirectory(sub)\n")
        times = made_at(built)
        found = ran(built)
        added = called_kernels(built.build_folder, "third") - before
        assert len([line for line in found if line.startswith(KERNEL)]) == 1
        written = {name for name, time in made_at(built).items() if times.get(name) != time}
        assert written == (set() if again else added)
        assert added and ("Planning network third" in found) != again
        assert compiled_kernels(built) == before | added
        if not again:
            lists.write_text(text)
            assert CHOSEN in ran(built) and compiled_kernels(built) == before


def another_compiler_behind_the_same_name_compiles_everything(built: CMakeProject) -> None:
    """By a variable that its manual lists: what a program behind a script is, `identify` decides."""
    assert built.build() == []
    built.environment["CPATH"] = str(built.folder)
    found = ran(built)
    assert {WEIGHTS, CODE, *(LINKED - {"Sizes of firmware"})} <= found
    assert any(line.startswith(KERNEL) for line in found)
    assert f"{COMPILED}app.dir/main.c.o" not in found  # what is not buildtool's is CMake's own matter


def an_error_while_building_has_its_place_and_leaves_nothing_half_written(built: CMakeProject) -> None:
    model = built.folder / "models/wake.tflite"
    before = model.read_bytes()
    emitted = built.build_folder / "buildtool/wake_word"
    kept = {path.name: path.read_bytes() for path in emitted.iterdir()}
    model.write_bytes(before[: len(before) // 2])
    assert re.search(rf"(?m)^{re.escape(str(model))}: error: .* \[MODEL\]$", built.said(fails=True))
    assert {path.name: path.read_bytes() for path in emitted.iterdir()} == kept


# One test for each generator, and not one for each change: each would build in a worker of its own.


def test_what_runs_under_ninja_is_what_has_changed(tmp_path: Path, cmake_dir: str) -> None:  # noqa: F811
    project = new_project(tmp_path / "a folder", cmake_dir, "Ninja")
    nothing_is_left(project)
    both_networks_run_in_one_program(project)
    the_sources_are_those_of_emit(project, tmp_path / "emitted")
    its_targets_run_the_firmware_and_compare_it_with_the_reference(project)
    other_weights_assemble_one_file(project)
    the_programs_own_source_is_all_that_is_compiled(project)
    another_limit_plans_this_network_alone(project)
    a_limit_that_is_too_small_is_told_in_short(project)
    a_changed_board_configures_anew_and_plans_both_networks(project)
    a_link_that_is_switched_to_an_older_file_is_another_model(project)
    another_network_compiles_only_the_kernels_that_it_adds(project)
    another_compiler_behind_the_same_name_compiles_everything(project)
    an_error_while_building_has_its_place_and_leaves_nothing_half_written(project)


def test_what_runs_under_make_is_what_has_changed(tmp_path: Path, cmake_dir: str) -> None:  # noqa: F811
    project = new_project(tmp_path / "a folder", cmake_dir, "Unix Makefiles")
    nothing_is_left(project)
    a_link_that_is_switched_to_an_older_file_is_another_model(project)


def test_several_configurations_a_made_model_a_locked_plan_and_names_of_every_kind(
    tmp_path: Path,
    cmake_dir: str,  # noqa: F811
) -> None:
    """Of C++, with a linter and warnings of its own, and paths that shells and build systems read."""
    name = "a, \"b\" $HOME $$ 'c' #1 & (é).tflite"
    text = f"""\
cmake_minimum_required(VERSION 3.20)
project(app C CXX)
enable_testing()
add_compile_options(-Wpedantic -Wcast-qual -Wconversion -Werror)
set(CMAKE_UNITY_BUILD ON)
set(CMAKE_C_CLANG_TIDY false)
find_package(buildtool 0.1...1 CONFIG REQUIRED)
add_custom_command(OUTPUT made.tflite
  COMMAND "${{CMAKE_COMMAND}}" -E copy "${{CMAKE_CURRENT_SOURCE_DIR}}/in" made.tflite DEPENDS in VERBATIM)
buildtool_add_network(made MODEL made.tflite BOARD host PLAN [[{name}.plan]])
buildtool_add_network(odd MODEL [[{name}]] BOARD host)
buildtool_add_firmware(firmware NETWORK made)
add_executable(app main.cpp)
target_link_libraries(app PRIVATE made odd)
set_target_properties(app PROPERTIES CXX_CLANG_TIDY "")
add_test(NAME app COMMAND app)
"""
    folder = tmp_path / "a, $b é"
    project = CMakeProject(folder, cmake_dir, text, generator="Ninja Multi-Config")
    model = zoo.build("ds_cnn")
    (folder / "in").write_bytes(model)
    (folder / name).write_bytes(model)
    (folder / "main.cpp").write_text(
        '#include "made.h"\n#include "odd.h"\nalignas(16) static int8_t arena[MADE_ARENA_BYTES];\n'
        "int main() { return made_init(arena, sizeof arena, made_weights) || made_invoke()"
        " || odd_init(arena, sizeof arena, odd_weights); }\n"
    )
    asked = {"model": str(folder / name), "board": "host", "options": {"strategy": "layerwise"}}
    plan = handle({"kind": "plan", **asked})
    (folder / f"{name}.plan").write_bytes(plan["locked"])
    project.configure()
    assert "Planning network made" in project.build("--config", "Debug")
    assert (project.build_folder / "buildtool/made/made.plan").read_bytes() == plan["plan"]
    assert "100% tests passed" in project.tested("-C", "Debug")
    commands = project._run("ninja", "-C", str(project.build_folder), "-t", "commands", "made:Debug").stdout
    (line,) = (line for line in commands.splitlines() if "made.c.o -c" in line)
    assert re.search(r"-ffp-contract=off -Og -g .*-c ", line)
    assert project.build("--config", "Debug") == []
    assert "Planning network made" not in project.build("--config", "Release", "--target", "odd")
