"""Plans that were altered by their structure: each is refused by the checker, or its firmware is exact.

The command for more of them is `python -m benchmarks.fuzz --only plan`. What it found has a test of its own
beside what was mended.
"""

import json
import subprocess
import sys

import pytest
from paths import ROOT

sys.path.insert(0, str(ROOT))

from benchmarks.fuzz.plans import mentions, without
from benchmarks.fuzz.seeds import subjects
from buildtool.base.errors import PlanError
from buildtool.plan.check.check import check


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
    told = tmp_path / "told.json"
    command = [sys.executable, "-m", "benchmarks.fuzz", "--only", "plan", "--count", "200", "--seed", "5"]
    command += ["--firmware", "4", "--json", str(told)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(told.read_text())
    assert found["kinds"]["plan"]["refused"] > 140
    assert sum(found["firmware"].values()) == 4
    assert set(found["firmware"]) <= {"equal to both", "equal, LiteRT takes it not"}
