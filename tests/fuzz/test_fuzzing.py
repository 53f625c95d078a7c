"""Damaged files and altered plans: each is refused with a clear error, or what is made of it is exact.

The command for more of them is `python -m benchmarks.fuzz`. What it found has a test of its own beside what
was mended.
"""

import json
import sys

import pytest
from paths import ROOT
from programs import said

sys.path.insert(0, str(ROOT))

from benchmarks.fuzz.plans import mentions, without
from benchmarks.fuzz.seeds import subjects
from buildtool.base.errors import PlanError
from buildtool.plan.check.check import check


def fuzzed(folder, *words):
    told = folder / "told.json"
    said(ROOT, sys.executable, "-m", "benchmarks.fuzz", *words, "--json", told)
    return json.loads(told.read_text())


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


@pytest.mark.slow
def test_an_altered_plan_is_refused_or_exact(tmp_path):
    found = fuzzed(tmp_path, "--only", "plan", "--count", 100, "--seed", 5, "--firmware", 3)
    assert found["kinds"]["plan"]["refused"] > 70
    assert sum(found["firmware"].values()) == 3
    assert set(found["firmware"]) <= {"equal to both", "equal, LiteRT takes it not"}


@pytest.mark.slow
def test_damaged_files_are_accepted_or_refused(tmp_path):
    kinds = fuzzed(tmp_path, "--count", 160, "--seed", 2)["kinds"]
    assert set(kinds) == {"tflite", "onnx", "board", "npy", "plan", "image", "elf", "cfg", "csv"}
    for kind in ("tflite", "onnx", "image"):  # damage is neither always nor never fatal
        assert set(kinds[kind]) == {"accepted", "refused"}
    for kind in ("board", "npy", "plan", "csv"):  # one field in sixteen of a board's may take any value
        assert kinds[kind]["refused"] > 0
