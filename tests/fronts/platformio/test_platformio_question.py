"""What a project's options become: the words that emit, and errors that name an option."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from buildtool_plugins.tools.find import find_host_compiler

from buildtool import options
from buildtool.api.requests import options_of
from buildtool.base.errors import BuildtoolError
from buildtool.fronts.cli import main as cli
from buildtool.fronts.platformio import __main__ as library
from buildtool.fronts.platformio import question
from buildtool.fronts.platformio.question import answered

GIVEN = {"model": "ds_cnn", "board": "host"}


@pytest.mark.slow
def test_options_of_the_environment_hold_for_every_network(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("-x, $HOME.tflite").write_bytes(b"")
    sections = {"wake": {"model": "-x, $HOME.tflite"}, "other": {"ram": "9K"}}
    answer = answered(GIVEN | {"ram": "64 KiB"}, sections)
    first, second = (network["words"] for network in answer["networks"])
    assert first == ["emit", "./-x, $HOME.tflite", "--name=wake", "--ram=64 KiB", "--board=host"]
    assert second == ["emit", "ds_cnn", "--name=other", "--ram=9K", "--board=host"]
    assert "-x, $HOME.tflite" in answer["networks"][0]["reads"]
    assert answer["copts"] == ["-ffp-contract=off"]
    assert [network["library"] for network in answer["networks"]] == ["libwake.a", "libother.a"]


@pytest.mark.slow
def test_every_option_of_the_table_is_one_of_the_project(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    for option in options_of("emit", options.Group.PLANNING):
        value = option.values[0] if option.values else "no value at all"
        try:
            (network,) = answered(GIVEN | {option.name: value}, {})["networks"]
        except BuildtoolError as error:
            assert error.option == option.name
        else:
            assert f"{option.flagged}={value}" in network["words"]


@pytest.mark.parametrize(
    ("given", "sections", "said"),
    [
        ({"rma": "64K"}, {}, "platformio.ini: error: there is no option custom_buildtool_rma"),
        ({"model": ""}, {}, "platformio.ini: error: the environment has no custom_buildtool_model"),
        ({"board": ""}, {}, "platformio.ini: error: the environment has no custom_buildtool_board"),
        ({"model": "none.tflite"}, {}, "none.tflite: error: cannot read the model: there is no such file"),
        ({"name": "2x"}, {}, "a network's name is a C identifier in lower case, not '2x'"),
        ({}, {"A b": {}}, "a network's name is a C identifier in lower case, not 'A b'"),
        ({"ram": "much"}, {}, "'much'"),
        ({}, {"a": {}, "b": {"board": "xcore"}}, "all networks of an environment must be for the same board"),
    ],
)
def test_mistakes_are_errors_that_say_where(given, sections, said):
    with pytest.raises(BuildtoolError) as caught:
        answered(GIVEN | given, sections)
    assert said in str(caught.value)


def test_the_library_is_written_whole_into_a_folder(tmp_path: Path, capsys) -> None:
    assert library.main([str(tmp_path / "new/folder")]) == 0
    written = {path.name: path.read_bytes() for path in (tmp_path / "new/folder").iterdir()}
    assert written == {path.name: path.read_bytes() for path in library.LIBRARY.iterdir()}
    assert set(written) == {"library.json", "SConscript"}
    assert library.main([]) == 2
    (tmp_path / "file").write_text("")
    assert library.main([str(tmp_path / "file/below")]) == 1
    assert "error: cannot write: " in capsys.readouterr().err


@pytest.mark.slow
def test_every_error_names_a_file(monkeypatch, capsys) -> None:
    for wrong in ({"ram": "64Q"}, {"model": "dscnn"}, {"board": "hsot"}, {"RMA": "1K"}):
        asked = json.dumps({"given": GIVEN | wrong, "networks": {}})
        monkeypatch.setattr("sys.stdin", io.StringIO(asked))
        assert question.main() == 1
        said = capsys.readouterr().err
        assert said.startswith("platformio.ini: error: ")
        assert "[USAGE]" in said
        assert "ram" not in wrong or ": error: custom_buildtool_ram: '64Q'" in said
    assert "did you mean 'ram'?" in said


@pytest.mark.slow
def test_a_hint_is_written_as_the_ini_file_takes_it(tmp_path: Path) -> None:
    """A network of its own section has its options without the prefix."""
    for prefix in ("custom_buildtool_", ""):
        words = ["emit", "ds_cnn", "--name=net", "--ram=1K", "--board=host", "--out", str(tmp_path / "out")]
        command = [sys.executable, "-P", "-m", "buildtool.fronts.platformio.question", prefix, *words]
        done = subprocess.run(command, capture_output=True, text=True)
        (ram,) = re.findall(rf"(?m)^  hint: {prefix}ram = (\d+) \(the smallest arena: F ", done.stderr)
        assert done.returncode == 1
    sections = {"net": {"ram": ram}}
    assert answered(GIVEN, sections)["prefix"] == "" and answered(GIVEN, {})["prefix"] == "custom_buildtool_"
    words = answered(GIVEN, sections)["networks"][0]["words"]
    assert cli.run([*words, "--out", str(tmp_path / "out")]) == 0


@pytest.mark.slow
def test_content_decides_and_the_compiler_is_what_runs_behind_its_name(tmp_path, monkeypatch, capsys):
    """PlatformIO believes times, and the name of a compiler."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(question, "identify", question.identify.__wrapped__)  # a process asks once elsewhere
    model, behind = Path("net.tflite"), tmp_path / "behind"
    behind.write_text(f'#!/bin/sh\nexec {find_host_compiler()} "$@"\n')
    Path("cc").write_text(f'#!/bin/sh\nexec {behind} "$@"\n')
    for path in (behind, Path("cc")):
        path.chmod(0o755)

    def said(**more: str) -> tuple[object, str]:
        given = GIVEN | {"model": "net.tflite"} | more
        variables = {"PATH": os.environ["PATH"]}
        asked = {"given": given, "networks": {}, "compiler": [str(tmp_path / "cc")], "variables": variables}
        monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps(asked)))
        assert question.main() == 0
        answer = json.loads(capsys.readouterr().out)
        assert answer["hashed"] == bool(more)
        return dict(answer["networks"][0]["contents"])["net.tflite"], answer["compiler"]

    model.write_bytes(b"one")
    first = said()
    assert first == said(hash_inputs="1") == said()
    model.write_bytes(b"two")
    os.utime(model, (1e9, 1e9))
    content, compiler = said()
    assert content != first[0] and compiler == first[1]
    behind.write_text(behind.read_text().replace('"$@"', '-DOTHER "$@"'))
    assert said()[1] != compiler
