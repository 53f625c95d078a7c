"""`buildtool example`: lists the examples, writes one or nothing; what it writes builds as it says."""

import json
import os
import re
import sys
from pathlib import Path

import pytest
from made_up import SHOWS, scores
from needs import needs_tool
from paths import ROOT
from programs import said

from buildtool.base.errors import UsageError
from buildtool.fronts import examples
from buildtool.fronts.cli.main import run


def listed(capsys: pytest.CaptureFixture[str]) -> dict[str, str]:
    assert run(["example", "--json"]) == 0
    return {row["name"]: row["about"] for row in json.loads(capsys.readouterr().out)["examples"]}


def test_each_example_has_a_line_and_all_its_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = listed(capsys)
    folders = {path.name for path in (ROOT / "examples").iterdir() if path.is_dir()} - {"__pycache__"}
    assert {
        one.folder.relative_to(ROOT / "examples").parts[0] for one in examples.examples().values()
    } == folders
    assert run(["example"]) == 0
    lines = capsys.readouterr().out.splitlines()[2:]
    assert [line.split(maxsplit=1) for line in lines] == [[name, about] for name, about in names.items()]
    for name in names:
        assert run(["example", name, str(tmp_path / name), "--json"]) == 0
        files = json.loads(capsys.readouterr().out)["files"]
        assert files == sorted(
            path.relative_to(tmp_path / name).as_posix()
            for path in (tmp_path / name).rglob("*")
            if path.is_file()
        )


def test_a_folder_with_something_in_it_is_left_as_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine").mkdir()
    Path("mine/main.c").write_text("mine")
    assert run(["example", "scons", "mine"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("mine: error: this folder is not empty")
    hint = re.findall(r"buildtool (example scons \S+)", error)[0]
    assert [path.name for path in Path("mine").iterdir()] == ["main.c"] and Path(
        "mine/main.c"
    ).read_text() == "mine"
    assert run(hint.split()) == 0 and Path("mine/scons/SConstruct").is_file()
    for words, says in (
        (["scons", "mine/main.c"], "cannot write: Not a directory"),
        (["scon", "new"], "did you mean 'scons'?"),
        (["scons"], "for example: buildtool example scons firmware"),
    ):
        assert run(["example", *words]) == 2
        assert says in capsys.readouterr().err
    assert list(Path().iterdir()) == [Path("mine")]


def test_nothing_is_written_where_a_file_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = examples.examples()["scons"]
    known = {"scons": whole._replace(files=(*whole.files, "gone.c"))}
    monkeypatch.setattr(examples, "examples", lambda: known)
    with pytest.raises(UsageError, match="cannot read: No such file"):
        examples.write_example("scons", tmp_path / "new")
    assert not (tmp_path / "new").exists()


@pytest.mark.slow
@pytest.mark.parametrize(("name", "tools"), [("cmake", "cmake ninja"), ("scons", "")])
def test_the_commands_that_it_prints_build_and_run_it(name: str, tools: str, tmp_path: Path) -> None:
    for tool in ("gcc", *tools.split()):
        needs_tool(tool)
    own = {"PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])}
    told = json.loads(said(tmp_path, "buildtool", "example", name, "my app", "--json", environment=own))
    shown = said(tmp_path, "bash", "-ec", "\n".join(told["run"]), environment=own)
    if name == "cmake":  # CTest shows no output of what passed
        assert "100% tests passed" in shown
        shown = said(tmp_path / "my app/build/host", "./app") + said(
            tmp_path / "my app/build/host", "./app_cpp"
        )
    assert re.findall(SHOWS, shown) == [scores()] * (2 if name == "cmake" else 1)
