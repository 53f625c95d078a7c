"""The tutorials of docs/start, done in an empty folder as a newcomer would.

project = FirstProject("cmake-first-project.md", tmp_path)
project.follow()                                       # writes the page's files and runs its commands
assert project.shown("qemu") == f"{keyword_class()}\n"
project.check_refusal("CMakeLists.txt", "RAM 12K", "RAM 4K", "cmake --build build")

A page shows what was really printed. What differs from machine to machine is equal after `_same`; a line
`...` on the page stands for any lines.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from litert import interpreter
from paths import ROOT
from programs import ran
from transcript import parse, pattern

from buildtool import zoo
from buildtool.fronts.examples import examples

# A paragraph that begins with the file's name, and the block of code behind it.
_FILE = re.compile(r"^`([\w./]+)`(?:[^\n]+\n)+\n((?:    [^\n]*\n|\n)+)", re.MULTILINE)
_REFUSED = re.compile(r"^ {4,6}(\S[^\n]*: error: .*)\n((?: {5,}.*\n)+)", re.MULTILINE)
_VARIES = {
    r"\d+\.\d+ ?s(ec)?\b": "TIME",
    r"(?m)(?<=written to: ).*|(?<=^Test project ).*": "FOLDER",
    r"(?m)^\[\d+/\d+\]": "[STEP]",
    r"\S*/(?=models/)": "FOLDER/",
    r"(?<=LiteRT )[\d.]+\d": "VERSION",
    r"(?<=takes at most )[\d,]+": "STACK",  # another compiler, another stack
    r" {2,}": " ",
}


class FirstProject:
    """A page, and the folder `name` below `folder` in which it is done. `files`: the page's files by name."""

    def __init__(
        self, page: str, folder: Path, *, name: str = "a first project", home: Path | None = None
    ) -> None:
        self._page = (ROOT / "docs/start" / page).read_text(encoding="utf-8")
        self.files = {name: _plain(text) for name, text in _FILE.findall(self._page)}
        example = examples()[f"tutorial-{page.removesuffix('.md').removesuffix('-first-project')}"]
        assert self.files == {name: (example.folder / name).read_text() for name in example.files}
        self._folder = folder / name
        self._environment = {"XDG_DATA_HOME": str(folder / "data"), "COLUMNS": "200"}
        if home:
            self._environment["HOME"] = str(home)
        self._shown: dict[str, str] = {}

    def follow(self) -> int:
        """Writes the files, runs the commands, checks what they print. Returns the number of commands."""
        self._folder.mkdir()
        for name, text in self.files.items():
            (self._folder / name).write_text(text)
        blocks = re.findall(r"(?:^    [^\n]*\n(?:\n(?=    ))?)+", self._page, re.MULTILINE)
        commands = parse("\n".join(_plain(block) for block in blocks if block.startswith("    $ ")))
        for command in commands:
            done = self.run(command.text)
            wanted = pattern([_same(line) for line in command.expected])
            assert re.fullmatch(wanted, _same(done.stdout)), f"{command.text}\n{done.stdout}"
            assert done.returncode == 0
            self._shown[command.text] = done.stdout
        return len(commands)

    def shown(self, word: str) -> str:
        """Returns what the page's command that has `word` printed."""
        (text,) = (text for command, text in self._shown.items() if word in command)
        return text

    def check_refusal(self, name: str, old: str, new: str, command: str) -> None:
        """Checks that the page's error is printed if the file `name` has `new` instead of `old`."""
        text = self.files[name]
        assert old in text
        (self._folder / name).write_text(text.replace(old, new))
        done = self.run(command)
        ((first, rest),) = _REFUSED.findall(self._page)
        margin = min(len(line) - len(line.lstrip()) for line in rest.splitlines()) - 2
        wanted = [first, *(line[margin:] for line in rest.splitlines())]
        assert done.returncode != 0
        assert "\n".join(map(_same, wanted)) in _same(done.stdout), done.stdout

    def run(self, command: str) -> subprocess.CompletedProcess[str]:
        """Runs a command in the project's folder, with this Python's programs first in PATH."""
        programs = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        return ran(self._folder, "bash", "-c", command, environment={"PATH": programs, **self._environment})


def litert_scores(name: str, images: Iterable[np.ndarray]) -> list[np.ndarray]:
    """LiteRT's outputs of a network of the zoo for some inputs of int8."""
    engine = interpreter(zoo.build(name))
    (reads,), (writes,) = engine.get_input_details(), engine.get_output_details()
    scores = []
    for image in images:
        engine.set_tensor(reads["index"], image.astype(np.int8).reshape(reads["shape"]))
        engine.invoke()
        scores.append(engine.get_tensor(writes["index"])[0].astype(int))
    return scores


def keyword_class() -> int:
    """LiteRT's answer to the input of 49 rows that the main.c of three pages makes."""
    (scores,) = litert_scores("ds_cnn", [np.arange(49)[:, None] - np.arange(10)[None, :]])
    return int(np.argmax(scores))


def _same(text: str) -> str:
    """The text without what differs from machine to machine."""
    for varies, instead in _VARIES.items():
        text = re.sub(varies, instead, text)
    return text


def _plain(block: str) -> str:
    """A block of code without its margin."""
    return re.sub(r"^    ", "", block, flags=re.MULTILINE).strip("\n") + "\n"
