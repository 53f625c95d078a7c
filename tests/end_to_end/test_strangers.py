"""The benchmark of networks that no test has seen: what it runs, what it keeps, what it tells."""

import json
import subprocess
import sys

import pytest
from paths import ROOT

from buildtool.graph.tflite.writer import write_model
from buildtool.zoo.drawn import NetBuilder

SCRIPT = ROOT / "benchmarks" / "strangers.py"


def told(*words):
    made = subprocess.run(
        [sys.executable, SCRIPT, *map(str, words)], capture_output=True, text=True, check=True
    )
    return made.stdout


def row(text, name):
    return next(line for line in text.splitlines() if line.startswith(f"| {name}"))


@pytest.mark.slow
def test_a_file_s_verdict_is_kept_and_a_wrong_one_is_told(tmp_path):
    """A network that runs, a file that is not a network, and one file under two names."""
    net = NetBuilder(1, "small")
    net_bytes = write_model(net.graph([net.conv(net.input((1, 9, 9, 3)), 5, kernel=(3, 3), same=True)]))
    folder, kept = tmp_path / "files", tmp_path / "kept"
    for place, data in (("a/small", net_bytes), ("b/again", net_bytes), ("b/cut", net_bytes[:200])):
        (folder / place).parent.mkdir(parents=True, exist_ok=True)
        (folder / place).with_suffix(".tflite").write_bytes(data)
    where = (folder, "--unlisted", "--kept", kept, "--list", tmp_path / "none.toml", "--boards", "host")
    text = told(*where)
    assert "again" not in text
    assert "| = " in row(text, "a/small.tflite")
    assert "| MODEL |" in row(text, "b/cut.tflite")

    (head,) = kept.iterdir()
    result = next(path for path in head.iterdir() if "host" in json.loads(path.read_text()))
    rows = json.loads(result.read_text())
    assert {one["data"] for one in rows["host"] if one["step"].startswith("run")} >= {"random"}
    for one in rows["host"]:
        if one["step"] == "run":
            one |= {"exact": False, "elements_different": 2, "max_abs_diff": 49}
        elif one["step"] == "plan ram":
            one |= {"cpu": 11.0}
    result.write_text(json.dumps(rows))
    text = told(*where, "--head", head.name)
    assert "| DIFFERS |" in row(text, "a/small.tflite")
    assert "2 elements differ, by 49 at most" in text
    assert "| host, plan ram | 11.0 CPU s |" in text
