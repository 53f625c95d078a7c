"""Commands on a terminal: lines fit, colours appear only where allowed, progress lines are erased."""

import contextlib
import fcntl
import io
import json
import os
import pty
import re
import struct
import subprocess
import sys
import tempfile
import termios

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from paths import script

from buildtool.fronts.cli import console
from buildtool.fronts.cli import main as cli
from buildtool.fronts.texts import table
from buildtool.target.registry import load_board, plugin
from buildtool.target.types import RunRequest

COLOUR = re.compile(r"\x1b\[[0-9;]*m")
WIDTHS = (40, 80, 200)
COMMANDS = (
    "plan ds_cnn -b cortex-m4",
    "plan ds_cnn -b cortex-m4 --ram 8K --buffers --compare",
    "front ds_cnn -b cortex-m4",
    "analyze ds_cnn -b hifive1 -b cortex-m4",
    "boards",
    "ops ds_cnn",
    "zoo",
    "describe ds_cnn -b host",
    "sizes out/ds_cnn.elf -b host",
    "validate ds_cnn -b host --data set.npz --reference-only",
    "profile ds_cnn -b host",
    "diff before.json after.json",
    "cache stats",
    "plan ds_cnn -b hots",
)
# Runs these commands at every width of its terminal. An answer is found once, and printed at every width.
RUN = """
import fcntl, json, struct, sys, termios
import numpy as np
from buildtool import api
from buildtool.fronts.cli import console
from buildtool.fronts.cli import main as cli
answers, handle = {}, api.handle_cached
def handle_once(request, *more):
    key = repr(request)
    if key not in answers:
        answers[key] = handle(request, *more)
    return answers[key]
api.handle_cached = handle_once
session, (widths, commands) = api.open_session(), json.loads(sys.argv[1])
np.savez("set.npz", x=np.zeros((3, 49, 10, 1), np.int8), y=np.arange(3))
def run(line):
    cli.run(line.split() + (["--daemon", "off"] if line.split()[0] in ("plan", "front") else []), session)
out = sys.stdout
for file, line in (
    ("before.json", "plan ds_cnn -b cortex-m4 --json"),
    ("after.json", "plan ds_cnn -b cortex-m4 --json --image stream --objective ram"),
    ("built", "build ds_cnn -b host -o out --daemon off"),
):
    with open(file, "w") as sys.stdout:
        run(line)
sys.stdout = out
console.prepare()
for width in widths:
    fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 50, width, 0, 0))
    for line in commands:
        print(f"$ {width} {line}", flush=True)
        run(line)
"""


def on_terminal(code, *arguments, folder, width=80, **env):
    """Runs Python code on a terminal. Returns both output streams."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, width, 0, 0))
    variables = {
        name: value for name, value in os.environ.items() if name not in ("COLUMNS", "NO_COLOR", "CI")
    }
    process = subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        env={**variables, "TERM": "xterm", "BUILDTOOL_DAEMON": "off", **env},
        cwd=folder,
        **dict.fromkeys(("stdin", "stdout", "stderr"), theirs),
        start_new_session=True,
    )
    os.close(theirs)
    output = b""
    with contextlib.suppress(OSError):  # the program has closed the terminal
        while part := os.read(ours, 1 << 16):
            output += part
    os.close(ours)
    process.wait()
    return output.decode("utf-8").replace("\r\n", "\n")


def told_by(said):
    """Returns the lines of every command at every width, without colours and erased progress lines."""
    lines: dict[tuple[int, str], list[str]] = {}
    for part in COLOUR.sub("", re.sub(r"\r[^\r\n]*(?=\r)", "", said)).split("$ ")[1:]:
        head, _, text = part.partition("\n")
        width, _, line = head.partition(" ")
        lines[int(width), line] = text.replace("\r", "").split("\n")
    return lines


@pytest.mark.slow
def test_the_lines_of_every_command_fit_every_terminal(tmp_path):
    arguments = json.dumps([WIDTHS, COMMANDS])
    folder = tmp_path / "a folder of ünïcode"
    folder.mkdir()
    output = on_terminal(RUN, arguments, folder=folder, LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")
    assert "Traceback" not in output and "internal error" not in output
    assert COLOUR.search(output)
    lines_of = told_by(output)
    assert lines_of.keys() == {(width, line) for width in WIDTHS for line in COMMANDS}
    for (width, line), lines in lines_of.items():
        assert any(lines), line
        for text in lines:
            # paths cannot be broken, and errors have the form of compilers' errors
            fits = len(text) <= width or max(map(len, text.split())) > width // 2
            assert fits or "error: " in text or "hint: " in text, (width, line, text)
    figures = re.compile(r"\d{1,3}(?:,\d{3})+")
    for line in COMMANDS:  # figures are whole at every width; a cache's figures change all the time
        if line.startswith("cache"):
            continue
        for width in WIDTHS[:2]:
            narrow, wide = (set(figures.findall("\n".join(lines_of[w, line]))) for w in (width, WIDTHS[-1]))
            assert narrow <= wide or "arena over time" in "\n".join(lines_of[width, line])


def test_progress_on_a_terminal_is_one_line_that_goes_and_elsewhere_nothing(tmp_path):
    code = """
