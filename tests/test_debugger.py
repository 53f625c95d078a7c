"""Sessions with a real debugger: the firmware stops, shows its arena, and ends with the right output."""

import contextlib
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys

import numpy as np
import pytest
from daemons import eventually
from needs import needs_tool
from paths import ROOT, script
from programs import ran
from programs import said as said_by

from buildtool.api import handle
from buildtool.api.requests import parse
from buildtool.api.requests.kinds import Debug
from buildtool.base.errors import TargetError, ToolError, UsageError
from buildtool.fronts.cli import debugger
from buildtool.fronts.cli import main as cli
from buildtool.target.registry import load_board, plugin

NET = "ds_cnn"


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


@pytest.fixture
def taken():
    """A port that is in use."""
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        yield holder.getsockname()[1]


def talk(gdb, line, *commands):
    """Starts the debugger by the printed line and runs commands. Returns its output."""
    words = [word for command in commands for word in ("-ex", command)]
    begin, _, program = line.partition(" && ")
    assert shlex.split(program)[0] == "gdb-multiarch"
    batch = shlex.join([gdb, "-nx", "-batch", *shlex.split(program)[1:], *words])
    return ran(ROOT, "sh", "-c", f"{begin} && {batch}").stdout


@contextlib.contextmanager
def served(words, folder):
    """Runs `buildtool debug`, or a build that does. Yields its process and the debugger's command line."""
    env, pipe = os.environ | {"PYTHONPATH": str(ROOT)}, subprocess.PIPE
    server = subprocess.Popen(words, cwd=folder, env=env, stdout=pipe, stderr=subprocess.STDOUT, text=True)
    lines = [""]
    try:
        while "gdb-multiarch -x" not in lines[-1]:
            lines.append(server.stdout.readline())
            assert lines[-1], "".join(lines)
        yield server, lines[-1].strip()
    finally:
        server.kill()
        server.wait()


@pytest.mark.slow
def test_a_debugger_shows_the_arena_and_the_region_and_lets_the_firmware_end(tmp_path):
    gdb, port, board, folder = needs_tool("gdb-multiarch"), free_port(), "hifive1", tmp_path / "odd $x 'name"
    words = [sys.executable, "-m", "buildtool", "debug", NET, "--board", board, "--inputs", "2"]
    with served([*words, "--out", str(folder), f"--port={port}"], tmp_path) as (server, line):
        commands = f"continue,print (void *){NET}_arena,break region_3,continue,backtrace,list,delete"
        output = talk(gdb, line, *commands.split(","), "break nn_image_check", "continue")
        assert server.wait(60) == 0
    assert re.search(rf"Breakpoint 1, {NET}_invoke \(\)", output), output
    arena = int(re.search(r"\$1 = \(void \*\) (0x[0-9a-f]+)", output)[1], 16)
    memory = load_board(board).memory(load_board(board).arena)
    assert memory.base <= arena < memory.base + memory.size
    assert re.search(
        rf"#0 +region_3 \(arena=0x{arena:x}[^\n]*\)[^\n]*{NET}\.c:\d+\n#1 .*{NET}_invoke", output
    )
    source = ("/* Operator 3: ", "static void region_3(int8_t *const arena)")
    assert any(line in output for line in source)  # the debugger found the source
    assert "exited normally" in output
    answer = handle({"kind": "debug", "model": NET, "board": board, "inputs": 2})
    assert (folder / "input.bin").read_bytes() == answer["files"]["input.bin"]
    assert np.frombuffer((folder / "output.bin").read_bytes(), np.int8).size == 2 * 12
    assert "sets=2" in (folder / "report.txt").read_text()


