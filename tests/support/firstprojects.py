"""The pages about a first project, done in an empty folder as a newcomer would.

project = FirstProject("cmake-first-project.md", tmp_path)
project.follow()                                       # writes the page's files and runs its commands
project.check_refusal("CMakeLists.txt", "RAM 12K", "RAM 4K", "cmake --build build")
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
from litert import run_graph
from paths import ROOT
from programs import ran
from transcript import parse, pattern

from buildtool import zoo
from buildtool.graph.tflite.reader import read_model

_FILE = re.compile(r"^`([\w./]+)`[^\n]*:\n\n((?:    [^\n]*\n|\n)+)", re.MULTILINE)
_REFUSED = re.compile(r"^      ([^\n]*: error: .*)\n((?:      .*\n)+)", re.MULTILINE)


class FirstProject:
    """A page, and a folder below `folder` in which it is done. `files`: the page's files by name."""

    def __init__(self, page: str, folder: Path) -> None:
        self._page = (ROOT / "docs/start" / page).read_text(encoding="utf-8")
        self.files = {name: _plain(text) for name, text in _FILE.findall(self._page)}
        self._folder = folder / "a first project"
        self._data = folder / "data"

    def follow(self) -> int:
        """Writes the files, runs the commands, checks what they print. Returns the number of commands."""
        self._folder.mkdir()
        for name, text in self.files.items():
            (self._folder / name).write_text(text)
        blocks = re.findall(r"(?:^    [^\n]*\n)+", self._page, re.MULTILINE)
        commands = parse("\n".join(_plain(block) for block in blocks if block.startswith("    $ ")))
        for command in commands:
            done = self._run(command.text)
            assert re.fullmatch(pattern(command.expected), done.stdout), f"{command.text}\n{done.stdout}"
            assert done.returncode == command.status
            if "qemu" in command.text:
                assert done.returncode == _the_reference_s_class()
        return len(commands)

    def check_refusal(self, name: str, old: str, new: str, command: str) -> None:
        """Checks that the page's error is printed if the file `name` has `new` instead of `old`."""
        text = self.files[name]
        assert old in text
        (self._folder / name).write_text(text.replace(old, new))
        done = self._run(command)
        (wanted,) = _REFUSED.findall(self._page)
        lines = [wanted[0], *(line.removeprefix("      ") for line in wanted[1].splitlines())]
        assert done.returncode != 0
        assert re.search(pattern(lines), done.stdout), done.stdout

    def _run(self, command: str) -> subprocess.CompletedProcess[str]:
        programs = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        environment = {"PATH": programs, "XDG_DATA_HOME": str(self._data), "COLUMNS": "200"}
        return ran(self._folder, "bash", "-c", command, environment=environment)


def _plain(block: str) -> str:
    """A block of code without its margin."""
    return re.sub(r"^    ", "", block, flags=re.MULTILINE).strip("\n") + "\n"


def _the_reference_s_class() -> int:
    """LiteRT's answer to the input that each page's main.c makes."""
    graph = read_model(zoo.build("ds_cnn"))
    rows, columns = np.arange(49)[:, None], np.arange(10)[None, :]
    image = (rows - columns).astype(np.int8).reshape(1, 49, 10, 1)
    (output,) = graph.outputs
    return int(np.argmax(run_graph(graph, [image])[output]))
