"""What other systems lack or do otherwise is worked around, or refused in one sentence. Only Linux runs here:
the others are imitated, by taking away what they lack.
"""

import json
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path, PurePosixPath
from types import SimpleNamespace

import buildtool_plugins.host
import pytest
from needs import needs_package, needs_tool
from paths import ROOT

from buildtool.base import folders, outfiles
from buildtool.base.errors import MachineError, ToolError, UsageError
from buildtool.target.registry import load_board

BARE = ROOT / "tests/support/bare_system.py"


def bare(*words, folder, mode="auto"):
    """Runs a command line without what only Unix has. Returns the exit status, stdout and stderr."""
    own = {"BUILDTOOL_DAEMON": mode, "XDG_CACHE_HOME": str(folder / "cache"), "BUILDTOOL_CACHE": ""}
    environment = {name: value for name, value in os.environ.items() if name != "CI"} | own
    command = [sys.executable, BARE, *words]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode, done.stdout, done.stderr


@pytest.mark.slow
def test_without_locks_and_unix_sockets_commands_plan_in_their_own_process(tmp_path):
    words = ("plan", "ds_cnn", "--board", "cortex-m4", "--json")
    here = subprocess.run([sys.executable, "-m", "buildtool", *words], capture_output=True, text=True)
    for _ in range(2):  # the second time from the cache
        assert bare(*words, folder=tmp_path) == (0, here.stdout, "")
    assert json.loads(bare("cache", "stats", "--json", folder=tmp_path)[1])["levels"]["plans"]["entries"] == 1


@pytest.mark.slow
def test_a_daemon_that_cannot_be_is_refused_in_one_sentence(tmp_path):
    none = "there are no daemons on this system: they need locks of files and Unix sockets [TOOL]"
    hint = "  hint: no command needs one: without a daemon each plans in its own process"
    assert bare("daemon", "start", folder=tmp_path) == (
        *(1, "", f"error: the daemon cannot be started: {none}\n{hint}\n"),
    )
    words = ("plan", "ds_cnn", "--board", "host")
    status, out, err = bare(*words, "--daemon", "require", folder=tmp_path)
    assert (status, out) == (1, "") and none in err and "hint: leave it out" in err
    assert bare(*words, folder=tmp_path)[0] == 0  # which the hint says
    assert bare("daemon", "stop", folder=tmp_path) == (0, "no daemon was running\n", "")


@pytest.mark.slow
def test_a_network_is_built_and_compared_without_what_only_unix_has(tmp_path):
    needs_tool("gcc")
    status, out, _ = bare("validate", "ds_cnn", "--board", "host", folder=tmp_path)
    assert status == 0 and "EQUAL to " in out


def test_shapes_of_onnx_files_are_inferred_without_limits_of_processes():
    needs_package("onnx")
    import onnx
    from onnx import TensorProto, helper

    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 3]) for name in "xz"]
    nodes = [helper.make_node("Relu", ["x"], ["y"]), helper.make_node("Relu", ["y"], ["z"])]
    model = helper.make_model(helper.make_graph(nodes, "g", ends[:1], ends[1:]))
    path = str(ROOT / "buildtool/graph/onnx/shapes.py")
    code = f"import runpy, sys; sys.modules['resource'] = None; runpy.run_path({path!r}, run_name='__main__')"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, input=model.SerializeToString(), capture_output=True, check=True)
    (inferred,) = onnx.load_from_string(done.stdout).graph.value_info
    assert [size.dim_value for size in inferred.type.tensor_type.shape.dim] == [2, 3]


@pytest.mark.parametrize(("system", "called"), [("darwin", "macOS"), ("win32", "Windows")])
def test_programs_for_this_machine_are_refused_where_they_are_no_elf_files(system, called, monkeypatch):
    monkeypatch.setattr(buildtool_plugins.host, "sys", SimpleNamespace(platform=system))
    with pytest.raises(ToolError, match=f"only where they are ELF files, which those of {called} are not"):
        buildtool_plugins.host.plugin.toolchain(load_board("host"), "")


def test_a_cache_works_where_modes_and_home_do_not_tell_who_writes(tmp_path, monkeypatch):
    tmp_path.chmod(0o777)
    with pytest.raises(MachineError, match="others may write"):
        folders.private(tmp_path)
    environment = {"USERPROFILE": str(tmp_path)}
    monkeypatch.setattr(folders, "os", SimpleNamespace(**{**vars(os), "name": "nt", "environ": environment}))
    assert folders.private(tmp_path) == tmp_path
    monkeypatch.setattr(Path, "home", lambda: Path(environment["USERPROFILE"]))
    assert folders.memo_folder() == tmp_path / ".cache/buildtool/memo"


def test_another_spelling_of_an_input_is_not_overwritten(tmp_path):
    """As on file systems that do not tell capitals from small letters; a second name stands in for one."""
    (tmp_path / "Net.tflite").write_bytes(b"old")
    outfiles.keep_inputs([(tmp_path / "net.tflite", b"new")], [str(tmp_path / "Net.tflite")])
    (tmp_path / "net.tflite").hardlink_to(tmp_path / "Net.tflite")
    with pytest.raises(UsageError, match="would overwrite it"):
        outfiles.keep_inputs([(tmp_path / "net.tflite", b"new")], [str(tmp_path / "Net.tflite")])


RESERVED = re.compile(r"(?i)(con|prn|aux|nul|com\d|lpt\d)(\..*)?|.*[<>:\"|?*\\\x00-\x1f].*|.*[. ]")
MOST_PATH = 130  # characters below a checkout: Windows has 260 for a whole path


def test_every_file_can_be_checked_out_on_every_system():
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    names = [name for name in listed.decode().split("\0") if name]
    assert [name for name, count in Counter(map(str.casefold, names)).items() if count > 1] == []
    parts = {part for name in names for part in PurePosixPath(name).parts}
    assert [part for part in parts if RESERVED.fullmatch(part)] == [] and RESERVED.fullmatch("aux.c")
    assert len(names) > 1000 and max(map(len, names)) <= MOST_PATH
    assert "* text=auto eol=lf" in (ROOT / ".gitattributes").read_text().splitlines()
