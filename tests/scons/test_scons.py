"""The SCons tool and SConstruct: what is built, what is not built again, and errors."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile
from made_up import best, scores
from needs import needs_tool
from onecompile import once_compiled
from paths import ROOT
from programs import SCONS, copied, said, scons, with_tools
from zeronet import small

from buildtool import zoo
from buildtool.client import options_of
from buildtool.options import Group

HOLDS_THE_TURN = """
import sys
from buildtool.client import build_lock
held = build_lock.take(sys.argv[1], lambda pid: sys.exit("somebody has it"))
print("taken", flush=True)
sys.stdin.read()
held.end()
"""


class Project:
    """A folder with the SConstruct and its tools. `compilers`: environment variables that name compilers."""

    def __init__(self, folder: Path, compilers: dict[str, str]) -> None:
        self.folder, self.compilers = with_tools(folder), compilers

    def scons(self, *words: str, status: int = 0) -> str:
        """The output of `scons -Q words`, after a check of its exit status."""
        return scons(self.folder, *words, status=status, **self.compilers)

    def start(self, *words: str) -> subprocess.Popen[str]:
        """The running process of `scons -Q words`."""
        return subprocess.Popen(
            [*SCONS, *words],
            cwd=self.folder,
            env=os.environ | {"PYTHONPATH": str(ROOT)} | self.compilers,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def files(self, below: str) -> set[str]:
        folder = self.folder / below
        return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def project(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Project:
    return Project(tmp_path, once_compiled(tmp_path_factory))


def steps(said: str, verb: str) -> list[str]:
    return [line.removeprefix(f"{verb} ") for line in said.splitlines() if line.startswith(f"{verb} ")]


# Different parts report them: the SConstruct, the service, the tool, the table of options.
MISTAKES = [
    ("bord=host", "unknown variable 'bord': did you mean 'board'?"),
    ("board=hots", "unknown board 'hots' [USAGE]\n  hint: did you mean 'host'?"),
    ("model=none.tflite", "none.tflite: error: cannot read the model"),
    ("in_place=row", "error: in_place: 'row' is not one of rows, elementwise, none [USAGE]\n"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("word", "said"), MISTAKES)
def test_mistakes_are_errors_with_suggestions(project: Project, word: str, said: str) -> None:
    words = [word] if word.startswith("board=") else ["board=cortex-m4", word]
    assert said in project.scons(*words, status=2)
    assert not (project.folder / "build/host/ds_cnn").exists()


def test_help_lists_ten_variables_or_all_and_asks_no_service(project: Project) -> None:
    brief, whole = project.scons("-h"), project.scons("-h", "all=1")
    listed = [
        re.findall(r"^    ([a-z_]+) +[A-Z]", said.partition("NAME=VALUE")[2], re.M) for said in (brief, whole)
    ]
    assert len(listed[0]) == 10 and set(listed[0]) < set(listed[1])
    assert {"board", "model", "toolchain", "ram", "image"} < set(listed[0])
    assert {o.name for o in options_of("emit", Group.PLANNING)} | {"input", "seed", "all"} < set(listed[1])
    assert len(brief.splitlines()) <= 45 and "`scons -h all=1`" in brief and "`scons -h all=1`" not in whole
    assert not (project.folder / "build").exists()


def test_a_board_must_be_named_as_on_the_command_line(project: Project) -> None:
    assert "no board is named; name one: board=cortex-m4" in project.scons("model=ds_cnn", status=2)
    assert not (project.folder / "build").exists()


@pytest.mark.slow
def test_the_model_and_every_file_of_a_board_are_sources(project: Project) -> None:
    """One session: each build starts from the one before it. All files have the same old time."""
    base, mine, model = (project.folder / name for name in ("base.toml", "mine.toml", "net.tflite"))

    def put(path: Path, data: bytes) -> None:
        path.write_bytes(data)
        os.utime(path, (1.5e9, 1.5e9))

    put(base, b'extends = "cortex-m4"\n')
    put(mine, b'extends = "base.toml"\n[memory.psram]\nsize = "64K"\n')
    put(model, zoo.build("ds_cnn"))
    words = ["board=mine.toml", "model=net.tflite", "build/mine/net/src/net.c"]
    emitted = project.folder / "build/mine/net/src/net.c"
    project.scons(*words)
    put(model, zoo.build("ds_cnn:seed=1"))
    assert "planning" in project.scons(*words)
    put(base, b'extends = "cortex-m4"\nalignment = 128\n')
    assert "planning" in project.scons(*words)
    assert "_ARENA_ALIGNMENT 128\n" in emitted.with_suffix(".h").read_text()
    put(mine, b'extends = "base.toml"\n[memory.psram]\nsize = "2K"\n')
    assert "[PLAN]" in project.scons(*words, status=2)  # the plan does not fit any more
    assert not emitted.exists()


OWN = """
env = Environment(tools=["buildtool_network"])
board = env.UseBoard("mine.toml", verbose=False)
env.Append(CPPPATH=board["includes"])
env.Program("app.elf", ["main.c", *env["BOARD_STARTUP"]])
"""


@pytest.mark.slow
def test_a_program_of_the_users_is_linked_again_when_the_boards_stack_changes(project: Project) -> None:
    """The SConstruct does not mention it: the size is in a board that the user's board extends."""
    (project.folder / "SConstruct").write_text(OWN)
    (project.folder / "main.c").write_text("int main(void) { return 0; }\n")
    (project.folder / "mine.toml").write_text('extends = "base.toml"\n')
    base = project.folder / "base.toml"
    base.write_text('extends = "cortex-m4"\nstack_bytes = "4K"\n')
    project.scons()
    assert _stack_bytes(project.folder / "app.elf") == 4096
    assert "is up to date" in project.scons()

    base.write_text('extends = "cortex-m4"\nstack_bytes = "2K"\n')
    output = project.scons()
    assert steps(output, "writing") == ["build/mine/mine.ld"]
    assert steps(output, "linking") == ["app.elf"]
    assert steps(output, "compiling") == []
    assert _stack_bytes(project.folder / "app.elf") == 2048

    base.write_text('# A remark.\nextends = "cortex-m4"\nstack_bytes = "2K"\n')
    assert "is up to date" in project.scons()


