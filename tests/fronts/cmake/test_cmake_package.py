"""The CMake package by itself: keywords, quoting, the folder that is printed, the files that it has."""

from __future__ import annotations

import ast
import io
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from cmakeprojects import CMakeProject, cmake_dir  # noqa: F401
from paths import ROOT

from buildtool.api import handle
from buildtool.client import BuildtoolError, UsageError, options_of
from buildtool.client import options as table
from buildtool.fronts.cmake import answering, describing, quoting, requests
from buildtool.fronts.cmake.requests import Context
from buildtool.target.registry import board_names

PACKAGE = ROOT / "buildtool/fronts/cmake"


def context(tmp_path: Path, *arguments: str, **values: str) -> Context:
    folders = {"source": str(tmp_path), "binary": str(tmp_path / "build"), "name": "net"}
    folders |= {"folder": str(tmp_path / "build/firmware")}
    return Context(values=folders | values, argument=list(arguments))


# ---- arguments -----------------------------------------------------------------------------------


def test_every_option_of_emit_is_a_keyword_and_goes_to_its_command_line(tmp_path: Path) -> None:
    values = {
        "strategy": "best",
        "objective": "ram",
        "ram": "64 KiB",
        "max_f": "1.5",
        "max_cost": "100000",
        "max_ms": "20",
        "max_flash": "1M",
        "hop": "2",
        "in_place": "none",
        "image": "stream",
        "segments": "",
        "order": "best",
        "simplify": "structure",
        "hand_off": "4",
        "outputs": "pool,logits",
        "cmsis_nn": "cmsis",
        "requantise": "exact",
        "threads": "2",
        "weights_in": "flash",
        "arena_in": "psram",
        "kernels_in": "sram",
        "self_test": "3",
        "golden": "a.npy",
        "guards": "call",
        "plan": "a.plan",
        "model": "a.tflite",
        "board": "cortex-m4",
    }
    options = [option for option in options_of("emit") if option.name != "name"]
    assert values.keys() == {option.name for option in options}
    (tmp_path / "cmsis").mkdir()
    for name in ("a.plan", "a.tflite", "a.npy"):
        (tmp_path / name).touch()
    # max_ms is max_cost in another unit, so it comes with the plan
    first = {name: value for name, value in values.items() if name not in ("plan", "max_ms", "hop")}
    words = [word for name, value in first.items() for word in (name.upper(), value)]
    found = requests.read_call(context(tmp_path, *words)).words
    # most options are no use beside a plan
    words = ["MODEL", "a.tflite", "BOARD", "cortex-m4", "RAM", "64K", "MAX_MS", "20", "PLAN", "a.plan"]
    found = [*found[:-1], *requests.read_call(context(tmp_path, *words)).words[2:]]
    words = ["MODEL", "a.tflite", "BOARD", "cortex-m4", "HOP", "2"]  # rows of a hop are not streamed
    found = [*found[:-1], *requests.read_call(context(tmp_path, *words)).words[2:]]
    for name, value in values.items():
        if name == "model":
            assert found[1] == str(tmp_path / value)
        elif name in ("plan", "cmsis_nn", "golden"):
            assert f"{table.BY_NAME[name].flagged}={tmp_path / value}" in found
        else:  # empty: the default
            assert (f"{table.BY_NAME[name].flagged}={value}" in found) == bool(value)
    assert found[-1] == "--name=net"


def test_runs_of_a_network_that_ends_earlier_name_its_outputs(tmp_path: Path) -> None:
    words = ("MODEL", "ds_cnn", "BOARD", "host", "OUTPUTS", "pool,logits")
    asked = context(tmp_path, *words, emitted=str(tmp_path / "src"), sign="", image_version="")
    said = [line for line in answering.firmware(asked) if "_words" in line]
    told = {
        line.partition("_words")[0].removeprefix("set("): "--outputs=pool,logits" in line for line in said
    }
    assert told == {"sizes": False, "profile": True, "validate": True, "debug": True, "flash": True}


