"""The page docs/cmake-first-project.md, done in an empty folder as a newcomer would."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from litert import run_graph
from needs import needs_tool
from paths import ROOT
from programs import ran
from transcript import parse, pattern

from buildtool import zoo
from buildtool.graph.tflite.reader import read_model

PAGE = (ROOT / "docs/cmake-first-project.md").read_text(encoding="utf-8")
FILE = re.compile(r"^`([\w./]+)`[^\n]*:\n\n((?:    [^\n]*\n|\n)+)", re.MULTILINE)
REFUSED = re.compile(r"^      (<any>models/.*)\n        (hint: .*)$", re.MULTILINE)


def plain(block: str) -> str:
    """A block of code without its margin."""
    return re.sub(r"^    ", "", block, flags=re.MULTILINE).strip("\n") + "\n"


def sessions() -> str:
    """All commands of the page with what they print."""
    blocks = re.findall(r"(?:^    [^\n]*\n)+", PAGE, re.MULTILINE)
    return "\n".join(plain(block) for block in blocks if block.startswith("    $ "))


@pytest.mark.slow
def test_the_page_can_be_followed(tmp_path: Path) -> None:
    for tool in ("clang", "qemu-system-arm"):
        needs_tool(tool)
    folder = tmp_path / "a first project"
    folder.mkdir()
    files = dict(FILE.findall(PAGE))
    assert sorted(files) == ["CMakeLists.txt", "main.c"]
    for name, text in files.items():
        (folder / name).write_text(plain(text))
    programs = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {"PATH": programs, "XDG_DATA_HOME": str(tmp_path / "data"), "COLUMNS": "200"}

    def run(command: str) -> subprocess.CompletedProcess[str]:
        return ran(folder, "bash", "-c", command, environment=environment)

    commands = parse(sessions())
    assert len(commands) == 6
    for command in commands:
        done = run(command.text)
        assert re.fullmatch(pattern(command.expected), done.stdout), f"{command.text}\n{done.stdout}"
        assert done.returncode == command.status
        if "qemu" in command.text:
            assert done.returncode == the_reference_s_class()

    lists = folder / "CMakeLists.txt"
    lists.write_text(lists.read_text().replace("RAM 12K", "RAM 4K"))
    done = run("cmake --build build")
    (wanted,) = REFUSED.findall(PAGE)
    assert done.returncode != 0
    assert re.search(pattern([wanted[0], f"  {wanted[1]}"]), done.stdout), done.stdout


def the_reference_s_class() -> int:
    """LiteRT's answer to the input that main.c makes."""
    graph = read_model(zoo.build("ds_cnn"))
    rows, columns = np.arange(49)[:, None], np.arange(10)[None, :]
    image = (rows - columns).astype(np.int8).reshape(1, 49, 10, 1)
    (output,) = graph.outputs
    return int(np.argmax(run_graph(graph, [image])[output]))