def _stack_bytes(elf: Path) -> int:
    with elf.open("rb") as file:
        table = ELFFile(file).get_section_by_name(".symtab")
        top, bottom = (table.get_symbol_by_name(f"__stack_{end}")[0]["st_value"] for end in ("top", "bottom"))
    return top - bottom


@pytest.mark.slow
def test_the_second_of_two_builds_waits_for_the_first(project: Project) -> None:
    """Two builds of one model wait in their folder while a third build runs."""
    nets = ("ds_cnn", "ds_cnn")
    words = [["board=host", f"model={net}", f"build/host/{net}/src/{net}.c"] for net in nets]
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDS_THE_TURN, str(project.folder)],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with holder:
        assert holder.stdout is not None and holder.stdout.readline() == "taken\n"
        started = [project.start(*found, "-j2") for found in words]
        for process in started:
            assert process.stdout is not None
            said = process.stdout.readline()
            assert said.startswith(f"scons: waiting for process {holder.pid}, "), said
            assert process.poll() is None
    said = [process.communicate(timeout=1800)[0] for process in started]
    assert [process.returncode for process in started] == [0, 0], said
    assert sum("planning" in one for one in said) == 1


@pytest.mark.slow
def test_run_prints_the_layers_and_that_the_output_is_right(project: Project) -> None:
    """With a compiler that is not the default."""
    needs_tool("arm-none-eabi-gcc")
    words = (
        "board=cortex-m4",
        "model=ds_cnn",
        "toolchain=gcc",
        "-j2",
        "run",
        "seed=5",
        "inputs=2",
        "format=hex,bin",
        "outputs=pool,logits",
    )
    output = project.scons(*words)
    made = "build/cortex-m4/ds_cnn"
    built = f"--elf {made}/ds_cnn.elf --plan {made}/src/ds_cnn.plan"
    assert (
        f"buildtool profile ds_cnn --board cortex-m4 {built} --outputs=pool,logits --inputs=2 --seed=5"
        in output
    )
    assert "(emulated, gcc " in output  # as the firmware image itself says
    assert re.search(r"^ *total +2,656,768 ", output, re.MULTILINE)
    assert output.rstrip().endswith("'s reference kernels, to the bit")
    names = {"ds_cnn.elf", "ds_cnn.bin", "ds_cnn.hex", "ds_cnn_weights.hex", "sizes.txt"}
    assert names <= project.files(made)
    assert (project.folder / "compile_commands.json").is_file()


@pytest.mark.slow
def test_a_library_of_the_users_is_compiled_and_linked(project: Project, tmp_path: Path) -> None:
    library = tmp_path / "library"
    shutil.copytree(ROOT / "tests/support/cmsis_nn", library)
    (tmp_path / "net.tflite").write_bytes(small())
    words = ("board=cortex-m4", "model=net.tflite", f"cmsis_nn={library}")
    output = project.scons(*words, "-j2")
    assert "compiling library/Source/stand_in_s8.c" in output
    assert "_cmsis_nn(" in (project.folder / "build/cortex-m4/net/src/net.c").read_text()
    assert "up to date" in project.scons(*words)

    # its headers are those of its own sources, and of the kernels that call it
    with (library / "Include/arm_nn_types.h").open("a") as file:
        file.write("#define EDITED 1\n")
    compiled = steps(project.scons(*words, "-n"), "compiling")
    assert "library/Source/stand_in_s8.c" in compiled
    assert f"{ROOT}/kernels/cortex_m_cmsis_nn/nn_conv2d_s8_cmsis_nn.c" in compiled
    assert not any("kernels/reference" in name for name in compiled)


@pytest.fixture(scope="module")
def compilers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return once_compiled(tmp_path_factory)


@pytest.mark.slow
def test_the_application_prints_the_references_scores_from_its_own_section(tmp_path, compilers):
    folder = copied("scons", tmp_path / "firmware")
    shown = said(folder, *SCONS, "-j2", "board=cortex-m4", "run", environment=compilers)
    assert f"scores: {scores()}\n" in shown and f"keyword {best()}\n" in shown
    shown = said(folder, *SCONS, "board=cortex-m4", "build", environment=compilers)
    assert shown.count("up to date") == 1
    _check_section(folder)


def _check_section(folder: Path) -> None:
    """Checks that the arena lies in the application's section."""
    header = (folder / "build/cortex-m4/keywords/src/keywords.h").read_text()
    size = int(re.search(r"#define KEYWORDS_ARENA_BYTES (\d+)", header).group(1))
    with (folder / "build/cortex-m4/app.elf").open("rb") as file:
        elf = ELFFile(file)
        # the network has a pointer of the same name
        symbols = elf.get_section_by_name(".symtab").get_symbol_by_name("arena")
        sections = {symbol["st_size"]: elf.get_section(symbol["st_shndx"]).name for symbol in symbols}
    assert sections[size] == ".nn_arena"
