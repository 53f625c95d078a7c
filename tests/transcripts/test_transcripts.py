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
whose first line is `# slow` runs in the slow tier only. $NETWORKS is a folder with `wake_word.tflite` and
`wake_word_wider.tflite`, the same with one layer more.
"""

import os
import re
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from paths import ROOT
from programs import ran
from transcript import parse, pattern

from buildtool.graph.tflite.writer import write_model
from buildtool.zoo.drawn import NetBuilder


def wake_word(*, is_wider: bool) -> bytes:
    """A small network for 32x32 pictures as a .tflite; `is_wider`: `expand` makes 24 channels of 12 first."""
    net = NetBuilder(14, "wake")
    x = net.input((1, 32, 32, 1))
    names = {x: "picture"}
    names[x := net.conv(x, 12, kernel=(3, 3), stride=(2, 2), same=True)] = "stem"
    if is_wider:
        names[x := net.conv(x, 24)] = "expand"
    names[x := net.conv(x, 0, kernel=(3, 3), stride=(2, 2), same=True, depth_multiplier=1)] = "depthwise"
    names[x := net.conv(x, 32)] = "pointwise"
    names[x := net.mean(x)] = "mean"
    names[x := net.dense(x, 4)] = "scores"
    for tensor, name in names.items():
        net.tensors[tensor] = replace(net.tensors[tensor], name=name)
    return write_model(net.graph([x]))


FOLDER = Path(__file__).resolve().parent
# Commits of a session's repository are nobody's, and no setting of this user has a part in them.
AUTHOR = {
    f"GIT_{who}_{what}": "ci@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
}
AUTHOR |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}


def sessions() -> list[object]:
    found = []
    for path in sorted(FOLDER.glob("*.txt")):
        slow = path.read_text().startswith("# slow\n")
        found.append(pytest.param(path, marks=[pytest.mark.slow] if slow else [], id=path.stem))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("path", sessions())
def test_session(path: Path, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    programs = Path(sys.executable).parent
    programs_first = f"{programs}{os.pathsep}{os.environ['PATH']}"
    env = {"PATH": programs_first, "COLUMNS": "200", "XDG_DATA_HOME": str(tmp_path / "data")}
    commands = parse(path.read_text())
    if "$NETWORKS" in path.read_text():
        networks = tmp_path_factory.mktemp("networks")
        (networks / "wake_word.tflite").write_bytes(wake_word(is_wider=False))
        (networks / "wake_word_wider.tflite").write_bytes(wake_word(is_wider=True))
        env |= {"NETWORKS": str(networks), **AUTHOR}
    assert commands
    for command in commands:
        done = ran(tmp_path, "sh", "-c", command.text, environment=env)
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


def test_the_job_in_the_docs_runs_what_the_session_ran() -> None:
    """The lines of the workflow for pull requests, but for where their output goes."""
    page = (ROOT / "docs/guides/continuous-integration.md").read_text(encoding="utf-8")
    job = page[page.index("on: pull_request") : page.index("If CI builds firmware")]
    lines = [line.strip().partition(" >> ")[0] for line in job.splitlines()]
    wanted = [line for line in lines if line.startswith("buildtool ")]
    ran = [command.text for command in parse((FOLDER / "pull_request.txt").read_text())]
    assert len(wanted) == 3
    assert [line for line in ran if line in wanted] == wanted
