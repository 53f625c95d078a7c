"""After signals end the command at some stages, the same command still produces the same files."""

import json
import os
import random
import signal
import subprocess
import sys

import pytest
from needs import needs_package
from paths import TESTS

pytestmark = pytest.mark.slow
SAID = "buildtool: stopped; ended keeps the trained networks; the same command continues from there"
SEED = 14  # draws three stages; `python tests/support/splitkills.py FOLDER` ends the command at each
STAGES = (
    *("training the base", "keeping an epoch", "keeping a network", "keeping a record"),
    *("converting, at some time", "writing the tables"),
)
FILES = "original.keras split.keras split.tflite split.plan split.json tables.txt tables.md"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_a_split_that_was_ended_at_some_stages_has_the_files_of_one_that_was_not(tmp_path):
    needs_package("keras")
    needs_package("tensorflow")
    (tmp_path / "tmp").mkdir()
    drawn = random.Random(SEED).sample(STAGES, 3)
    command = [sys.executable, TESTS / "support/splitkills.py", tmp_path, *drawn]
    environment = os.environ | {"TMPDIR": str(tmp_path / "tmp"), "BUILDTOOL_DAEMON": "off"}
    process = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr
    rows = [line.split("|") for line in process.stdout.splitlines()]
    (_, _, first), *ended, (_, _, last) = rows
    assert first.startswith("0: ") and last.startswith("0: ")
    assert {stage for stage, _, _ in ended} == set(drawn)
    for stage, name, said in ended:
        number = signal.Signals[name]
        assert said == (f"{-number}: " if name == "SIGKILL" else f"{128 + number}: {SAID}"), (stage, name)
    whole, again = tmp_path / "whole", tmp_path / "ended"
    report = json.loads((tmp_path / "whole.json").read_text())  # and nothing of TensorFlow's
    assert report["firmware"]["equal"] == report["firmware"]["images"] == 32
    given, found = report["tables"][1]["rows"]
    assert (given["network"], found["network"], found["factors"]) == ("given", "I", "2 slice")
    assert json.loads((whole / "split.json").read_text())["plan"] == report["plan"]
    for file in FILES.split():
        assert (whole / file).read_bytes() == (again / file).read_bytes(), file
    epochs = [(tmp_path / f"{name}.epochs").read_text() for name in ("whole", "ended")]
    assert epochs[0].startswith("1 2 1 2 ")
    assert epochs[0] == epochs[1]  # each epoch is trained once, however often the command restarts
    for folder in (".", "networks"):
        names = [sorted(path.name for path in (one / folder).iterdir()) for one in (whole, again)]
        assert names[0] == names[1]
        assert not any(name.endswith((".part", ".old", ".checkpoint.npz")) for name in names[0])
    # The next command removes the first ones. The others are TensorFlow's, which removes them when it ends.
    known = ("buildtool-run-", "__autograph_generated_file", "__pycache__")
    assert all(path.name.startswith(known) for path in (tmp_path / "tmp").iterdir())
