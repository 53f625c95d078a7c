"""A command imports only what it uses, because imports cost time at every call."""

import json
import subprocess
import sys

import pytest
from paths import ROOT
from zeronet import small

CODE = """
import json, sys
from buildtool.fronts.cli import main as cli
status = cli.run(sys.argv[1:])
assert status == 0
print("\\n" + json.dumps(sorted(sys.modules)))
"""
# Command -> the rooms that it must not import.
UNUSED = {
    "plan": ["zoo", "plan.baselines", "plan.others", "emit.sources", "firmware.run"],
    "plan --strategy layerwise": ["plan.search"],
    "front": ["zoo", "plan.baselines", "firmware.run", "firmware.counting"],
    "arena": ["zoo", "plan.search", "plan.assemble", "plan.check"],
}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    (folder / "net.tflite").write_bytes(small())
    (folder / "arena.csv").write_text("id,lower,upper,size\na,0,2,8\nb,1,3,8\n")
    return folder


@pytest.mark.parametrize("words", list(UNUSED))
def test_a_command_imports_what_it_uses(files, words):
    kind, *options = words.split()
    operands = ["arena.csv"] if kind == "arena" else ["net.tflite", "--board", "cortex-m4"]
    command = [sys.executable, "-c", CODE, kind, *operands, *options]
    result = subprocess.run(command, cwd=files, capture_output=True, text=True, check=True)
    loaded = json.loads(result.stdout.splitlines()[-1])
    assert not {"numpy.ma", "difflib", "socket", "tempfile"} & set(loaded)
    assert not any(name.partition(".")[0] == "onnx" or name == "ai_edge_litert" for name in loaded)
    assert not {"http.client", "urllib.request", "buildtool.base.store.remote"} & set(loaded)
    for room in UNUSED[words]:
        place = ROOT / "buildtool" / room.replace(".", "/")
        assert place.is_dir() or place.with_suffix(".py").is_file(), f"no such room: {room}"
        modules = [n for n in loaded if n == f"buildtool.{room}" or n.startswith(f"buildtool.{room}.")]
        assert modules == []
