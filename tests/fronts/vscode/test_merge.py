"""What is written for VS Code: valid tasks and configurations, merged into files that people own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from buildtool.fronts.cli import main as cli
from buildtool.fronts.vscode.merge import Document

NET = ["--board", "cortex-m4", "--model", "ds_cnn"]
# Of VS Code's own schema of tasks: what a task and a matcher may have, and of which type.
TASK = dict.fromkeys(("label", "type", "command", "group"), str)
TASK |= {"args": list, "isBackground": bool, "problemMatcher": list}
MATCHER = {"owner": str, "source": str, "fileLocation": list, "pattern": dict, "background": dict}
PATTERN = {"regexp": str, "kind": str}
PATTERN |= dict.fromkeys(("file", "line", "column", "severity", "message", "code"), int)
BACKGROUND = {"activeOnStart": bool, "beginsPattern": str, "endsPattern": str}
# Of cortex-debug's launch attributes.
CORTEX_DEBUG = dict.fromkeys(("name", "type", "request", "cwd", "servertype", "gdbTarget", "gdbPath"), str)
CORTEX_DEBUG |= dict.fromkeys(("executable", "preLaunchTask", "runToEntryPoint"), str)
CORTEX_DEBUG |= dict.fromkeys(("preLaunchCommands", "overrideLaunchCommands", "overrideResetCommands"), list)


def written(folder: Path, *words: str) -> dict[str, Any]:
    """The files' values by their names, after `buildtool ide vscode`."""
    assert cli.run(["ide", "vscode", "--folder", str(folder), *words]) == 0
    found = sorted((folder / ".vscode").iterdir())
    return {path.name: Document(path.read_text(encoding="utf-8")).root.value for path in found}


def fits(value: dict[str, Any], schema: dict[str, type]) -> bool:
    return value.keys() <= schema.keys() and all(type(value[key]) is schema[key] for key in value)


@pytest.mark.parametrize("words", [[], NET, ["--board", "host", "--model", "ds_cnn"], ["--board", "hifive1"]])
def test_tasks_and_configurations_are_those_that_the_editor_knows(tmp_path: Path, words: list[str]) -> None:
    (tmp_path / "SConstruct").touch()
    files = written(tmp_path, *words)
    tasks = files["tasks.json"]
    assert tasks["version"] == "2.0.0"
    labels = [task["label"] for task in tasks["tasks"]]
    assert len(set(labels)) == len(labels) >= 5
    asked = {entry["id"] for entry in tasks.get("inputs", [])}
    for task in tasks["tasks"]:
        assert fits(task, TASK)
        used = {word.partition(":")[2][:-1] for word in task["args"] if word.startswith("${input:")}
        assert used <= asked
        for matcher in task["problemMatcher"]:
            assert fits(matcher, MATCHER)
            assert fits(matcher["pattern"], PATTERN)
            assert fits(matcher.get("background", {}), BACKGROUND)
            assert task.get("isBackground", False) == ("background" in matcher)
    for one in files.get("launch.json", {}).get("configurations", []):
        assert one["preLaunchTask"] in labels
        assert one["type"] == "cppdbg" or fits(one, CORTEX_DEBUG)
    assert ("launch.json" in files) == ("--model" in words)


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines are not folded, however long the folder's name is."""
    monkeypatch.setenv("COLUMNS", "400")


def test_what_people_wrote_stays_and_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written(tmp_path, *NET)
    folder = tmp_path / ".vscode"
    tasks = (folder / "tasks.json").read_text()
    mine = "// mine\n" + tasks.replace('"type": "process"', '"type": "shell"', 1).replace(
        '"tasks": [', '"tasks": [\n        {"label": "own", "command": "make",}, // own\n'
    )
    (folder / "tasks.json").write_text(mine)
    (folder / "settings.json").write_text('{"clangd.arguments": ["--query-driver=/my/cc"], "x.y": 1}')
    capsys.readouterr()
    files = written(tmp_path, *NET)
    told = capsys.readouterr().out.splitlines()
    assert (folder / "tasks.json").read_text() == mine
    clangd = files["settings.json"].pop("clangd.arguments")
    assert files["settings.json"] == {"x.y": 1}
    assert clangd == ["--query-driver=/my/cc", "--compile-commands-dir=${workspaceFolder}"]
    assert told == [
        "added to .vscode/settings.json: clangd.arguments --compile-commands-dir",
        "left as it is: .vscode/tasks.json: buildtool: build ds_cnn on cortex-m4",
        "left as it is: .vscode/settings.json: clangd.arguments --query-driver",
    ]


