"""Depfiles for Make, and stamps: a stamp exists only if the files are those of its command."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from buildtool import zoo
from buildtool.base.errors import UsageError
from buildtool.base.outfiles import depfile
from buildtool.fronts.cli.commands import building
from buildtool.fronts.cli.main import run

NAMES = ["a b", "c$d", "e#f", "g\\h", "i\\ j", "k'l", "m,n", "\u00e4"]
EMIT = ["emit", "ds_cnn", "--board", "host"]


@pytest.mark.parametrize("name", NAMES)
def test_make_finds_the_file_that_is_meant(tmp_path, name):
    (tmp_path / name).write_text("")
    (tmp_path / "made.d").write_bytes(depfile("stamp", [name]))
    (tmp_path / "Makefile").write_text("all: stamp\nstamp:\n\ttouch stamp\ninclude made.d\n")
    os.utime(tmp_path / name, (1, 1))

    def makes_it():
        return b"touch stamp" in subprocess.check_output(["make"], cwd=tmp_path)

    assert makes_it() and not makes_it()
    os.utime(tmp_path / name, (1 << 32, 1 << 32))  # newer than the stamp
    assert makes_it()


def emitted(tmp_path, *more):
    """Emits a network. Returns the exit status and the path of the stamp."""
    stamp = tmp_path / "stamp"
    words = [*EMIT, "--out", str(tmp_path / "src"), "--stamp", str(stamp), *more]
    return run(words), stamp


def test_files_that_stay_the_same_are_not_written_and_the_stamp_is(tmp_path):
    status, stamp = emitted(tmp_path, "--depfile", str(tmp_path / "made.d"))
    assert status == 0
    files = {path: path.stat().st_mtime_ns for path in (tmp_path / "src").iterdir()}
    os.utime(stamp, (1, 1))
    changed = tmp_path / "src" / "ds_cnn.h"
    changed.write_text("of somebody else")
    del files[changed]
    assert emitted(tmp_path)[0] == 0
    assert {path: path.stat().st_mtime_ns for path in files} == files
    assert "ds_cnn_init" in changed.read_text(encoding="utf-8")
    assert stamp.stat().st_mtime > 1


def test_the_depfile_names_the_boards_and_the_tools_files(tmp_path):
    board = tmp_path / "mine.toml"
    board.write_text('extends = "host"\ntitle = "mine"\n')
    words = ["emit", "ds_cnn", "--board", str(board), "--out", str(tmp_path / "src")]
    path = tmp_path / "made.d"
    assert run([*words, "--stamp", str(tmp_path / "stamp"), "--depfile", str(path)]) == 0
    target, *files = path.read_text(encoding="utf-8").replace("\\\n", " ").split()
    assert target == f"{tmp_path / 'stamp'}:"
    assert str(board) in files
    assert any(name.endswith("host/boards/host.toml") for name in files)
    assert any(name.endswith("buildtool/base/outfiles.py") for name in files)
    assert all(Path(name).is_absolute() for name in files)


def test_a_refused_network_leaves_what_was_there(tmp_path, capsys):
    assert emitted(tmp_path)[0] == 0
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    assert emitted(tmp_path, "--ram", "1K")[0] == 1
    assert "arena" in capsys.readouterr().err
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before


@pytest.mark.slow
def test_a_command_that_is_killed_between_the_files_and_the_stamp_leaves_no_stamp(tmp_path):
    code = """
import os, sys
from buildtool.base import outfiles
from buildtool.fronts.cli.main import run
outfiles.write_stamp = lambda *given: os._exit(9)
run(sys.argv[1:])
"""
    _, stamp = emitted(tmp_path)
    (tmp_path / "src" / "ds_cnn.h").write_text("of another network")
    words = [*EMIT, "--out", str(tmp_path / "src"), "--stamp", str(stamp)]
    assert subprocess.run([sys.executable, "-c", code, *words], check=False).returncode == 9
    assert not stamp.exists()


def test_a_depfile_needs_its_target_and_names_without_line_breaks(tmp_path, capsys):
    with pytest.raises(UsageError, match="line break"):
        depfile("stamp", ["a\nb"])
    assert run([*EMIT, "--out", str(tmp_path), "--depfile", str(tmp_path / "made.d")]) == 2
    assert "--depfile needs --stamp" in capsys.readouterr().err


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "net.tflite"
    path.write_bytes(zoo.build("ds_cnn"))
    return path


@pytest.mark.parametrize("option", ["--stamp", "--depfile"])
@pytest.mark.parametrize("victim", ["net.tflite", "mine.toml", "src/net.c", "stamp"])
def test_no_rule_writes_over_what_it_reads_or_makes(tmp_path, model, option, victim, capsys):
    board = tmp_path / "mine.toml"
    board.write_text('extends = "host"\ntitle = "mine"\n')
    before = {path: path.read_bytes() for path in (model, board)}
    rule = {"--stamp": str(tmp_path / "stamp"), "--depfile": str(tmp_path / "stamp.d")}
    rule[option] = str(tmp_path / ("stamp.d" if option == "--stamp" and victim == "stamp" else victim))
    words = ["emit", str(model), "--board", str(board), "--out", str(tmp_path / "src")]
    assert run([*words, *(word for pair in rule.items() for word in pair)]) == 2
    assert "error: " in capsys.readouterr().err
    assert {path: path.read_bytes() for path in (model, board)} == before
    assert {path for path in tmp_path.rglob("*") if path.is_file()} == set(before)


def test_a_model_that_is_saved_while_it_is_planned_is_newer_than_the_stamp(tmp_path, model, monkeypatch):
    """So Make, which compares times, plans again."""
    real = building.write_changed

    def slow(files, folder):
        model.write_bytes(zoo.build("ds_cnn"))
        return real(files, folder)

    monkeypatch.setattr(building, "write_changed", slow)
    stamp = tmp_path / "stamp"
    words = ["emit", str(model), "--board", "host", "--out", str(tmp_path / "src"), "--stamp", str(stamp)]
    assert run(words) == 0
    assert model.stat().st_mtime_ns > stamp.stat().st_mtime_ns


def test_a_plan_is_not_written_over_its_model_nor_sources_over_the_locked_plan(tmp_path, model, capsys):
    locked, network = tmp_path / "net.plan", model.read_bytes()
    assert run(["plan", str(model), "--board", "host", "--out", str(model)]) == 2
    assert "the command reads this file" in capsys.readouterr().err
    assert model.read_bytes() == network
    assert run(["plan", str(model), "--board", "host", "--out", str(locked)]) == 0
    text = locked.read_bytes()
    by_it = [str(model), "--board", "host", "--plan", str(locked), "--out"]
    assert run(["emit", *by_it, str(tmp_path)]) == 2  # NAME.plan is also emitted
    assert locked.read_bytes() == text
    assert not (tmp_path / "net.c").exists()
    assert run(["plan", *by_it, str(locked)]) == 0  # the same plan, by this version's schema
    assert locked.read_bytes() == text
