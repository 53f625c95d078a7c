"""A command that is killed while it runs an emulator leaves no process and no files."""

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from daemons import eventually, is_running

from buildtool.base import locks

# Runs a program of a minute in the way of the emulators. The program writes its number to a file.
# Signals have their default effect, also where the tests run under nohup, which ignores them.
RUN = """
import signal
import sys
from pathlib import Path
from buildtool.fronts.cli import main as cli
from buildtool.fronts.cli.commands import figures
from buildtool.target.types import RunRequest
from buildtool_plugins.tools.sandbox import run_program

signal.signal(signal.SIGHUP, signal.SIG_DFL)
signal.signal(signal.SIGINT, signal.default_int_handler)

def sizes(args):
    script = "echo $$ > pid; exec sleep 60"
    run_program(["sh", "-c", script], RunRequest({}, ()), what="it")

figures.sizes = figures.sizes._replace(run=sizes)
sys.argv = ["buildtool", "sizes", "x.elf", "-b", "host"]
cli.main()
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs Linux: /proc, signals of parents")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGKILL])
@pytest.mark.parametrize("starts", ["setpriv", "fork"])
def test_what_was_begun_ends_with_it(tmp_path, number, starts):
    """Without setpriv, a fork sets the signal that ends the child."""
    env = {**os.environ, "TMPDIR": str(tmp_path)}
    with_fork = "from buildtool_plugins.tools import sandbox\nsandbox._setpriv = lambda: ()\n"
    run = RUN if starts == "setpriv" else with_fork + RUN
    command = subprocess.Popen([sys.executable, "-c", run], env=env, start_new_session=True)
    try:
        eventually(lambda: any(path.read_text().strip() for path in tmp_path.glob("*/pid")))
        (file,) = tmp_path.glob("*/pid")
        child = int(file.read_text())
        assert is_running(child)
        command.send_signal(number)
        status = command.wait(20)
    finally:
        command.kill()
        command.wait()
    assert status == (-number if number is signal.SIGKILL else 128 + number)
    eventually(lambda: not is_running(child))
    assert number is signal.SIGKILL or list(tmp_path.iterdir()) == []


# Plays the emulator for a UART link: it prints its pseudo-terminal and keeps running.
WIRE = """
import sys
import time
from pathlib import Path
from buildtool_plugins.qemu import runner
from buildtool_plugins.board_link import attached

script = "echo $$ > pid; echo char device redirected to /dev/pts/0; exec sleep 60"
runner.command = lambda board, image: ["sh", "-c", script, "-serial", "x"]
with attached.emulate_uart(None, Path("image")):
    time.sleep(60)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs Linux: /proc, signals of parents")
def test_an_emulator_with_a_wire_ends_with_a_killed_command(tmp_path):
    command = subprocess.Popen([sys.executable, "-c", WIRE], cwd=tmp_path)
    try:
        file = tmp_path / "pid"
        eventually(lambda: file.exists() and file.read_text().strip())
        child = int(file.read_text())
        assert is_running(child)
    finally:
        command.kill()
        command.wait()
    eventually(lambda: not is_running(child))


HOLDS = """
import time
from pathlib import Path
from buildtool.base.locks import scratch

with scratch() as name:
    Path(name, "key.pem").touch()
    time.sleep(60)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs Linux: locks of folders")
def test_the_next_command_clears_what_a_killed_one_left(tmp_path, monkeypatch):
    """It leaves folders that are in use, new, links, or have another name."""
    env = {**os.environ, "TMPDIR": str(tmp_path)}
    commands = [subprocess.Popen([sys.executable, "-c", HOLDS], env=env) for _ in range(2)]
    try:
        eventually(lambda: len(list(tmp_path.glob("*/key.pem"))) == 2)
        both = set(tmp_path.iterdir())
        commands[0].kill()
        commands[0].wait()
        for name in ("buildtool-else", "other"):
            (tmp_path / name).mkdir()
        (tmp_path / f"{locks.PREFIX}link").symlink_to(tmp_path / "other")
        others = set(tmp_path.iterdir()) - both
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
        with locks.scratch():
            assert both < set(tmp_path.iterdir())  # too new: they might not be locked yet
        for one in both:
            os.utime(one, (1, 1))
        with locks.scratch() as name:
            rest = set(tmp_path.iterdir()) - others - {Path(name)}
            assert len(rest) == 1 and rest < both
        assert commands[1].poll() is None and (rest.pop() / "key.pem").exists()
    finally:
        for command in commands:
            command.kill()
            command.wait()
    assert others <= set(tmp_path.iterdir())