def test_another_network_is_added_beside_the_first(tmp_path: Path) -> None:
    first = written(tmp_path, *NET)
    both = written(tmp_path, "--board", "host", "--model", "resnet8")
    count = len(first["tasks.json"]["tasks"])
    assert both["tasks.json"]["tasks"][:count] == first["tasks.json"]["tasks"]
    assert len(both["tasks.json"]["tasks"]) == 2 * count
    assert [one["name"] for one in both["launch.json"]["configurations"]] == [
        "buildtool: debug ds_cnn on cortex-m4",
        "buildtool: debug resnet8 on host",
    ]


@pytest.mark.parametrize(
    ("name", "text", "error"),
    [
        ("tasks.json", '{"tasks": [\n  1 2]}', ":2:5: error: this is not JSON with comments: a comma or ]"),
        ("tasks.json", '{\n  "tasks": {}\n}', ":2:12: error: 'tasks' is not a list"),
        ("launch.json", '{"configurations": {}}', ":1:20: error: 'configurations' is not a list"),
        ("settings.json", "[]", ":1:1: error: this is not JSON with comments: it is not an object"),
        ("settings.json", '{"clangd.arguments": "-x"}', ":1:22: error: 'clangd.arguments' is not a list"),
    ],
)
def test_a_damaged_file_is_named_and_nothing_is_written(tmp_path, capsys, name, text, error):
    folder = tmp_path / ".vscode"
    folder.mkdir()
    (folder / name).write_text(text)
    assert cli.run(["ide", "vscode", "--folder", str(tmp_path), *NET]) == 2
    assert capsys.readouterr().err.startswith(f"{folder / name}{error}")
    assert [path.name for path in folder.iterdir()] == [name]
    assert (folder / name).read_text() == text


def test_a_model_may_have_any_name_and_need_not_be_there(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    model = "models/wäke $word.tflite"
    files = written(tmp_path, "--board", "cortex-m4", "--model", model)
    (one,) = files["launch.json"]["configurations"]
    assert one["executable"] == "${workspaceFolder}/build/vscode/cortex-m4/w_ke_word/w_ke_word.elf"
    assert all(model in task["args"] for task in files["tasks.json"]["tasks"])


def test_a_link_stays_and_the_file_that_it_leads_to_is_written(tmp_path: Path) -> None:
    (tmp_path / ".vscode").mkdir()
    shared = tmp_path / "dotfiles.json"
    shared.write_text('{"version": "2.0.0"}')
    (tmp_path / ".vscode" / "tasks.json").symlink_to(shared)
    written(tmp_path)
    assert (tmp_path / ".vscode" / "tasks.json").is_symlink()
    assert json.loads(shared.read_text())["tasks"]


def test_paths_are_those_of_the_folder_that_the_editor_opens(tmp_path, monkeypatch):
    (tmp_path / "project").mkdir()
    (tmp_path / "my.toml").write_text('extends = "cortex-m4"\n')
    monkeypatch.chdir(tmp_path)
    words = ["--board", "my.toml", "--model=project/-x.tflite"]
    found = written(tmp_path / "project", *words)
    args = found["tasks.json"]["tasks"][0]["args"]
    assert args == ["build", "./-x.tflite", "--board=../my.toml", "--out=build/vscode/my/x"]
    assert found["launch.json"]["configurations"][0]["cwd"] == "${workspaceFolder}/build/vscode/my/x"
