"""Names of files are data: they are never substituted as a variable, run, or split."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from onecompile import once_compiled
from paths import ROOT
from programs import scons, with_tools
from zeronet import small

from buildtool import zoo
from buildtool.client import build_lock

SHELL = 'we\'ird "q" $x $(id>ran) `id>ran`; a,b [c]{d} (e)\n*?~#!&|<\u00e9\u65e5> \\t'
NOT_UTF8 = os.fsdecode(b"\xff")
PYTHON = '${__import__("os").system("touch ran")}'
CUSTOM = """
env = Environment(tools=["buildtool_network", "compile_commands"])
FOLDER = "o,u;t (x) `id>ran` 'q' \\"d\\" [e]"
board = env.UseBoard("cortex-m4", work=FOLDER + "/work")
network = env.NeuralNetwork("net(1).tflite", directory=FOLDER + "/net")
app = env.Clone()
app.Append(CPPPATH=[*network.include, *board["includes"]], CPPDEFINES={"TEXT": '\\\\"a b\\\\"'})
main = app.Object(FOLDER + "/main.o", "main.c")
app.Program(FOLDER + "/app.elf", [main, *env["BOARD_STARTUP"], network.library])
env.CompileCommands("compile_commands.json")
"""
MAIN = """
#include "net_1.h"
NET_1_DEFINE_ARENA(arena);
const char *text = TEXT;
int main(void) { return net_1_init(arena, sizeof(arena), net_1_weights) != NN_OK; }
"""


@pytest.fixture
def compilers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return once_compiled(tmp_path_factory)


def nothing_ran(folder: Path) -> bool:
    return not list(folder.rglob("ran"))


@pytest.mark.slow
@pytest.mark.parametrize("word", ["-h", "-n"])
def test_a_name_is_not_python(tmp_path: Path, word: str) -> None:
    folder = with_tools(tmp_path / "project")
    (folder / "m").mkdir()
    (folder / f"m/{PYTHON}.tflite").write_bytes(zoo.build("ds_cnn"))
    (folder / f"{PYTHON}.toml").write_text('extends = "host"\n')
    output = scons(folder, word, f"board={PYTHON}.toml", f"model=m/{PYTHON}.tflite")
    assert ("NAME=VALUE" if word == "-h" else f"planning m/{PYTHON}") in output
    assert nothing_ran(folder)


@pytest.mark.slow
def test_any_name_of_project_model_and_board_is_built_and_run(tmp_path, compilers):
    folder = with_tools(tmp_path / SHELL)
    model, board = (f"{name}{SHELL}{NOT_UTF8}{end}" for name, end in (("-m", ".tflite"), ("-b", ".toml")))
    (folder / model).write_bytes(small())
    (folder / board).write_text('extends = "cortex-m4"\n')
    words = [f"board={board}", f"model={model}"]
    output = scons(folder, *words, "run", **compilers)
    assert output.rstrip().endswith("'s reference kernels, to the bit")
    assert "up to date" in scons(folder, *words, **compilers)
    scons(folder, *words, "build", **compilers)  # the library for other programs, too
    _check_commands(folder)
    assert nothing_ran(tmp_path)


@pytest.mark.slow
def test_any_name_of_a_folder_for_what_is_built_is_one(tmp_path: Path, compilers: dict[str, str]) -> None:
    folder = with_tools(tmp_path / "project")
    (folder / "SConstruct").write_text(CUSTOM)
    (folder / "main.c").write_text(MAIN)
    (folder / "net(1).tflite").write_bytes(small())
    scons(folder, **compilers)
    assert "up to date" in scons(folder, **compilers)
    _check_commands(folder)
    assert nothing_ran(folder)


@pytest.mark.slow
def test_any_name_of_the_checkout_is_one(tmp_path: Path) -> None:
    home = with_tools(tmp_path / SHELL)
    for name in ("buildtool", "plugins", "kernels"):
        shutil.copytree(ROOT / name, home / name, ignore=shutil.ignore_patterns("__pycache__"))
    made = "build/cortex-m4"
    targets = [f"{made}/ds_cnn/obj", f"{made}/startup", f"{made}/kernels/reference/nn_add_s8.o"]
    scons(home, "board=cortex-m4", "model=ds_cnn", *targets, home=home)
    assert (home / targets[-1]).is_file()
    assert nothing_ran(tmp_path)


@pytest.mark.slow
def test_a_folder_that_looks_like_an_option_is_refused(tmp_path: Path) -> None:
    folder = with_tools(tmp_path / "project")
    (folder / "SConstruct").write_text(CUSTOM.replace('FOLDER = "', 'FOLDER = "-'))
    output = scons(folder, status=2)
    assert "cannot build in a folder whose name begins with a dash: -o,u;t" in output
    assert {path.name for path in folder.iterdir()} == {"SConstruct", "site_scons", build_lock.NAME}


def _check_commands(folder: Path) -> None:
    """The commands of compile_commands.json run as they are, and give the same files as SCons."""
    entries = json.loads((folder / "compile_commands.json").read_text())
    (entry,) = [entry for entry in entries if entry["output"].endswith("_weights.o")]
    made = folder / entry["output"]
    before = made.read_bytes()
    made.unlink()
    subprocess.run(entry["command"], shell=True, cwd=folder, check=True)
    assert made.read_bytes() == before
