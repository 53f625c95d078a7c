"""Shell sessions with their expected output: each *.txt beside this file, run line by line.

    # a comment, or a title
    $ buildtool zoo ds_cnn
    written: ds_cnn.tflite
    $ buildtool plan ds_cnn --board hots
    error: unknown board 'hots' [USAGE]
      hint: <any>
    [exit 2]

Standard output and error come as one. `<n>` stands for a number (with separators or decimals) where
it depends on the compiler, `<any>` for any text within a line, a line `...` for any lines. A session
whose first line is `# slow` runs in the slow tier only.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from transcript import parse, pattern

FOLDER = Path(__file__).resolve().parent


def sessions() -> list[object]:
    found = []
    for path in sorted(FOLDER.glob("*.txt")):
        slow = path.read_text().startswith("# slow\n")
        found.append(pytest.param(path, marks=[pytest.mark.slow] if slow else [], id=path.stem))
    return found


@pytest.mark.parametrize("path", sessions())
def test_session(path: Path, tmp_path: Path) -> None:
    programs = Path(sys.executable).parent
    programs_first = f"{programs}{os.pathsep}{os.environ['PATH']}"
    env = os.environ | {"PATH": programs_first, "COLUMNS": "200", "XDG_DATA_HOME": str(tmp_path / "data")}
    commands = parse(path.read_text())
    assert commands
    for command in commands:
        done = subprocess.run(
            ["sh", "-c", command.text],
            cwd=tmp_path,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=1800,
            check=False,
        )
        lines = [line.rstrip() for line in done.stdout.splitlines()]
        while lines and not lines[-1]:
            lines.pop()
        said = "".join(f"{line}\n" for line in lines)
        shown = f"$ {command.text}\n{said}[exit {done.returncode}]"
        assert re.fullmatch(pattern(command.expected), said), shown
        assert done.returncode == command.status, shown


@pytest.mark.parametrize(
    ("expected", "said", "equal"),
    [
        (["a <n> b"], "a 1,234.5 b\n", True),
        (["a <n> b"], "a x b\n", False),
        (["a  <n>  b"], "a        7 b\n", True),
        (["a  b"], "a b\n", False),
        (["a (<any>)"], "a (b.c)\n", True),
        (["a.c"], "abc\n", False),
        (["a", "...", "d"], "a\nb\nc\nd\n", True),
        (["a", "...", "d"], "a\nb\n", False),
        ([], "anything\n", False),
    ],
)
def test_the_patterns_match_what_they_say(expected: list[str], said: str, equal: bool) -> None:
    assert bool(re.fullmatch(pattern(expected), said)) == equal
