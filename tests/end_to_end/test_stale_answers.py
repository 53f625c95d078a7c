"""What is kept changes no answer: a few of the edits of `python -m benchmarks.stale`."""

import sys
from pathlib import Path

import pytest
from paths import ROOT

sys.path.insert(0, str(ROOT))

from benchmarks.stale.__main__ import KINDS, compare


@pytest.mark.slow
def test_answers_after_edits_are_those_of_an_empty_cache(tmp_path: Path) -> None:
    found = compare(tmp_path, count=5, seed=3, show=True)
    assert found["edits"] == 5
    assert found["answers"] >= 10
    assert found["equal"] == 2 * len(KINDS) * found["edits"]
    assert found["differ"] == 0
