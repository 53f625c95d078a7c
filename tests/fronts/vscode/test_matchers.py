"""The editor's expressions find the problems of real failing builds, and the rounds of the watching task.

What VS Code does with an expression is done here: the first group that is a file, and so on; Python and
JavaScript read these expressions alike.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from needs import needs_tool
from paths import ROOT
from programs import said

from buildtool.fronts.vscode import entries

# VS Code's own matcher for compilers, `$gcc`.
GCC = re.compile(r"^(.*?):(\d+):(\d*):?\s+(?:fatal\s+)?(warning|error):\s+(.*)$")
MODULE = [sys.executable, "-m"]


def run(folder: Path, *words: str) -> str:
    """What a command prints that has to fail."""
    return said(folder, *words, fails=True, environment={"PYTHONPATH": str(ROOT)})


def problems(said: str) -> list[tuple[str, int, str]]:
    """File, line (0: the whole file) and message of each problem, as our matchers find them."""
    found = []
    for line in said.splitlines():
        for matcher in entries.MATCHERS:
            pattern: Mapping[str, Any] = matcher["pattern"]
            match = re.search(pattern["regexp"], line)
            if match and match[pattern["severity"]] == "error":
                number = int(match[pattern["line"]]) if "line" in pattern else 0
                assert Path(match[pattern["file"]]).name
                found.append((match[pattern["file"]], number, match[pattern["message"]]))
    return found


def stock(said: str) -> list[tuple[str, int, int]]:
    return [(m[1], int(m[2]), int(m[3])) for line in said.splitlines() if (m := GCC.search(line))]


@pytest.mark.slow
def test_a_boards_file_and_a_table_of_buffers(tmp_path: Path) -> None:
    (tmp_path / "my board.toml").write_text('extends = "cortex-m4"\n[memory.psram]\n  size = "2Q"\n')
    said = run(tmp_path, *MODULE, "buildtool", "plan", "ds_cnn", "--board", "my board.toml")
    assert problems(said) == [("my board.toml", 3, "memory.psram.size: must be a size, not '2Q'")]
    assert stock(said) == [("my board.toml", 3, 3)]
    (tmp_path / "a.csv").write_text("id,lower,upper,size\nx,0,1,y\n")
    said = run(tmp_path, *MODULE, "buildtool", "arena", "a.csv")
    assert stock(said) == [("a.csv", 2, 7)]
    (tmp_path / "net.tflite").write_bytes(b"none")
    said = run(tmp_path, *MODULE, "buildtool", "analyze", "net.tflite")
    ((file, line, message),) = problems(said)
    assert (file, line) == ("net.tflite", 0)
    assert message.startswith("not a TensorFlow Lite file")


@pytest.mark.slow
def test_an_sconstruct_and_an_application_that_does_not_compile(tmp_path: Path) -> None:
    needs_tool("clang")
    (tmp_path / "SConstruct").write_text(
        'env = Environment(tools=["buildtool_network"],\n'
        f"                  toolpath=[{str(ROOT / 'site_scons/site_tools')!r}])\n"
        'env.UseBoard(ARGUMENTS.get("board", "cortex-m4"))\n'
        "network = env.NeuralNetwork(\n"
        '    "ds_cnn", ram=ARGUMENTS.get("ram", "64K"),\n'
        ")\n"
        'env.Program("app.elf", ["main.c", *env["BOARD_STARTUP"], network.library])\n'
    )
    (tmp_path / "main.c").write_text("int main(void) {\n    return x;\n}\n")
    scons = [*MODULE, "SCons", "-Q"]
    said = run(tmp_path, *scons, "ram=64Q")
    message = "ram: '64Q' is not a number of bytes, such as 65536, 64K or 1M"
    assert problems(said) == [("SConstruct", 4, message)]
    assert stock(said) == [("SConstruct", 4, 11)]
    (tmp_path / "b.toml").write_text('extends = "cortex-m4"\nstack = 1\n')
    said = run(tmp_path, *scons, "board=b.toml")
    assert problems(said) == [("b.toml", 2, "unknown key 'stack'")]
    assert "\nSConstruct:3:1: note: requested here\n" in said
    said = run(tmp_path, *scons, "main.o")
    assert ("main.c", 2) in [(file, line) for file, line, _ in problems(said)]
    # Quiet unless somebody asks, and whole command lines are not needed to find what is wrong.
    assert "compiling main.c" in said
    assert "-mcpu" not in said


@pytest.mark.slow
def test_the_watching_task_has_a_begin_and_an_end_of_each_round(tmp_path: Path) -> None:
    (tmp_path / "b.toml").write_text('extends = "cortex-m4"\nstack = 1\n')
    said = run(tmp_path, *MODULE, "buildtool", "watch", "ds_cnn", "--board", "b.toml", "--once")
    lines = said.splitlines()
    begins = [i for i, line in enumerate(lines) if re.search(entries.ROUND["beginsPattern"], line)]
    ends = [i for i, line in enumerate(lines) if re.search(entries.ROUND["endsPattern"], line)]
    ((file, line, _),) = problems(said)
    assert (file, line) == ("b.toml", 2)
    (begin,), (end,) = begins, ends
    assert begin < next(i for i, text in enumerate(lines) if text.startswith("b.toml:2:")) < end


@pytest.mark.parametrize(
    ("line", "file"),
    [
        ("net.tflite: error: #3 ADD: it broke [ERROR]", "net.tflite"),
        ("a b/net.tflite: error: cannot read [USAGE]", "a b/net.tflite"),
        ("error: unknown board 'x' [USAGE]", None),
        ("scons: *** [main.o] Error 1", None),
        ("  hint: a.c: error: no", None),
        ("a.c:3:4: warning: unused [-Wunused]", None),
        ("ld.lld: error: undefined symbol: f", "ld.lld"),
    ],
)
def test_a_problem_of_a_whole_file(line: str, file: str | None) -> None:
    match = re.search(entries.IN_A_FILE["pattern"]["regexp"], line)
    assert (match[1] if match else None) == file


def test_a_server_for_a_debugger_says_when_it_waits() -> None:
    text = (ROOT / "buildtool/fronts/cli/debugger.py").read_text()
    assert 'f"server: {' in text
    assert 'f"waiting at {' in text
    assert re.search(entries.SERVING["beginsPattern"], "server: qemu")
    assert re.search(entries.SERVING["endsPattern"], "waiting at 127.0.0.1:3333")
