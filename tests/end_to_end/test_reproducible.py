"""The same network gives the same bytes, in whatever folder, by whatever hash seed, cached or not."""

import json
import sys

import pytest
from paths import ROOT
from programs import said

SCRIPT = """\
import hashlib, json, sys
from buildtool.api import handle
answers = []
for board, toolchain in (build.split("/") for build in sys.argv[2:]):
    formats = ["bin"] if board == "host" else ["bin", "hex"]
    asked = {"model": "autoencoder", "board": board, "toolchain": toolchain, "formats": formats}
    answer = handle({"kind": "build", **asked})
    files = answer["files"].items()
    answer["files"] = {n: [hashlib.sha256(d).hexdigest(), sys.argv[1].encode() in d] for n, d in files}
    answers.append(answer)
print(json.dumps(answers))
"""
BUILDS = ("host/clang", "cortex-m4/gcc")


def _build(folder, hash_seed):
    folder.mkdir(parents=True)
    places = {"TMPDIR": str(folder), "XDG_CACHE_HOME": str(folder / "cache")}
    words = (sys.executable, "-c", SCRIPT, folder.parent, *BUILDS)
    return json.loads(said(folder, *words, environment={"PYTHONHASHSEED": hash_seed, **places}))


@pytest.mark.slow
def test_builds_in_different_folders_give_the_same_bytes(tmp_path):
    answers = _build(tmp_path / "a", "1")
    assert _build(tmp_path / "another" / "much" / "deeper", "2") == answers
    for build, answer in zip(BUILDS, answers, strict=True):
        files = answer["files"]
        assert {f"autoencoder{end}" for end in (".c", ".h", "_weights.bin", ".elf")} <= set(files)
        assert not [name for name, (_, holds_path) in files.items() if holds_path]
        if not build.startswith("host"):
            assert any(name.endswith(".bin") and "weights" not in name for name in files)
            assert {"autoencoder.hex", "autoencoder_weights.hex", "autoencoder.map"} <= set(files)


@pytest.mark.slow
def test_answers_after_edits_are_those_of_an_empty_cache(tmp_path, monkeypatch):
    """A few of the edits of `python -m benchmarks.stale`."""
    monkeypatch.syspath_prepend(ROOT)
    from benchmarks.stale.__main__ import KINDS, compare

    found = compare(tmp_path, count=3, seed=3, show=True)
    assert found["edits"] == 3
    assert found["answers"] >= 6
    assert found["equal"] == 2 * len(KINDS) * found["edits"]
    assert found["differ"] == 0