from buildtool.fronts.cli import console
console.PATIENCE_SECONDS = 0.0
with console.progress("planning") as listen:
    listen({"progress": {"text": "firmware: input 1 of 100, 3 min left, and much more than fits"}})
print("done")
"""
    output = on_terminal(code, folder=tmp_path, width=40)
    parts = [part.strip() for part in output.split("\r")]
    assert parts[1:3] == ["planning", "firmware: input 1 of 100, 3 min left"]
    assert output.endswith(f"\r{' ' * 36}\rdone\n")
    assert on_terminal(code, folder=tmp_path, TERM="dumb") == "done\n"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (result.stdout, result.stderr) == ("done\n", "")


class Stream(io.StringIO):
    """A stream that is a terminal, or not."""

    def __init__(self, is_terminal):
        super().__init__()
        self.is_terminal = is_terminal

    def isatty(self):
        return self.is_terminal


def on_stderr(monkeypatch):
    """Makes standard error a terminal. (No fixture: pytest replaces standard error when a test begins.)"""
    stream = Stream(True)
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("TERM", "xterm")
    return stream


@pytest.mark.slow
def test_compiler_emulator_and_reference_say_how_far_they_are(tmp_path, monkeypatch):
    monkeypatch.setenv("BUILDTOOL_CACHE_DIR", str(tmp_path / "cache"))  # so that something is compiled
    terminal = on_stderr(monkeypatch)
    monkeypatch.setattr(console, "PATIENCE_SECONDS", 0.0)
    words = "validate autoencoder --board cortex-m4 --inputs 2 --reference numpy --no-cache"
    assert cli.run(words.split()) == 0
    parts = [part.strip() for part in terminal.getvalue().split("\r")]
    for text in ("compiled 1 of ", "linking autoencoder.elf", "computing the reference of input 2 of 2"):
        assert any(part.startswith(text) for part in parts), (text, parts)
    assert "running input 1 of 2 on cortex-m4" in parts
    assert parts[-2:] == ["", ""]


@pytest.mark.slow
def test_a_program_that_runs_is_looked_at(tmp_path):
    program = script(tmp_path / "slow", "printf abc > out\nsleep 0.7\nprintf def >> out")
    sizes: list[int] = []
    board = load_board("host")
    result = plugin(board).run(board, program, RunRequest({}, ("out",), written=sizes.append))
    assert result.files["out"] == b"abcdef"
    assert 3 in sizes


@pytest.mark.parametrize(
    ("env", "on_terminals", "elsewhere"),
    [
        ({"TERM": "xterm"}, True, False),
        ({"TERM": "dumb"}, False, False),
        ({}, False, False),
        ({"TERM": "xterm", "NO_COLOR": "1"}, False, False),
        ({"TERM": "xterm", "NO_COLOR": ""}, True, False),
        ({"TERM": "dumb", "FORCE_COLOR": "1"}, True, True),
        ({"TERM": "xterm", "FORCE_COLOR": "0"}, False, False),
        ({"TERM": "xterm", "FORCE_COLOR": "1", "NO_COLOR": "1"}, False, False),
    ],
)
def test_colours_are_for_terminals_or_where_they_are_asked_for(env, on_terminals, elsewhere, monkeypatch):
    for name in ("TERM", "NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    assert console.is_coloured(Stream(True)) is on_terminals
    assert console.is_coloured(Stream(False)) is elsewhere
    assert console.is_coloured(None) is elsewhere


TEXTS = st.lists(
    st.sampled_from(
        ["EQUAL to the bit", "DIFFERENT by 3", "--  ---", "a  b", " 1,024 |iioo..s|", "", "-", "error: x"]
    )
)


@given(TEXTS)
@settings(derandomize=True, deadline=None, max_examples=60)
def test_colours_change_no_character(lines):
    text = "\n".join(lines)
    for painted in (table.coloured(text), table.coloured_message(text)):
        assert COLOUR.sub("", painted) == text
        assert painted.count("\x1b[0m") == len(re.findall(r"(?:\x1b\[(?!0m)[0-9]+m)+", painted))


@pytest.mark.parametrize(("stderr", "stdin"), [("terminal", "null"), ("null", "terminal")])
def test_a_pipe_is_as_wide_as_the_terminal_that_it_ends_in(stderr, stdin):
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 66, 0, 0))
    code = "from buildtool.fronts.cli import console; print(console.width())"
    streams = {"terminal": theirs, "null": subprocess.DEVNULL}

    environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"}

    def width(stdout, stderr, stdin):
        files = {"stdout": stdout, "stderr": streams[stderr], "stdin": streams[stdin]}
        return subprocess.run([sys.executable, "-c", code], env=environment, check=True, **files).stdout

    try:
        assert width(subprocess.PIPE, stderr, stdin) == b"66\n"
        assert width(subprocess.PIPE, "null", "null") == b"110\n"
        with tempfile.TemporaryFile() as file:  # a file may be read anywhere
            width(file, stderr, stdin)
            file.seek(0)
            assert file.read() == b"110\n"
    finally:
        os.close(ours)
        os.close(theirs)