@pytest.mark.slow
def test_scons_debug_builds_serves_and_finds_every_source(tmp_path):
    gdb, port = needs_tool("gdb-multiarch"), free_port()
    shutil.copy(ROOT / "SConstruct", tmp_path)
    shutil.copytree(ROOT / "site_scons", tmp_path / "site_scons")
    words = [sys.executable, "-m", "SCons", "-Q", "board=cortex-m4", f"model={NET}"]
    with served([*words, f"port={port}", "debug"], tmp_path) as (server, line):
        commands = "continue,list,break nn_conv2d_1x1_s8_dsp,continue,list,delete,continue"
        output = talk(gdb, line, *commands.split(","))
        assert server.wait(60) == 0
    folder = tmp_path / "build/debug/cortex-m4" / NET
    assert "nn_status ds_cnn_invoke(void) {" in output  # from the build's folder
    assert "void nn_conv2d_1x1_s8_dsp(" in output  # from the checkout
    assert "exited normally" in output
    assert (folder / "session/output.bin").stat().st_size == 12
    for file in (folder / f"{NET}.elf", folder / f"{NET}.map"):
        assert str(tmp_path).encode() not in file.read_bytes()
    assert f"{NET}_invoke" in (folder / f"{NET}.map").read_text()
    assert not (tmp_path / "build/cortex-m4").exists()  # a release build is untouched
    (folder / f"{NET}.map").unlink()
    again = said_by(tmp_path, *words, "debug=1", environment={"PYTHONPATH": str(ROOT)})
    assert "linking" in again and "compiling" not in again
    assert (folder / f"{NET}.map").is_file()


@pytest.mark.slow
def test_a_session_that_is_ended_leaves_no_server(tmp_path):
    port = free_port()
    words = [sys.executable, "-m", "buildtool", "debug", NET, "--board", "cortex-m4"]
    with served([*words, "--out", "out", f"--port={port}"], tmp_path) as (server, _):
        eventually(lambda: debugger._is_taken(port))
        server.terminate()
        assert server.wait(30) == 128 + 15
        assert not debugger._is_taken(port)


@pytest.mark.slow
def test_a_session_on_this_machine_needs_no_server(tmp_path, capsys):
    gdb = needs_tool("gdb-multiarch")
    assert cli.run(["debug", NET, "--board", "host", "--out", str(tmp_path)]) == 0
    output = capsys.readouterr().out
    assert "the debugger starts the program itself" in output
    line = f"cd {tmp_path} && gdb-multiarch -x {NET}.gdb {NET}.elf"
    session = talk(gdb, line, "run", "backtrace", "delete", "continue")
    assert f"{NET}_invoke () at ./{NET}.c" in session
    assert (tmp_path / "output.bin").stat().st_size == 12


@pytest.mark.slow
def test_a_session_whose_port_is_taken_says_nothing_of_waiting_and_writes_nothing(tmp_path, capsys, taken):
    out = tmp_path / "out"
    assert cli.run(["debug", NET, "--board", "cortex-m4", "--out", str(out), f"--port={taken}"]) == 1
    output = capsys.readouterr()
    assert "is in use" in output.err
    assert "waiting at" not in output.out  # an editor would connect
    assert not out.exists()


def test_a_probe_is_served_by_what_the_boards_file_says(tmp_path, monkeypatch):
    board = load_board("nucleo-f412zg")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ToolError, match="openocd was not found") as caught:
        plugin(board).debug_server(board, 4000)
    assert caught.value.hint == "apt-get install openocd; pip install pyocd"
    program = script(tmp_path / "openocd", "")
    server = plugin(board).debug_server(board, 4000)
    assert server.command[:3] == (str(program), "-f", "board/st_nucleo_f4.cfg")
    assert "gdb_port 4000" in server.command
    assert server.connected[-1] == "load"
    board = load_board("esp32")  # it has neither emulator nor probe
    with pytest.raises(TargetError, match="no emulator, and its file names no probe") as caught:
        plugin(board).debug_server(board, 4000)
    assert "[probe]" in caught.value.hint


def test_a_session_is_always_of_a_debug_build():
    request = parse({"kind": "debug", "model": NET, "board": "host"})
    assert isinstance(request, Debug)
    assert request.target.debug
    with pytest.raises(UsageError, match="has to be a file"):
        elf = {"name": "a.elf", "data": b"\x7fELF"}
        parse({"kind": "debug", "model": NET, "board": "host", "elf": elf, "plan": "/a.plan"})
