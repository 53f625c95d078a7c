"""A few hundred damaged files of every kind: each is accepted, or refused with a clear error.

The command for more of them is `python -m benchmarks.fuzz`. What it found has a test of its own beside what
was mended.
"""

import json
import subprocess
import sys

import pytest
from paths import ROOT


@pytest.mark.slow
def test_damaged_files_are_accepted_or_refused(tmp_path):
    told = tmp_path / "told.json"
    command = [sys.executable, "-m", "benchmarks.fuzz", "--count", "160", "--seed", "2", "--json", str(told)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    kinds = json.loads(told.read_text())["kinds"]
    assert set(kinds) == {"tflite", "onnx", "board", "npy", "plan", "image", "elf", "cfg", "csv"}
    for kind in ("tflite", "onnx", "image"):  # damage is neither always nor never fatal
        assert set(kinds[kind]) == {"accepted", "refused"}
    for kind in ("board", "npy", "plan", "csv"):  # one field in sixteen of a board's may take any value
        assert kinds[kind]["refused"] > 0
