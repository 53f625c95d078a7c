"""SARIF logs: they conform to the schema of version 2.1.0 and locate each problem."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from buildtool import __version__
from buildtool.base.errors import BuildtoolError, MachineError, ModelError, ToolError
from buildtool.fronts.cli import main as cli
from buildtool.fronts.texts import sarif

# The objects of the schema that are used here: the keys that they may have, and those they must have.
OBJECTS: dict[str, tuple[dict[str, Any], set[str]]] = {
    "log": ({"$schema": str, "version": "2.1.0", "runs": ["run"]}, {"version", "runs"}),
    "run": (
        {
            "tool": "tool",
            "invocations": ["invocation"],
            "columnKind": "unicodeCodePoints",
            "results": ["result"],
        },
        {"tool"},
    ),
    "tool": ({"driver": "driver"}, {"driver"}),
    "driver": ({"name": str, "version": str, "rules": ["rule"]}, {"name"}),
    "rule": ({"id": str, "shortDescription": "text"}, {"id"}),
    "text": ({"text": str}, {"text"}),
    "invocation": ({"executionSuccessful": bool, "exitCode": int}, {"executionSuccessful"}),
    "result": (
        {"ruleId": str, "ruleIndex": int, "level": "error", "message": "text", "locations": ["location"]},
        {"message"},
    ),
    "location": ({"physicalLocation": "physical", "logicalLocations": ["logical"]}, set()),
    "physical": ({"artifactLocation": "artifact", "region": "region"}, set()),
    "artifact": ({"uri": str, "uriBaseId": str}, set()),
    "region": ({"startLine": int, "startColumn": int}, set()),
    "logical": ({"name": str, "kind": str}, set()),
}


def check(value: Any, kind: Any) -> None:
    """Fails where a value does not conform to the schema."""
    if isinstance(kind, list):
        assert isinstance(value, list)
        for item in value:
            check(item, kind[0])
    elif isinstance(kind, type):
        assert type(value) is kind
    elif kind in OBJECTS:
        allowed, needed = OBJECTS[kind]
        assert needed <= value.keys() <= allowed.keys()
        for key, inner in value.items():
            check(inner, allowed[key])
    else:
        assert value == kind


def read(text: str) -> list[dict[str, Any]]:
    """Checks a log and returns its results."""
    log = json.loads(text)
    check(log, "log")
    (run,) = log["runs"]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert run["tool"]["driver"]["version"] == __version__
    for result in run["results"]:
        assert rules[result["ruleIndex"]] == result["ruleId"]
        for location in result.get("locations", []):
            if "physicalLocation" in location:
                place = location["physicalLocation"]
                assert re.fullmatch(r"[\w.~%/:-]+", place["artifactLocation"]["uri"])
                assert all(number >= 1 for number in place.get("region", {}).values())
    results: list[dict[str, Any]] = run["results"]
    return results


@pytest.mark.parametrize(
    ("error", "artifact", "region", "names"),
    [
        (
            ModelError("x", path="a b/ü$.csv", line=3, column=5),
            {"uri": "a%20b/%C3%BC%24.csv", "uriBaseId": "%SRCROOT%"},
            {"startLine": 3, "startColumn": 5},
            {},
        ),
        (
            ToolError("x", path="/a/b.toml", line=2, operator="#1 ADD", tensor="t"),
            {"uri": "file:///a/b.toml"},
            {"startLine": 2},
            {"#1 ADD": "function", "t": "variable"},
        ),
        (
            MachineError("x", path="/proc/a b:c"),
            {"uri": "file:///proc/a%20b%3Ac"},
            {},
            {},
        ),  # without a suffix
        (BuildtoolError("x", path="ds_cnn"), {}, {}, {"ds_cnn": "module"}),
        (BuildtoolError("x"), {}, {}, {}),
    ],
)
def test_a_problem_is_where_the_error_is(error, artifact, region, names):
    (result,) = read(sarif.log([error], __version__, 1))
    assert result["ruleId"] == error.code
    (location,) = result.get("locations", [{}])
    physical = {"artifactLocation": artifact} | ({"region": region} if region else {})
    expected: dict[str, Any] = {"physicalLocation": physical} if artifact else {}
    logical = [{"name": name, "kind": kind} for name, kind in names.items()]
    assert location == expected | ({"logicalLocations": logical} if logical else {})


def test_an_output_that_differs_is_a_problem() -> None:
    answer = {
        "exact": False,
        "within_bounds": False,
        "requantise": "exact",
        "model": "m",
        "board": "b",
        "first_difference": {"operator": "#3", "tensor": "t"},
    }
    (result,) = read(sarif.log([], __version__, 1, answer))
    assert result["ruleId"] == sarif.DIFFERENT
    assert "first at #3, tensor 't'" in result["message"]["text"]
    assert read(sarif.log([], __version__, 0, {"exact": True, "within_bounds": True})) == []


def test_every_code_has_a_rule() -> None:
    codes = {cls.code for cls in BuildtoolError.__subclasses__() if cls.__module__ == "buildtool.base.errors"}
    assert codes <= sarif.RULES.keys()


@pytest.mark.parametrize("spelling", ["--sarif {}", "--sarif={}"])
def test_commands_write_it_whether_they_work_or_not(tmp_path, spelling, capsys):
    board = tmp_path / "b.toml"
    board.write_text('extends = "cortex-m4"\nstack_bytes = 7\n')
    out = tmp_path / "new" / "x.sarif"
    words = spelling.format(out).split(" ")
    assert cli.run(["plan", "ds_cnn", "--board", str(board), *words]) == 1
    (result,) = read(out.read_text())
    assert result["locations"][0]["physicalLocation"]["region"] == {"startLine": 2, "startColumn": 1}
    assert cli.run(["boards", *words]) == 0
    assert read(out.read_text()) == []
    assert cli.run(["boards", "--bord", *words]) == 2
    (result,) = read(out.read_text())
    assert result["ruleId"] == "USAGE"
    assert cli.run(["boards", "--sarif", str(tmp_path)]) == 2
    assert "cannot write" in capsys.readouterr().err
