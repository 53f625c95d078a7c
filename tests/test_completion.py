"""Completion in a shell, and `--help`. Commands that run import neither."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from buildtool.fronts.cli import arguments
from buildtool.fronts.cli import main as cli
from buildtool.fronts.cli.commands import load

BUILDTOOL = str(Path(sys.executable).with_name("buildtool"))


def offered(line, folder):
    """Returns the words that bash is offered after a command line."""
    variables = {"_ARGCOMPLETE": "1", "_ARGCOMPLETE_IFS": "\n", "_ARGCOMPLETE_SHELL": "bash"}
    variables |= {"COMP_LINE": line, "COMP_POINT": str(len(line))}
    words = ["bash", "-c", f"exec {BUILDTOOL} 8>&1 9>/dev/null 1>/dev/null"]
    output = subprocess.check_output(words, cwd=folder, env=os.environ | variables, text=True, timeout=60)
    return [word.strip() for word in output.split("\n")]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("buildtool pl", ["plan"]),
        ("buildtool plan ds", ["ds_cnn"]),
        ("buildtool plan net.t", ["net.tflite"]),
        ("buildtool plan x --board cortex-m", ["cortex-m4", "cortex-m55"]),
        ("buildtool plan x --board my", ["my.toml"]),
        ("buildtool plan x --image ", ["overwritable", "resident", "stream"]),
        ("buildtool build x --deb", ["--debug"]),
        ("buildtool build x --toolchain ", ["clang", "gcc"]),
        ("buildtool daemon st", ["start", "stop", "status"]),
        ("buildtool ide ", ["vscode"]),
        ("buildtool split vg", ["vgg16"]),
        ("buildtool split my", ["my.keras"]),
        ("buildtool split vgg16 --first ", ["slice", "full", "both"]),
        ("buildtool split vgg16 --ba", ["--batch"]),
    ],
)
def test_words_are_offered(tmp_path, line, words):
    for name in ("net.tflite", "my.toml", "my.keras", "my.txt", "net.txt"):
        (tmp_path / name).touch()
    offers = offered(line, tmp_path)
    assert set(words) <= set(offers)
    assert not {"my.txt", "net.txt"} & set(offers)
    assert len(offers) < len(words) + 8 or line.endswith(" ")


@pytest.mark.parametrize("command", ["", *arguments.COMMANDS])
def test_help_has_examples_that_the_command_line_takes(command, capsys):
    for words in (["help", command], [command, "--help"]):
        with pytest.raises(SystemExit) as ended:
            cli.run([word for word in words if word])
        assert ended.value.code == 0
        output = capsys.readouterr().out
        assert "exit status:\n  0   Success" in output
    examples = load(command).examples if command else arguments.EXAMPLES
    assert examples
    for line, _ in examples:
        program, *words_of_example = line.split()
        assert f"  $ {line}\n" in output
        assert program == "buildtool"
        arguments.parse(words_of_example)
        assert command in ("", words_of_example[0])


def test_help_is_as_wide_as_the_terminal_and_suggests_a_command_for_an_unknown_one(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "60")
    with pytest.raises(SystemExit):
        cli.run(["--help"])
    lines = capsys.readouterr().out.splitlines()
    assert max(len(line) for line in lines if not line.startswith("  $ ")) <= 60
    assert any("BUILDTOOL_DAEMON" in line for line in lines)
    assert cli.run(["help", "plam"]) == 2
    assert "did you mean 'plan'?" in capsys.readouterr().err