def test_a_name_that_tensorflow_joined_by_semicolons_stays_one_word(tmp_path: Path) -> None:
    words = ("MODEL", "ds_cnn", "BOARD", "host", "OUTPUTS", "a b;c/d;$x,last")
    asked = context(tmp_path, *words, emitted=str(tmp_path / "src"), sign="", image_version="")
    lines = [line for line in answering.firmware(asked) if line.startswith("set(validate_words")]
    shown = f"[[{sys.executable}]] -c [[import sys; print(sys.argv[1:])]] ${{validate_words}}"
    script = [*lines, f"execute_process(COMMAND {shown})"]
    (tmp_path / "script.cmake").write_text("\n".join(script))
    command = ["cmake", "-P", str(tmp_path / "script.cmake")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert ast.literal_eval(done.stdout)[-1] == "--outputs=a b;c/d;$x,last"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("MODEL", "ds_cnn", "BOARD", "host", "RMA", "64K"), "unknown keyword 'RMA'.*did you mean 'RAM'"),
        (("MODEL", "ds_cnn", "BOARD", "host", "RAM"), "RAM has no value"),
        (("MODEL", "ds_cnn", "BOARD", "host", "RAM", "64Q"), "RAM: '64Q' is not a number of bytes"),
        (("MODEL", "ds_cnn", "BOARD", "host", "RAM", "1K", "RAM", "2K"), "RAM is given twice"),
        (("MODEL", "ds_cnn", "BOARD", "host", "STRATEGY", "layerwise", "MAX_F", "2"), "without MAX_F"),
        (("MODEL", "ds_cnn"), "BOARD is missing"),
        (("BOARD", "host"), "MODEL is missing"),
        (("MODEL", "no.tflite", "BOARD", "host"), "no.tflite: error: MODEL: there is no such file"),
        (("MODEL", "ds_cnn", "BOARD", "host", "PLAN", "no.plan"), "no.plan: error: PLAN: there is no such"),
        (("MODEL", "ds_cnn", "BOARD", "host", "CMSIS_NN", "no"), "CMSIS_NN: there is no such folder"),
        (("MODEL", "a;b.tflite", "BOARD", "host"), "cannot handle a semicolon in the name of a file"),
        (
            ("MODEL", "ds_cnn", "BOARD", "host", "PLAN", "a.plan", "OBJECTIVE", "ram"),
            "OBJECTIVE: it has no effect, because the plan is given .* without OBJECTIVE",
        ),
        (("MODEL", "a|b.tflite", "BOARD", "host"), r"cannot handle '\|' in the name of a file"),
        (("MODEL", "100%.tflite", "BOARD", "host"), "cannot handle '%' in the name of a file"),
        (("MODEL", "a*.tflite", "BOARD", "host"), r"cannot handle '\*' in the name of a file"),
        (("MODEL", "net.tflite", "board", "host"), "unknown keyword 'board' .* did you mean 'BOARD'"),
        (("MODEL", "a$(b).tflite", "BOARD", "host"), r"cannot handle '\$\(' in the name of a file"),
    ],
)
def test_what_is_wrong_is_told_in_the_words_of_cmake(tmp_path, words, told, monkeypatch, capfdbinary):
    for name in ("a;b.tflite", "a$(b).tflite", "a|b.tflite", "100%.tflite", "a*.tflite", "a.plan"):
        (tmp_path / name).touch()
    lines = [
        f"name net\nsource {tmp_path}\nbinary {tmp_path}/build\n",
        *(f"argument {word}\n" for word in words),
    ]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("".join(lines).encode())))
    assert answering.main(["network", str(tmp_path / "answer.cmake")]) == 1
    said = " ".join(capfdbinary.readouterr().err.decode().split())
    assert re.search(told, said), said
    assert said.count("error: ") == 1
    assert not (tmp_path / "answer.cmake").exists()


def test_a_file_that_the_project_makes_need_not_be_there(tmp_path: Path) -> None:
    made = str(tmp_path / "build/made.tflite")
    given = context(tmp_path, "MODEL", "made.tflite", "DEPENDS", "one", "two", "BOARD", "host")
    with pytest.raises(UsageError, match="no rule of this project"):
        requests.read_call(given)
    given.generated.append(made)
    found = requests.read_call(given)
    assert found.words[1] == made and found.files == [made] and found.depends == ["one", "two"]


def test_the_board_of_the_toolchain_file_is_the_default(tmp_path: Path) -> None:
    found = requests.read_call(context(tmp_path, "MODEL", "ds_cnn", board="cortex-m4"))
    assert found.given["board"] == "cortex-m4"
    found = requests.read_call(context(tmp_path, "MODEL", "ds_cnn", "BOARD", "host", board="cortex-m4"))
    assert found.given["board"] == "host"


# ---- text ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["", "a b", "]]", "x]", "x]=", "]=] ]==]", "\nline", '"${x}" $ENV{y} \\ #'])
def test_a_bracket_argument_holds_any_text(text: str) -> None:
    said = quoting.quote(text)
    end = said[said.index("=") if said[1] == "=" else 1 :]
    equals = said[1 : said.index("[", 1)]
    assert set(equals) <= {"="} and end
    inner = said.removeprefix(f"[{equals}[").removesuffix(f"]{equals}]")
    assert f"]{equals}]" not in inner + f"]{equals}"
    assert inner.removeprefix("\n" if text.startswith("\n") else "") == text


