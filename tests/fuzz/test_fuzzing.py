"""Damaged files and altered plans: each is refused with a clear error, or what is made of it is exact.

The command for more of them is `python -m benchmarks.fuzz`. What it found has a test of its own beside what
was mended.
"""

import json
import mmap
import os
import subprocess
import sys

import pytest
from paths import ROOT

sys.path.insert(0, str(ROOT))

from benchmarks.fuzz import workers
from benchmarks.fuzz.attempts import Outcome
from benchmarks.fuzz.plans import mentions, without
from benchmarks.fuzz.seeds import subjects
from buildtool.base.errors import PlanError
from buildtool.plan.check.check import check


@pytest.fixture
def fuzzed(tmp_path):
    """Runs the command in a process of its own: it forks children, which inherit what ran before."""

    def run(*words):
        told = tmp_path / "told.json"
        command = [sys.executable, "-m", "benchmarks.fuzz", *map(str, words), "--json", str(told)]
        environment = os.environ | {"BUILDTOOL_DAEMON": "require"}  # which it has to overrule
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return json.loads(told.read_text())

    return run


@pytest.mark.slow
def test_a_plan_that_forgets_any_one_of_what_it_names_is_refused():
    """Every tensor of every buffer, and every operator of every group, of plans of every sort."""
    tried = 0
    for one in subjects():
        made = one.made
        check(made.plan, made.graph, made.target)
        for way in mentions(made.plan):
            if isinstance(way[-1], int):
                with pytest.raises(PlanError):
                    check(without(made.plan, way), made.graph, made.target)
                tried += 1
    assert tried > 200


def test_a_child_may_take_as_much_memory_whatever_its_parent_holds(monkeypatch):
    """Without any, CPython 3.11 fails in ways that look like faults of what is tested."""

    def work(number, folder):
        with mmap.mmap(-1, number):  # a bytearray may lie in memory that the parent's heap has freed
            return Outcome("accepted")

    monkeypatch.setattr(workers, "MOST_ADDRESSES", 64 << 20)
    with mmap.mmap(-1, 128 << 20, mmap.MAP_PRIVATE):  # addresses, of which no page is touched
        (taken,) = workers.run(work, [48 << 20])
        (refused,) = workers.run(work, [96 << 20])
    assert taken == (48 << 20, Outcome("accepted"))
    assert refused == (96 << 20, Outcome("crash", "exit 1"))


@pytest.mark.slow
def test_an_altered_plan_is_refused_or_exact(fuzzed):
    found = fuzzed("--only", "plan", "--count", 60, "--seed", 5, "--firmware", 3)
    assert found["kinds"]["plan"]["refused"] > 40
    assert sum(found["firmware"].values()) == 3
    assert set(found["firmware"]) <= {"equal to both", "equal, LiteRT takes it not"}


@pytest.mark.slow
def test_damaged_files_are_accepted_or_refused(fuzzed):
    kinds = fuzzed("--count", 110, "--seed", 2)["kinds"]
    assert set(kinds) == {"tflite", "onnx", "board", "npy", "plan", "image", "elf", "cfg", "csv"}
    for kind in ("tflite", "onnx", "image"):  # damage is neither always nor never fatal
        assert set(kinds[kind]) == {"accepted", "refused"}
    for kind in ("board", "npy", "plan", "csv"):  # one field in sixteen of a board's may take any value
        assert kinds[kind]["refused"] > 0
