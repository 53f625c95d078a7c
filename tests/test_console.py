"""Progress on a terminal: said where something takes longer than patience lasts, and gone at the end."""

from __future__ import annotations

import io
import sys
import time
from pathlib import Path

import pytest
from daemons import eventually

from buildtool.fronts.cli import console
from buildtool.fronts.cli import main as cli
from buildtool.target.registry import load_board, plugin
from buildtool.target.types import RunRequest


class Terminal(io.StringIO):
    """A stream that says that people read it."""

    def isatty(self) -> bool:
        return True


def on_terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Standard error as a terminal; not as a fixture: pytest puts its own there when a test begins."""
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("TERM", "xterm")
    return stream


def told(text: str) -> dict[str, dict[str, str]]:
    return {"progress": {"text": text}}


def test_a_step_that_lasts_is_said_though_it_began_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = on_terminal(monkeypatch)
    monkeypatch.setattr(console, "PATIENCE_SECONDS", 0.05)
    with console.progress() as listen:
        listen(told("compiling"))
        assert terminal.getvalue() == ""
        eventually(lambda: terminal.getvalue() == "\rcompiling")
        listen(told("ok"))
        assert terminal.getvalue().endswith("\rok       ")
    assert terminal.getvalue().endswith("\r  \r")


def test_what_is_done_before_patience_ends_is_not_said(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = on_terminal(monkeypatch)
    with console.progress() as listen:
        listen(told("quick"))
        listen({"log": "x"})
    time.sleep(0)
    assert terminal.getvalue() == ""


def test_a_terminal_that_cannot_go_back_or_is_narrow_is_not_littered(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = on_terminal(monkeypatch)
    monkeypatch.setattr(console, "PATIENCE_SECONDS", 0.0)
    monkeypatch.setenv("COLUMNS", "20")
    with console.progress() as listen:
        listen(told("compiling 12 of 300 files"))
    said = terminal.getvalue()
    assert said.startswith("\rcompiling 12 of \r ")
    monkeypatch.setenv("TERM", "dumb")
    with console.progress() as listen:
        listen(told("compiling"))
    assert terminal.getvalue() == said


def test_nothing_is_said_where_nobody_sits_before_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(console, "PATIENCE_SECONDS", 0.0)
    with console.progress() as listen:
        listen(told("compiling"))
    assert stream.getvalue() == ""


@pytest.mark.slow
def test_compiler_emulator_and_reference_say_how_far_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BUILDTOOL_CACHE_DIR", str(tmp_path / "cache"))  # so that something is compiled
    terminal = on_terminal(monkeypatch)
    monkeypatch.setattr(console, "PATIENCE_SECONDS", 0.0)
    assert (
        cli.run(
            [
                "validate",
                "ds_cnn",
                "--board",
                "cortex-m4",
                "--inputs",
                "2",
                "--reference",
                "numpy",
                "--no-cache",
            ]
        )
        == 0
    )
    said = [part.strip() for part in terminal.getvalue().split("\r")]
    for text in ("compiled 1 of ", "linking ds_cnn.elf", "computing the reference of input 2 of 2"):
        assert any(part.startswith(text) for part in said), (text, said)
    assert "running input 1 of 2 on cortex-m4" in said
    assert said[-2:] == ["", ""]


def test_a_program_that_runs_is_looked_at(tmp_path: Path) -> None:
    program = tmp_path / "slow"
    program.write_text("#!/bin/sh\nprintf abc > out\nsleep 0.7\nprintf def >> out\n")
    program.chmod(0o755)
    sizes: list[int] = []
    board = load_board("host")
    result = plugin(board).run(board, program, RunRequest({}, ("out",), written=sizes.append))
    assert result.files["out"] == b"abcdef"
    assert 3 in sizes