@pytest.mark.parametrize("name", ["a\nb", "a\\b", "a[b", "$<x"])
def test_names_that_cmake_takes_apart_are_refused(name: str) -> None:
    with pytest.raises(UsageError, match="CMake cannot handle"):
        quoting.path(f"/tmp/{name}")


def test_flags_of_the_folder_count_and_generator_expressions_do_not() -> None:
    given = Context({"flags": "-mthumb '-DX=a b'"}, option=["-Wall", "$<1:-O2>", "SHELL:-mcpu=cortex-m4 -g"])
    assert given.flags == ["-mthumb", "-DX=a b", "-Wall", "-mcpu=cortex-m4", "-g"]


def test_a_compiler_that_does_not_run_is_refused(tmp_path: Path) -> None:
    answer = handle({"kind": "describe", "board": "cortex-m4"})
    given = context(tmp_path, compiler=str(tmp_path / "no-compiler"), board="cortex-m4")
    with pytest.raises(UsageError, match="cannot compile for the core of board 'cortex-m4'"):
        describing.check(given, answer, native=False)


# ---- files ---------------------------------------------------------------------------------------


def test_every_board_of_ours_has_its_toolchain_file_and_all_are_alike() -> None:
    files = sorted((PACKAGE / "boards").iterdir())
    differ = {path.stem for path in files} ^ set(board_names())
    assert not differ, f"a board has a copy of any file in {PACKAGE / 'boards'}, by its name: {differ}"
    assert len({path.read_text() for path in files}) == 1


def test_the_printed_folder_names_the_interpreter_and_the_package(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "buildtool", "--cmake-dir"]
    environment = os.environ | {"XDG_DATA_HOME": str(tmp_path / "a b")}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    printed = Path(done.stdout.removesuffix("\n"))
    assert printed.is_relative_to(tmp_path / "a b") and done.stderr == ""
    names = {path.relative_to(printed) for path in printed.rglob("*.*")}
    assert names == {
        path.relative_to(PACKAGE) for path in PACKAGE.rglob("*.*") if path.suffix in (".cmake", ".txt")
    }
    text = (printed / "buildtoolConfig.cmake").read_text()
    assert f"set(BUILDTOOL_PYTHON [[{sys.executable}]])" in text
    assert f"include([[{PACKAGE}/buildtoolConfig.cmake]])" in text
    before = {path: path.stat().st_mtime_ns for path in printed.rglob("*.cmake")}
    subprocess.run(command, capture_output=True, check=True, env=environment)
    assert {path: path.stat().st_mtime_ns for path in printed.rglob("*.cmake")} == before


def test_a_folder_that_cannot_be_written_is_told_with_the_way_out(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "file"))
    with pytest.raises(BuildtoolError, match="cannot write the folder") as caught:
        quoting.cmake_folder()
    assert "-DBUILDTOOL_PYTHON=" in caught.value.hint


TEXT = """cmake_minimum_required(VERSION 3.20)
project(p C)
find_package(buildtool 0.1 CONFIG REQUIRED)
buildtool_add_network(net MODEL autoencoder BOARD mine.toml)
"""
EMIT = ("--target", "net_emit")


@pytest.mark.slow
def test_a_base_that_is_another_with_an_older_time_is_planned_for(tmp_path: Path, cmake_dir: str) -> None:  # noqa: F811
    """A file, and a link to another one."""
    project = CMakeProject(tmp_path / "p", cmake_dir, TEXT)
    base = project.folder / "base.toml"
    (project.folder / "mine.toml").write_text('extends = "base.toml"\n')
    other = tmp_path / "other.toml"

    def put(path: Path, alignment: int) -> None:
        path.write_text(f'extends = "host"\nalignment = {alignment}\n')
        os.utime(path, (1e9, 1e9))

    put(base, 16)
    put(other, 64)
    project.configure()
    project.build(*EMIT)
    source = project.build_folder / "buildtool/net/net.c"
    for target in (None, other):
        before = source.read_bytes()
        base.unlink()
        if target is None:
            put(base, 32)
        else:
            base.symlink_to(target)
        said = project.said(*EMIT, fails=True)
        assert re.search(r"(?m)\.toml: error: it has changed since the folder was configured", said)
        assert "build once more" in said
        project.build(*EMIT)
        assert source.read_bytes() != before
    assert not project.build(*EMIT)
